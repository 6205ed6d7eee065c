#if defined(HX_VISCOUS) && HX_TRANSPORTED
// Adds to r the sources of the transported variables of a turbulence model, which the viscous fluxes have stored for
// every node. In explicit runs a source takes at most the fraction `largest_loss` of a variable that stays positive in
// a stage; 0: no bound. The time step does not depend on such sources: beside a wall that a uniform flow meets, the
// strain reduces g to a fraction of itself within the first steps. dt: one value (dt_stride 0) or one per node (1).
KERNEL(transported_source, int i, int j, int k, int o, int sj, int sk, stride sv, const_work_field<1> jacobian,
       const_state_field<conserved_variables> q, const_work_field<HX_TRANSPORTED> source, const real *dt, int dt_stride,
       real largest_loss, rate_field<HX_TRANSPORTED> r) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    for (int n = 0; n < HX_TRANSPORTED; ++n) {
        const real own = q[(conserved_variables - HX_TRANSPORTED + n) * sv + p];
        real change = source[n * sv + p];
        if (transported_stays_positive[n] && largest_loss > real(0) && own > real(0))
            change = larger(change, -largest_loss * own / dt[p * dt_stride]);
        r[n * sv + p] += change / jacobian[p];
    }
}

// In runs to steady flow, variables that stay positive fall at most at the rate M, `fastest_fall` times that of
// diffusion and convection over a cell. A rate r < 0 becomes r/(1 - r/(M rho s)), which is 0 where r is 0, so that the
// steady flow does not change. Central differences of a front would otherwise reduce such a variable to 0 at once. With
// the rate of a cell itself Newton's method stalled.
constexpr real fastest_fall = real(100);
KERNEL(transported_bound, int i, int j, int k, int o, int sj, int sk, int active, stride sv,
       const_state_field<conserved_variables> q, const_work_field<9> m, const_work_field<1> jacobian,
       real inverse_reynolds, rate_field<HX_TRANSPORTED> r) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    real state[gas_variables], most = real(0);
    for (int v = 0; v < gas_variables; ++v) state[v] = q[v * sv + p];
    const Primitive<real> s = primitive(state);
    const real volume = jacobian[p], spread = real(4) * viscosity(gas_gamma * s.p / s.rho) * inverse_reynolds / s.rho;
    for (int d = 0; d < 3; ++d) {
        if (!(active >> d & 1)) continue;
        const real x = m[3 * d * sv + p], y = m[(3 * d + 1) * sv + p], z = m[(3 * d + 2) * sv + p];
        most += absolute(x * s.u + y * s.v + z * s.w) * volume + (x * x + y * y + z * z) * volume * volume * spread;
    }
    for (int n = 0; n < HX_TRANSPORTED; ++n) {
        const real own = q[(conserved_variables - HX_TRANSPORTED + n) * sv + p], rate = r[n * sv + p];
        if (transported_stays_positive[n] && rate < real(0) && own > real(0))
            r[n * sv + p] = rate / (real(1) - rate * volume / (fastest_fall * most * own));
    }
}
#endif
