// Updates of a state that is stored as FP32 differences (storage.h). The rounding error of a store is kept in an FP32
// array and added at the end of the step, so that increments far below a bit of the state are not lost (compensated
// summation; Kahan, Communications of the ACM 8, 1965). Sums are in FP64.
#include "viscous.h"

// Stores `value` as the state at `to`; returns the rounding error.
template <class T, class Row> HD T put_state(Row to, T value) {
    store(to, value);
    return value - load<T>(to);
}

// One stage of SSP-RK3 as in update.h. share: the fraction of the rounding error of this stage that remains at the end
// of the step; last: whether the step ends here.
template <class T>
HD void carried_advance(state_pointer q0, state_pointer q, stored_real *carry, long long p, stride sv, const T *rate,
                        T step, real a, real b, real share, int first, int last) {
    T next[conserved_variables], kept[conserved_variables], start[conserved_variables];
    for (int v = 0; v < conserved_variables; ++v) {
        next[v] = load<T>(q + v * sv + p), kept[v] = load<T>(carry + v * sv + p);
        start[v] = first ? next[v] : load<T>(q0 + v * sv + p);
    }
    for (int v = 0; v < conserved_variables; ++v) {
        if (first) store(q0 + v * sv + p, start[v]);
        next[v] = next[v] + step * rate[v];
        if (!first) next[v] = a * start[v] + b * next[v];
        if (last) next[v] = next[v] + kept[v];
        const T lost = share * put_state(q + v * sv + p, next[v]);
        store(carry + v * sv + p, last ? lost : kept[v] + lost);
    }
}

VECTOR_KERNEL(carried_update, int i, int j, int k, int o, int sj, int sk, stride sv,
              state_field<conserved_variables> q0, state_field<conserved_variables> q,
              stored_field<conserved_variables> carry, const_rate_field<conserved_variables> r,
              const_work_field<1> jacobian, const real *dt, int dt_stride, real a, real b, real share, int first,
              int last) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    T rate[conserved_variables];
    for (int v = 0; v < conserved_variables; ++v) rate[v] = load<T>(r + v * sv + p);
    const T step = load_or_common<T>(dt, p, dt_stride) * load<T>(jacobian + p);
    carried_advance<T>(q0, q, carry, p, sv, rate, step, a, b, share, first, last);
}

// As accumulate; the rounding error of a stage is added in the next stage.
VECTOR_KERNEL(carried_accumulate, int i, int j, int k, int o, int sj, int sk, stride sv,
              stored_field<conserved_variables> d, state_field<conserved_variables> q,
              stored_field<conserved_variables> carry, const_rate_field<conserved_variables> r,
              const_work_field<1> jacobian, const real *dt, int dt_stride, real a, real b, int first) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    const T step = load_or_common<T>(dt, p, dt_stride) * load<T>(jacobian + p);
    for (int v = 0; v < conserved_variables; ++v) {
        T change = step * load<T>(r + v * sv + p);
        if (!first) change = a * load<T>(d + v * sv + p) + change;
        store(d + v * sv + p, change);
        const T next = load<T>(q + v * sv + p) + b * change + load<T>(carry + v * sv + p);
        store(carry + v * sv + p, put_state(q + v * sv + p, next));
    }
}

#ifdef HX_VISCOUS
// As viscous_update, with the rounding errors in `carry`.
VECTOR_KERNEL(carried_viscous_update, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, stride sv,
              const_work_field<3 * gradient_variables> flux, state_field<conserved_variables> q0,
              state_field<conserved_variables> q, stored_field<conserved_variables> carry,
              rate_field<conserved_variables> r, const_work_field<1> jacobian, const real *dt, int dt_stride, real a,
              real b, real share, int first, int last, int keep) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    T rate[conserved_variables];
    for (int v = 0; v < conserved_variables; ++v) rate[v] = load<T>(r + v * sv + p);
    for (int c = 0; c < gradient_variables; ++c)
        rate[c + 1] = with_viscous_rates(rate[c + 1], flux + c * sv + p, di, dj, dk, sv);
    const T step = load_or_common<T>(dt, p, dt_stride) * load<T>(jacobian + p);
    carried_advance<T>(q0, q, carry, p, sv, rate, step, a, b, share, first, last);
    for (int v = 1; v < conserved_variables && keep; ++v) store(r + v * sv + p, rate[v]);
}
#endif
