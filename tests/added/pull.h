// Body force rho a, and its work rho u a.
KERNEL(pull, int i, int j, int k, int o, int sj, int sk, stride sv, const_state_field<gas_variables> q,
       const_work_field<1> jacobian, real ax, real ay, real az, rate_field<gas_variables> r) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    const real volume = real(1) / jacobian[p], a[3] = {ax, ay, az};
    for (int d = 0; d < 3; ++d) {
        r[(d + 1) * sv + p] += q[p] * a[d] * volume;
        r[4 * sv + p] += q[(d + 1) * sv + p] * a[d] * volume;
    }
}
