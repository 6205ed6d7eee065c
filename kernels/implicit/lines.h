// Line-implicit sweeps: the equations of the nodes of a grid line are solved at once, by Thomas's elimination of the
// block-tridiagonal matrix (T. H. Pulliam, von Karman Institute LS 1986-02, section 4; G. H. Golub & C. F. Van Loan,
// Matrix Computations, 4th edition, section 4.5). A line ends at the ends of its block; nodes beyond them are treated
// like all other neighbours.
#pragma once
#include "inverses.h"
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
       const_field<block_reals> blocks, field<inverse_reals> factors) {
    const coloured_line line(o + i + (long long)j * sj + (long long)k * sk, sj, direction, step);
    real pivot[block_entries];  // and its inverse
    neighbour_block upper;
    for (int n = 0; n < length; ++n) {
        const long long c = line.at(n);
        real above[block_entries] = {};
        if (n > 0) {
            real product[block_entries];
            for (int e = 0; e < block_entries; ++e) above[e] = upper(e / block_variables, e % block_variables);
            multiply_blocks(pivot, above, real(1), product);
            multiply_neighbour(neighbour_block(blocks, sv, c, stored_side(direction, 0)), product, above);
        }
        for (int e = 0; e < block_entries; ++e) pivot[e] = blocks[e * sv + c] - above[e];
        invert_block(pivot);
        keep_inverse(pivot, sv, factors + c);
        upper = neighbour_block(blocks, sv, c, stored_side(direction, 1));
    }
}

// The right-hand sides of the equations of the lines of one colour, those of which the sum of the indices across, with
// `first`, has its parity, with the last values of the nodes beside them and beyond their ends: they take the place of the
// update of these nodes. Every second row of the range along j, for lines along i, else every second node of a row.
KERNEL(line_right, int i, int j, int k, int o, int sj, int sk, int rows, int columns, int di, int dj, int dk, int direction,
       int length, int first, int colour, stride sv, const_field<block_reals> blocks, const_field<block_variables> right,
       field<update_reals> update) {
    const int column = direction == 0 ? i : 2 * i + (((direction == 1 ? k : j) + first + colour) & 1);
    const int row = direction == 0 ? 2 * j + ((k + first + colour) & 1) : j;
    if (column >= columns || row >= rows) return;
    const coloured_node node(o + column + (long long)row * sj + (long long)k * sk, sj, di, dj, dk);
    const int apart[3] = {di, dj, dk}, at = direction == 0 ? column : direction == 1 ? row : k;
    real rest[block_variables];
    for (int v = 0; v < block_variables; ++v) rest[v] = load_once(right + v * sv + node.at);
    for (int side = 0; side < 6; ++side) {
        const bool within = side / 2 == direction && (side % 2 ? at + 1 < length : at > 0);
        if (apart[side / 2] == 0 || within) continue;
        neighbour_block(blocks, sv, node.at, side).take(numbers_at<block_variables>(update, sv, node.at + node.beside[side]), rest);
    }
    for (int v = 0; v < block_variables; ++v) numbers_at<block_variables>(update, sv, node.at)[v] = swept_real(rest[v]);
}

// The solution of the equations of these lines takes the place of their right-hand sides; the range has their first nodes.
// From the first node on with the blocks of the nodes before (`way` 0), then back with those of the nodes behind (1).
KERNEL(line_sweep, int i, int j, int k, int o, int sj, int sk, int rows, int columns, int step, int direction, int length,
       int first, int colour, stride sv, const_field<block_reals> blocks, const_field<inverse_reals> factors,
       field<update_reals> update) {
    const int column = direction == 0 ? 0 : 2 * i + (((direction == 1 ? k : j) + first + colour) & 1);
    const int row = direction == 0 ? 2 * j + ((k + first + colour) & 1) : j;
    if (column >= columns || row >= rows) return;
    const coloured_line line(o + column + (long long)row * sj + (long long)k * sk, sj, direction, step);
    for (int way = 0; way < 2; ++way) {
        real last[block_variables], rest[block_variables], found[block_variables];
        for (int n = 0; n < length; ++n) {
            const long long c = line.at(way ? length - 1 - n : n);
            const auto kept = numbers_at<block_variables>(update, sv, c);
            for (int v = 0; v < block_variables; ++v) rest[v] = way ? real(0) : real(kept[v]);
            if (n > 0) neighbour_block(blocks, sv, c, stored_side(direction, way)).take(last, rest);
            kept_inverse(factors + c, sv).multiply(rest, found);
            for (int v = 0; v < block_variables; ++v) {
                last[v] = way ? real(kept[v]) + found[v] : found[v];
                kept[v] = swept_real(last[v]);
            }
        }
    }
}

#ifndef HX_CPU
// The same for a GPU. A node of a line waits for the one before it, so that the time of a step decides and not memory: a
// lane for each equation of a node, four lines to a warp, and what a step reads is on its way during the step before.
// Lines 4 i to 4 i + 3 of the range along j, for lines along i, else along i; j counts the other index across.
constexpr int lanes_of_line = 8, lines_of_warp = 32 / lanes_of_line, words_of_step = neighbour_words + inverse_reals;
static_assert(block_variables <= lanes_of_line, "a lane for each equation");
ROW_KERNEL(line_sweep_lanes, int i, int j, int k, int o, int sj, int sk, int rows, int columns, int step, int direction,
           int length, int first, int colour, stride sv, const_field<block_reals> blocks,
           const_field<inverse_reals> factors, field<update_reals> update) {
    SHARED coloured_line lines[lines_of_warp];
    SHARED int there[lines_of_warp];
    SHARED unsigned long long words[2][lines_of_warp][words_of_step];
    SHARED swept_real values[2][lines_of_warp][block_variables];
    SHARED real last[lines_of_warp][block_variables], rest[lines_of_warp][block_variables];
    (void)k;
    LANES {
        if (lane < lines_of_warp) {
            const int across = 2 * (lines_of_warp * i + lane) + ((j + first + colour) & 1);
            const int column = direction == 0 ? 0 : across, row = direction == 0 ? across : direction == 1 ? 0 : j;
            there[lane] = column < columns && row < rows;
            const long long p = o + column + (long long)row * sj + (long long)(direction == 2 ? 0 : j) * sk;
            lines[lane] = coloured_line(there[lane] ? p : o, sj, direction, step);
        }
    }
    // what step n of a way reads
    const auto fetch = [&](int lane, int way, int n) {
        const int l = lane / lanes_of_line;
        if (!there[l]) return;
        const long long c = lines[l].at(way ? length - 1 - n : n);
        const int side = stored_side(direction, way);
        for (int w = lane % lanes_of_line; w < words_of_step; w += lanes_of_line) {
            const real *from = w < neighbour_words ? blocks + (block_entries + side * neighbour_words + w) * sv + c
                                                   : factors + (w - neighbour_words) * sv + c;
            FETCH(words[n & 1][l][w], reinterpret_cast<const unsigned long long *>(from));
        }
        const int v = lane % lanes_of_line;
        if (v < block_variables) FETCH(values[n & 1][l][v], &numbers_at<block_variables>(update, sv, c)[v]);
    };
    for (int way = 0; way < 2; ++way) {
        LANES {
            fetch(lane, way, 0);
            FETCHED;
        }
        for (int n = 0; n < length; ++n) {
            LANES {
                const int l = lane / lanes_of_line, a = lane % lanes_of_line;
                if (n + 1 < length) fetch(lane, way, n + 1);
                if (a < block_variables) {
                    real sum = real(0);
                    if (n > 0)
                        for (int b = 0; b < block_variables; ++b)
                            sum += real(number_in(words[n & 1][l], a, b)) * (last[l][b] * over_unit(b));
                    const real begin = way ? real(0) : real(values[n & 1][l][a]);
                    rest[l][a] = n > 0 ? begin - power_of_row(exponent_in(words[n & 1][l], a)) * sum : begin;
                }
            }
            LANES {
                const int l = lane / lanes_of_line, a = lane % lanes_of_line;
                if (there[l] && a < block_variables) {
                    real found = real(0);
                    for (int b = 0; b < block_variables; ++b)
                        found += real(inverse_in(words[n & 1][l] + neighbour_words, a, b)) * rest[l][b];
                    if (way) found = real(values[n & 1][l][a]) + found;
                    last[l][a] = found;
                    numbers_at<block_variables>(update, sv, lines[l].at(way ? length - 1 - n : n))[a] = swept_real(found);
                }
                FETCHED;
            }
        }
    }
}
#endif

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
