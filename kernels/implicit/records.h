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
// step. The Jacobian of a face is multiplied by the viscosity there over Re and over the density. 1/step replaces the
// step.
#if defined(HX_SPLIT_JACOBIAN) && HX_MATRIX_FREE && !HX_STORED_DIRECTIONS && !HX_EDDY_FIELDS && !HX_SCALARS
#define HX_SPLIT_SWEEPS 1
constexpr int record_shift = 4;
#endif

// The position of number n within a record. Four numbers each are chunks of 16 bytes: the first four of the state, and
// those of each face. In FP16 a face has two words of 32 bits, side by side. The six words of the faces of all nodes
// come after the first chunk, followed by a row of each other number.
HD constexpr int record_place(int n) {
    if (n < 4 || n >= record_jacobian) return n;
    return n < block_variables ? n + 12 : n - record_faces + 4;
}
// The number at such a position, the inverse function
HD constexpr int number_of_record(int place) {
    if (place < 4 || place >= record_jacobian) return place;
    return place < 16 ? place - 4 + record_faces : place - 12;
}
// The position of number n of the record of the node at c; not for faces in FP16
template <class Number> HD long long place_of_record(long long sv, long long c, int n) {
    if (in_halves) return n < 4 ? 4 * c + n : (n < block_variables ? n + 6 : n - 6) * sv + c;
    return number_place<record_numbers, Number>(record_place(n), sv, c);
}
HD long long place_of_halves(long long sv, long long c, int d) { return 4 * sv + 2 * (d * sv + c); }
template <class T> HD T load_of_record(const real *records, long long sv, long long c, int n) {
    return load<T>(records + place_of_record<real>(sv, c, n));
}
// Loads the area vector and the Jacobian of the face behind a node along direction d. With FP16 the Jacobian is stored
// as the upper half of its bits in FP32, since it has the range of volumes.
template <class T> HD void load_face(const real *records, long long sv, long long c, int d, T *face) {
    if constexpr (in_halves) {
        real words[2];
        load_pair(records + place_of_halves(sv, c, d), words);
        for (int n = 0; n < 3; ++n) face[n] = real(number_in_half(float(words[n / 2]), n % 2));
        face[3] = real(upper_half(float(words[1])));
    } else {
        load_numbers<4>(records, sv, c, 4 + 4 * d, face);
    }
}
template <class T> HD void load_record(const real *records, long long sv, long long c, T *found) {
    if constexpr (in_halves) {
        load_numbers<4>(records, sv, c, 0, found);
        for (int d = 0; d < 3; ++d) load_face(records, sv, c, d, found + record_faces + 4 * d);
        for (int n = 4; n < record_numbers; ++n)
            if (n < record_faces || n >= record_jacobian) found[n] = load_of_record<T>(records, sv, c, n);
    } else {
        each_number<record_numbers, T>(records, sv, c, 0,
                                       [&](int place, const T &number) { found[number_of_record(place)] = number; });
    }
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
