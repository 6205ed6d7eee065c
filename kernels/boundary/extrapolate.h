// Outflow: the ghosts continue the flow (continuation.h).
#include "../continuation.h"

// Of fields that enter after all, the ghosts repeat the node; but of the entering acoustic field where its rate at the
// node is set (`rated`: subsonic outflow), for then the ghosts need only follow it.
KERNEL(extrapolate, int i, int j, int k, int o, int s1, int s2, int sn, stride sv, real direction, int rated,
       const_work_field<3> m, state_field<gas_variables> q) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    real increment[ghost_layers][gas_variables], inward[3];
    real state[gas_variables], field[gas_variables], ghost[gas_variables];
    continue_cubically(q, p, sn, sv, increment);
    for (int v = 0; v < gas_variables; ++v) state[v] = q[v * sv + p];
    for (int d = 0; d < 3; ++d) inward[d] = direction * m[d * sv + p];
    CharacteristicSpace<real> space = CharacteristicSpace<real>::at(state, inward);
    const bool enters[gas_variables] = {space.un > space.sound, space.un > real(0), space.un > real(0),
                                        space.un > real(0), !rated && space.un > -space.sound};
    for (int l = 0; l < ghost_layers; ++l) {
        space.project(increment[l], field);
        for (int v = 0; v < gas_variables; ++v) field[v] = enters[v] ? real(0) : field[v];
        space.restore(field, ghost);
        for (int v = 0; v < gas_variables; ++v) ghost[v] = state[v] + ghost[v];
        keep_admissible(ghost, state);
        for (int v = 0; v < gas_variables; ++v) q[v * sv + p - (long long)(l + 1) * sn] = ghost[v];
    }
}
