// Where the blocks of a node and the vectors of the sweeps lie: in every row along i of the padded arrays the nodes of even
// columns come first, then those of odd ones. So the nodes of a row that have one colour, every second one, follow each
// other in memory, and a sweep over one colour reads nothing of the other's blocks.
#pragma once

// The same row and variable, column by column: p is a place in a padded array whose rows have `row` nodes.
HD long long coloured(long long p, int row) {
    const int column = int(unsigned(p) % unsigned(row)), half = (row + 1) >> 1;
    return p - column + (column >> 1) + (column & 1 ? half : 0);
}

// A node and its neighbours along the grid lines. apart: the strides of derivatives, 0 along directions with one node
struct coloured_node {
    long long at;
    int beside[6];
    HD coloured_node(long long p, int row, int di, int dj, int dk) {
        const int odd = int(unsigned(p) % unsigned(row)) & 1, half = (row + 1) >> 1;
        at = coloured(p, row);
        beside[0] = di ? (odd ? -half : half - 1) : 0;
        beside[1] = di ? (odd ? 1 - half : half) : 0;
        beside[2] = -dj, beside[3] = dj, beside[4] = -dk, beside[5] = dk;
    }
};

// The nodes of a grid line of a block, `step` apart in a padded array
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
