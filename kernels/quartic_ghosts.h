// The share of quartic ghosts behind subsonic faces. The header is separate from others that are compiled for every
// viscosity.
#include "continuation.h"

// The argument `whole` of add_quartic behind a subsonic face whose nodes obey the equations. Where viscosity dominates,
// the error of the rates at the nodes on the face stays in a layer in which viscosity balances convection. Elsewhere it
// leaves, and cubics are more robust: with quartics in inviscid flow noise of 2 % grew at Mach 0.1 until the gas stood
// still, and twice as much of a pulse stayed in a box of outflows. The share is therefore 1 up to a cell Reynolds
// number c d/nu of 10 and 0 from 20 on.
HD real viscous_share(const_state_pointer q, long long p, stride sv, const real *area, real viscous_area) {
#ifdef HX_VISCOUS
    real state[gas_variables];
    for (int v = 0; v < gas_variables; ++v) state[v] = q[v * sv + p];
    const real sound2 = gas_gamma * primitive(state).p / state[0];
    const real area2 = area[0] * area[0] + area[1] * area[1] + area[2] * area[2];
    const real number = state[0] * square_root(sound2) / (viscosity(sound2) * viscous_area * square_root(area2));
    return larger(real(0), smaller(real(1), real(2) - real(0.1) * number));
#else
    return (void)q, (void)p, (void)sv, (void)area, (void)viscous_area, real(0);
#endif
}
