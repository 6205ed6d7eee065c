// Line-implicit sweeps: the equations of the nodes of a grid line are solved at once, by Thomas's elimination of the
// block-tridiagonal matrix (T. H. Pulliam, von Karman Institute LS 1986-02, section 4; G. H. Golub & C. F. Van Loan,
// Matrix Computations, 4th edition, section 4.5). A line ends at the ends of its block; nodes beyond them are treated
// like all other neighbours.
#pragma once
#include "inverses.h"
#include "neighbours.h"

// What the sweeps read of a node n of a line with the blocks L_n, A_n, U_n, made once for a matrix: the inverse of its pivot
// D_n = A_n - L_n D_(n-1)^-1 U_(n-1), and the products D_n^-1 L_n and D_n^-1 U_n. In sweeps in FP32 the products are kept in the
// numbers of the blocks of neighbours, but not in 8 bits, which are too few for what is multiplied from node to node. In FP64
// they are kept in FP64: rounded to FP32 they would turn the round-off of the pivots into changes of 1e-8 of the update.
#if HX_NEIGHBOUR_BITS == 8 || HX_SWEEP_BITS == 64
struct line_block : kept_inverse {
    HD line_block() = default;
    HD line_block(const real *kept, stride sv) : kept_inverse(kept, sv) {}
    HD static void keep(const real *block, stride sv, real *kept) { keep_inverse(block, sv, kept); }
};
#else
struct line_block : neighbour_block {
    HD line_block() = default;
    HD line_block(const real *kept, stride sv) : neighbour_block(kept, sv, 0) {}
    HD static void keep(const real *block, stride sv, real *kept) {
        real lost[block_entries] = {};
        neighbour_block found;
        found.keep(block, lost);
        found.store(neighbour_place(kept, sv), 0);
    }
    // In the numbers of the sweeps. FP16 entries are 2^-112 times what they stand for (neighbours.h): their products with the
    // small updates of a converging run would be less than the least number of FP32.
    HD void multiply(const swept_real *x, swept_real *product) const {
        constexpr bool narrow = HX_NEIGHBOUR_BITS == 16;
        constexpr swept_real raised = narrow ? swept_real(0x1p64) : swept_real(1), lowered = swept_real(0x1p48);
        swept_real sum[block_variables] = {};
        for (int b = 0; b < block_variables; ++b) {
            const swept_real value = x[b] * (swept_real(over_unit(b)) * raised);
            for (int a = 0; a < block_variables; ++a) sum[a] += swept_real(number_in(words, a, b)) * value;
        }
        for (int a = 0; a < block_variables; ++a) {
            float_bits power;
            power.bits = unsigned(exponent_in(words, a)) << 23;
            product[a] = narrow ? sum[a] * swept_real(power.number) * lowered : sum[a];
        }
    }
};
#endif
constexpr int line_words = HX_LINE_WORDS;
constexpr int factor_reals = inverse_reals + line_words + line_words;

// The lines of a block: `across` times `others` along the two other directions, where a line has the numbers a and b. Node n of
// all lines lies ahead of node n + 1 of any in `factors`, and of these those of the lines with a + b even, which have one
// colour, ahead of the others. So threads that go along neighbouring lines read what lies side by side, for lines along i too.
struct block_line {
    coloured_line nodes;
    int place, lines;
    HD block_line(int a, int b, int across, int others, int o, int sj, int sk, int direction, int step)
        : nodes(o + (direction == 0 ? a * (long long)sj : a) + b * (long long)(direction == 2 ? sj : sk), sj, direction, step),
          place((b * across + a) / 2 + ((a + b) & 1 ? (across * others + 1) / 2 : 0)), lines(across * others) {}
    HD long long factors_at(int n) const { return place + (long long)n * lines; }
};

// Of all lines of `length` nodes that are `step` apart along `direction`: i and j are the indices of a line across.
KERNEL(factor_lines, int i, int j, int k, int o, int sj, int sk, int across, int others, int step, int direction, int length,
       stride sv, const_field<block_reals> blocks, field<factor_reals> factors) {
    (void)k;
    const block_line line(i, j, across, others, o, sj, sk, direction, step);
    real above[block_entries] = {};  // D^-1 U of the node before
    for (int n = 0; n < length; ++n) {
        const long long c = line.nodes.at(n);
        real *const kept = factors + line.factors_at(n);
        real pivot[block_entries], beside[block_entries], product[block_entries] = {};
        const auto block = [&](int side, bool there) {
            const neighbour_block given(blocks, sv, c, stored_side(direction, side));
            for (int e = 0; e < block_entries; ++e)
                beside[e] = there ? given(e / block_variables, e % block_variables) : real(0);
        };
        block(0, n > 0);
        multiply_blocks(beside, above, real(1), product);
        for (int e = 0; e < block_entries; ++e) pivot[e] = blocks[e * sv + c] - product[e];
        invert_block(pivot);
        keep_inverse(pivot, sv, kept);
        multiply_blocks(pivot, beside, real(1), product);
        line_block::keep(product, sv, kept + inverse_reals * sv);
        block(1, n + 1 < length);
        multiply_blocks(pivot, beside, real(1), above);
        line_block::keep(above, sv, kept + (inverse_reals + line_words) * sv);
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

// A step from node to node, from y = `last` of the node before to that of this one, whose right-hand side is `given`:
// y_n = D_n^-1 given_n - D_n^-1 L_n y_(n-1)
HD void line_step(const kept_inverse &inverse, const line_block &lower, const swept_real *given, swept_real *last) {
    swept_real found[block_variables], before[block_variables];
    inverse.multiply(given, found);
    lower.multiply(last, before);
    for (int v = 0; v < block_variables; ++v) last[v] = found[v] - before[v];
}
// And back: x_n = y_n - D_n^-1 U_n x_(n+1)
HD void line_step_back(const line_block &upper, const swept_real *given, swept_real *last) {
    swept_real behind[block_variables];
    upper.multiply(last, behind);
    for (int v = 0; v < block_variables; ++v) last[v] = given[v] - behind[v];
}

// The solution of the equations of these lines takes the place of their right-hand sides. i counts every second one of the
// `across` lines along the first other index, j those along the second.
KERNEL(line_sweep, int i, int j, int k, int o, int sj, int sk, int across, int others, int step, int direction, int length, int first,
       int colour, stride sv, const_field<factor_reals> factors, field<update_reals> update) {
    (void)k;
    const int a = 2 * i + ((j + first + colour) & 1);
    if (a >= across) return;
    const block_line line(a, j, across, others, o, sj, sk, direction, step);
    swept_real given[block_variables], last[block_variables] = {};
    for (int way = 0; way < 2; ++way)
        for (int m = 0; m < length; ++m) {
            const int n = way ? length - 1 - m : m;
            const real *const kept = factors + line.factors_at(n);
            const auto node = numbers_at<block_variables>(update, sv, line.nodes.at(n));
            for (int v = 0; v < block_variables; ++v) given[v] = node[v];
            if (way) line_step_back(line_block(kept + (inverse_reals + line_words) * sv, sv), given, last);
            else line_step(kept_inverse(kept, sv), line_block(kept + inverse_reals * sv, sv), given, last);
            for (int v = 0; v < block_variables; ++v) node[v] = last[v];
        }
}

#ifndef HX_CPU
// The same for a GPU, where the i-th warp takes 32 of these lines. A node of a line waits for the one before it, but what a
// step reads does not: that of the next steps is on its way meanwhile, and there is space on the chip for `line_steps` of them.
// What has the order of the factors is read and written fastest: `values`, where y is kept, and for lines along i also the
// right-hand sides and solutions (turn_lines).
constexpr int line_steps = HX_LINE_STEPS;
constexpr int line_sweep_ahead_own = HX_LINE_STEPS * HX_LINE_STEP_REALS;
ROW_KERNEL(line_sweep_ahead, int i, int j, int k, int o, int sj, int sk, int across, int others, int step, int direction,
           int length, int first, int colour, stride sv, const_field<factor_reals> factors, field<update_reals> update,
           field<update_reals> values) {
    BLOCK_MEMORY(space, line_sweep_ahead_own);
    constexpr int step_words = inverse_reals + line_words;
    auto *const words = reinterpret_cast<unsigned long long *>(space);  // those of a step lane by lane
    auto *const numbers = reinterpret_cast<swept_real *>(words + line_steps * step_words * 32);
    READS_ONCE;
    (void)j, (void)k;
    LANES {
        const int half = (across + 1) / 2, at = 32 * i + lane, b = at / half, a = 2 * (at % half) + ((b + first + colour) & 1);
        const bool there = a < across && b < others;
        const block_line line(there ? a : 0, there ? b : 0, across, others, o, sj, sk, direction, step);
        const auto node = [&](int way, int m) { return way ? length - 1 - m : m; };
        const auto number = [&](bool of_update, int n, int v) -> swept_real & {
            return of_update && direction != 0 ? numbers_at<block_variables>(update, sv, line.nodes.at(n))[v]
                                               : kept_update(values)[v * sv + line.factors_at(n)];
        };
        const auto fetch = [&](int way, int m) {
            if (there && m < length) {
                const int slot = m % line_steps, n = node(way, m), count = way ? line_words : step_words;
                const real *const kept = factors + line.factors_at(n) + (way ? step_words * sv : 0);
                UNROLLED
                for (int w = 0; w < step_words; ++w)
                    if (w < count)
                        FETCH_ONCE(words[(slot * step_words + w) * 32 + lane],
                                   reinterpret_cast<const unsigned long long *>(kept + w * sv));
                UNROLLED
                for (int v = 0; v < block_variables; ++v)
                    FETCH(numbers[(slot * block_variables + v) * 32 + lane], &number(way == 0, n, v));
            }
            FETCH_ENDS;
        };
        swept_real given[block_variables], last[block_variables] = {};
        for (int way = 0; way < 2; ++way) {
            for (int m = 0; m + 1 < line_steps; ++m) fetch(way, m);
            for (int m = 0; m < length && there; ++m) {
                fetch(way, m + line_steps - 1);
                FETCHED_BUT(line_steps - 1);
                const int slot = m % line_steps, n = node(way, m);
                const auto word = [&](int w) { return words[(slot * step_words + w) * 32 + lane]; };
                for (int v = 0; v < block_variables; ++v) given[v] = numbers[(slot * block_variables + v) * 32 + lane];
                line_block block;
                const int begin = way ? 0 : inverse_reals;
                for (int w = 0; w < line_words; ++w) block.words[w] = word(begin + w);
                if (way) {
                    line_step_back(block, given, last);
                } else {
                    kept_inverse inverse;
                    for (int w = 0; w < inverse_reals; ++w) inverse.words[w] = word(w);
                    line_step(inverse, block, given, last);
                }
                for (int v = 0; v < block_variables; ++v) number(way == 1, n, v) = last[v];
            }
        }
    }
}

// Lines of one colour along i, from the update to `values` (`way` 0) or back (1): a warp takes 32 nodes, the i-th ones, of the
// j-th 32 lines of plane k.
ROW_KERNEL(turn_lines, int i, int j, int k, int o, int sj, int sk, int across, int others, int length, int first, int colour,
           int way, stride sv, field<update_reals> update, field<update_reals> values) {
    SHARED swept_real tile[32][33];
    const int begin = 64 * j + ((k + first + colour) & 1);
    const auto number = [&](bool of_update, int v, int line, int node) -> swept_real & {
        const block_line found(begin + 2 * line, k, across, others, o, sj, sk, 0, 1);
        const int n = 32 * i + node;
        return of_update ? numbers_at<block_variables>(update, sv, found.nodes.at(n))[v]
                         : kept_update(values)[v * sv + found.factors_at(n)];
    };
    const auto there = [&](int line, int node) { return begin + 2 * line < across && 32 * i + node < length; };
    for (int v = 0; v < block_variables; ++v) {
        LANES {
            for (int m = 0; m < 32; ++m) {
                const int line = way ? lane : m, node = way ? m : lane;
                if (there(line, node)) tile[line][node] = number(!way, v, line, node);
            }
        }
        LANES {
            for (int m = 0; m < 32; ++m) {
                const int line = way ? m : lane, node = way ? lane : m;
                if (there(line, node)) number(way, v, line, node) = tile[line][node];
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
