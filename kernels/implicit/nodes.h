// Sweeps over single nodes of two colours, and the update that all sweeps solve for.
#pragma once
#include "neighbours.h"

// Of a whole block: the inverse of the diagonal block takes its place.
KERNEL(invert_diagonals, int i, int j, int k, int o, int sj, int sk, stride sv, field<block_reals> blocks) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    real diagonal[block_entries], inverse[block_entries];
    for (int e = 0; e < block_entries; ++e) diagonal[e] = blocks[e * sv + p];
    invert_block(diagonal, inverse);
    for (int e = 0; e < block_entries; ++e) blocks[e * sv + p] = inverse[e];
}

KERNEL(clear_update, int i, int j, int k, int o, int sj, int sk, stride sv, field<block_variables> update) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    for (int v = 0; v < block_variables; ++v) update[v * sv + p] = real(0);
}

// The nodes of one colour, those with i + j + k + first of its parity, solve their own equations with their neighbours'
// last values.
KERNEL(colour_sweep, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, int first, int colour, stride sv,
       const_field<block_reals> blocks, const_field<block_variables> right, field<block_variables> update) {
    if (((i + j + k + first) & 1) != colour) return;
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    const int apart[3] = {di, dj, dk};
    real rest[block_variables];
    for (int v = 0; v < block_variables; ++v) rest[v] = right[v * sv + p];
    for (int d = 0; d < 3; ++d)
        for (int side = 0; side < 2 && apart[d] != 0; ++side) {
            const long long n = side ? p + apart[d] : p - apart[d];
            neighbour_block(blocks, sv, p, 2 * d + side).take(update + n, rest);
        }
    for (int a = 0; a < block_variables; ++a) {
        real sum = real(0);
        for (int b = 0; b < block_variables; ++b) sum += blocks[(a * block_variables + b) * sv + p] * rest[b];
        update[a * sv + p] = sum;
    }
}

KERNEL(update_to_vector, int i, int j, int k, int o, int sj, int sk, stride sv, const_field<block_variables> update,
       field<block_variables> x) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    for (int v = 0; v < block_variables; ++v) x[v * sv + p] = update[v * sv + p];
}
