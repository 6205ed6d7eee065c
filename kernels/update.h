// One stage of SSP-RK3, eq. (20), at node p: q = a q0 + b (q + step rate), (a, b) = (0, 1), (3/4, 1/4), (1/3, 2/3). The
// first stage keeps the state it starts from in q0. Everything is loaded before the first store. Otherwise the compiler
// would have to assume that a store changes later loads, and a GPU would wait for memory once for each variable.
template <class T>
HD void advance(state_pointer q0, state_pointer q, long long p, stride sv, const T *rate, T step, real a, real b,
                int first) {
    T state[conserved_variables], start[conserved_variables];
    for (int v = 0; v < conserved_variables; ++v) state[v] = load_once<T>(q + v * sv + p);
    if (first) {
        for (int v = 0; v < conserved_variables; ++v) {
            store_once(q0 + v * sv + p, state[v]);
            store_once(q + v * sv + p, state[v] + step * rate[v]);
        }
    } else {
        for (int v = 0; v < conserved_variables; ++v) start[v] = load_once<T>(q0 + v * sv + p);
        for (int v = 0; v < conserved_variables; ++v)
            store_once(q + v * sv + p, a * start[v] + b * (state[v] + step * rate[v]));
    }
}

// dt: one value (dt_stride 0) or one per point (1); dt J is the step, r the rate.
VECTOR_KERNEL(update, int i, int j, int k, int o, int sj, int sk, stride sv, state_field<conserved_variables> q0,
              state_field<conserved_variables> q, const_rate_field<conserved_variables> r, const_work_field<1> jacobian,
              const real *dt, int dt_stride, real a, real b, int first) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    T rate[conserved_variables];
    for (int v = 0; v < conserved_variables; ++v) rate[v] = load<T>(r + v * sv + p);
    advance<T>(q0, q, p, sv, rate, load_or_common<T>(dt, p, dt_stride) * load<T>(jacobian + p), a, b, first);
}

// One stage of a scheme in Williamson's form (hiresx/time/low_storage.py): d = a d + dt J r, q = q + b d. The first
// stage does not read d.
VECTOR_KERNEL(accumulate, int i, int j, int k, int o, int sj, int sk, stride sv, stored_field<conserved_variables> d,
              state_field<conserved_variables> q, const_rate_field<conserved_variables> r,
              const_work_field<1> jacobian, const real *dt, int dt_stride, real a, real b, int first) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    const T step = load_or_common<T>(dt, p, dt_stride) * load<T>(jacobian + p);
    for (int v = 0; v < conserved_variables; ++v) {
        T change = step * load<T>(r + v * sv + p);
        if (!first) change = a * load<T>(d + v * sv + p) + change;
        store(d + v * sv + p, change);
        store(q + v * sv + p, load<T>(q + v * sv + p) + b * change);
    }
}

#ifdef HX_VISCOUS
// As viscous_difference followed by update, in one pass through memory. The viscous difference is stored in r only with
// `keep`.
VECTOR_KERNEL(viscous_update, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, stride sv,
              const_work_field<3 * gradient_variables> flux, state_field<conserved_variables> q0,
              state_field<conserved_variables> q, rate_field<conserved_variables> r, const_work_field<1> jacobian,
              const real *dt, int dt_stride, real a, real b, int first, int keep) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    T rate[conserved_variables];
    for (int v = 0; v < conserved_variables; ++v) rate[v] = load_once<T>(r + v * sv + p);
    for (int c = 0; c < gradient_variables; ++c)
        rate[c + 1] = with_viscous_rates(rate[c + 1], flux + c * sv + p, di, dj, dk, sv);
    const T step = load_or_common<T>(dt, p, dt_stride) * load_once<T>(jacobian + p);
    advance<T>(q0, q, p, sv, rate, step, a, b, first);
    for (int v = 1; v < conserved_variables && keep; ++v) store(r + v * sv + p, rate[v]);
}
#endif
