// The field `shock_sensor`, of which the hybrid fluxes are made (hybrid.h): 0 where the split form is taken alone, 1 where
// the interpolated states are; never below `floor`. From the value x of the sensor chosen and its threshold h, sharp: 1
// from h on; smooth: t^2 (3 - 2 t), t = x/h - 1/2, from h/2 to 3 h/2.
#include "../scheme.h"

#if HX_SENSORS
// From what is around a node.
template <class A> HD typename A::number shock_share(const A &around, real threshold, int smooth, real floor) {
    using T = typename A::number;
    const T found = sensor_value(around);
    T t = found * (real(1) / threshold) - real(0.5);
    t = smaller(larger(t, T(real(0))), T(real(1)));
    const T sharp = select(found < T(threshold), T(real(0)), T(real(1)));
    return larger(smooth ? t * t * (real(3) - real(2) * t) : sharp, T(floor));
}

VECTOR_KERNEL(shock_sensor, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, stride sv,
              const_state_field<gas_variables> q, const_work_field<9> m, const_work_field<1> jacobian, real threshold,
              int smooth, real floor, work_field<1> sensor) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    const int steps[3] = {di, dj, dk};
    store(sensor + p, shock_share(Around<T>{q, m, jacobian, sv, p, steps}, threshold, smooth, floor));
}
#endif
#include "../split_march.h"
