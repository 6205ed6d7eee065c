// Half-point values that the metrics and the fluxes share, of `correction_reach` nodes to each side, which the header of
// the interpolation declares. With the node metrics interpolated to the highest order, eq. (19) applied to a quantity
// linear in the metrics is identically the central derivative `metric_derivative`, of 6th order from three nodes to each
// side and of 8th from four.
#include "jump_sensor.h"
#include "roughness.h"
#include "central_difference.h"

static_assert(correction_reach == 3 || correction_reach == 4, "the corrections of fluxes are written for these");

// At half point 1/2, a, b, c, d: weights of the nodes to both sides, the nearest first.
template <int a, int b, int c, int d, class T, class At> HD T symmetric_sum(const At &at) {
    T sum = real(a) * (at(0) + at(1)) + real(b) * (at(-1) + at(2)) + real(c) * (at(-2) + at(3));
    if constexpr (d != 0) sum = sum + real(d) * (at(-3) + at(4));
    return sum;
}

template <class T, class At> HD T interpolate_metric(const At &at) {
    if constexpr (correction_reach == 3) return symmetric_sum<150, -25, 3, 0, T>(at) * real(1.0 / 256);
    else return symmetric_sum<1225, -245, 49, -5, T>(at) * real(1.0 / 2048);
}

// Values at half points whose differences are `central_derivative`.
template <int reach, class T, class At> HD T derivative_flux(const At &at) {
    if constexpr (reach == 3) return symmetric_sum<37, -8, 1, 0, T>(at) * real(1.0 / 60);
    else return symmetric_sum<533, -139, 29, -3, T>(at) * real(1.0 / 840);
}

// What eq. (19) makes of them: the interpolated metrics and their correction, whose differences are the central
// derivative. Over the faces of a node they add up to nothing.
template <class T, class At> HD T corrected_metric(const At &at) { return derivative_flux<correction_reach, T>(at); }

// The linear correction of eqs (11) and (18) at i+1/2, -f_xx/24 + 7 f_xxxx/5760 as one six-point sum, with the next term
// -31 f_xxxxxx/967680 as one of eight points: the difference of the two sums above.
template <class T, class At> HD T flux_correction(const At &at) {
    if constexpr (correction_reach == 3) return symmetric_sum<118, -137, 19, 0, T>(at) * real(1.0 / 3840);
    else return symmetric_sum<7823, -9859, 2279, -243, T>(at) * real(1.0 / 215040);
}

// Jump sensors stand at the nodes of the correction but for the outermost: the largest of at(n), n < correction_sensors.
constexpr int correction_sensors = 2 * correction_reach - 2;

template <class T, class At> HD T largest_sensor(const At &at) {
    const T inner = larger(larger(T(at(0)), T(at(1))), larger(T(at(2)), T(at(3))));
    if constexpr (correction_sensors == 4) return inner;
    else return larger(inner, larger(T(at(4)), T(at(5))));
}

#if HX_REGULARISED
#include "regularised.h"
#endif

// Regularised fluxes are made of states q(offset, v) of nodes: what these give takes the place of interpolated states.
template <class T, class Q> HD void replace_states(const Q &q, T *left, T *right, Rough<T> &rough) {
#if HX_REGULARISED
    regularised_states(q, left, right);
#if HX_LIMITER
    rough.here = is_rough_between(q, right);
#else
    (void)rough;
#endif
#else
    (void)q, (void)left, (void)right, (void)rough;
#endif
}

// Limits the flux at half point 1/2 where it is `rough`, if the choice of positivity/ does so. state(s, v), area_at(s, d): of
// nodes of the line.
template <class T, class Q, class Area>
HD void limit_where(const Rough<T> &rough, const Q &state, const Area &area_at, T *flux) {
#if HX_LIMITER
    if (!anywhere(rough.here)) return;
    T left[gas_variables], right[gas_variables], area[3];
    for (int v = 0; v < gas_variables; ++v) left[v] = state(0, v), right[v] = state(1, v);
    for (int d = 0; d < 3; ++d) area[d] = corrected_metric<T>([&](int s) { return area_at(s, d); });
    limit_flux(left, right, area, rough.here, flux);
#else
    (void)rough, (void)state, (void)area_at, (void)flux;
#endif
}

// Of a line without fields for fluxes to read.
struct NoFields {
    template <class... Place> HD real operator()(Place...) const { return real(0); }
};

// Flux at i+1/2: two-state numerical flux of the interpolated states plus the scaled correction.
// f(offset, v): physical flux at i + offset; sensor: the largest jump sensor. fields(offset, n): what a flux reads that
// says so (HX_FLUX_FIELDS of them, in its header `flux_fields`).
template <class T, class At, class Fields>
HD void half_point_flux(const T *minus, const T *plus, const T *m, const At &f, T sensor, const Fields &fields, T *flux) {
#if HX_REGULARISED
    (void)sensor;
    regularised_flux(minus, plus, m, fields, flux);
    const T scale = T(real(1));
#else
#if HX_FLUX_FIELDS
    numerical_flux(minus, plus, m, fields, flux);
#else
    (void)fields;
    numerical_flux(minus, plus, m, flux);
#endif
    T scale = correction_scale(sensor);
#endif
    for (int v = 0; v < gas_variables; ++v)
        flux[v] = flux[v] + scale * flux_correction<T>([&](int offset) { return f(offset, v); });
}
