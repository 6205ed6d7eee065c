// Outflow: the ghosts continue the four nodes at the face by the cubic through them, drawn back to the node on the face
// (first order) where density or pressure jumps among the four: the share of the cubic is the one that the correction
// of the inviscid terms keeps there.

// The increments of the three ghosts over the node on the face, increment[ghost][variable].
HD void continue_cubically(const real *q, long long p, int sn, long long sv, real increment[3][5]) {
    constexpr int weight[3][3] = {{-6, 4, -1}, {-20, 15, -4}, {-45, 36, -10}};  // of nodes 1, 2, 3 less node 0
    real state[4][5], pressure[4];
    for (int l = 0; l < 4; ++l) {
        for (int v = 0; v < 5; ++v) state[l][v] = q[v * sv + p + (long long)l * sn];
        pressure[l] = primitive(state[l]).p;
    }
    real sensor = real(0);
    for (int l = 0; l < 2; ++l) {
        sensor = larger(sensor, jump_sensor(pressure[l], pressure[l + 1], pressure[l + 2]));
        sensor = larger(sensor, jump_sensor(state[l][0], state[l + 1][0], state[l + 2][0]));
    }
    const real share = correction_scale(sensor);
    for (int l = 0; l < 3; ++l)
        for (int v = 0; v < 5; ++v) {
            real sum = real(0);
            for (int a = 0; a < 3; ++a) sum += real(weight[l][a]) * (state[a + 1][v] - state[0][v]);
            increment[l][v] = share * sum;
        }
}

// Whether gas comes in through an outflow faster than Mach 0.1 (eddies alone seldom do), from the outward velocity. Such
// a node is left to the upwind scheme: what enters has no slope, and nothing can be carried out.
HD bool blows_in(real outward, real sound) { return outward < real(-0.1) * sound; }

// Of fields that enter after all, the ghosts repeat the node; but of the entering acoustic field where its rate at the
// node is set (`rated`: subsonic outflow), for then the ghosts need only follow it.
KERNEL(extrapolate, int i, int j, int k, int o, int s1, int s2, int sn, long long sv, real direction, int rated,
       const real *m, real *q) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    real increment[3][5], state[5], inward[3], field[5], ghost[5];
    continue_cubically(q, p, sn, sv, increment);
    for (int v = 0; v < 5; ++v) state[v] = q[v * sv + p];
    for (int d = 0; d < 3; ++d) inward[d] = direction * m[d * sv + p];
    CharacteristicSpace<real> space = CharacteristicSpace<real>::at(state, inward);
    const bool enters[5] = {space.un > space.sound, space.un > real(0), space.un > real(0), space.un > real(0),
                            (!rated || blows_in(-space.un, space.sound)) && space.un > -space.sound};
    for (int l = 0; l < 3; ++l) {
        space.project(increment[l], field);
        for (int v = 0; v < 5; ++v) field[v] = enters[v] ? real(0) : field[v];
        space.restore(field, ghost);
        for (int v = 0; v < 5; ++v) ghost[v] = state[v] + ghost[v];
        keep_admissible(ghost, state);
        for (int v = 0; v < 5; ++v) q[v * sv + p - (long long)(l + 1) * sn] = ghost[v];
    }
}
