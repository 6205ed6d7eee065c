#include "roughness.h"

// Roughness at half point 1/2, from the results of the interpolation at node 0 (behind) and node 1 (ahead). A scheme
// that interpolates at half points stores its result at node 0.
template <class T> HD Rough<T> rough_between(const Rough<T> &behind, const Rough<T> &ahead) {
#ifdef HX_INTERPOLATES_NODES
    return either(behind, ahead);
#else
    (void)ahead;
    return behind;
#endif
}

// The corrected flux at half point 1/2 of a line, from the states on its two sides. rough: where these are rough. At
// nodes s of the line: state(s, v), area(s, d), f(s, v) the physical flux, pressure(s), fields(s, n).
template <class T, class Q, class M, class F, class P, class Fields>
HD void flux_between(T *left, T *right, Rough<T> rough, const Q &state, const M &area_at, const F &f, const P &pressure,
                     const Fields &fields, T *flux) {
    constexpr int first = 1 - correction_reach, count = 2 * correction_reach;
    T area[3], values[count];
    for (int d = 0; d < 3; ++d) area[d] = interpolate_metric<T>([&](int s) { return area_at(s, d); });
    replace_states(state, left, right, rough);
    for (int s = 0; s < count; ++s) values[s] = pressure(first + s);
    T sensor = T(real(0));
    for (int s = 0; s < correction_sensors; ++s) sensor = larger(sensor, jump_sensor(values[s], values[s + 1], values[s + 2]));
    half_point_flux(left, right, area, f, sensor, fields, flux);
    limit_where(rough, state, area_at, flux);
}
