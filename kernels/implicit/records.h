// The record of a node, from which sweeps without stored blocks of neighbours compute products with these blocks: its
// state, the area vector of the face behind it along each direction, its own Jacobian, the quantities of a turbulence
// model, and its step, the time step over the volume; 0 for nodes with stored blocks. In FP16 each area vector is
// followed by the Jacobian of the face. It is otherwise the mean of those of the two nodes.
#pragma once
#include "chunks.h"
#include "face_flux.h"
#include "halves.h"

constexpr int record_numbers = HX_RECORD_NUMBERS;
constexpr int face_numbers = HX_HALF_SWEEPS ? 4 : 3;
constexpr int record_faces = block_variables, record_jacobian = record_faces + 3 * face_numbers;
constexpr int record_terms = record_jacobian + 1, record_step = record_numbers - 1;

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

// The position of number n of the record of the node at c; not for what FP16 packs. On a GPU the first four numbers are
// a chunk of 16 bytes, or two in FP64, and the numbers of a face lie side by side. In FP16 the first chunk and a face
// have two words of 32 bits each, or the first chunk four in place of these if sweeps are not split.
#if HX_SPLIT_SWEEPS
constexpr int packed_state = 2;
#else
constexpr int packed_state = 4;
#endif
template <class Number> HD long long place_of_record(long long sv, long long c, int n) {
#ifdef HX_CPU
    return n * sv + c;
#else
    const int within = n - record_faces, d = within / face_numbers;
    if (n < 4) return number_place<4, Number>(n, sv, c);
    if (within < 0 || n >= record_jacobian) return (n < record_faces ? n + 3 * face_numbers : n) * sv + c;
    return 4 * sv + (d * sv + c) * face_numbers + within % face_numbers;
#endif
}
HD long long place_of_halves(long long sv, long long c, int d) { return packed_state * sv + 2 * (d * sv + c); }
template <class T> HD T load_of_record(const real *records, long long sv, long long c, int n) {
    return load<T>(records + place_of_record<real>(sv, c, n));
}
// Loads the first four numbers.
template <class T> HD void load_state(const real *records, long long sv, long long c, T *state) {
    if constexpr (in_halves && packed_state == 2)
        load_halves(records + 2 * c, state);
    else
        load_numbers<4>(records, sv, c, 0, state);
}
// Loads the area vector and the Jacobian of the face between the node at c and the one at c + beside, which is on a side
// of direction d.
template <class T> HD void load_face(const real *records, long long sv, long long c, int beside, int d, int side, T *face) {
    const long long of = side ? c : c + beside;
    if constexpr (in_halves) {
        load_area(records + place_of_halves(sv, of, d), face);
        return;
    }
    for (int n = 0; n < face_numbers; ++n) face[n] = load_of_record<T>(records, sv, of, record_faces + face_numbers * d + n);
    if (face_numbers == 3)
        face[3] = of_jacobian * (load_of_record<T>(records, sv, c, record_jacobian) + load_of_record<T>(records, sv, c + beside, record_jacobian));
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
