// The field `shock_sensor`, by which the hybrid fluxes blend two fluxes (hybrid.h): 0 where only the split form is
// used, 1 where only the flux of the interpolated states is; never below `floor`. From the value x of the chosen sensor
// and its threshold h; sharp: 1 for x >= h, else 0; smooth: t^2 (3 - 2 t), t = x/h - 1/2, from x = h/2 to 3 h/2.
#include "../scheme.h"

// The value of the field from a sensor that has the differences of all directions of a node
template <class T>
HD T shock_share(const Sensor<T> &sensor, const Primitive<T> &own, T inverse_volume, real threshold, int smooth,
                 real floor) {
    // both blendings begin at h/2 or above, here less what round-off may add
    if (!anywhere(sensor.may_exceed(own, T(real(0.49) * threshold)))) return T(floor);
    const T found = sensor.value(own, inverse_volume);
    T t = found * reciprocal(threshold) - real(0.5);
    t = smaller(larger(t, T(real(0))), T(real(1)));
    const T sharp = select(found < T(threshold), T(real(0)), T(real(1)));
    return larger(smooth ? t * t * (real(3) - real(2) * t) : sharp, T(floor));
}

#if HX_SENSORS
// di, dj, dk: strides along i, j and k, 0 in a direction with one node
VECTOR_KERNEL(shock_sensor, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, stride sv,
              const_state_field<gas_variables> q, const_work_field<9> m, const_work_field<1> jacobian, real threshold,
              int smooth, real floor, work_field<1> sensor) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    const auto node = [&](long long at) {
        T state[gas_variables];
        for (int v = 0; v < gas_variables; ++v) state[v] = load<T>(q + v * sv + at);
        return primitive(state);
    };
    const int steps[3] = {di, dj, dk};
    const Primitive<T> own = node(p);
    Sensor<T> found;
    for (int d = 0; d < 3; ++d) {
        if (steps[d] == 0) continue;
        T area[3];
        for (int c = 0; c < 3; ++c) area[c] = load<T>(m + (3 * d + c) * (long long)sv + p);
        found.along([&](int s) { return s ? node(p + s * (long long)steps[d]) : own; }, area);
    }
    store(sensor + p, shock_share(found, own, load<T>(jacobian + p), threshold, smooth, floor));
}
#endif
#include "../split_march.h"
