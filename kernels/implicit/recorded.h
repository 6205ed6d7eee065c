// What sweeps without stored blocks (implicit.storage = "none") need besides products.h: the records of nodes, the inverses of
// diagonal blocks, and the sweep over nodes on faces with conditions. These nodes have stored blocks, and numbers[p] >= 0.
#pragma once
#include "blocks.h"
#include "inverses.h"
#include "neighbours.h"
#include "records.h"

#if HX_MATRIX_FREE
constexpr int record_reals = HX_RECORD_REALS;

// The records of a whole array with its ghosts: state, faces and Jacobian. The step is 0, which is that of nodes that
// product_sweep leaves out. The last ghosts have no face behind them, and no sweep reads that of a node at the end of a row.
KERNEL(record_nodes, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, stride sv, const_state_field<block_variables> q,
       const_work_field<9> m, const_work_field<1> jacobian, field<record_reals> records) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk, c = coloured(p, sj);
    const auto record = numbers_at<record_numbers>(records, sv, c);
    for (int v = 0; v < block_variables; ++v) record[record_place(v)] = swept_real(q[v * sv + p]);
    const int apart[3] = {di, dj, dk};
    for (int d = 0; d < 3; ++d) {
        const long long behind = p + apart[d] < sv ? p + apart[d] : p;
        for (int n = 0; n < 3; ++n)
            record[record_place(record_faces + 4 * d + n)] =
                swept_real(real(0.5) * (real(m[(3 * d + n) * sv + p]) + real(m[(3 * d + n) * sv + behind])));
        record[record_place(record_faces + 4 * d + 3)] = swept_real(real(0.5) * (real(jacobian[p]) + real(jacobian[behind])));
    }
    record[record_place(record_jacobian)] = swept_real(jacobian[p]);
    record[record_place(record_step)] = swept_real(0);
}

// The step of a node without stored blocks: its time step over its volume.
KERNEL(record_steps, int i, int j, int k, int o, int sj, int sk, stride sv, const_work_field<1> jacobian, const_field<1> dt,
       const int *numbers, field<record_reals> records) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk, c = coloured(p, sj);
    if (numbers[p] < 0) numbers_at<record_numbers>(records, sv, c)[record_place(record_step)] = swept_real(dt[p] * jacobian[p]);
}

#if HX_EDDY_FIELDS
// What a model of turbulence has in the record of such a node
KERNEL(record_turbulence, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, stride sv,
       const_state_field<block_variables> q, const_work_field<9> m, const_work_field<1> jacobian,
       const_work_field<HX_WALL_DISTANCE> wall_distance, const_work_field<HX_SPACINGS> grid_spacings,
       const_work_field<HX_EDDY_FIELDS> eddies, const int *numbers, real inverse_reynolds, field<record_reals> records) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk, c = coloured(p, sj);
    if (numbers[p] >= 0) return;
    const int apart[3] = {di, dj, dk};
    const node_terms<real> terms(q, m, jacobian, wall_distance, grid_spacings, eddies, p, sv, apart, inverse_reynolds);
    real found[record_step - record_terms];
#if HX_TRANSPORTED
    terms.known.put_numbers(found);
    for (int e = 0; e < source_entries; ++e) {
        found[transported_constants + e] = terms.own[e];
        for (int d = 0; d < 3; ++d)
            found[transported_constants + (d + 1) * source_entries + e] =
                real(0.5) * (q[p + apart[d]] * terms.along[2 * d + 1][e] - q[p - apart[d]] * terms.along[2 * d][e]);
    }
#else
    found[0] = terms.eddies;
#endif
    for (int n = record_terms; n < record_step; ++n)
        numbers_at<record_numbers>(records, sv, c)[record_place(n)] = swept_real(found[n - record_terms]);
}
#endif

// Keeps an inverse in FP16 (halves.h). The sum of the sizes of its entries is kept between 2^14 and 2^15, so that entries down
// to 2^-28 of it have 11 bits. A sum that is no number becomes the power.
template <class Kept> HD void keep_halves(const real *inverse, const Kept &kept) {
    real sum = real(0);
    for (int e = 0; e < block_entries; ++e) sum += absolute(inverse[e]);
    const int exponent = int(bits_of(sum) >> 52) - 1023 - 14, power = exponent < -126 ? -126 : exponent > 128 ? 128 : exponent;
    const real over = number_of_bits((unsigned long long)(1023 - power) << 52);
    for (int w = 0; w < half_words; ++w) {
        unsigned long long entry[2] = {0, (unsigned long long)(127 + power) << 7};
        if (power == 128) entry[1] = 0x7fc0;
        for (int e = 2 * w; e < block_entries && e < 2 * w + 2; ++e) to_half(over * inverse[e], entry[e % 2]);
        kept[half_place(w)] = single_of_bits(unsigned(entry[1] << 16 | entry[0]));
    }
}
// An entry of an inverse
template <class Kept> HD real inverse_entry(const Kept &kept, int e) {
    if constexpr (!inverses_in_halves) return real(kept[e]);
    const auto word = [&](int w) { return bits_of_single(float(kept[half_place(w)])); };
    return real(number_of_half(word(e / 2) >> 16 * (e % 2))) * real(single_of_bits(word(half_words - 1) & 0xffff0000u));
}

// The inverse of the diagonal block of each node, in FP64: of a node with stored blocks that of `blocks`, of all others that
// which diagonal_blocks (products.h) has left at the place of the inverse.
KERNEL(invert_recorded, int i, int j, int k, int o, int sj, int sk, stride sv, const int *numbers,
       const_field<block_reals> blocks, field<inverse_reals> inverses) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk, c = coloured(p, sj);
    const auto kept = numbers_at<block_entries>(inverses, sv, c);
    real block[block_entries];
    for (int e = 0; e < block_entries; ++e) block[e] = numbers[p] < 0 ? real(kept[e]) : blocks[e * sv + c];
    invert_block(block);
    if constexpr (inverses_in_halves) keep_halves(block, kept);
    else
        for (int e = 0; e < block_entries; ++e) kept[e] = swept_real(block[e]);
}

// As colour_sweep (nodes.h), for the nodes with stored blocks that have one colour: which[i] is the number of a node among
// those with stored blocks, nodes[number] its place.
KERNEL(face_sweep, int i, int j, int k, const int *which, const int *nodes, int faces, int row, int di, int dj, int dk,
       stride sv, real *of_faces, const_field<inverse_reals> inverses, const_field<update_reals> right,
       field<update_reals> update) {
    const int number = which[i];
    const coloured_node node(nodes[number], row, di, dj, dk);
    const int apart[3] = {di, dj, dk};
    const neighbour_place place(of_faces + number, faces);
    real rest[block_variables];
    for (int v = 0; v < block_variables; ++v) rest[v] = real(kept_update(right)[v * sv + node.at]);
    for (int side = 0; side < 6; ++side)
        if (apart[side / 2] != 0)
            neighbour_block(place, side).take(numbers_at<block_variables>(update, sv, node.at + node.beside[side]), rest);
    const auto inverse = numbers_at<block_entries>(inverses, sv, node.at);
    for (int a = 0; a < block_variables; ++a) {
        real found = real(0);
        for (int b = 0; b < block_variables; ++b) found += inverse_entry(inverse, a * block_variables + b) * rest[b];
        numbers_at<block_variables>(update, sv, node.at)[a] = swept_real(found);
    }
}
#endif
