// Reynolds numbers of a cell at a face, u_n d/nu of the flow along the normal (m: area vector) and c d/nu of sound, where d is
// the distance of nodes along the normal.
#include "gas.h"

#ifdef HX_VISCOUS
struct CellReynolds {
    real flow, sound;
};

HD CellReynolds cell_reynolds(const real *state, const work_real *m, long long p, stride sv, real jacobian,
                              real inverse_reynolds) {
    real through = real(0), area2 = real(0);
    for (int c = 0; c < 3; ++c) {
        const real n = m[c * sv + p];
        through += n * state[c + 1];
        area2 += n * n;
    }
    const real rho = state[0], warmth = gas_gamma * primitive(state).p / rho;
    const real viscous = viscosity(warmth) * inverse_reynolds * jacobian * area2;
    return {through / viscous, rho * square_root(warmth * area2) / viscous};
}

// The share of one-sided viscous fluxes that a face allows whose slowest wave has the number `slowest`: all above 4, where
// the wave takes their errors along, and none below 3, where viscosity carries these inwards and they grow.
HD real one_sided_share(real slowest) { return larger(real(0), smaller(real(1), slowest - real(3))); }
#endif
