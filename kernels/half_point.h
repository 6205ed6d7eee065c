// Interpolations and corrections at half points for metrics and fluxes, from `correction_reach` nodes on each side, a
// number that the header of the interpolation declares. If the node metrics are interpolated to the highest order, eq.
// (19) applied to a quantity linear in the metrics is identically the central derivative `metric_derivative`, of 6th
// order from three nodes on each side and of 8th order from four.
#include "jump_sensor.h"
#include "roughness.h"
#include "central_difference.h"

static_assert(correction_reach == 3 || correction_reach == 4, "the corrections of fluxes are written for these");

// A symmetric sum at half point 1/2. a, b, c, d: weights of the nodes on both sides, the nearest first.
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

// The metrics at half points by eq. (19): interpolated and corrected, such that their differences are the central
// derivative. Their sum over the faces of a node is zero.
template <class T, class At> HD T corrected_metric(const At &at) { return derivative_flux<correction_reach, T>(at); }

// The linear correction of eqs (11) and (18) at i+1/2: the difference of the two sums above. The sum over six points is
// -f_xx/24 + 7 f_xxxx/5760; the sum over eight points includes the next term -31 f_xxxxxx/967680.
template <class T, class At> HD T flux_correction(const At &at) {
    if constexpr (correction_reach == 3) return symmetric_sum<118, -137, 19, 0, T>(at) * real(1.0 / 3840);
    else return symmetric_sum<7823, -9859, 2279, -243, T>(at) * real(1.0 / 215040);
}

// Jump sensors are taken at all nodes of the correction but the outermost ones. largest_sensor: the largest of at(n), n
// < correction_sensors.
constexpr int correction_sensors = 2 * correction_reach - 2;

template <class T, class At> HD T largest_sensor(const At &at) {
    const T inner = larger(larger(T(at(0)), T(at(1))), larger(T(at(2)), T(at(3))));
    if constexpr (correction_sensors == 4) return inner;
    else return larger(inner, larger(T(at(4)), T(at(5))));
}

#if HX_REGULARISED
#include "regularised.h"
#endif

// Regularised fluxes need the mean and the jump of states q(offset, v) of nodes, which take the place of interpolated
// states.
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

// Limits the flux at half point 1/2 where it is `rough`, if the header of positivity/ limits fluxes. state(s, v),
// area_at(s, d): at node s of the line.
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

// The fields of a line whose flux reads none
struct NoFields {
    template <class... Place> HD real operator()(Place...) const { return real(0); }
};

// Flux at i+1/2: two-state numerical flux of the interpolated states plus the scaled correction.
// f(offset, v): physical flux at i + offset; sensor: the largest jump sensor. fields(offset, n): the HX_FLUX_FIELDS
// fields that a flux reads, whose number its header declares as `flux_fields`.
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
