// The inviscid right-hand side as the paper decomposes it, a thread per point, one direction at a time:
//   interpolate -> physical_flux -> numerical_flux -> flux_difference
// All arrays are padded, with variable stride sv. o: index of node (0, 0, 0); (1, sj, sk): strides of the indices; sd:
// stride along the direction; m: the 3 area components of that direction. Half point h + 1/2 is stored at node h. The
// range given to a launch and o shift together: nodes -1..n start at o - sd.
#include "half_point.h"
#include "flux_between.h"
#include "wall_sums.h"

// Range: nodes -1..n (modified) or half points -1..n-1 (original). Computes the two states at every half point, and
// where the flux between them is to be limited (roughness.h).
VECTOR_KERNEL(interpolate, int i, int j, int k, int o, int sj, int sk, int sd, stride sv,
              const_state_field<gas_variables> q, const_work_field<3> m, work_field<gas_variables> minus,
              work_field<gas_variables> plus, mark_field<HX_LIMITER> rough) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    T area[3], left[gas_variables], right[gas_variables];
#ifdef HX_INTERPOLATES_NODES
    const long long behind = p - sd;
    for (int d = 0; d < 3; ++d) area[d] = load<T>(m + d * sv + p);
#else
    const long long behind = p;
    for (int d = 0; d < 3; ++d)
        area[d] = interpolate_metric<T>([&](int s) { return load<T>(m + d * sv + p + (long long)s * sd); });
#endif
    const auto state = [&](int s, int v) { return load<T>(q + v * sv + p + (long long)s * sd); };
    store_rough(rough + p, interpolate(state, area, left, right));
    for (int v = 0; v < gas_variables; ++v) {
        store(minus + v * sv + p, left[v]);
        store(plus + v * sv + behind, right[v]);
    }
}

// Range: nodes -correction_reach..n-1+correction_reach. Computes the physical flux (5 variables) and pressure, eq. (4).
VECTOR_KERNEL(physical_flux, int i, int j, int k, int o, int sj, int sk, stride sv, const_state_field<gas_variables> q,
              const_work_field<3> m, work_field<gas_variables> f, work_field<1> pressure) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    T state[gas_variables], area[3], flux[gas_variables];
    for (int v = 0; v < gas_variables; ++v) state[v] = load<T>(q + v * sv + p);
    for (int d = 0; d < 3; ++d) area[d] = load<T>(m + d * sv + p);
    Primitive<T> s = primitive(state);
    flux_of(state, s, area, flux);
    for (int v = 0; v < gas_variables; ++v) store(f + v * sv + p, flux[v]);
    store(pressure + p, s.p);
}

// Range: half points -1..n-1. Overwrites the minus states with the corrected numerical flux. fields: those that the
// flux reads; rough: the result of `interpolate`.
VECTOR_KERNEL(numerical_flux, int i, int j, int k, int o, int sj, int sk, int sd, stride sv,
              const_state_field<gas_variables> q, const_work_field<3> m, const_work_field<gas_variables> f,
              const_work_field<1> pressure, const_work_field<HX_FLUX_FIELDS> fields, work_field<gas_variables> minus,
              const_work_field<gas_variables> plus, const_mark_field<HX_LIMITER> rough) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    auto along = [&](const work_real *a, int s) { return load<T>(a + p + (long long)s * sd); };
    T left[gas_variables], right[gas_variables], flux[gas_variables];
    for (int v = 0; v < gas_variables; ++v) left[v] = along(minus + v * sv, 0), right[v] = along(plus + v * sv, 0);
    flux_between(left, right, rough_between(load_rough<T>(rough + p), load_rough<T>(rough + p + sd)),
                 [&](int s, int v) { return load<T>(q + v * sv + p + (long long)s * sd); },
                 [&](int s, int d) { return along(m + d * sv, s); }, [&](int s, int v) { return along(f + v * sv, s); },
                 [&](int s) { return along(pressure, s); }, [&](int s, int n) { return along(fields + n * sv, s); }, flux);
    for (int v = 0; v < gas_variables; ++v) store(minus + v * sv + p, flux[v]);
}

// Range: nodes 0..n-1. r = or -= F_{i+1/2} - F_{i-1/2}; the update multiplies by J.
VECTOR_KERNEL(flux_difference, int i, int j, int k, int o, int sj, int sk, int sd, stride sv,
              const_work_field<gas_variables> flux, rate_field<gas_variables> r, int first) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    for (int v = 0; v < gas_variables; ++v) {
        T change = load<T>(flux + v * sv + p - sd) - load<T>(flux + v * sv + p);
        store(r + v * sv + p, first ? change : load<T>(r + v * sv + p) + change);
    }
}

// Range: nodes of a face. Stores the sums of mass fluxes near the face that walls need (wall_sums.h).
KERNEL(face_mass, int i, int j, int k, int o, int s1, int s2, int sn, const_work_field<1> flux, rate_field<1> sums) {
    const long long p = o + (long long)i * s1 + (long long)j * s2, outer = sn > 0 ? p - sn : p;
    for (int l = 0; l < wall_weighted; ++l)
        if (wall_row(l) > 0)
            sums[p - (long long)wall_row(l) * sn] =
                wall_part(l, real(flux[outer + (long long)l * sn]), real(flux[outer + (long long)(l + 1) * sn]));
}
