// The inviscid right-hand side of one direction in one kernel, for GPUs: the point functions of inviscid.h without what
// its four kernels leave in memory between them. Across i a thread marches along its line and keeps what the next half
// points need; along i, which lies side by side in memory, a warp goes along a row, 32 nodes at a time, and its lanes
// hand over through shared memory. Lines are cut into chunks, so that few of them fill a GPU too; the flux between two
// chunks is computed twice, with the same outcome.
#ifndef HX_CPU
// The compiler spares registers enough for sm_90; for others it has to be helped. FP64 alone wants so many.
#if !defined(HX_FP32) && defined(HX_INTERPOLATES_NODES) \
    && (defined(HX_WORK_FP32) || !defined(__CUDA_ARCH__) || __CUDA_ARCH__ != 900)
#define HX_FEW_REGISTERS
#endif
// On sm_100 it loads too far ahead, and spills, unless it is told where to stop.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
#define HX_IN_ORDER asm volatile("" ::: "memory")
#else
#define HX_IN_ORDER
#endif

template <class T> HD void fused_node(const_state_pointer q, const work_real *m, long long p, stride sv, T *flux,
                                      T &pressure) {
    T state[5], area[3];
    for (int v = 0; v < 5; ++v) state[v] = load<T>(q + v * sv + p);
    for (int d = 0; d < 3; ++d) area[d] = load<T>(m + d * sv + p);
    Primitive<T> s = primitive(state);
    flux_of(state, s, area, flux);
    pressure = s.p;
}

// The states on both sides of node p (minus at p + 1/2, plus at p - 1/2), or of half point p + 1/2 in the original
// scheme.
template <class T>
HD void fused_states(const_state_pointer q, const work_real *m, long long p, long long sd, stride sv, T *minus,
                     T *plus) {
    T area[3];
#ifdef HX_INTERPOLATES_NODES
    for (int d = 0; d < 3; ++d) area[d] = load<T>(m + d * sv + p);
#else
    for (int d = 0; d < 3; ++d)
        area[d] = interpolate_metric<T>([&](int s) { return load<T>(m + d * sv + p + s * sd); });
#endif
    interpolate([&](int s, int v) { return load<T>(q + v * sv + p + s * sd); }, area, minus, plus);
}

// The flux at half point p + 1/2 between two states. f(s, v): physical flux at node p + s.
template <class T, class At>
HD void fused_flux(const_state_pointer q, const work_real *m, long long p, long long sd, stride sv, T *left, T *right,
                   const At &f, T sensor, T *flux) {
    T area[3];
    for (int d = 0; d < 3; ++d)
        area[d] = interpolate_metric<T>([&](int s) { return load<T>(m + d * sv + p + s * sd); });
#ifdef HX_LIMITER
    const auto rough = read_marks(left, right);
#endif
    half_point_flux(left, right, area, f, sensor, flux);
#ifdef HX_LIMITER
    if (anywhere(rough)) {
        for (int v = 0; v < 5; ++v) left[v] = load<T>(q + v * sv + p), right[v] = load<T>(q + v * sv + p + sd);
        for (int d = 0; d < 3; ++d)
            area[d] = corrected_metric<T>([&](int s) { return load<T>(m + d * sv + p + s * sd); });
        limit_flux(left, right, area, rough, flux);
    }
#else
    (void)q;
#endif
}

// r = or += change, by nobody else at the same time.
HD void fused_add(rate_real *r, real change, int first) {
    if (first)
        *r = change;
    else
#if defined(__CUDA_ARCH__)
        atomicAdd(r, rate_real(change));  // without an answer: nothing waits for r to come
#else
        *r += change;
#endif
}

// What viscous_difference adds at node p in this direction, onto the flux before it.
HD void fused_viscous(const work_real *viscous_flux, long long p, long long sd, stride sv, real *before) {
    for (int c = 0; c < 4; ++c) {
        const work_real *f = viscous_flux + c * sv + p;
        before[c + 1] += derivative<real>([&](int s) { return load<real>(f + s * sd); });
    }
}

// Node p of the nodes 0..n-1 along the line, number l: r from the fluxes at its two half points, and behind a wall what
// face_mass leaves. walls: bit 0 at node 0, bit 1 at node n-1.
HD void fused_difference(rate_real *r, long long p, long long sd, stride sv, int l, int n, const real *before,
                         const real *after, int first, int walls) {
    for (int v = 0; v < 5; ++v) fused_add(r + v * sv + p, before[v] - after[v], first);
    if ((walls & 1) && l == 0) r[p - sd] = after[0] + before[0];
    if ((walls & 2) && l == n - 1) r[p + sd] = after[0] + before[0];
}

// Lines along a direction other than i, each in chunks of `chunk` of its n nodes: (i, j) is the line, k the chunk. s2:
// stride of j, sd of the line.
LINE_KERNEL(sweep_across, int i, int j, int k, int o, int s2, int sd, int n, int chunk, stride sv,
            const_state_field<gas_variables> q, const_work_field<3> m, const_work_field<gas_gradients> viscous_flux,
            rate_field<gas_variables> r, int first, int walls, int viscous) {
    const int begin = k * chunk, end = n - begin < chunk ? n : begin + chunk;
    long long p = o + i + (long long)j * s2 + (long long)(begin - 1) * sd;  // node h, half point h + 1/2
    // the fluxes of node h + s stand at at[s + 2]: registers hold no more
    (void)viscous_flux, (void)viscous;
    OWN_MEMORY(f, 6 * 5);
#ifdef HX_FEW_REGISTERS
    OWN_MEMORY(kept, 2 * 5);
#endif
    int at[6] = {0, 5, 10, 15, 20, 25};
    real sensor[4], pressure[3], before[5], left[5], next[5], right[5], flux[5];
    for (int s = 0; s < 5; ++s) {  // nodes h-2..h+2, half point h = begin - 1
        pressure[0] = pressure[1], pressure[1] = pressure[2];
        fused_node(q, m, p + (long long)(s - 2) * sd, sv, flux, pressure[2]);
        for (int v = 0; v < 5; ++v) OWN(f, at[s + 1] + v) = flux[v];
        if (s > 1) sensor[s - 1] = jump_sensor(pressure[0], pressure[1], pressure[2]);
    }
#ifdef HX_INTERPOLATES_NODES
    fused_states(q, m, p, (long long)sd, sv, left, right);
#endif
    for (int h = begin - 1; h < end; ++h, p += sd) {
#ifdef HX_FP32  // in FP64 the registers would not do (see hiresx/rhs/fused.py)
        if (viscous && h >= begin) fused_viscous(viscous_flux, p, (long long)sd, sv, before);
#endif
        const int oldest = at[0];
        for (int s = 0; s < 5; ++s) at[s] = at[s + 1];
        at[5] = oldest;
        for (int s = 0; s < 3; ++s) sensor[s] = sensor[s + 1];
        pressure[0] = pressure[1], pressure[1] = pressure[2];
        fused_node(q, m, p + 3ll * sd, sv, flux, pressure[2]);
        for (int v = 0; v < 5; ++v) OWN(f, at[5] + v) = flux[v];
        sensor[3] = jump_sensor(pressure[0], pressure[1], pressure[2]);
        HX_IN_ORDER;
#ifdef HX_INTERPOLATES_NODES
        fused_states(q, m, p + sd, (long long)sd, sv, next, right);
#else
        fused_states(q, m, p, (long long)sd, sv, left, right);
#endif
        HX_IN_ORDER;
        const real jump = larger(larger(sensor[0], sensor[1]), larger(sensor[2], sensor[3]));
#ifdef HX_FEW_REGISTERS
        if (h >= begin)
            for (int v = 0; v < 5; ++v) left[v] = OWN(kept, v);
#endif
        fused_flux(q, m, p, (long long)sd, sv, left, right, [&](int s, int v) { return OWN(f, at[s + 2] + v); }, jump,
                   flux);
#ifdef HX_FEW_REGISTERS
        if (h >= begin)
            for (int v = 0; v < 5; ++v) before[v] = OWN(kept, 5 + v);
#endif
        if (h >= begin) fused_difference(r, p, sd, sv, h, n, before, flux, first, walls);
#ifdef HX_FEW_REGISTERS
        for (int v = 0; v < 5; ++v) OWN(kept, v) = next[v], OWN(kept, 5 + v) = flux[v];
#else
        for (int v = 0; v < 5; ++v) before[v] = flux[v], left[v] = next[v];
#endif
    }
}

// Rows along i, each in chunks of `chunk` nodes: i is the chunk, (j, k) the row.
ROW_KERNEL(sweep_along, int i, int j, int k, int o, int sj, int sk, int n, int chunk, stride sv,
           const_state_field<gas_variables> q, const_work_field<3> m, const_work_field<gas_gradients> viscous_flux,
           rate_field<gas_variables> r, int first, int walls, int viscous) {
    SHARED real minus[5][33], plus[5][32], f[5][37], pressure[37], sensor[35], fluxes[5][33];
    const int begin = i * chunk, end = n - begin < chunk ? n : begin + chunk;
    const long long row = o + (long long)j * sj + (long long)k * sk;
    // f and pressure at [s]: of node base - 3 + s, sensor at [s]: of base - 2 + s; minus[0], fluxes[0]: what lane 31 left
    LANES {
        if (lane < 5) {
            real flux[5];
            fused_node(q, m, row + begin - 4 + lane, sv, flux, pressure[lane]);
            for (int v = 0; v < 5; ++v) f[v][lane] = flux[v];
        }
    }
    for (int base = begin - 1; base <= end; base += 32) {
        LANES {
            const int node = base + lane;
            if (node <= end) {
                real left[5], right[5], flux[5];
#ifdef HX_INTERPOLATES_NODES
                fused_states(q, m, row + node, 1ll, sv, left, right);
#else
                if (node >= begin) fused_states(q, m, row + node - 1, 1ll, sv, left, right);
#endif
                fused_node(q, m, row + node + 2, sv, flux, pressure[lane + 5]);
                for (int v = 0; v < 5; ++v) minus[v][lane + 1] = left[v], plus[v][lane] = right[v], f[v][lane + 5] = flux[v];
            }
        }
        LANES {
            for (int s = lane; s < 35; s += 32)
                sensor[s] = jump_sensor(pressure[s], pressure[s + 1], pressure[s + 2]);
        }
        LANES {  // the half point behind the node
            const int node = base + lane;
            if (node >= begin && node <= end) {
                real left[5], right[5], flux[5];
#ifdef HX_INTERPOLATES_NODES
                for (int v = 0; v < 5; ++v) left[v] = minus[v][lane], right[v] = plus[v][lane];
#else
                for (int v = 0; v < 5; ++v) left[v] = minus[v][lane + 1], right[v] = plus[v][lane];
#endif
                const real jump = larger(larger(sensor[lane], sensor[lane + 1]), larger(sensor[lane + 2], sensor[lane + 3]));
                fused_flux(q, m, row + node - 1, 1ll, sv, left, right, [&](int s, int v) { return f[v][lane + 2 + s]; },
                           jump, flux);
                for (int v = 0; v < 5; ++v) fluxes[v][lane + 1] = flux[v];
            }
        }
        LANES {
            const int l = base + lane - 1;
            if (l >= begin && l < end) {
                real before[5], after[5];
                for (int v = 0; v < 5; ++v) before[v] = fluxes[v][lane], after[v] = fluxes[v][lane + 1];
                if (viscous) fused_viscous(viscous_flux, row + l, 1ll, sv, before);
                fused_difference(r, row + l, 1ll, sv, l, n, before, after, first, walls);
            }
        }
        LANES {
            if (lane < 5) {
                pressure[lane] = pressure[lane + 32];
                for (int v = 0; v < 5; ++v) f[v][lane] = f[v][lane + 32];
                minus[lane][0] = minus[lane][32], fluxes[lane][0] = fluxes[lane][32];
            }
        }
    }
}
#endif
