// What sweeps without stored blocks (implicit.storage = "none") need besides products.h: the records of nodes, the
// inverses of diagonal blocks, and the sweep over nodes on faces with conditions. These nodes have stored blocks, and
// numbers[p] >= 0.
#pragma once
#include "blocks.h"
#include "inverses.h"
#include "neighbours.h"
#include "records.h"

#if HX_MATRIX_FREE
constexpr int record_reals = HX_RECORD_REALS;

HD swept_real &of_record(real *records, stride sv, long long c, int n) {
    return kept_update(records)[place_of_record<swept_real>(sv, c, n)];
}
#if HX_HALF_SWEEPS
// Four numbers, of which FP16 holds the first `count` and the upper half of one in FP32 the others; kept: these numbers
// as rounded, bits: of each
template <int count> HD void round_to_halves(const real *given, real *kept, unsigned *bits) {
    unsigned long long half;
    for (int n = 0; n < count; ++n) kept[n] = to_half(given[n], half), bits[n] = unsigned(half);
    for (int n = count; n < 4; ++n) {
        const unsigned whole = bits_of_single(float(given[n]));
        bits[n] = (whole + 0x7fffu + (whole >> 16 & 1)) >> 16, kept[n] = real(single_of_bits(bits[n] << 16));
    }
}
#endif
// Stores the numbers n to n + 3 of a record. With FP16 the first `halves` are rounded to it, and on a GPU all lie in two
// words at `place`.
template <int halves> HD void keep_four(const real *given, real *records, stride sv, long long c, int n, long long place) {
#if HX_HALF_SWEEPS
    unsigned bits[4];
    real kept[4];
    round_to_halves<halves>(given, kept, bits);
    if constexpr (in_halves) {
        swept_real *const words = kept_update(records) + place;
        for (int m = 0; m < 2; ++m) words[m] = single_of_bits(bits[2 * m + 1] << 16 | bits[2 * m]);
        return;
    }
#else
    const real *const kept = given;
    (void)place;
#endif
    for (int m = 0; m < 4; ++m) of_record(records, sv, c, n + m) = swept_real(kept[m]);
}

// The Jacobian of the node at p in its record
template <class State, class Work>
HD real recorded_jacobian(const State *q, const Work *jacobian, stride sv, long long p, real scale, real inverse_reynolds) {
#if !HX_SPLIT_SWEEPS
    (void)q, (void)sv, (void)inverse_reynolds;
    return real(jacobian[p]) / scale;
#elif defined(HX_VISCOUS)
    real state[block_variables];
    for (int v = 0; v < block_variables; ++v) state[v] = q[v * sv + p];
    const Primitive<real> s = primitive(state);
    return real(2) * real(jacobian[p]) / scale * inverse_reynolds * viscosity(gas_gamma * s.p * s.volume) * s.volume;
#else
    (void)q, (void)jacobian, (void)sv, (void)p, (void)scale, (void)inverse_reynolds;
    return real(0);
#endif
}

// The records of a whole array with its ghosts: state, faces and Jacobian. Areas are multiplied by a power of two,
// `scale`, and volumes too, so that FP16 can hold the areas. The step is set to 0, the mark of nodes that product_sweep
// leaves out. The last ghosts have no face behind them, and no sweep reads the face behind a node at the end of a row.
KERNEL(record_nodes, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, stride sv, real scale, real inverse_reynolds,
       const_state_field<block_variables> q, const_work_field<9> m, const_work_field<1> jacobian, field<record_reals> records) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk, c = coloured(p, sj);
    real state[block_variables];
    for (int v = 0; v < block_variables; ++v) state[v] = q[v * sv + p];
#if HX_SPLIT_SWEEPS
    const Primitive<real> s = primitive(state);
    const real kept[] = {s.u, s.v, s.w, square_root(gas_gamma * s.p * s.volume)};
    keep_four<4>(kept, records, sv, c, 0, place_of_four(sv, c, 0));
    of_record(records, sv, c, record_shift) = swept_real(1);
#else
    for (int v = 0; v < block_variables; ++v) of_record(records, sv, c, v) = swept_real(state[v]);
#endif
    const real own = recorded_jacobian(q, jacobian, sv, p, scale, inverse_reynolds);
    const int apart[3] = {di, dj, dk};
    for (int d = 0; d < 3; ++d) {
        const long long behind = p + apart[d] < sv ? p + apart[d] : p;
        real face[4];
        for (int n = 0; n < 3; ++n)
            face[n] = real(0.5) * of_area * scale * (real(m[(3 * d + n) * sv + p]) + real(m[(3 * d + n) * sv + behind]));
        face[3] = of_jacobian * (own + recorded_jacobian(q, jacobian, sv, behind, scale, inverse_reynolds));
        keep_four<3>(face, records, sv, c, record_faces + 4 * d, place_of_four(sv, c, d + 1));
    }
    of_record(records, sv, c, record_jacobian) = swept_real(own);
    of_record(records, sv, c, record_step) = swept_real(0);
}

// Stores the step of a node without stored blocks: its time step over its volume.
KERNEL(record_steps, int i, int j, int k, int o, int sj, int sk, stride sv, real scale, real over_cfl, real over_time,
       const_work_field<1> jacobian, const_field<1> dt, const int *numbers, field<record_reals> records) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk, c = coloured(p, sj);
    if (numbers[p] >= 0) return;
    const real step = dt[p] * jacobian[p] / scale;
#if HX_SPLIT_SWEEPS
    of_record(records, sv, c, record_step) = swept_real(real(1) / step);
    of_record(records, sv, c, record_shift) = swept_real((over_cfl + over_time * dt[p]) / step);
#else
    (void)over_cfl, (void)over_time;
    of_record(records, sv, c, record_step) = swept_real(step);
#endif
}

#if HX_EDDY_FIELDS
// Stores the quantities of a turbulence model in the record of a node without stored blocks.
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
        of_record(records, sv, c, n) = swept_real(found[n - record_terms]);
}
#endif

// The inverse of the diagonal block of each node, computed in FP64. The block of a node with stored blocks is in
// `blocks`. For all others diagonal_blocks (products.h) has stored it in the place of the inverse.
KERNEL(invert_recorded, int i, int j, int k, int o, int sj, int sk, stride sv, const int *numbers,
       const_field<block_reals> blocks, field<inverse_reals> inverses) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk, c = coloured(p, sj);
    const auto kept = numbers_at<block_entries>(inverses, sv, c);
#if HX_SPLIT_SWEEPS
    if (numbers[p] < 0) return;
#endif
    real block[block_entries];
    for (int e = 0; e < block_entries; ++e) block[e] = numbers[p] < 0 ? real(kept[e]) : blocks[e * sv + c];
    invert_block(block);
    for (int e = 0; e < block_entries; ++e) kept[e] = swept_real(block[e]);
}

// As colour_sweep (nodes.h), for the nodes of one colour with stored blocks. which[i]: number of a node among those
// with stored blocks; nodes[number]: its position.
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
        for (int b = 0; b < block_variables; ++b) found += real(inverse[a * block_variables + b]) * rest[b];
        numbers_at<block_variables>(update, sv, node.at)[a] = swept_real(found);
    }
}
#endif
