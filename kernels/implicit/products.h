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

// sum = sum + sign dF/dq x, of the face between a node and its neighbour n on a side of direction d; `own`: the record of the
// node, x: the update of the neighbour
template <int side, class T>
HD void add_along(const T *own, const real *records, stride sv, long long n, int d, const real *x, real inverse_reynolds,
                  T *sum) {
    typedef dual<1, T> along;
    T area[3];
    along there[block_variables], f[block_variables];
    for (int c = 0; c < 3; ++c) {
        const int which = record_areas + 3 * d + c;
        area[c] = real(0.5) * (own[which] + load<T>(records + which * sv + n));
    }
    for (int v = 0; v < block_variables; ++v) {
        there[v] = along(load<T>(records + v * sv + n));
        there[v].slope[0] = load<T>(x + v * sv + n);
    }
#if defined(HX_SPLIT_FLUX) && !defined(HX_VISCOUS)
    // what leaves the node does not change with the neighbour
    const T area2 = area[0] * area[0] + area[1] * area[1] + area[2] * area[2] + no_area, inverse = reciprocal_root(area2);
    flux_splitting::template flux<side ? -1 : 1>(there, area, area2 * inverse, inverse, f);
    (void)inverse_reynolds;
#else
    along here[block_variables];
    for (int v = 0; v < block_variables; ++v) here[v] = along(own[v]);
    const T face = real(0.5) * (own[record_jacobian] + load<T>(records + record_jacobian * sv + n));
    face_flux(side ? here : there, side ? there : here, area, face, inverse_reynolds, real(0), f);
#endif
    for (int v = 0; v < block_variables; ++v) sum[v] = side ? sum[v] + f[v].slope[0] : sum[v] - f[v].slope[0];
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
