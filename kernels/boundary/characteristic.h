// Non-reflecting characteristic boundary (Thompson 1987), in the characteristic fields of the node on the face. The
// ghosts continue the fields that leave the block cubically. Fields that enter take the value of the target. The node
// itself obeys the equations. The leaving fields must not be continued as constants: the flux splittings of
// Steger-Warming and van Leer mix the fields where the two states at a half point differ, and a kink of a leaving field
// at the face then reflects 8 % and 16 % of the field on any grid. Fields that enter slowly are scaled by
// `entering_share`. Otherwise the rates would jump where a characteristic speed changes its sign: by round-off where
// the flow is tangential to a face, and during Newton's method. target: a whole conservative state, with the layout of
// prescribe.h.
#include "../quartic_ghosts.h"

KERNEL(characteristic, int i, int j, int k, int o, int s1, int s2, int sn, stride sv, int n1, int n2, real direction,
       real inverse_reynolds, const real *target, const_work_field<3> m, const_work_field<1> jacobian,
       state_field<gas_variables> q) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    const long long layer = (long long)n1 * n2, at = (long long)j * n1 + i;
    real state[gas_variables], difference[gas_variables], increment[ghost_layers][gas_variables], inward[3];
    real entering[gas_variables], leaving[gas_variables], change[gas_variables], share[gas_variables], ghost[gas_variables];
    for (int v = 0; v < gas_variables; ++v) state[v] = q[v * sv + p];
    for (int d = 0; d < 3; ++d) inward[d] = direction * m[d * sv + p];
    CharacteristicSpace<real> space = CharacteristicSpace<real>::at(state, inward);
    continue_cubically(q, p, sn, sv, increment);
    const real viscous = viscous_share(q, p, sv, inward, inverse_reynolds * jacobian[p]);
    // On steep lines, where gas enters and viscosity matters (`viscous`), the leaving fields are continued linearly:
    // fully from Mach 0.1 on.
    real straight = larger(real(0), smaller(real(1), real(10) * space.un / space.sound)) * viscous;
    if (straight > real(0)) straight *= shrinking_share(m, jacobian, p, sn, sv, steep_from, steep_to);
    add_quartic(q, p, sn, sv, viscous, increment, straight);
    for (int l = 1; l <= ghost_layers; ++l) {
        for (int v = 0; v < gas_variables; ++v)
            difference[v] = target[(v * (1 + ghost_layers) + l) * layer + at] - state[v];
        space.project(difference, entering);
        space.project(increment[l - 1], leaving);
        for (int v = 0; v < gas_variables; ++v) change[v] = entering[v] - leaving[v];
        entering_shares(space, state[0], change, share);
        for (int v = 0; v < gas_variables; ++v) leaving[v] += share[v] * change[v];
        space.restore(leaving, ghost);
        for (int v = 0; v < gas_variables; ++v) ghost[v] = state[v] + ghost[v];
        keep_admissible(ghost, state);
        for (int v = 0; v < gas_variables; ++v) q[v * sv + p - (long long)l * sn] = ghost[v];
    }
}
