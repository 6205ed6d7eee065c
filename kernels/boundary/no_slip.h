// No-slip wall moving with (u, v, w): the node keeps its density, takes the wall's velocity, and the wall's temperature
// (temperature > 0) or, adiabatic, the one whose one-sided third-order normal derivative vanishes. Ghosts of the
// inviscid terms: density and pressure even, velocity odd about the wall's.
KERNEL(no_slip_node, int i, int j, int k, int o, int s1, int s2, int sn, long long sv, real u, real v, real w,
       real temperature, real *q) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    real wall = temperature;
    if (!(temperature > real(0))) {
        real t[4];
        for (int l = 1; l <= 3; ++l) {
            real state[5];
            for (int c = 0; c < 5; ++c) state[c] = q[c * sv + p + (long long)l * sn];
            Primitive<real> s = primitive(state);
            t[l] = gas_gamma * s.p / s.rho;
        }
        wall = (real(18) * t[1] - real(9) * t[2] + real(2) * t[3]) * real(1.0 / 11);
        // at a shock the polynomial may leave the range of its nodes
        const real low = smaller(t[1], smaller(t[2], t[3])), high = larger(t[1], larger(t[2], t[3]));
        wall = larger(real(0.5) * low, smaller(real(2) * high, wall));
    }
    const real rho = q[p];
    q[sv + p] = rho * u;
    q[2 * sv + p] = rho * v;
    q[3 * sv + p] = rho * w;
    q[4 * sv + p] = rho * (wall * real(1.0 / (HX_GAMMA * (HX_GAMMA - 1.0))) + real(0.5) * (u * u + v * v + w * w));
}

KERNEL(no_slip_ghost, int i, int j, int k, int o, int s1, int s2, int sn, long long sv, real u, real v, real w,
       real *q) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    const real wall[3] = {u, v, w};
    for (int l = 1; l <= 3; ++l) {
        const long long from = p + (long long)l * sn, to = p - (long long)l * sn;
        const real rho = q[from];
        real change = real(0);
        q[to] = rho;
        for (int c = 0; c < 3; ++c) {
            const real in = q[(c + 1) * sv + from], out = real(2) * rho * wall[c] - in;
            change += out * out - in * in;
            q[(c + 1) * sv + to] = out;
        }
        q[4 * sv + to] = q[4 * sv + from] + real(0.5) * change / rho;
    }
}
