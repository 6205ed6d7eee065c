// Quartic ghosts behind subsonic faces of viscous flow, a header of its own for what is compiled for every viscosity.
#include "continuation.h"

// Makes quartics of the cubics behind a subsonic face where viscosity decides. There the error of the rates at the face's
// nodes, of third order with cubics, stays in a layer in which viscosity balances convection. Elsewhere it leaves, and
// cubics are the more robust ones: with quartics in inviscid flow noise of 2 % grew at Mach 0.1 until the gas stood still,
// and twice as much of a pulse stayed in a box of outflows. So all of the quartic is taken up to a cell's Reynolds number
// c d/nu of 10, none of it from 20 on, and less where the fourth difference is large (of density, momentum and energy over
// rho, rho c and rho c^2).
HD void add_quartic(const_state_pointer q, long long p, int sn, stride sv, const real *area, real viscous_area,
                    real increment[ghost_layers][gas_variables]) {
#ifdef HX_VISCOUS
    real state[4][gas_variables], fourth[gas_variables];
    const real share = smooth_share(q, p, sn, sv, state);
    const real rho = state[0][0], sound2 = gas_gamma * primitive(state[0]).p / rho;
    const real area2 = area[0] * area[0] + area[1] * area[1] + area[2] * area[2];
    const real number = rho * square_root(sound2) / (viscosity(sound2) * viscous_area * square_root(area2));
    for (int v = 0; v < gas_variables; ++v)
        fourth[v] = fourth_difference(state[0][v], state[1][v], state[2][v], state[3][v], q[v * sv + p + 4ll * sn]);
    real square = fourth[0] * fourth[0] * sound2 + fourth[4] * fourth[4] / sound2;
    for (int v = 1; v <= 3; ++v) square += fourth[v] * fourth[v];
    const real quartic = share * quartic_share(square / (rho * rho * sound2))
                         * larger(real(0), smaller(real(1), real(2) - real(0.1) * number));
    for (int l = 0; l < ghost_layers; ++l)
        for (int v = 0; v < gas_variables; ++v) increment[l][v] += quartic * real(quartic_weight(l + 1)) * fourth[v];
#else
    (void)q, (void)p, (void)sn, (void)sv, (void)area, (void)viscous_area, (void)increment;
#endif
}
