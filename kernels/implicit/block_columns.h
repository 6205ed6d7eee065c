// The blocks of nodes without conditions, as in implicit_blocks (blocks.h), for GPUs and sweeps in FP32; the
// derivatives are computed in FP32 too. A thread stores a block in on-chip memory, one column after the other. So the
// code has one copy of the flux for each of the two states, and a thread needs half as many registers.
#pragma once
#include "blocks.h"
#include "inverses.h"
#include "single.h"

#if HX_STORED_DIRECTIONS && HX_SWEEP_BITS == 32 && !defined(HX_CPU)
// The operations of neighbours.h on the bits of numbers, for FP32
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
    sum.number = a.number + 0x1.8p23f;  // integer in the low bits
    entry = sum.bits & 0xffu;
    return single::of(sum.number - 0x1.8p23f);
}
#endif

// Calls put(entry, value) for the derivatives of a flux by the left state if `of_left`, else by the right state.
template <bool of_left, class Put>
HD void put_columns(const single *left, const single *right, const flux_of_face<of_left, single> &flux, const Put &put) {
    ROLLED
    for (int b = 0; b < block_variables; ++b) {
        dual<1, single> f[block_variables];
        column_of<of_left>(left, right, b, flux, f);
        for (int a = 0; a < block_variables; ++a) put(a * block_variables + b, single(f[a].slope[0]));
    }
}

constexpr int block_columns_own = block_entries;  // in reals: two blocks of FP32
// If `inverted`, the inverse of the diagonal block is stored in its place; all else is as in implicit_blocks.
LINE_KERNEL(block_columns, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, stride sv,
            const_state_field<block_variables> q, const_work_field<9> m, const_work_field<1> jacobian, const_field<1> dt,
            const_work_field<HX_WALL_DISTANCE> wall_distance, const_work_field<HX_SPACINGS> grid_spacings,
            const_work_field<HX_EDDY_FIELDS> eddies, const int *sides, int direction, int inverted, real inverse_reynolds,
            real over_cfl, real over_time, field<block_reals> blocks) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk, c = coloured(p, sj);
    if (sides[p]) return;
    OWN_MEMORY(single, kept, 2 * block_entries);  // the diagonal block and that of a neighbour
    const int apart[3] = {di, dj, dk};
    const node_terms<single> terms(q, m, jacobian, wall_distance, grid_spacings, eddies, p, sv, apart, inverse_reynolds);
    const real time = dt[p], step = time * jacobian[p];
    single block[block_entries], lost[block_entries];
    for (int e = 0; e < block_entries; ++e)
        block[e] = single(e % (block_variables + 1) ? real(0) : over_cfl + time * over_time);
    terms.take_own(single(time), block);
    for (int e = 0; e < block_entries; ++e) OWN(kept, e) = block[e];
    ROLLED
    for (int d = 0; d < 3; ++d) {
        if (apart[d] == 0) continue;
        const bool stored = HX_STORED_DIRECTIONS == 3 || d == direction;
        ROLLED
        for (int side = 0; side < 2; ++side) {
            const long long n = side ? p + apart[d] : p - apart[d], l = side ? p : n, r = side ? n : p;
            single left[block_variables], right[block_variables], area[3];
            for (int v = 0; v < block_variables; ++v)
                left[v] = single(load<real>(q + v * sv + l)), right[v] = single(load<real>(q + v * sv + r));
            // multiplied by the step, so that the values are near 1 in any unit
            for (int v = 0; v < 3; ++v) area[v] = single(real(0.5) * step * (m[(3 * d + v) * sv + l] + m[(3 * d + v) * sv + r]));
            const single face = single(real(0.5) * (jacobian[l] + jacobian[r]) / step);
            // The value no_area is below the range of FP32. A face with an area is not changed: a small value added
            // along x alone would add a fraction of u to eigenvalues that are 0.
            const bool none = area[0] == single(real(0)) && area[1] == area[0] && area[2] == area[0];
            area[0] = select(none, single(real(1e-18)), area[0]);
            const flux_of_face<true, single> of_left{area, face, terms.eddies, inverse_reynolds, terms.known};
            const flux_of_face<false, single> of_right{area, face, terms.eddies, inverse_reynolds, terms.known};
            if (side || stored)
                put_columns(left, right, of_left, [&](int e, single value) {
                    if (side) OWN(kept, e) = OWN(kept, e) + value;
                    else OWN(kept, block_entries + e) = -value;
                });
            if (!side || stored)
                put_columns(left, right, of_right, [&](int e, single value) {
                    if (side) OWN(kept, block_entries + e) = value;
                    else OWN(kept, e) = OWN(kept, e) - value;
                });
            if (!stored) continue;
            for (int e = 0; e < block_entries; ++e) block[e] = OWN(kept, block_entries + e), lost[e] = single(real(0));
            terms.take_along(2 * d + side, single(time), block);
            unsigned long long words[neighbour_words];
            keep_block(block, lost, words);
            real *const to = blocks + (block_entries + stored_side(d, side) * neighbour_words) * sv + c;
            for (int w = 0; w < neighbour_words; ++w) to[w * sv] = number_of_bits(words[w]);
            for (int e = 0; e < block_entries; ++e) OWN(kept, e) = OWN(kept, e) + lost[e];
        }
    }
    real whole[block_entries];
    for (int e = 0; e < block_entries; ++e) whole[e] = real(OWN(kept, e).number);
    if (inverted) {
        invert_block(whole);
        keep_inverse(whole, sv, blocks + c);
    } else {
        for (int e = 0; e < block_entries; ++e) blocks[e * sv + c] = whole[e];
    }
}
#endif
