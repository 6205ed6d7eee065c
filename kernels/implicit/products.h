// Sweeps over single nodes without stored blocks of neighbours (implicit.storage = "none"): the product of such a block with
// the update of its neighbour is the derivative of the flux through the face between them along this update, which is
// computed anew each time.
#pragma once
#include "coloured.h"
#include "face_flux.h"

// The numbers of a node from which they are computed: its state, its area vectors, its Jacobian, and the time step over the
// volume of a node that is swept so, 0 of all others.
constexpr int record_areas = block_variables, record_jacobian = record_areas + 9, record_step = record_jacobian + 1;
constexpr int record_numbers = HX_RECORD_NUMBERS;
static_assert(record_numbers == record_step + 1, "a record holds these");

// The area vector between a node, of the record `own`, and its neighbour n along direction d
template <class T> HD void area_between(const T *own, const real *records, stride sv, long long n, int d, T *area) {
    for (int c = 0; c < 3; ++c) {
        const int which = record_areas + 3 * d + c;
        area[c] = real(0.5) * (own[which] + load<T>(records + which * sv + n));
    }
}

// f: the flux through the face between a node and its neighbour n, of which one state or the other has derivatives; of a split
// flux without viscous terms the part that does not have them is left out. `of_left`: whether those of the left state are
// wanted.
template <bool of_left, class T>
HD void flux_along(const dual<1, T> *left, const dual<1, T> *right, const T *own, const real *records, stride sv, long long n,
                   int d, real inverse_reynolds, dual<1, T> *f) {
    T area[3];
    area_between(own, records, sv, n, d, area);
#if defined(HX_SPLIT_FLUX) && !defined(HX_VISCOUS)
    const T area2 = area[0] * area[0] + area[1] * area[1] + area[2] * area[2] + no_area, inverse = reciprocal_root(area2);
    flux_splitting::template flux<of_left ? 1 : -1>(of_left ? left : right, area, area2 * inverse, inverse, f);
    (void)inverse_reynolds;
#else
    const T face = real(0.5) * (own[record_jacobian] + load<T>(records + record_jacobian * sv + n));
    face_flux(left, right, area, face, inverse_reynolds, real(0), f);
#endif
}

// A state of the record at n
template <class T> HD void read_state(const real *records, stride sv, long long n, dual<1, T> *state) {
    for (int v = 0; v < block_variables; ++v) state[v] = dual<1, T>(load<T>(records + v * sv + n));
}

// sum = sum + sign dF/dq x, of the face between a node and its neighbour n on a side of direction d; `own`: the record of the
// node, x: the update of the neighbour
template <int side, class T>
HD void add_along(const T *own, const real *records, stride sv, long long n, int d, const real *x, real inverse_reynolds,
                  T *sum) {
    dual<1, T> here[block_variables], there[block_variables], f[block_variables];
    read_state(records, sv, n, there);
    for (int v = 0; v < block_variables; ++v) {
        here[v] = dual<1, T>(own[v]);
        there[v].slope[0] = load<T>(x + v * sv + n);
    }
    flux_along<side == 0>(side ? here : there, side ? there : here, own, records, sv, n, d, inverse_reynolds, f);
    for (int v = 0; v < block_variables; ++v) sum[v] = side ? sum[v] + f[v].slope[0] : sum[v] - f[v].slope[0];
}

// block = block + sign dF/dq by the state of the node itself
template <int side, class T>
HD void add_own(const T *own, const real *records, stride sv, long long n, int d, real inverse_reynolds, T *block) {
    dual<1, T> here[block_variables], there[block_variables], f[block_variables];
    read_state(records, sv, n, there);
    for (int b = 0; b < block_variables; ++b) {
        for (int v = 0; v < block_variables; ++v) {
            here[v] = dual<1, T>(own[v]);
            here[v].slope[0] = T(real(v == b));
        }
        flux_along<side == 1>(side ? here : there, side ? there : here, own, records, sv, n, d, inverse_reynolds, f);
        for (int a = 0; a < block_variables; ++a) {
            T &entry = block[a * block_variables + b];
            entry = side ? entry + f[a].slope[0] : entry - f[a].slope[0];
        }
    }
}

// The diagonal blocks of the nodes of one colour that are swept so, as those of implicit_blocks (blocks.h), in the place of their
// inverses; i counts the places of a colour in a row, which may be one too many.
VECTOR_KERNEL(diagonal_blocks, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, int first, int colour,
              stride sv, real inverse_reynolds, real over_cfl, real over_time, const_field<record_numbers> records,
              field<block_entries> inverses) {
    const int column = 2 * i + ((j + k + first + colour) & 1);
    const coloured_node node(o + column + (long long)j * sj + (long long)k * sk, sj, di, dj, dk);
    const long long at = node.at;
    T own[record_numbers], block[block_entries];
    for (int n = 0; n < record_numbers; ++n) own[n] = load<T>(records + n * sv + at);
    for (int e = 0; e < block_entries; ++e) block[e] = T(real(0));
    if (di != 0) {
        add_own<0>(own, records, sv, at + node.beside[0], 0, inverse_reynolds, block);
        add_own<1>(own, records, sv, at + node.beside[1], 0, inverse_reynolds, block);
    }
    if (dj != 0) {
        add_own<0>(own, records, sv, at + node.beside[2], 1, inverse_reynolds, block);
        add_own<1>(own, records, sv, at + node.beside[3], 1, inverse_reynolds, block);
    }
    if (dk != 0) {
        add_own<0>(own, records, sv, at + node.beside[4], 2, inverse_reynolds, block);
        add_own<1>(own, records, sv, at + node.beside[5], 2, inverse_reynolds, block);
    }
    const T step = own[record_step], on_diagonal = over_cfl + over_time * step / own[record_jacobian];
    for (int e = 0; e < block_entries; ++e) {
        T entry = step * block[e];
        if (e % (block_variables + 1) == 0) entry = entry + on_diagonal;
        real *const kept = inverses + e * sv + at;
        store(kept, select(step > T(real(0)), entry, load<T>(kept)));
    }
}

// The nodes of one colour, as colour_sweep (nodes.h): i counts the places of a colour in a row, which may be one too many.
VECTOR_KERNEL(product_sweep, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, int first, int colour,
              stride sv, real inverse_reynolds, const_field<record_numbers> records, const_field<block_entries> inverses,
              const_field<block_variables> right, field<block_variables> update) {
    const int column = 2 * i + ((j + k + first + colour) & 1);
    const coloured_node node(o + column + (long long)j * sj + (long long)k * sk, sj, di, dj, dk);
    const long long at = node.at;
    T own[record_numbers], sum[block_variables], rest[block_variables];
    for (int n = 0; n < record_numbers; ++n) own[n] = load<T>(records + n * sv + at);
    for (int v = 0; v < block_variables; ++v) sum[v] = T(real(0));
    if (di != 0) {
        add_along<0>(own, records, sv, at + node.beside[0], 0, update, inverse_reynolds, sum);
        add_along<1>(own, records, sv, at + node.beside[1], 0, update, inverse_reynolds, sum);
    }
    if (dj != 0) {
        add_along<0>(own, records, sv, at + node.beside[2], 1, update, inverse_reynolds, sum);
        add_along<1>(own, records, sv, at + node.beside[3], 1, update, inverse_reynolds, sum);
    }
    if (dk != 0) {
        add_along<0>(own, records, sv, at + node.beside[4], 2, update, inverse_reynolds, sum);
        add_along<1>(own, records, sv, at + node.beside[5], 2, update, inverse_reynolds, sum);
    }
    const T step = own[record_step];
    for (int v = 0; v < block_variables; ++v) rest[v] = load<T>(right + v * sv + at) - step * sum[v];
    for (int a = 0; a < block_variables; ++a) {
        T found = T(real(0));
        for (int b = 0; b < block_variables; ++b)
            found = found + load<T>(inverses + (a * block_variables + b) * sv + at) * rest[b];
        store(update + a * sv + at, select(step > T(real(0)), found, load<T>(update + a * sv + at)));
    }
}
