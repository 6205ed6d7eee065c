// Outflow: the ghosts continue the four nodes at the face by the cubic through them, drawn back to the node on the face
// (first order) where density or pressure jumps among the four: the share of the cubic is the one that the correction
// of the inviscid terms keeps there.
#include "half_point.h"

// The share, and the states of the four nodes.
HD real smooth_share(const_state_pointer q, long long p, int sn, stride sv, real state[4][gas_variables]) {
    real pressure[4];
    for (int l = 0; l < 4; ++l) {
        for (int v = 0; v < gas_variables; ++v) state[l][v] = q[v * sv + p + (long long)l * sn];
        pressure[l] = primitive(state[l]).p;
    }
    real sensor = real(0);
    for (int l = 0; l < 2; ++l) {
        sensor = larger(sensor, jump_sensor(pressure[l], pressure[l + 1], pressure[l + 2]));
        sensor = larger(sensor, jump_sensor(state[l][0], state[l + 1][0], state[l + 2][0]));
    }
    return correction_scale(sensor);
}

// The share to which a field that moves into the block at `speed` is an entering one: from 0 at rest it rises to 1 at a
// ten-thousandth of the sound speed, so that ghosts are continuous functions of the flow, also where it grazes the face.
HD real entering_share(real speed, real sound) {
    return larger(real(0), smaller(real(1), speed / (real(1e-4) * sound)));
}

// What the cubic through the nodes 0 to 3 makes, l nodes beyond node 0, of node a less node 0, a = 1, 2, 3.
HD constexpr int cubic_weight(int l, int a) {
    return a == 1 ? -l * (l + 2) * (l + 3) / 2 : a == 2 ? l * (l + 1) * (l + 3) / 2 : -l * (l + 1) * (l + 2) / 6;
}

// The increments of the ghosts over the node on the face, increment[ghost][variable].
HD void continue_cubically(const_state_pointer q, long long p, int sn, stride sv,
                           real increment[ghost_layers][gas_variables]) {
    real state[4][gas_variables];
    const real share = smooth_share(q, p, sn, sv, state);
    for (int l = 0; l < ghost_layers; ++l)
        for (int v = 0; v < gas_variables; ++v) {
            real sum = real(0);
            for (int a = 1; a <= 3; ++a) sum += real(cubic_weight(l + 1, a)) * (state[a][v] - state[0][v]);
            increment[l][v] = share * sum;
        }
}
