// The flux at half point 1/2 of a line, from the states on its two sides, with its correction. At nodes s of the line:
// state(s, v), area(s, d), f(s, v) the physical flux, pressure(s), fields(s, n).
template <class T, class Q, class M, class F, class P, class Fields>
HD void flux_between(T *left, T *right, const Q &state, const M &area_at, const F &f, const P &pressure,
                     const Fields &fields, T *flux) {
    constexpr int first = 1 - correction_reach, count = 2 * correction_reach;
    T area[3], values[count];
    for (int d = 0; d < 3; ++d) area[d] = interpolate_metric<T>([&](int s) { return area_at(s, d); });
    [[maybe_unused]] const auto rough = rough_half_point(left, right, state);
    for (int s = 0; s < count; ++s) values[s] = pressure(first + s);
    T sensor = T(real(0));
    for (int s = 0; s < correction_sensors; ++s) sensor = larger(sensor, jump_sensor(values[s], values[s + 1], values[s + 2]));
    half_point_flux(left, right, area, f, sensor, fields, flux);
#ifdef HX_LIMITER
    if (anywhere(rough)) {
        for (int v = 0; v < gas_variables; ++v) left[v] = state(0, v), right[v] = state(1, v);
        for (int d = 0; d < 3; ++d) area[d] = corrected_metric<T>([&](int s) { return area_at(s, d); });
        limit_flux(left, right, area, rough, flux);
    }
#endif
}
