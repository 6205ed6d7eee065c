// No-slip wall moving with (u, v, w): the node keeps its density, takes the wall's velocity, and the wall's temperature
// (temperature > 0) or, adiabatic, the one whose one-sided third-order normal derivative vanishes.
KERNEL(no_slip_node, int i, int j, int k, int o, int s1, int s2, int sn, stride sv, real u, real v, real w,
       real temperature, state_field<gas_variables> q) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    real wall = temperature;
    if (!(temperature > real(0))) {
        real t[4];
        for (int l = 1; l <= 3; ++l) {
            real state[gas_variables];
            for (int c = 0; c < gas_variables; ++c) state[c] = q[c * sv + p + (long long)l * sn];
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

// Ghosts of the inviscid terms: the pressure is even and the normal velocity odd about the wall's, which reflects sound
// whole. Of temperature and tangential velocity the mirror image would break the slope and the curvature, and the flux
// splittings of Steger-Warming and van Leer and Lax-Friedrichs diffuse shear and entropy wherever the two states at a half
// point differ (Couette flow on 33 nodes: T wrong by 7e-4). So what the mirror image has with the wrong sign, the slope of
// T and the curvature of the velocity, is put right from the parabola through the face's node and two more. Parabolas
// measured better than cubics (velocity on 9 nodes: error less by a third) and quartics (which blew up).
// Where the layer is not resolved, the added part is reduced: temperatures stay between half the least and twice the
// largest of the line, velocities about the wall within twice the largest plus half the wall's speed of sound.
KERNEL(no_slip_ghost, int i, int j, int k, int o, int s1, int s2, int sn, stride sv, real u, real v, real w,
       const_work_field<3> m, state_field<gas_variables> q) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    const real wall[3] = {u, v, w};
    real flow[4][3], size[4], pressure[4], t[4];
    for (int l = 0; l <= 3; ++l) {
        real state[gas_variables];
        for (int c = 0; c < gas_variables; ++c) state[c] = q[c * sv + p + (long long)l * sn];
        const Primitive<real> s = primitive(state);
        flow[l][0] = s.u - u, flow[l][1] = s.v - v, flow[l][2] = s.w - w;
        size[l] = square_root(flow[l][0] * flow[l][0] + flow[l][1] * flow[l][1] + flow[l][2] * flow[l][2]);
        pressure[l] = s.p, t[l] = gas_gamma * s.p / s.rho;
    }
    real slope = real(4) * t[1] - real(3) * t[0] - t[2], bend[3];
    const real n[3] = {m[p], m[sv + p], m[2 * sv + p]};
    real along = real(0);
    for (int c = 0; c < 3; ++c) {
        bend[c] = flow[0][c] - real(2) * flow[1][c] + flow[2][c];
        along += n[c] * bend[c];
    }
    along /= n[0] * n[0] + n[1] * n[1] + n[2] * n[2];
    for (int c = 0; c < 3; ++c) bend[c] -= along * n[c];

    const real low = real(0.5) * smaller(smaller(t[0], t[1]), smaller(t[2], t[3]));
    const real high = real(2) * larger(larger(t[0], t[1]), larger(t[2], t[3]));
    const real fast = real(2) * larger(size[1], larger(size[2], size[3])) + real(0.5) * square_root(t[0]);
    const real curvature = square_root(bend[0] * bend[0] + bend[1] * bend[1] + bend[2] * bend[2]);
    real warm = real(1), swift = real(1);
    for (int l = 1; l <= 3; ++l) {
        const real drop = real(l) * slope, room = drop > real(0) ? t[l] - low : high - t[l], change = absolute(drop);
        if (change > room) warm = smaller(warm, room / change);
        const real turn = real(l * l) * curvature, allowed = fast - size[l];
        if (turn > allowed) swift = smaller(swift, allowed / turn);
    }
    for (int l = 1; l <= ghost_layers; ++l) {
        const long long to = p - (long long)l * sn;
        const real rho = gas_gamma * pressure[l] / (t[l] - warm * real(l) * slope);
        real squares = real(0);
        q[to] = rho;
        for (int c = 0; c < 3; ++c) {
            const real velocity = wall[c] - flow[l][c] + swift * real(l * l) * bend[c];
            q[(c + 1) * sv + to] = rho * velocity;
            squares += velocity * velocity;
        }
        q[4 * sv + to] = pressure[l] * real(1.0 / (HX_GAMMA - 1.0)) + real(0.5) * rho * squares;
    }
}

// No mass passes a wall at rest: the mass flux at the half point behind the face is made the one before it, turned round,
// whatever the ghosts are. r[p - sn] holds the sum of the two (see face_mass); that of a wall which is not at rest is what
// its own velocity carries through the areas of both half points, so that a uniform flow that moves with the wall stays.
KERNEL(no_slip_mass, int i, int j, int k, int o, int s1, int s2, int sn, stride sv, real direction, real u, real v,
       real w, const_work_field<3> m, const_state_field<1> q, rate_field<1> r) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    const real wall[3] = {u, v, w};
    real volume = real(0);
    for (int c = 0; c < 3; ++c) {
        auto at = [&](int l) { return m[c * sv + p + (long long)l * sn]; };
        const real before = interpolate_metric<real>([&](int l) { return at(l - 1); });
        const real after = interpolate_metric<real>(at);
        volume += wall[c] * (before + after + flux_correction<real>([&](int l) { return at(l - 1); })
                             + flux_correction<real>(at));
    }
    r[p] -= direction * (r[p - sn] - q[p] * volume);
}
