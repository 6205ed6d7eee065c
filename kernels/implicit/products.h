// Sweeps over single nodes without stored blocks of neighbours (implicit.storage = "none"). The product of such a block
// with the update of its neighbour is the derivative of the flux through the face between them along this update. It is
// computed anew each time.
#pragma once
#include "coloured.h"
#include "flux_columns.h"
#include "halves.h"
#include "records.h"
#include "split_jacobian.h"

// The quantities on which the flux through the face to a neighbour depends, besides the state of the node at `at`
// itself. state: of the neighbour, at `at` + `beside`, on a side of direction d; face: area vector and Jacobian of the
// face, from the record of one of the two nodes.
template <class T> struct recorded_neighbour {
    T state[block_variables], face[4];
    HD recorded_neighbour(const real *records, stride sv, long long at, int beside, int d, int side) {
        load_state(records, sv, at + beside, state);
        for (int v = 4; v < block_variables; ++v) state[v] = load_of_record<T>(records, sv, at + beside, v);
        load_face(records, sv, side ? at : at + beside, d, face);
    }
};

// The same with the update of the neighbour
template <class T> struct updated_neighbour : recorded_neighbour<T> {
    T update[block_variables];
    HD updated_neighbour(const real *records, const real *x, stride sv, long long at, int beside, int d, int side)
        : recorded_neighbour<T>(records, sv, at, beside, d, side) {
        load_numbers<block_variables>(x, sv, at + beside, 0, update);
    }
};

// sum = sum + sign dF/dq x - the change of the sources by x, for the face between a node of the record `own` and its
// neighbour with the update x on a side of direction d.
template <int side, class T>
HD void add_product(const T *own, const recorded_terms<T> &terms, const updated_neighbour<T> &beside, int d,
                    real inverse_reynolds, T *sum) {
#ifdef HX_SPLIT_CHANGE
    if constexpr (block_variables == gas_variables) {
        const T *const m = beside.face, area2 = m[0] * m[0] + m[1] * m[1] + m[2] * m[2] + no_area, over = reciprocal_root(area2);
        const StateChange<T> c(beside.state, beside.update);
        FluxChange<T> change = flux_splitting::template change<side ? -1 : 1>(c, m, area2 * over, over);
        T f[block_variables];
        for (int v = 0; v < block_variables; ++v) f[v] = T(real(0));
        add_viscous_change<side == 0>(c, own, m, beside.face[3], inverse_reynolds, terms.eddies, change, f);
        change.add_to(c, m, f);
        for (int v = 0; v < block_variables; ++v) sum[v] = side ? sum[v] + f[v] : sum[v] - f[v];
        return;
    }
#endif
    dual<1, T> here[block_variables], there[block_variables], f[block_variables];
    for (int v = 0; v < block_variables; ++v) {
        here[v] = dual<1, T>(own[v]), there[v] = dual<1, T>(beside.state[v]);
        there[v].slope[0] = beside.update[v];
    }
    flux_along<side == 0>(side ? here : there, side ? there : here, beside.face, beside.face[3], inverse_reynolds, terms.eddies,
                          terms.known, f);
    for (int v = 0; v < block_variables; ++v) {
        const T change = f[v].slope[0];
        sum[v] = side ? sum[v] + change : sum[v] - change;
    }
    terms.template take_along<side>(own, d, beside.state[0], beside.update, sum);
}
// For single nodes, which are few where packs are used
template <int side>
HD_APART void add_product(const real *own, const recorded_terms<real> &terms, const updated_neighbour<real> &beside, int d,
                          real inverse_reynolds, real *sum) {
    add_product<side, real>(own, terms, beside, d, inverse_reynolds, sum);
}

// The same for both sides of direction d; beside: offsets of the two neighbours. Both neighbours are loaded first, so
// that a thread of a GPU waits for memory once. Loading the neighbours of all directions first takes twice the
// registers and is slower (H200).
template <class T>
HD void add_along(const T *own, const recorded_terms<T> &terms, const real *records, const real *x, stride sv, long long at,
                  const int *beside, int d, real inverse_reynolds, T *sum) {
    const updated_neighbour<T> before(records, x, sv, at, beside[0], d, 0), behind(records, x, sv, at, beside[1], d, 1);
    add_product<0>(own, terms, before, d, inverse_reynolds, sum);
    add_product<1>(own, terms, behind, d, inverse_reynolds, sum);
}

// whole = whole + sign dF/dq, the derivative by the state of the node itself
template <int side, class T>
HD void add_own(const T *own, const recorded_terms<T> &terms, const real *records, stride sv, long long at, int beside, int d,
                real inverse_reynolds, T *whole) {
    const recorded_neighbour<T> other(records, sv, at, beside, d, side);
    T block[block_entries];
    flux_derivative<side == 1>(side ? own : other.state, side ? other.state : own, other.face, other.face[3],
                               inverse_reynolds, terms.eddies, terms.known, block);
    for (int e = 0; e < block_entries; ++e) whole[e] = side ? whole[e] + block[e] : whole[e] - block[e];
}

#if !HX_STORED_DIRECTIONS && !HX_SPLIT_SWEEPS
// The diagonal blocks of the nodes of one colour that have no stored blocks, as in implicit_blocks (blocks.h), stored
// in the place of their inverses. i counts the positions of a colour in a row, which may be one too many.
VECTOR_KERNEL(diagonal_blocks, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, int first, int colour,
              stride sv, real inverse_reynolds, real over_cfl, real over_time, const_chunked_field<record_numbers> records,
              chunked_field<block_entries> inverses) {
    const int column = 2 * i + ((j + k + first + colour) & 1);
    const coloured_node node(o + column + (long long)j * sj + (long long)k * sk, sj, di, dj, dk);
    const long long at = node.at;
    T own[record_numbers], block[block_entries];
    load_record(records, sv, at, own);
    const recorded_terms<T> terms(own);
    for (int e = 0; e < block_entries; ++e) block[e] = T(real(0));
    terms.take_own(own, block);
    if (di != 0) {
        add_own<0>(own, terms, records, sv, at, node.beside[0], 0, inverse_reynolds, block);
        add_own<1>(own, terms, records, sv, at, node.beside[1], 0, inverse_reynolds, block);
    }
    if (dj != 0) {
        add_own<0>(own, terms, records, sv, at, node.beside[2], 1, inverse_reynolds, block);
        add_own<1>(own, terms, records, sv, at, node.beside[3], 1, inverse_reynolds, block);
    }
    if (dk != 0) {
        add_own<0>(own, terms, records, sv, at, node.beside[4], 2, inverse_reynolds, block);
        add_own<1>(own, terms, records, sv, at, node.beside[5], 2, inverse_reynolds, block);
    }
    const T step = own[record_step], on_diagonal = over_cfl + over_time * step / own[record_jacobian];
    for (int e = 0; e < block_entries; ++e) {
        block[e] = step * block[e];
        if (e % (block_variables + 1) == 0) block[e] = block[e] + on_diagonal;
    }
    store_numbers_where<block_entries>(step > T(real(0)), inverses, sv, at, block);
}

// found = (inverse of the diagonal block of the node at c) rest
template <class T> HD void multiply_inverse(const real *inverses, stride sv, long long c, const T *rest, T *found) {
    for (int v = 0; v < block_variables; ++v) found[v] = T(real(0));
    each_number<block_entries, T>(inverses, sv, c, 0, [&](int e, const T &entry) {
        found[e / block_variables] = found[e / block_variables] + entry * rest[e % block_variables];
    });
}

// The sweep over the nodes of one colour, as colour_sweep (nodes.h). i counts the positions of a colour in a row, which
// may be one too many.
VECTOR_KERNEL(product_sweep, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, int first, int colour,
              stride sv, real inverse_reynolds, const_chunked_field<record_numbers> records, const_chunked_field<block_entries> inverses,
              const_field<block_variables> right, chunked_field<block_variables> update) {
    const int column = 2 * i + ((j + k + first + colour) & 1);
    const coloured_node node(o + column + (long long)j * sj + (long long)k * sk, sj, di, dj, dk);
    const long long at = node.at;
    T own[record_numbers], sum[block_variables], rest[block_variables], found[block_variables];
    load_record(records, sv, at, own);
    const recorded_terms<T> terms(own);
    for (int v = 0; v < block_variables; ++v) sum[v] = T(real(0));
    if (di != 0) add_along(own, terms, records, update, sv, at, node.beside, 0, inverse_reynolds, sum);
    if (dj != 0) add_along(own, terms, records, update, sv, at, node.beside + 2, 1, inverse_reynolds, sum);
    if (dk != 0) add_along(own, terms, records, update, sv, at, node.beside + 4, 2, inverse_reynolds, sum);
    const T step = own[record_step];
    for (int v = 0; v < block_variables; ++v) rest[v] = load_right<T>(right + v * sv + at) - step * sum[v];
    multiply_inverse(inverses, sv, at, rest, found);
    store_numbers_where<block_variables>(step > T(real(0)), update, sv, at, found);
}
#endif
