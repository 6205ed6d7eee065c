// Line-implicit sweeps: the equations of the nodes of a grid line are solved together, by Thomas's elimination of the
// block-tridiagonal matrix (T. H. Pulliam, von Karman Institute LS 1986-02, section 4; G. H. Golub & C. F. Van Loan,
// Matrix Computations, 4th edition, section 4.5). A line ends at the ends of its block. Nodes beyond the ends are
// treated like all other neighbours.
#pragma once
#include "inverses.h"
#include "neighbours.h"

// Node n of a line has the blocks L_n, A_n, U_n. Sweeps in FP32 read the inverse of its pivot D_n = A_n - L_n
// D_(n-1)^-1 U_(n-1) and the products D_n^-1 L_n and D_n^-1 U_n, computed once for a matrix. The products are stored in
// FP16 if the blocks of neighbours are, else in FP32: 8 bits are too few for products that are multiplied from node to
// node. Sweeps in FP64 read the inverse and copies of the stored blocks L_n and U_n: products in so few bits would turn
// the round-off of the pivots into changes of 1e-8 of the update.
constexpr bool of_products = HX_SWEEP_BITS == 32;
constexpr int line_words = HX_LINE_WORDS;
constexpr int factor_reals = HX_FACTOR_REALS;
#if HX_SWEEP_BITS == 32
template <class T> using line_number = swept_real;
template <class T> struct line_block {
    word<T> words[line_words];
    HD line_block() = default;
    HD line_block(const real *kept, stride sv) {
        for (int n = 0; n < line_words; ++n) words[n] = load_word<T>(kept + n * sv);
    }
#if HX_NEIGHBOUR_BITS == 16
    HD static void keep(const real *block, stride sv, real *kept) {
        real lost[block_entries] = {};
        neighbour_block found;
        found.keep(block, lost);
        found.store(neighbour_place(kept, sv), 0);
    }
    HD void multiply(const T *x, T *product) const {
        T sum[block_variables] = {};
        for (int b = 0; b < block_variables; ++b) {
            const T value = x[b] * T(over_unit(b));
            for (int a = 0; a < block_variables; ++a) sum[a] += number_in<T>(words, a, b) * value;
        }
        for (int a = 0; a < block_variables; ++a) product[a] = power_of_row<T>(words, a) * sum[a];
    }
#else
    HD static void keep(const real *block, stride sv, real *kept) { keep_pairs(block, sv, kept); }
    HD void multiply(const T *x, T *product) const {
        for (int a = 0; a < block_variables; ++a) {
            T sum = T(real(0));
            for (int b = 0; b < block_variables; ++b) sum += pair_entry<T>(words, a, b) * x[b];
            product[a] = sum;
        }
    }
#endif
};
#else
template <class T> using line_number = T;
template <class T> using line_block = neighbours_of<T>;
#endif

// The lines of a block: `across` times `others` along the two other directions, in which a line has the indices a and
// b. In `factors` node n of all lines comes before node n + 1 of any line. Within a node number, the lines with a + b
// even, which have one colour, come before the others. So threads on neighbouring lines read adjacent memory, for lines
// along i too.
struct block_line {
    coloured_line nodes;
    int place, lines;
    HD block_line(int a, int b, int across, int others, int o, int sj, int sk, int direction, int step)
        : nodes(o + (direction == 0 ? a * (long long)sj : a) + b * (long long)(direction == 2 ? sj : sk), sj, direction, step),
          place((b * across + a) / 2 + ((a + b) & 1 ? (across * others + 1) / 2 : 0)), lines(across * others) {}
    HD long long factors_at(int n) const { return place + (long long)n * lines; }
};

// Computes the factors of all lines of `length` nodes, `step` apart along `direction`. i, j: the indices of a line
// across
KERNEL(factor_lines, int i, int j, int k, int o, int sj, int sk, int across, int others, int step, int direction, int length,
       stride sv, const_field<block_reals> blocks, field<factor_reals> factors) {
    (void)k;
    const block_line line(i, j, across, others, o, sj, sk, direction, step);
    real above[block_entries] = {};  // D^-1 U of the previous node
    for (int n = 0; n < length; ++n) {
        const long long c = line.nodes.at(n);
        real *const kept = factors + line.factors_at(n);
        real pivot[block_entries], beside[block_entries], product[block_entries] = {};
        const auto block = [&](int side, bool there) {
            const neighbour_block given(blocks, sv, c, stored_side(direction, side));
            for (int e = 0; e < block_entries; ++e)
                beside[e] = there ? given(e / block_variables, e % block_variables) : real(0);
#if HX_SWEEP_BITS == 64
            given.store(neighbour_place(kept + inverse_reals * sv, sv), side);
#endif
        };
        block(0, n > 0);
        multiply_blocks(beside, above, real(1), product);
        for (int e = 0; e < block_entries; ++e) pivot[e] = blocks[e * sv + c] - product[e];
        invert_block(pivot);
        keep_inverse(pivot, sv, kept);
#if HX_SWEEP_BITS == 32
        multiply_blocks(pivot, beside, real(1), product);
        line_block<real>::keep(product, sv, kept + inverse_reals * sv);
#endif
        block(1, n + 1 < length);
        multiply_blocks(pivot, beside, real(1), above);
#if HX_SWEEP_BITS == 32
        line_block<real>::keep(above, sv, kept + (inverse_reals + line_words) * sv);
#endif
    }
}

// The right-hand sides of the equations of the lines of one colour, for which the sum of the indices across and `first`
// has the parity of the colour. They contain the last values of the nodes beside the lines and beyond their ends. They
// replace the update at the nodes of the lines, or are stored in `values` in the order of the factors. i counts every
// second node of a row; for lines along i, i counts those of the given parity and j every second row.
KERNEL(line_right, int i, int j, int k, int o, int sj, int sk, int rows, int columns, int di, int dj, int dk, int direction,
       int length, int across, int others, int parity, int first, int colour, stride sv, const_field<block_reals> blocks,
       const_field<block_variables> right, field<update_reals> update, optional<field<update_reals>> values) {
    const int column = 2 * i + (direction == 0 ? parity : ((direction == 1 ? k : j) + first + colour) & 1);
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
    const int a = direction == 0 ? row : column, b = direction == 2 ? row : k;
    const long long place = values ? block_line(a, b, across, others, o, sj, sk, direction, 0).factors_at(at) : node.at;
    const auto found = numbers_at<block_variables>(values ? values : update, sv, place);
    for (int v = 0; v < block_variables; ++v) found[v] = swept_real(rest[v]);
}

// A forward step from node to node: y_n = D_n^-1 given_n - D_n^-1 L_n y_(n-1). given: the right-hand side of the node;
// last: y of the previous node, replaced by that of this one. A T holds one node, or one of each of several lines.
template <class T> HD void line_step(const kept_inverse<T> &inverse, const line_block<T> &lower, const T *given, T *last) {
#if HX_SWEEP_BITS == 32
    T found[block_variables], before[block_variables];
    inverse.multiply(given, found);
    lower.multiply(last, before);
    for (int v = 0; v < block_variables; ++v) last[v] = found[v] - before[v];
#else
    T rest[block_variables];
    for (int v = 0; v < block_variables; ++v) rest[v] = given[v];
    lower.take(last, rest);
    inverse.multiply(rest, last);
#endif
}
// A backward step: x_n = y_n - D_n^-1 U_n x_(n+1), with y in `given`. In FP32 `read_inverse` is not called.
template <class T, class ReadInverse>
HD void line_step_back(const ReadInverse &read_inverse, const line_block<T> &upper, const T *given, T *last) {
    T behind[block_variables];
#if HX_SWEEP_BITS == 32
    (void)read_inverse;
    upper.multiply(last, behind);
    for (int v = 0; v < block_variables; ++v) last[v] = given[v] - behind[v];
#else
    T rest[block_variables] = {};
    upper.take(last, rest);
    read_inverse().multiply(rest, behind);
    for (int v = 0; v < block_variables; ++v) last[v] = given[v] + behind[v];
#endif
}

// The solution of the equations of these lines replaces their right-hand sides. i counts every second one of the
// `across` lines along the first other index, j the lines along the second. In FP32 each line is solved alone, since
// packs of lines take longer there.
VECTOR_KERNEL(line_sweep, int i, int j, int k, int o, int sj, int sk, int across, int others, int step, int direction, int length,
              int first, int colour, stride sv, const_field<factor_reals> factors, field<update_reals> update) {
    (void)k;
    typedef line_number<T> number;
    for (int lane = 0; lane < lanes_of<T>; lane += lanes_of<number>) {
        const int a = 2 * (i + lane) + ((j + first + colour) & 1);
        if (a >= across) return;
        const block_line line(a, j, across, others, o, sj, sk, direction, step);
        const long long between = direction == 0 ? 2 * sj : 1;
        for (int way = 0; way < 2; ++way) {
            number given[block_variables], last[block_variables] = {};
            for (int m = 0; m < length; ++m) {
                const int n = way ? length - 1 - m : m;
                const long long c = line.nodes.at(n);
                const real *const kept = factors + line.factors_at(n);
                load_update(update, sv, c, between, given);
                const line_block<number> block(kept + (inverse_reals + way * line_words) * sv, sv);
                const auto inverse = [&] { return kept_inverse<number>(kept, sv); };
                if (way) line_step_back(inverse, block, given, last);
                else line_step(inverse(), block, given, last);
                store_update(update, sv, c, between, of_colour<number>(a, across), last);
            }
        }
    }
}

#ifndef HX_CPU
// The same for a GPU, where the i-th warp takes 32 of these lines. A node of a line depends on the previous node, but
// the data that a step reads do not. So the data of the next steps are fetched ahead, into on-chip memory for
// `line_steps` of them. Arrays in the order of the factors are read and written fastest: `values`, which holds y, if
// `ordered` the right-hand sides, and for lines along i the solutions (turn_lines).
constexpr int line_steps = HX_LINE_STEPS;
constexpr int line_sweep_ahead_own = HX_LINE_STEPS * HX_LINE_STEP_REALS;
ROW_KERNEL(line_sweep_ahead, int i, int j, int k, int o, int sj, int sk, int across, int others, int step, int direction,
           int length, int first, int colour, int ordered, stride sv, const_field<factor_reals> factors,
           field<update_reals> update, field<update_reals> values) {
    BLOCK_MEMORY(space, line_sweep_ahead_own);
    constexpr int step_words = inverse_reals + line_words;
    auto *const words = reinterpret_cast<unsigned long long *>(space);  // the words of a step, lane by lane
    auto *const numbers = reinterpret_cast<swept_real *>(words + line_steps * step_words * 32);
    (void)j, (void)k;
    LANES {
        const int half = (across + 1) / 2, at = 32 * i + lane, b = at / half, a = 2 * (at % half) + ((b + first + colour) & 1);
        const bool there = a < across && b < others;
        const block_line line(there ? a : 0, there ? b : 0, across, others, o, sj, sk, direction, step);
        const auto number = [&](bool in_order, int n, int v) -> swept_real & {
            return in_order ? numbers_at<block_variables>(values, sv, line.factors_at(n))[v]
                            : numbers_at<block_variables>(update, sv, line.nodes.at(n))[v];
        };
        const auto node = [&](int way, int m) { return way ? length - 1 - m : m; };
        // The address of word w that a step reads: the inverse before the block; backward steps in FP32 read no
        // inverse.
        const auto word_at = [&](int way, int n, int w) -> const real * {
            const int beyond = way == 0 ? 0 : of_products ? step_words : w < inverse_reals ? 0 : line_words;
            return factors + line.factors_at(n) + (w + beyond) * sv;
        };
        const auto fetch = [&](int way, int m) {
            if (there && m < length) {
                const int slot = m % line_steps, n = node(way, m), count = way && of_products ? line_words : step_words;
                UNROLLED
                for (int w = 0; w < count; ++w)
                    FETCH(words[(slot * step_words + w) * 32 + lane],
                          reinterpret_cast<const unsigned long long *>(word_at(way, n, w)));
                UNROLLED
                for (int v = 0; v < block_variables; ++v)
                    FETCH(numbers[(slot * block_variables + v) * 32 + lane], &number(way || ordered, n, v));
            }
            FETCH_ENDS;
        };
        UNROLLED
        for (int way = 0; way < 2; ++way) {
            swept_real given[block_variables], last[block_variables] = {};
            const bool inverted = way == 0 || !of_products;
            for (int m = 0; m + 1 < line_steps; ++m) fetch(way, m);
            for (int m = 0; m < length && there; ++m) {
                fetch(way, m + line_steps - 1);
                FETCHED_BUT(line_steps - 1);
                const int slot = m % line_steps, n = node(way, m);
                const auto word = [&](int w) { return words[(slot * step_words + w) * 32 + lane]; };
                for (int v = 0; v < block_variables; ++v) given[v] = numbers[(slot * block_variables + v) * 32 + lane];
                line_block<swept_real> block;
                for (int w = 0; w < line_words; ++w) block.words[w] = word((inverted ? inverse_reals : 0) + w);
                const auto inverse = [&] {
                    kept_inverse<swept_real> found;
                    for (int w = 0; w < inverse_reals; ++w) found.words[w] = word(w);
                    return found;
                };
                if (way) line_step_back(inverse, block, given, last);
                else line_step(inverse(), block, given, last);
                for (int v = 0; v < block_variables; ++v) number(way == 0 || direction == 0, n, v) = last[v];
            }
        }
    }
}

// Copies lines of one colour along i from the update to `values` (`way` 0) or back (1). A warp takes 32 nodes, those
// from 32 i on, of the j-th 32 lines of plane k.
ROW_KERNEL(turn_lines, int i, int j, int k, int o, int sj, int sk, int across, int others, int length, int first, int colour,
           int way, stride sv, field<update_reals> update, field<update_reals> values) {
    SHARED swept_real tile[32][33];
    const int begin = 64 * j + ((k + first + colour) & 1), left = begin < across ? (across - begin + 1) / 2 : 0;
    const int nodes = length - 32 * i;
    const block_line found(left ? begin : 0, k, across, others, o, sj, sk, 0, 1);
    // A lane writes a number to the tile (`keep`) or reads it, so that neighbouring lanes access adjacent memory. NVRTC
    // 13.0 does not compile lambdas with arguments of any type.
    const auto exchange = [&](int line, int node, bool keep, swept_real &number) {
        if (keep) tile[line][node] = number;
        else number = tile[line][node];
    };
    const auto with_update = [&](int lane, int v, bool keep) {
        const long long at = found.nodes.at(32 * i + lane);
        ROLLED
        for (int m = 0; m < 32; m += 8)
            UNROLLED
            for (int line = m; line < m + 8; ++line)
                if (line < left && lane < nodes)
                    exchange(line, lane, keep, numbers_at<block_variables>(update, sv, at + 2 * line * (long long)sj)[v]);
    };
    const auto with_values = [&](int lane, int v, bool keep) {
        const long long at = found.factors_at(32 * i) + lane;
        ROLLED
        for (int m = 0; m < 32; m += 8)
            UNROLLED
            for (int node = m; node < m + 8; ++node)
                if (lane < left && node < nodes)
                    exchange(lane, node, keep, numbers_at<block_variables>(values, sv, at + node * (long long)found.lines)[v]);
    };
    ROLLED
    for (int v = 0; v < block_variables; ++v) {
        LANES {
            if (way) with_values(lane, v, true);
            else with_update(lane, v, true);
        }
        LANES {
            if (way) with_update(lane, v, false);
            else with_values(lane, v, false);
        }
    }
}
#endif

// counts[d][j][i]: in each column along k, the number of nodes whose spectral radius along direction d, inviscid plus
// viscous, is more than `ratio` times that along each other direction.
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
