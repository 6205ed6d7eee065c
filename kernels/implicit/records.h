// The record of a node, from which sweeps without stored blocks of neighbours compute products with these blocks: its
// state, the area vector and the Jacobian of the face behind it along each direction, its own Jacobian, the quantities
// of a turbulence model, and its step, the time step over the volume; 0 for nodes with stored blocks.
#pragma once
#include "chunks.h"
#include "face_flux.h"
#include "halves.h"

constexpr int record_numbers = HX_RECORD_NUMBERS;
constexpr int record_faces = block_variables, record_jacobian = record_faces + 12, record_terms = record_jacobian + 1;
constexpr int record_step = record_numbers - 1;

// In records for sweeps with a split Jacobian (split_jacobian.h) other numbers have these positions. Velocity and sound
// speed replace the first four numbers of the state. Number 4, the shift, is the diagonal without fluxes, over the
// step. Jacobians are multiplied by the viscosity over Re and over the density. 1/step replaces the step.
#if defined(HX_SPLIT_JACOBIAN) && HX_MATRIX_FREE && !HX_STORED_DIRECTIONS && !HX_EDDY_FIELDS && !HX_SCALARS
#define HX_SPLIT_SWEEPS 1
constexpr int record_shift = 4;
#endif
// Area vectors are halved there, and the Jacobians that belong to them have the factor 4. A record has half of it.
#if HX_SPLIT_SWEEPS
constexpr real of_area = 0.5, of_jacobian = 1;
#else
constexpr real of_area = 1, of_jacobian = 0.5;
#endif

// The position of number n of the record of the node at c; not for what FP16 packs. On a GPU the first four numbers and
// those of each face are chunks of 16 bytes, or two in FP64. In FP16 a face has two words of 32 bits, and so has the
// first chunk if sweeps are split.
#if HX_SPLIT_SWEEPS
constexpr int packed_state = 2;
#else
constexpr int packed_state = 4;
#endif
template <class Number> HD long long place_of_record(long long sv, long long c, int n) {
    const int face = n - record_faces;
    if (of_chunk<Number> == 1) return n * sv + c;
    if (n < 4) return number_place<16, Number>(n, sv, c);
    return number_place<16, Number>(face >= 0 && n < record_jacobian ? 4 + face : n < record_faces ? n + 12 : n, sv, c);
}
// The position on a GPU of the first four numbers (part 0) or of those of the face along direction part - 1
HD long long place_of_four(long long sv, long long c, int part) {
    if (in_halves) return part ? packed_state * sv + 2 * ((part - 1) * sv + c) : packed_state * c;
    return number_place<16, real>(4 * part, sv, c);
}
template <class T> HD T load_of_record(const real *records, long long sv, long long c, int n) {
    return load<T>(records + place_of_record<real>(sv, c, n));
}
// Loads the numbers n to n + 3 of a record, the first or those of a face.
template <class T> HD void load_four(const real *records, long long sv, long long c, int n, T *found) {
    for (int m = 0; m < 4; m += of_chunk<real>) load_chunk(records + place_of_record<real>(sv, c, n + m), found + m);
}
// Loads the first four numbers.
template <class T> HD void load_state(const real *records, long long sv, long long c, T *state) {
    if constexpr (in_halves && packed_state == 2) {
        real words[2];
        load_pair(records + place_of_four(sv, c, 0), words);
        numbers_of_halves(words, state);
    } else
        load_four(records, sv, c, 0, state);
}
// Loads the area vector and the Jacobian of the face behind a node along direction d.
template <class T> HD void load_face(const real *records, long long sv, long long c, int d, T *face) {
    if constexpr (in_halves) {
        real words[2];
        load_pair(records + place_of_four(sv, c, d + 1), words);
        numbers_of_area(words, face);
    } else
        load_four(records, sv, c, record_faces + 4 * d, face);
}
// Loads all numbers but those of the faces.
template <class T> HD void load_record(const real *records, long long sv, long long c, T *found) {
    load_state(records, sv, c, found);
    for (int n = 4; n < record_numbers; ++n)
        if (n < record_faces || n >= record_jacobian) found[n] = load_of_record<T>(records, sv, c, n);
}

// The quantities of a turbulence model in a record. With transported variables: what their fluxes take as constants,
// the derivatives of the sources by the node, and those by half of the change from neighbour to neighbour along each
// direction. For other models: the eddy viscosity.
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
    // block = block - (derivatives of the sources by the node) times its volume
    HD void take_own(const T *record, T *block) const {
#if HX_TRANSPORTED
        take_transported(record + of_node, real(1) / record[record_jacobian], block);
#else
        (void)record, (void)block;
#endif
    }
    // sum = sum - (change of the sources by the update x of a neighbour along direction d) times the volume; rho:
    // density of the neighbour.
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
