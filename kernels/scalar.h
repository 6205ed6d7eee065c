// Passive scalars: (rho s)_t + div(rho u s) = div(mu/(Re_c Sc) grad s). They have no effect on the gas.
//
// The flux of rho s is computed from the mass flux F of the gas at the half point, which includes correction and
// limiter. So a uniform s stays uniform to round-off in any flow. s_h is the interpolation of s from the upwind side of
// F, and f are the mass fluxes at nodes:
//     G = F s_h + C(f (s - s_h)),    C the correction of eqs (11) and (18).
// In smooth flow, where F = h + C(f), this is h s_h + C(f s), as in eq. (19).
//
// The interpolation of s is that of the gas for one variable, if its header provides one; else that through five nodes.
#include "weno5.h"  // not inside the #if below: a header is included once, and the sensor teno includes this one too

#ifdef HX_INTERPOLATES_SCALARS
static_assert(interpolation_reach <= correction_reach, "scalars are read at the nodes of the correction");
#else
template <class T, class At> HD T interpolate_scalar(const At &difference) {
    T ends;
    return interpolate_one(difference(-1), difference(0), difference(1), difference(2), ends);
}
#endif

// Whether scalar number n, counted from 0, is a variable of a turbulence model
HD constexpr bool is_transported(int n) { return n >= scalar_variables - HX_TRANSPORTED; }

// s(offset), f(offset): scalar number n and mass flux at node i + offset of the correction; mass: the mass flux F of
// the gas at i+1/2; sensor: largest jump sensor of the gas.
template <class T, class At, class Mass> HD T scalar_flux_at(int n, const At &s, const Mass &f, T mass, T sensor) {
    constexpr int own = correction_reach - 1, count = 2 * correction_reach;  // node i is value[own]
    T value[count];
    for (int a = 0; a < count; ++a) value[a] = s(a - own);
    const auto forward = mass > T(real(0));
    if (HX_TRANSPORTED_FIRST_ORDER && is_transported(n)) return mass * select(forward, value[own], value[own + 1]);
    const auto difference = [&](int a) {  // of the nodes a and a - 1, counted from the upwind node
        return select(forward, value[own + a] - value[own + a - 1], value[own + 1 - a] - value[own + 2 - a]);
    };
    const T half = select(forward, value[own], value[own + 1]) + interpolate_scalar<T>(difference);
    for (int a = 1; a <= correction_sensors; ++a)
        sensor = larger(sensor, is_transported(n) ? transported_sensor(value[a - 1], value[a], value[a + 1])
                                                  : scalar_sensor(value[a - 1], value[a], value[a + 1]));
    const T correction = flux_correction<T>([&](int offset) { return f(offset) * (value[offset + own] - half); });
    return mass * half + correction_scale(sensor) * correction;
}

// The form with a thread per point, which runs after numerical_flux of the same direction (inviscid.h).
#if HX_SCALARS
// Half points -1..n-1: fluxes of all scalars. mass: F; f, pressure: mass flux and pressure at nodes
VECTOR_KERNEL(scalar_flux, int i, int j, int k, int o, int sj, int sk, int sd, stride sv,
              const_state_field<conserved_variables> q, const_work_field<1> mass, const_work_field<1> f,
              const_work_field<1> pressure,
              work_field<scalar_variables> flux) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    auto along = [&](const work_real *a, int s) { return load<T>(a + p + (long long)s * sd); };
    T sensor = T(real(0));
    for (int s = 2 - correction_reach; s < correction_reach; ++s)
        sensor = larger(sensor, jump_sensor(along(pressure, s - 1), along(pressure, s), along(pressure, s + 1)));
    for (int n = 0; n < scalar_variables; ++n) {
        const auto scalar = q + (gas_variables + n) * sv;
        store(flux + n * sv + p,
              scalar_flux_at<T>(
                  n,
                  [&](int s) { return load<T>(scalar + p + (long long)s * sd) / load<T>(q + p + (long long)s * sd); },
                                [&](int s) { return along(f, s); }, along(mass, 0), sensor));
    }
}

// Nodes 0..n-1: r -= G_{i+1/2} - G_{i-1/2}, with `first` r = -(...); r begins at the first scalar.
VECTOR_KERNEL(scalar_difference, int i, int j, int k, int o, int sj, int sk, int sd, stride sv,
              const_work_field<scalar_variables> flux, rate_field<scalar_variables> r, int first) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    for (int v = 0; v < scalar_variables; ++v) {
        T change = load<T>(flux + v * sv + p - sd) - load<T>(flux + v * sv + p);
        store(r + v * sv + p, first ? change : load<T>(r + v * sv + p) + change);
    }
}

// A sponge adds or removes mass. With `drawn` the mass has the scalar `goal`, else that of the node. scalar, r: of one
// scalar; the rest as in sponge.h.
KERNEL(scalar_sponge, int i, int j, int k, int o, int sj, int sk, int width, int height, const_state_field<1> q,
       const_state_field<1> scalar, const_work_field<1> jacobian, const real *sigma, const real *reference,
       int reference_stride,
       int drawn, real goal, rate_field<1> r) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    const long long at = i + (long long)width * (j + (long long)height * k);
    const real density = reference_stride ? reference[at] : reference[0];
    const real excess = drawn ? scalar[p] - density * goal : scalar[p] / q[p] * (q[p] - density);
    r[p] -= sigma[at] / jacobian[p] * excess;
}
#endif
