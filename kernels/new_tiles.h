// The state at nodes of new tiles, interpolated from the nodes of the next coarser level (simulation/prolongation.py).
#include "interpolated.h"

// Interpolates node (i, j, k) of a box in q from coarse[variables][wk][wj][wi], a box of the coarser level. Each
// direction has a column for each of its nodes, those along i first. start[c]: the first coarse node along the
// direction. weights[(2, 6)][columns]: of the sixth-order and of the linear interpolation.
KERNEL(new_tile_nodes, int i, int j, int k, int o, int sj, int sk, stride sv, int nodes_i, int nodes_j, int columns, int wi,
       int wj, int wk, const int *start, const real *weights, const stored_real *coarse,
       state_field<conserved_variables> q) {
    constexpr int n = conserved_variables;
    const int column[3] = {i, nodes_i + j, nodes_i + nodes_j + k};
    const long long apart = (long long)wi * wj * wk;
    const stored_real *first = coarse + start[column[0]] + (long long)wi * (start[column[1]] + wj * start[column[2]]);
    real value[2][n];
    for (int set = 0; set < 2; ++set) {
        const real *w = weights + (long long)set * 6 * columns;
        for (int v = 0; v < n; ++v) value[set][v] = real(0);
        for (int c = 0; c < 6; ++c) {
            const real outer = w[c * columns + column[2]];
            if (outer == real(0)) continue;
            real plane[n];
            for (int v = 0; v < n; ++v) plane[v] = real(0);
            for (int b = 0; b < 6; ++b) {
                const real across = w[b * columns + column[1]];
                if (across == real(0)) continue;
                real line[n];
                for (int v = 0; v < n; ++v) line[v] = real(0);
                for (int a = 0; a < 6; ++a) {
                    const real weight = w[a * columns + column[0]];
                    if (weight == real(0)) continue;
                    const stored_real *node = first + a + (long long)wi * (b + wj * c);
                    for (int v = 0; v < n; ++v) line[v] += weight * real(node[v * apart]);
                }
                for (int v = 0; v < n; ++v) plane[v] += across * line[v];
            }
            for (int v = 0; v < n; ++v) value[set][v] += outer * plane[v];
        }
    }
    real found[n];
    smooth_or_linear(value[0], value[1], found);
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    for (int v = 0; v < n; ++v) q[v * sv + p] = found[v];
}
