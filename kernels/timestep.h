// Spectral radii for the time step: inviscid J sum_d (|U_d| + a |m_d|), viscous
// J^2 sum_d |m_d|^2 max(4/3, gamma/Pr) mu/(Re_c rho). A direction with one node does not count: active is a bit mask.
HD void spectral_radii(const real *q, const real *m, const real *jacobian, long long p, long long sv, int active,
                       real inverse_reynolds, real *inviscid, real *viscous) {
    real state[5];
    for (int v = 0; v < 5; ++v) state[v] = q[v * sv + p];
    Primitive<real> s = primitive(state);
    const real a = square_root(gas_gamma * s.p / s.rho), volume = jacobian[p];
    real sum = real(0), squares = real(0);
    for (int d = 0; d < 3; ++d) {
        if (!(active >> d & 1)) continue;
        const real x = m[3 * d * sv + p], y = m[(3 * d + 1) * sv + p], z = m[(3 * d + 2) * sv + p];
        const real area2 = x * x + y * y + z * z;
        sum += absolute(x * s.u + y * s.v + z * s.w) + a * square_root(area2);
        squares += area2;
    }
    *inviscid = sum * volume;
#ifdef HX_VISCOUS
    constexpr real diffusion = real(HX_GAMMA / HX_PRANDTL > 4.0 / 3 ? HX_GAMMA / HX_PRANDTL : 4.0 / 3);
    *viscous = squares * volume * volume * diffusion * viscosity(gas_gamma * s.p / s.rho) * inverse_reynolds / s.rho;
#else
    (void)squares, (void)inverse_reynolds;
    *viscous = real(0);
#endif
}

// largest radii of each column along k: partial[0 or 1][j][i]
KERNEL(column_radii, int i, int j, int k, int o, int sj, int sk, int columns, int height, long long sv, const real *q,
       const real *m, const real *jacobian, int active, real inverse_reynolds, int width, real *partial) {
    real most[2] = {real(0), real(0)};
    for (int l = 0; l < height; ++l) {
        const long long p = o + i + (long long)j * sj + (long long)l * sk;
        real radius[2];
        spectral_radii(q, m, jacobian, p, sv, active, inverse_reynolds, radius, radius + 1);
        // a NaN wins: it must not hide
        for (int r = 0; r < 2; ++r) most[r] = radius[r] <= most[r] ? most[r] : radius[r];
    }
    for (int r = 0; r < 2; ++r) partial[(long long)r * columns + (long long)j * width + i] = most[r];
}

// local time step min(cfl/inviscid, viscous_cfl/viscous) of every point
KERNEL(local_step, int i, int j, int k, int o, int sj, int sk, long long sv, const real *q, const real *m,
       const real *jacobian, int active, real inverse_reynolds, real cfl, real viscous_cfl, real *dt) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    real inviscid, viscous;
    spectral_radii(q, m, jacobian, p, sv, active, inverse_reynolds, &inviscid, &viscous);
    const real step = cfl / inviscid;
    dt[p] = viscous * step > viscous_cfl ? viscous_cfl / viscous : step;
}
