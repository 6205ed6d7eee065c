// How much the pressure jumps at a node along any direction: 0 where it goes straight on, 1 from a second difference of
// a tenth of it on.
KERNEL(shocks, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, stride sv,
       const_state_field<gas_variables> q, work_field<1> sensor) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk, strides[3] = {di, dj, dk};
    const auto pressure = [&](long long at) {
        real state[gas_variables];
        for (int v = 0; v < gas_variables; ++v) state[v] = q[v * sv + at];
        return primitive(state).p;
    };
    real most = real(0);
    for (int d = 0; d < 3; ++d) {
        const real jump = pressure(p - strides[d]) - real(2) * pressure(p) + pressure(p + strides[d]);
        most = larger(most, absolute(jump) / (real(0.1) * pressure(p)));
    }
    sensor[p] = smaller(most, real(1));
}
