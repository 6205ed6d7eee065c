// Outflow: ghosts continue the four nodes at the face by the cubic through them. Where density or pressure jumps among
// the four, they approach the node on the face (first order); the share of the cubic is that of the correction of the
// inviscid terms. Characteristic fields that enter where the node on the face is given are continued by the cubic
// through every second node where spacings decrease towards the face (`shrinking_share`).
#include "half_point.h"

// Returns the share of the cubic; state: the states of the four nodes.
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

// The share of the change of a ghost that is admitted for a characteristic field which enters the block at `speed`.
// change: that change, in units of density. The share is 1 where the speed exceeds a thirtieth of the sound speed times
// change/rho, and proportional to the speed below. Ghosts are therefore continuous functions of the flow also where it
// grazes the face, with slopes that do not grow with the change: a steep slope would amplify round-off from step to
// step.
HD real entering_share(real speed, real change, real sound, real rho) {
    const real admitted = real(30) * rho * speed, whole = sound * change;
    return admitted <= real(0) ? real(0) : admitted < whole ? admitted / whole : real(1);
}

// The shares of the five characteristic fields that would change by `change`. The three fields that the flow convects
// have one share, so that the choice of tangents does not matter.
HD void entering_shares(const CharacteristicSpace<real> &space, real rho, const real *change, real *share) {
    const real carried = change[1] * change[1] + (change[2] * change[2] + change[3] * change[3]) * space.inverse_sound2;
    share[0] = entering_share(space.un - space.sound, absolute(change[0]), space.sound, rho);
    share[1] = share[2] = share[3] = entering_share(space.un, square_root(carried), space.sound, rho);
    share[4] = entering_share(space.un + space.sound, absolute(change[4]), space.sound, rho);
}

// The cubic through the nodes 0, s, 2 s and 3 s, evaluated l nodes beyond node 0: the weight of the difference of node
// a s and node 0, a = 1, 2, 3.
HD constexpr double cubic_weight(int l, int a, int s = 1) {
    return (a == 1 ? -l * (l + 2 * s) * (l + 3 * s) / 2.0 : a == 2 ? l * (l + s) * (l + 3 * s) / 2.0 : -l * (l + s) * (l + 2 * s) / 6.0)
           / (s * s * s);
}

HD real fourth_difference(real a, real b, real c, real d, real e) { return a + e - real(4) * (b + d) + real(6) * c; }

// The quartic through five nodes minus the cubic through four, l nodes beyond node 0, over the fourth difference.
HD constexpr int quartic_weight(int l) { return l * (l + 1) * (l + 2) * (l + 3) / 24; }

// The share of the quartic. square: the squared fourth difference, relative to the scale of the state. The share is one
// half where the relative difference is a hundredth. In smooth flow it departs from 1 by the 16th power of the spacing.
HD real quartic_share(real square) {
    const real size = real(1e4) * square;
    return real(1) / (real(1) + size * size);
}

// The increment of ghost l = 1, 2, ... over the node on the face, times `share`, by the cubic through the states of the
// nodes 0, s, 2 s and 3 s.
template <int s> HD void cubic_increment(const real state[4][gas_variables], real share, int l, real *increment) {
    for (int v = 0; v < gas_variables; ++v) {
        real sum = real(0);
        for (int a = 1; a <= 3; ++a) sum += real(cubic_weight(l, a, s)) * (state[a][v] - state[0][v]);
        increment[v] = share * sum;
    }
}

// The increments of the ghosts over the node on the face, increment[ghost][variable], by cubics.
HD void continue_cubically(const_state_pointer q, long long p, int sn, stride sv,
                           real increment[ghost_layers][gas_variables]) {
    real state[4][gas_variables];
    const real share = smooth_share(q, p, sn, sv, state);
    for (int l = 0; l < ghost_layers; ++l) cubic_increment<1>(state, share, l + 1, increment[l]);
}

// Adds `whole` times the quartic terms to the cubics behind a face, and less where the fourth difference is large (of
// density, momentum and energy over rho, rho c and rho c^2). With cubics the rates of the nodes at the face are of
// third order. The share `straight` of the result is replaced by the straight line through the nodes 0 and 2.
HD void add_quartic(const_state_pointer q, long long p, int sn, stride sv, real whole,
                    real increment[ghost_layers][gas_variables], real straight = real(0)) {
    real state[4][gas_variables], fourth[gas_variables];
    const real share = smooth_share(q, p, sn, sv, state);
    const real rho = state[0][0], sound2 = gas_gamma * primitive(state[0]).p / rho;
    for (int v = 0; v < gas_variables; ++v)
        fourth[v] = fourth_difference(state[0][v], state[1][v], state[2][v], state[3][v], q[v * sv + p + 4ll * sn]);
    real square = fourth[0] * fourth[0] * sound2 + fourth[4] * fourth[4] / sound2;
    for (int v = 1; v <= 3; ++v) square += fourth[v] * fourth[v];
    const real quartic = share * quartic_share(square / (rho * rho * sound2)) * whole;
    for (int l = 0; l < ghost_layers; ++l)
        for (int v = 0; v < gas_variables; ++v) increment[l][v] += quartic * real(quartic_weight(l + 1)) * fourth[v];
    if (straight <= real(0)) return;
    for (int l = 0; l < ghost_layers; ++l)
        for (int v = 0; v < gas_variables; ++v)
            increment[l][v] += straight * (share * real(0.5 * (l + 1)) * (state[0][v] - state[2][v]) - increment[l][v]);
}

// A share that grows with the largest factor by which spacings along the grid line increase from cell to cell, away
// from the face, among the first cells: 0 up to `from`, 1 from `to` on.
//
// By default it is the share of cubics through every second node. A field that enters is convected from a given node
// along cells that it takes ever longer to cross. With ghosts by polynomials through neighbouring nodes its differences
// at the first inner nodes are downwind differences, and waves grow there: by cubics from a factor of 1.14, by quartics
// from 1.05 (eigenvalues of the linear scheme). With every second node none grow, whatever the spacings.
constexpr double shrinks_from = 1.05, shrinks_to = 1.1;
// Bounds for steep lines in viscous flow, where modes at subsonic faces grow with polynomials through neighbouring
// nodes, whatever the time step (docs/numerics.md, "Metrics").
constexpr double steep_from = 1.5, steep_to = 2;
constexpr int cells_seen = 4;
HD real shrinking_share(const work_real *m, const work_real *jacobian, long long p, int sn, stride sv,
                        double from = shrinks_from, double to = shrinks_to) {
    real steepest = real(0), before = real(0);
    for (int l = 0; l <= cells_seen; ++l) {
        const long long at = p + (long long)l * sn;
        const real x = m[at], y = m[sv + at], z = m[2 * sv + at];
        const real nodes_per_length = jacobian[at] * square_root(x * x + y * y + z * z);
        if (l > 0) steepest = larger(steepest, before / nodes_per_length);
        before = nodes_per_length;
    }
    return larger(real(0), smaller(real(1), (steepest - real(from)) * real(1 / (to - from))));
}
