// Sweeps over single nodes of two colours, and the vectors that all sweeps read and solve for
#pragma once
#include "inverses.h"
#include "neighbours.h"

// The right-hand side of the sweeps; it is in the precision of the sweeps if the products with blocks are computed anew
constexpr int right_reals = HX_RIGHT_REALS;
#if HX_MATRIX_FREE
HD swept_real *kept_right(real *right) { return kept_update(right); }
#else
HD real *kept_right(real *right) { return right; }
#endif

// Over a whole array with its ghosts: copies the right-hand side to the layout of the sweeps and sets the update to 0.
KERNEL(begin_sweeps, int i, int j, int k, int o, int sj, int sk, stride sv, const_field<block_variables> x,
       field<right_reals> right, field<update_reals> update) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk, c = coloured(p, sj);
    for (int v = 0; v < block_variables; ++v) {
        kept_right(right)[v * sv + c] = x[v * sv + p];
        numbers_at<block_variables>(update, sv, c)[v] = swept_real(0);
    }
}

// Over a whole block: replaces the diagonal block by its inverse. With `sides` only at nodes with conditions, where all
// other nodes have the inverse already.
KERNEL(invert_diagonals, int i, int j, int k, int o, int sj, int sk, stride sv, optional<const int *> sides,
       field<block_reals> blocks) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk, c = coloured(p, sj);
    if (sides && !sides[p]) return;
    real block[block_entries];
    for (int e = 0; e < block_entries; ++e) block[e] = blocks[e * sv + c];
    invert_block(block);
    keep_inverse(block, sv, blocks + c);
}

// The nodes of one colour, for which i + j + k + first has the parity of the colour, solve their own equations with the
// last values of their neighbours. i counts the nodes of this colour in a row of `length` nodes.
KERNEL(colour_sweep, int i, int j, int k, int o, int sj, int sk, int length, int di, int dj, int dk, int first, int colour,
       stride sv, const_field<block_reals> blocks, const_field<block_variables> right, field<update_reals> update) {
    const int column = 2 * i + ((j + k + first + colour) & 1);
    if (column >= length) return;
    const coloured_node node(o + column + (long long)j * sj + (long long)k * sk, sj, di, dj, dk);
    const int apart[3] = {di, dj, dk};
    real rest[block_variables], found[block_variables];
    for (int v = 0; v < block_variables; ++v) rest[v] = load_once(right + v * sv + node.at);
    for (int side = 0; side < 6; ++side)
        if (apart[side / 2] != 0)
            neighbour_block(blocks, sv, node.at, side).take(numbers_at<block_variables>(update, sv, node.at + node.beside[side]), rest);
    kept_inverse<real>(blocks + node.at, sv).multiply(rest, found);
    for (int v = 0; v < block_variables; ++v) numbers_at<block_variables>(update, sv, node.at)[v] = swept_real(found[v]);
}

KERNEL(update_to_vector, int i, int j, int k, int o, int sj, int sk, stride sv, const_field<update_reals> update,
       field<block_variables> x) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk, c = coloured(p, sj);
    for (int v = 0; v < block_variables; ++v) x[v * sv + p] = real(numbers_at<block_variables>(update, sv, c)[v]);
}

// Copies, between parts of one process, the update at the nodes giving[i] of an array with rows of `source_row` nodes
// to the ghosts at to[i] of another array.
KERNEL(copy_update, int i, int j, int k, const int *to, const int *giving, int source_row, stride source_sv,
       const real *source, int target_row, stride target_sv, real *target) {
    const long long from = coloured(giving[i], source_row), at = coloured(to[i], target_row);
    for (int v = 0; v < block_variables; ++v)
        numbers_at<block_variables>(target, target_sv, at)[v] = numbers_at<block_variables>(source, source_sv, from)[v];
}

// For an exchange with other processes, or by interpolation: copies the update at the positions p[i] from the layout of
// the sweeps to padded arrays, and back.
KERNEL(update_to_exchange, int i, int j, int k, const int *p, int row, stride sv, const_field<update_reals> update,
       field<block_variables> exchanged) {
    for (int v = 0; v < block_variables; ++v) exchanged[v * sv + p[i]] = real(numbers_at<block_variables>(update, sv, coloured(p[i], row))[v]);
}
KERNEL(update_from_exchange, int i, int j, int k, const int *p, int row, stride sv, const_field<block_variables> exchanged,
       field<update_reals> update) {
    for (int v = 0; v < block_variables; ++v) numbers_at<block_variables>(update, sv, coloured(p[i], row))[v] = swept_real(exchanged[v * sv + p[i]]);
}
