// The record of a node, from which sweeps without stored blocks of neighbours compute products with them: its state, the area
// vector of the face behind it along each direction, its Jacobian, what a model of turbulence has there, and the time step over
// the volume of a node that is swept so, 0 of all others.
#pragma once
#include "chunks.h"
#include "face_flux.h"
#include "halves.h"

constexpr int record_numbers = HX_RECORD_NUMBERS;
constexpr int record_areas = block_variables, record_jacobian = record_areas + 9, record_terms = record_jacobian + 1;
constexpr int record_step = record_numbers - 1;

// The place of number n of the record of the node at c, except of an area in FP16. On a GPU the first four of the state are in
// chunks, behind them are pairs of the first two components of an area, and rows of each other number. In FP16 a pair has two
// words of 32 bits: the area, and the upper half of the bits that the Jacobian of the face has in FP32, as its range is that of
// volumes.
template <class Number> HD long long place_of_record(long long sv, long long c, int n) {
    if (of_chunk<Number> == 1) return n * sv + c;
    if (n < 4) return number_place<4, Number>(n, sv, c);
    const int a = n - record_areas;
    if (a >= 0 && a < 9) return a % 3 < 2 ? (4 + 2 * (a / 3)) * sv + 2 * c + a % 3 : (10 + a / 3) * sv + c;
    return ((n < block_variables ? n + 9 : n) - (in_halves ? 3 : 0)) * sv + c;
}
HD long long place_of_pair(long long sv, long long c, int d) { return (4 + 2 * d) * sv + 2 * c; }
template <class T> HD T load_of_record(const real *records, long long sv, long long c, int n) {
    return load<T>(records + place_of_record<real>(sv, c, n));
}
// The area vector of the face behind a node along direction d and, in FP16, its Jacobian
template <class T> HD void load_face(const real *records, long long sv, long long c, int d, T *face) {
    if constexpr (of_chunk<real> == 1) {
        for (int n = 0; n < 3; ++n) face[n] = load_of_record<T>(records, sv, c, record_areas + 3 * d + n);
    } else {
        real pair[2];
        load_pair(records + place_of_pair(sv, c, d), pair);
        if constexpr (in_halves) {
            for (int n = 0; n < 3; ++n) face[n] = real(number_in_half(float(pair[n / 2]), n % 2));
            face[3] = real(upper_half(float(pair[1])));
        } else {
            face[0] = pair[0], face[1] = pair[1], face[2] = load_of_record<T>(records, sv, c, record_areas + 3 * d + 2);
        }
    }
}
// The state of a node: the first numbers of its record
template <class T> HD void load_state(const real *records, long long sv, long long c, T *state) {
    load_numbers<4>(records, sv, c, 0, state);
    for (int v = 4; v < block_variables; ++v) state[v] = load_of_record<T>(records, sv, c, v);
}
// A record but for its areas
template <class T> HD void load_record(const real *records, long long sv, long long c, T *found) {
    load_state(records, sv, c, found);
    for (int n = record_jacobian; n < record_numbers; ++n) found[n] = load_of_record<T>(records, sv, c, n);
}

// What a model of turbulence has in a record. Of one that transports variables: what their fluxes take as constants, the
// derivatives of its sources by the node, and those by half of the change from neighbour to neighbour along each direction. Of
// another one the eddy viscosity.
template <class T> struct recorded_terms {
    TransportedConstants<T> known;
    T eddies = T(real(0));
#if HX_TRANSPORTED
    static constexpr int of_node = record_terms + transported_constants, of_change = of_node + source_entries;
    static_assert(of_change + 3 * source_entries == record_step, "a record holds these");
    HD recorded_terms(const T *record) { known.take_numbers(record + record_terms); }
#else
    static_assert(record_terms + HX_EDDY_FIELDS == record_step, "a record holds these");
    HD recorded_terms(const T *record) {
#if HX_EDDY_FIELDS
        eddies = record[record_terms];
#else
        (void)record;
#endif
    }
#endif
    // block = block - the derivatives of the sources by the node, times its volume
    HD void take_own(const T *record, T *block) const {
#if HX_TRANSPORTED
        take_transported(record + of_node, real(1) / record[record_jacobian], block);
#else
        (void)record, (void)block;
#endif
    }
    // sum = sum - the change of the sources by the update x of a neighbour of direction d, of the density rho, times the volume
    template <int side> HD void take_along(const T *record, int d, T rho, const T *x, T *sum) const {
#if HX_TRANSPORTED
        const T share = real(side ? 1 : -1) / (rho * record[record_jacobian]);
        for (int r = 0; r < HX_TRANSPORTED; ++r)
            for (int v = 0; v < HX_TRANSPORTED; ++v) {
                const T change = record[of_change + d * source_entries + r * HX_TRANSPORTED + v];
                const T upwind = r == v ? change + real(side ? 1 : -1) * absolute(change) : change;
                sum[transported_at + r] = sum[transported_at + r] - upwind * (share * x[transported_at + v]);
            }
#else
        (void)record, (void)d, (void)rho, (void)x, (void)sum;
#endif
    }
};
