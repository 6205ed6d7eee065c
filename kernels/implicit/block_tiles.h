// The blocks of nodes without conditions, as those of implicit_blocks (blocks.h), for GPUs: the derivatives of the flux through
// each face are computed once, for both of its nodes, in the numbers of the sweeps. A block of threads owns a tile of columns
// of nodes and marches along k. Threads leave the derivatives of faces in memory that the block shares, one column of a matrix
// after the other, so that the code has one copy of the flux for each of the two states. Behind them each thread adds up the
// diagonal block of its node, in an order that does not depend on the tile.
#pragma once
#include "blocks.h"
#include "inverses.h"
#include "single.h"

#if HX_STORED_DIRECTIONS && !HX_NODE_CONSTANTS && !defined(HX_CPU)
#if HX_SWEEP_BITS == 32
typedef single block_number;
#else
typedef real block_number;
#endif

// of the faces of a tile: the derivatives by the left state, then those by the right one
constexpr int block_tiles_own = 2 * HX_INVERSE_REALS * HX_TILE_THREADS;
constexpr int block_tiles_blocks = sizeof(block_number) == 4 ? 2 : 1;

// What neighbours.h does with the bits of numbers
HD unsigned long long bits_of(single a) { return bits_of(real(a.number)); }
HD single rounded(single a, unsigned long long &bits) {
    float_bits x;
    x.number = a.number, bits = x.bits;
    return a;
}
#if HX_NEIGHBOUR_BITS == 16
HD single to_kept(single a, unsigned long long &entry) {
#if defined(__CUDA_ARCH__)
    unsigned short half;
    single found;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(a.number));
    asm("cvt.f32.f16 %0, %1;" : "=f"(found.number) : "h"(half));
    entry = half;
    return found;
#else
    return to_kept(real(a.number), entry);
#endif
}
#elif HX_NEIGHBOUR_BITS == 8
HD single to_kept(single a, unsigned long long &entry) {
    float_bits sum;
    sum.number = a.number + 0x1.8p23f;  // a whole number in its last bits
    entry = sum.bits & 0xffu;
    return single::of(sum.number - 0x1.8p23f);
}
#endif

// A power of two near a > 0, and one over it: derivatives are computed for a time step over a volume of this size, so that FP32
// holds them in any unit, and that their digits do not depend on which of two nodes has this step.
HD real power_below(real a) { return number_of_bits(bits_of(a) >> 52 << 52); }
HD real over_power_below(real a) { return number_of_bits((2046ull << 52) - (bits_of(a) >> 52 << 52)); }

// The derivatives of the flux through the face between the nodes l and r of direction d, times a power of two near the time step
// over the volume of the node `of`: put(0 by l or 1 by r, entry, its value)
template <class Put>
HD void derivatives_of_face(const_state_pointer q, const work_real *m, const work_real *jacobian, const real *dt, long long l,
                            long long r, long long of, stride sv, int d, real inverse_reynolds, const Put &put) {
    typedef block_number T;
    const real step = dt[of] * jacobian[of], scale = power_below(step);
    const TransportedConstants<T> known;
    T left[block_variables], right[block_variables], area[3];
    for (int v = 0; v < block_variables; ++v)
        left[v] = T(load<real>(q + v * sv + l)), right[v] = T(load<real>(q + v * sv + r));
    for (int c = 0; c < 3; ++c) area[c] = T(real(0.5) * scale * (m[(3 * d + c) * sv + l] + m[(3 * d + c) * sv + r]));
    // where there is no area FP32 does not hold no_area
    if (sizeof(T) == 4) area[0] = select(area[0] == T(real(0)), T(real(1e-18)), area[0]);
    const T face = T(real(0.5) * over_power_below(step) * (jacobian[l] + jacobian[r]));
    const flux_of_face<true, T> of_left{area, face, T(real(0)), inverse_reynolds, known};
    const flux_of_face<false, T> of_right{area, face, T(real(0)), inverse_reynolds, known};
    dual<1, T> f[block_variables];
    ROLLED
    for (int b = 0; b < block_variables; ++b) {
        column_of<true>(left, right, b, of_left, f);
        for (int a = 0; a < block_variables; ++a) put(0, a * block_variables + b, T(f[a].slope[0]));
    }
    ROLLED
    for (int b = 0; b < block_variables; ++b) {
        column_of<false>(left, right, b, of_right, f);
        for (int a = 0; a < block_variables; ++a) put(1, a * block_variables + b, T(f[a].slope[0]));
    }
}

// Of nodes of planes with `rows` rows of `width` nodes, n planes in chunks of `chunk`; all else as for implicit_blocks. Point
// i = HX_TILE_I t stands for tile t, in which the places of a plane follow each other with the ghosts between rows: so threads
// write long pieces of memory. The first place of a tile is the last one of that before it.
TILE_KERNEL(block_tiles, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, int width, int rows, int n, int chunk,
            stride sv, const_state_field<block_variables> q, const_work_field<9> m, const_work_field<1> jacobian,
            const_field<1> dt, const_work_field<HX_WALL_DISTANCE> wall_distance, const_work_field<HX_SPACINGS> grid_spacings,
            const_work_field<HX_EDDY_FIELDS> eddies, const int *sides, int direction, int inverted, real inverse_reynolds,
            real over_cfl, real over_time, field<block_reals> blocks) {
    typedef block_number T;
    BLOCK_MEMORY(memory, block_tiles_own);
    PRIVATE(T, sums, block_entries);  // of the diagonal block
#if HX_TRANSPORTED
    PRIVATE(T, along, 6 * source_entries);  // what its node takes of the sources
#endif
    T *const faces = reinterpret_cast<T *>(memory);
    const int apart[3] = {di, dj, dk}, begin = k * chunk, end = n - begin < chunk ? n : begin + chunk;
    const int first = i / HX_TILE_I * (HX_TILE_THREADS - 1);
    (void)ni, (void)nj, (void)j;
    for (int l = begin - 1; l < end; ++l) {
        // the upper face of each node along i, j and k; along j then the lower one of those whose other node is in another tile
        ROLLED
        for (int turn = l < begin ? 3 : 0; turn < 4; ++turn) {
            const int d = turn < 2 ? turn : turn - 1, below = turn == 2, away = d == 0 ? di : d == 1 ? dj : dk;
            THREADS {
                const int column = (first + thread) % sj - 1, row = (first + thread) / sj;
                const long long p = o + first + thread - 1 + (long long)l * sk, left = below ? p - away : p;
                if (away && row < rows && column < width && (column >= 0 || d == 0) && !(below && thread >= sj)) {
                    const bool within = d == 0 ? column + 1 < width : d == 1 ? below || row + 1 < rows : l + 1 < n;
                    derivatives_of_face(q, m, jacobian, dt, left, left + away, within ? left + away : left, sv, d, inverse_reynolds,
                                        [&](int of, int entry, T value) {
                                            faces[(of * block_entries + entry) * HX_TILE_THREADS + thread] = value;
                                        });
                }
            }
            THREADS {
                const int column = (first + thread) % sj - 1, row = (first + thread) / sj;
                const bool there = thread > 0 && row < rows && column >= 0 && column < width;
                const long long p = o + first + thread - 1 + (long long)l * sk;
                T *const sum = MINE(sums);
                // what a node gets of its face on a side, place `at` among the faces, whose scale is that of the node `of`
                const auto take = [&](long long node, int side, int at, long long of) {
                    const T size = T(dt[node] * jacobian[node] * over_power_below(dt[of] * jacobian[of])), share = side ? size : -size;
                    const T *const own = faces + (side ? 0 : block_entries) * HX_TILE_THREADS + at;
                    const T *const other = faces + (side ? block_entries : 0) * HX_TILE_THREADS + at;
                    UNROLLED
                    for (int e = 0; e < block_entries; ++e) sum[e] = sum[e] + share * own[e * HX_TILE_THREADS];
                    if (HX_STORED_DIRECTIONS < 3 && d != direction) return;
                    T block[block_entries];
                    word<T> words[neighbour_words];
                    UNROLLED
                    for (int e = 0; e < block_entries; ++e) block[e] = share * other[e * HX_TILE_THREADS];
#if HX_TRANSPORTED
                    take_transported(MINE(along) + (2 * d + side) * source_entries, T(real(1)), block);
#endif
                    keep_block(block, sum, words);
                    real *const to = blocks + (block_entries + stored_side(d, side) * neighbour_words) * sv + coloured(node, sj);
                    UNROLLED
                    for (int w = 0; w < neighbour_words; ++w) to[w * sv] = number_of_bits(words[w]);
                };
                const bool own = there && l >= begin && !sides[p];
                const bool within = d == 0 ? column + 1 < width : d == 1 ? row + 1 < rows : l + 1 < n;
                if (own && away && !below) take(p, 1, thread, within ? p + away : p);
                if (own && d == 2) {
                    const long long c = coloured(p, sj);
                    real block[block_entries];
                    UNROLLED
                    for (int e = 0; e < block_entries; ++e) block[e] = to_real(sum[e]);
                    if (inverted) {
                        invert_block(block);
                        keep_inverse(block, sv, blocks + c);
                    } else {
                        UNROLLED
                        for (int e = 0; e < block_entries; ++e) blocks[e * sv + c] = block[e];
                    }
                }
                const bool next = d == 2 && there && l + 1 < end && !sides[p + sk];
                if (next) {
                    const real time = dt[p + sk];
                    UNROLLED
                    for (int e = 0; e < block_entries; ++e)
                        sum[e] = T(e % (block_variables + 1) ? real(0) : over_cfl + time * over_time);
#if HX_TRANSPORTED
                    const node_terms<real> terms(q, m, jacobian, wall_distance, grid_spacings, eddies, p + sk, sv, apart,
                                                 inverse_reynolds);
                    for (int e = 0; e < source_entries; ++e) {
                        const int entry = (transported_at + e / HX_TRANSPORTED) * block_variables + transported_at + e % HX_TRANSPORTED;
                        sum[entry] = sum[entry] - T(time * terms.own[e]);
                        for (int side = 0; side < 6; ++side)
                            MINE(along)[side * source_entries + e] = T(time * terms.along[side][e]);
                    }
#else
                    (void)wall_distance, (void)grid_spacings, (void)eddies, (void)apart;
#endif
                }
                const int lower = d == 0 ? thread - 1 : turn == 1 ? thread - sj : thread;
                if (away && lower >= 0 && !(below && thread >= sj) && (d == 2 ? next : own)) {
                    const long long node = d == 2 ? p + sk : p;
                    take(node, 0, lower, node);
                }
            }
        }
    }
}
#endif
