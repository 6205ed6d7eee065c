// The hybrid of the split form (split.h) and the flux of two interpolated states with its correction (half_point.h):
//     F = F_split + s (F_interpolated - F_split)
// s at a half point is the largest value of the field `shock_sensor` (terms/shock_sensor.h) at the nodes that F_split
// reads. Nothing is interpolated in packs or threads in which s is 0 everywhere.
#if HX_SENSORS
// The share s at half point 1/2; at(s): the sensor at node s of the line.
template <class T, class At> HD T hybrid_share(const At &at) {
    T share = at(1 - split_reach);
    for (int s = 2 - split_reach; s <= split_reach; ++s) share = larger(share, T(at(s)));
    return share;
}

// The flux of two interpolated states at half point 1/2 of a line, with its correction. At node s: q(s, v), area_at(s,
// d), and node(s, v) as split_node computes it.
template <class T, class Q, class Area, class Node, class Fields>
HD void interpolated_flux(const Q &q, const Area &area_at, const Node &node, const Fields &fields, T *left, T *right,
                          T *flux) {
    T area[3], sensor = T(real(0));
    for (int d = 0; d < 3; ++d) area[d] = interpolate_metric<T>([&](int s) { return area_at(s, d); });
    for (int s = 2 - correction_reach; s < correction_reach; ++s)
        sensor = larger(sensor, jump_sensor(T(node(s - 1, 4)), T(node(s, 4)), T(node(s + 1, 4))));
    const auto f = [&](int s, int v) {  // the physical flux at node s
        const T through = area_at(s, 0) * node(s, 1) + area_at(s, 1) * node(s, 2) + area_at(s, 2) * node(s, 3);
        const T pressure = real(0.25) * node(s, 4);
        const T carried = v == 4 ? q(s, 4) + pressure : q(s, v);
        return v == 0 || v == 4 ? carried * through : carried * through + pressure * area_at(s, v - 1);
    };
    half_point_flux(left, right, area, f, sensor, fields, flux);
}

// Turns the split flux `flux` into the hybrid flux where `share` is above 0. Other lanes do not change, whichever lanes
// they share a pack with. rough: where the limiter checks the flux.
template <class T, class Q, class Area>
HD void blend_flux(const Q &q, const Area &area_at, T share, const Rough<T> &rough, const T *interpolated, T *flux) {
    const auto there = share > T(real(0));
    for (int v = 0; v < gas_variables; ++v)
        flux[v] = select(there, flux[v] + share * (interpolated[v] - flux[v]), flux[v]);
    limit_where(both(rough, there), q, area_at, flux);
}

// The states at half point 1/2. Returns where these are rough.
template <class T, class Q, class Area>
HD Rough<T> interpolated_states(const Q &q, const Area &area_at, T *left, T *right) {
    T area[3];
#ifdef HX_INTERPOLATES_NODES
    T unused[gas_variables];
    for (int d = 0; d < 3; ++d) area[d] = area_at(0, d);
    const Rough<T> behind = interpolate(q, area, left, unused);
    for (int d = 0; d < 3; ++d) area[d] = area_at(1, d);
    return either(behind, interpolate([&](int s, int v) { return q(s + 1, v); }, area, unused, right));
#else
    for (int d = 0; d < 3; ++d) area[d] = interpolate_metric<T>([&](int s) { return area_at(s, d); });
    return interpolate(q, area, left, right);
#endif
}
#endif
