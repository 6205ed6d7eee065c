// scalar: rho s of one scalar, r: of it
KERNEL(decay, int i, int j, int k, int o, int sj, int sk, const_work_field<1> jacobian, real rate,
       const_state_field<1> scalar, rate_field<1> r) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    r[p] -= rate * scalar[p] / jacobian[p];
}
