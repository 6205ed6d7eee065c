// The memory layout of the blocks of nodes and of the vectors of the sweeps. In every row along i of the padded arrays
// the nodes of even columns come first, then those of odd ones. The nodes of one colour, every second one of a row, are
// thus contiguous in memory, and a sweep over one colour reads no blocks of the other.
#pragma once

// The position in this layout of position p in a padded array whose rows have `row` nodes; row and variable stay the
// same.
HD long long coloured(long long p, int row) {
    const int column = int(unsigned(p) % unsigned(row)), half = (row + 1) >> 1;
    return p - column + (column >> 1) + (column & 1 ? half : 0);
}

// A node and the offsets of its neighbours along the grid lines. di, dj, dk: strides of derivatives, 0 along directions
// with one node
struct coloured_node {
    long long at;
    int beside[6];
    HD coloured_node(long long p, int row, int di, int dj, int dk)
        : coloured_node(p - int(unsigned(p) % unsigned(row)), int(unsigned(p) % unsigned(row)), row, di, dj, dk) {}
    // The node at `column` of the row that begins at position `begin`; a GPU then needs no division.
    HD coloured_node(long long begin, int column, int row, int di, int dj, int dk) {
        const int odd = column & 1, half = (row + 1) >> 1;
        at = begin + (column >> 1) + (odd ? half : 0);
        beside[0] = di ? (odd ? -half : half - 1) : 0;
        beside[1] = di ? (odd ? 1 - half : half) : 0;
        beside[2] = -dj, beside[3] = dj, beside[4] = -dk, beside[5] = dk;
    }
};

// The nodes of a grid line of a block; step: their distance in a padded array
struct coloured_line {
    long long first;
    int column, half, step;
    HD coloured_line() = default;
    HD coloured_line(long long p, int row, int direction, int step) : half((row + 1) >> 1), step(step) {
        column = direction == 0 ? int(unsigned(p) % unsigned(row)) : -1;
        first = direction == 0 ? p - column : coloured(p, row);
    }
    HD long long at(int n) const {
        if (column < 0) return first + (long long)n * step;
        return first + ((column + n) >> 1) + ((column + n) & 1 ? half : 0);
    }
};
