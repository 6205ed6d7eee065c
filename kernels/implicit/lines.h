// Line-implicit sweeps: the equations of the nodes of a grid line are solved at once, by Thomas's elimination of the
// block-tridiagonal matrix (T. H. Pulliam, von Karman Institute LS 1986-02, section 4; G. H. Golub & C. F. Van Loan,
// Matrix Computations, 4th edition, section 4.5). A line ends at the ends of its block; nodes beyond them are treated
// like all other neighbours.
#pragma once
#include "neighbours.h"

// product = A B
HD void multiply_neighbour(const neighbour_block &a, const real *b, real *product) {
    for (int r = 0; r < block_variables; ++r)
        for (int c = 0; c < block_variables; ++c) {
            real sum = real(0);
            for (int l = 0; l < block_variables; ++l) sum += a(r, l) * b[l * block_variables + c];
            product[r * block_variables + c] = sum;
        }
}

// Inverses of the pivots D_n - L_n D'_(n-1)^-1 U_(n-1) of the lines of `length` nodes that are `step` apart along
// `direction`, of which the range has the first node alone.
KERNEL(factor_lines, int i, int j, int k, int o, int sj, int sk, int step, int direction, int length, stride sv,
       const_field<block_reals> blocks, field<block_entries> factors) {
    const long long begin = o + i + (long long)j * sj + (long long)k * sk;
    real last[block_entries], pivot[block_entries];
    for (int n = 0; n < length; ++n) {
        const long long p = begin + (long long)n * step;
        for (int e = 0; e < block_entries; ++e) pivot[e] = blocks[e * sv + p];
        if (n > 0) {
            const neighbour_block upper(blocks, sv, p - step, 2 * direction + 1);
            real above[block_entries], product[block_entries];
            for (int e = 0; e < block_entries; ++e) above[e] = upper(e / block_variables, e % block_variables);
            multiply_blocks(last, above, real(1), product);
            multiply_neighbour(neighbour_block(blocks, sv, p, 2 * direction), product, above);
            for (int e = 0; e < block_entries; ++e) pivot[e] -= above[e];
        }
        invert_block(pivot, last);
        for (int e = 0; e < block_entries; ++e) factors[e * sv + p] = last[e];
    }
}

HD void multiply_factor(const real *factor, stride sv, const real *x, real *product) {
    for (int a = 0; a < block_variables; ++a) {
        real sum = real(0);
        for (int b = 0; b < block_variables; ++b) sum += factor[(a * block_variables + b) * sv] * x[b];
        product[a] = sum;
    }
}

// The lines of one colour, those of which the sum of the indices across, with `first`, has its parity, solve their
// equations with the last values of the nodes beside them.
KERNEL(line_sweep, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, int direction, int length,
       int first, int colour, stride sv, const_field<block_reals> blocks, const_field<block_entries> factors,
       const_field<block_variables> right, field<block_variables> update) {
    if (((i + j + k + first) & 1) != colour) return;
    const long long begin = o + i + (long long)j * sj + (long long)k * sk;
    const int apart[3] = {di, dj, dk}, step = apart[direction];
    for (int n = 0; n < length; ++n) {
        const long long p = begin + (long long)n * step;
        real rest[block_variables], found[block_variables];
        for (int v = 0; v < block_variables; ++v) rest[v] = right[v * sv + p];
        for (int d = 0; d < 3; ++d)
            for (int side = 0; side < 2 && apart[d] != 0; ++side) {
                if (d == direction && side == 1 && n + 1 < length) continue;
                const long long beyond = side ? p + apart[d] : p - apart[d];
                neighbour_block(blocks, sv, p, 2 * d + side).take(update + beyond, rest);
            }
        multiply_factor(factors + p, sv, rest, found);
        for (int v = 0; v < block_variables; ++v) update[v * sv + p] = found[v];
    }
    for (int n = length - 2; n >= 0; --n) {
        const long long p = begin + (long long)n * step;
        real rest[block_variables] = {}, found[block_variables];
        neighbour_block(blocks, sv, p, 2 * direction + 1).take(update + p + step, rest);
        multiply_factor(factors + p, sv, rest, found);
        for (int v = 0; v < block_variables; ++v) update[v * sv + p] += found[v];
    }
}

// Per column along k and direction d: how many nodes have there a spectral radius, inviscid and viscous, that is more
// than `ratio` times that of each other direction: counts[d][j][i].
KERNEL(stiff_nodes, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, int height, stride sv,
       const_state_field<block_variables> q, const_work_field<9> m, const_work_field<1> jacobian, real inverse_reynolds,
       real ratio, int width, int columns, real *counts) {
    const int apart[3] = {di, dj, dk};
    int found[3] = {0, 0, 0};
    for (int l = 0; l < height; ++l) {
        const long long p = o + i + (long long)j * sj + (long long)l * sk;
        real state[block_variables], radius[3];
        for (int v = 0; v < block_variables; ++v) state[v] = q[v * sv + p];
        const Primitive<real> s = primitive(state);
        const real sound = square_root(gas_gamma * s.p / s.rho);
#ifdef HX_VISCOUS
        const real spread = real(HX_LARGEST_DIFFUSIVITY) * viscosity(gas_gamma * s.p / s.rho) * inverse_reynolds / s.rho;
#else
        const real spread = inverse_reynolds * real(0);
#endif
        for (int d = 0; d < 3; ++d) {
            const real x = m[3 * d * sv + p], y = m[(3 * d + 1) * sv + p], z = m[(3 * d + 2) * sv + p];
            const real square = x * x + y * y + z * z, volume = jacobian[p];
            const real waves = absolute(x * s.u + y * s.v + z * s.w) + sound * square_root(square);
            radius[d] = apart[d] ? waves * volume + spread * square * volume * volume : real(0);
        }
        for (int d = 0; d < 3; ++d) {
            bool most = true;
            for (int e = 0; e < 3; ++e) most = most && (e == d || radius[d] > ratio * radius[e]);
            if (most) ++found[d];
        }
    }
    for (int d = 0; d < 3; ++d) counts[d * columns + j * width + i] = real(found[d]);
}
