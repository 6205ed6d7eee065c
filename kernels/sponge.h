// Sponge layer: r -= sigma (q - reference)/J over an index range. sigma: one value per point of the range; reference: 5
// values per point, or 5 values for all points (reference_stride 0).
KERNEL(sponge, int i, int j, int k, int o, int sj, int sk, int width, int height, int count, stride sv,
       const_state_field<gas_variables> q, const_work_field<1> jacobian, const real *sigma, const real *reference,
       int reference_stride, rate_field<gas_variables> r) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    const long long at = i + (long long)width * (j + (long long)height * k);
    const real rate = sigma[at] / jacobian[p];
    for (int v = 0; v < gas_variables; ++v) {
        const real goal = reference_stride ? reference[(long long)v * count + at] : reference[v];
        r[v * sv + p] -= rate * (q[v * sv + p] - goal);
    }
}
