// Subsonic inflow of given total pressure, total temperature and direction. The node keeps the acoustic invariant that
// leaves the block, J = u_n - 2 c/(gamma - 1) with u_n into the block. The other variables follow from the total
// enthalpy, c^2 + (gamma - 1)/2 V^2 = T_0 (in the scales of the solver c^2 = T), the entropy of the total state and the
// direction (Carlson, NASA/TM-2011-217181, section 2.7; Hirsch, Numerical Computation of Internal and External Flows 2,
// 1990, 19.1). With u_n = V cos(angle of the flow to the normal) the invariant and the enthalpy give a quadratic
// equation. The gas neither leaves (V >= 0) nor enters faster than sound.
#include "../continuation.h"

// direction: 1 where the grid line leads into the block, else -1. (dx, dy, dz): unit vector of the flow; 0: the normal.
// Where slip walls meet node (i, j) of n1 along the first direction and this vector is not tangential to them,
// which[node] is at least 0, and the 3 x 3 matrix number which[node] of `left` projects the vector onto the walls. Else
// the walls would remove a part of the velocity after every stage, and the speed would depend on the number of stages.
KERNEL(total_inflow_node, int i, int j, int k, int o, int s1, int s2, int sn, stride sv, real direction,
       real total_pressure, real total_temperature, real dx, real dy, real dz, int n1, optional<const int *> which,
       optional<const real *> left, const_work_field<3> m, state_field<gas_variables> q) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    real state[gas_variables], n[3], flow[3] = {dx, dy, dz};
    for (int v = 0; v < gas_variables; ++v) state[v] = q[v * sv + p];
    for (int c = 0; c < 3; ++c) n[c] = direction * m[c * sv + p];
    const real area = square_root(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
    const bool normal = dx == real(0) && dy == real(0) && dz == real(0);
    for (int c = 0; c < 3; ++c) n[c] /= area, flow[c] = normal ? n[c] : flow[c];
    if (which != nullptr && which[(long long)j * n1 + i] >= 0) {
        const real *turn = left + 9ll * which[(long long)j * n1 + i];
        const real x = flow[0], y = flow[1], z = flow[2];
        for (int c = 0; c < 3; ++c) flow[c] = turn[3 * c] * x + turn[3 * c + 1] * y + turn[3 * c + 2] * z;
        const real length = square_root(flow[0] * flow[0] + flow[1] * flow[1] + flow[2] * flow[2]);
        for (int c = 0; c < 3; ++c) flow[c] /= length;
    }
    const real cosine = n[0] * flow[0] + n[1] * flow[1] + n[2] * flow[2];
    const Primitive<real> s = primitive(state);
    const real sound = square_root(gas_gamma * s.p / s.rho), half = real(0.5) * gas_gamma_1;
    const real leaving = n[0] * s.u + n[1] * s.v + n[2] * s.w - sound / half;
    const real square = cosine * cosine;
    const real a = half * square + real(1), b = half * leaving, c = half * (half * leaving * leaving - square * total_temperature);
    const real root = square_root(larger(b * b - a * c, real(0)));
    const real found = (leaving + (root - b) / a / half) / cosine;
    const real speed = larger(real(0), smaller(found, square_root(total_temperature / (real(1) + half))));
    const real ratio = real(1) - half * speed * speed / total_temperature;
    const real pressure = total_pressure * power(ratio, real(HX_GAMMA / (HX_GAMMA - 1.0)));
    const real rho = gas_gamma * pressure / (total_temperature * ratio);
    q[p] = rho;
    for (int e = 0; e < 3; ++e) q[(e + 1) * sv + p] = rho * speed * flow[e];
    q[4 * sv + p] = pressure * real(1.0 / (HX_GAMMA - 1.0)) + real(0.5) * rho * speed * speed;
}

// The ghosts continue the flow cubically, with the fraction `quartic` of the quartic: the entering fields are already
// set at the node. Where lines shrink towards the face, all fields are continued by every second node.
KERNEL(total_inflow_ghost, int i, int j, int k, int o, int s1, int s2, int sn, stride sv, real quartic,
       const_work_field<3> m, const_work_field<1> jacobian, state_field<gas_variables> q) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    real increment[ghost_layers][gas_variables], state[gas_variables], ghost[gas_variables];
    continue_cubically(q, p, sn, sv, increment);
    add_quartic(q, p, sn, sv, quartic, increment);
    for (int v = 0; v < gas_variables; ++v) state[v] = q[v * sv + p];
    for (int l = 0; l < ghost_layers; ++l) {
        for (int v = 0; v < gas_variables; ++v) ghost[v] = state[v] + increment[l][v];
        keep_admissible(ghost, state);
        for (int v = 0; v < gas_variables; ++v) q[v * sv + p - (long long)(l + 1) * sn] = ghost[v];
    }
    const real shrinking = shrinking_share(m, jacobian, p, sn, sv);
    if (shrinking <= real(0)) return;
    real nodes[4][gas_variables];
    const real smooth = smooth_share(q, p, 2 * sn, sv, nodes), steep = shrinking_share(m, jacobian, p, sn, sv, steep_from, steep_to);
    for (int l = 1; l <= ghost_layers; ++l) {
        cubic_increment<2>(nodes, smooth, l, ghost);
        for (int v = 0; v < gas_variables; ++v) {
            ghost[v] += steep * (smooth * real(0.5) * real(l) * (nodes[0][v] - nodes[1][v]) - ghost[v]);
            const real there = q[v * sv + p - (long long)l * sn];
            ghost[v] = there + shrinking * (state[v] + ghost[v] - there);
        }
        keep_admissible(ghost, state);
        for (int v = 0; v < gas_variables; ++v) q[v * sv + p - (long long)l * sn] = ghost[v];
    }
}
