// Outflow: the ghosts continue the flow (continuation.h).
#include "../quartic_ghosts.h"
#include "../viscous.h"

// Fields that enter the block nevertheless have the value of the node in the ghosts. With `rated` (subsonic outflow)
// the entering acoustic field is an exception, since its rate is set at the node: the ghosts continue this field, by
// every second node where lines shrink towards the face.
KERNEL(extrapolate, int i, int j, int k, int o, int s1, int s2, int sn, stride sv, real direction, int rated,
       real inverse_reynolds, const_work_field<3> m, const_work_field<1> jacobian, state_field<gas_variables> q) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    real increment[ghost_layers][gas_variables], inward[3];
    real state[gas_variables], field[gas_variables], share[gas_variables], ghost[gas_variables];
    continue_cubically(q, p, sn, sv, increment);
    for (int v = 0; v < gas_variables; ++v) state[v] = q[v * sv + p];
    for (int d = 0; d < 3; ++d) inward[d] = direction * m[d * sv + p];
    CharacteristicSpace<real> space = CharacteristicSpace<real>::at(state, inward);
    // Without `rated` the quartic is used fully where every field leaves at Mach 1.1 or more, and not at all below Mach
    // 1.
    const real fast = larger(real(0), smaller(real(1), real(-10) * (space.un / space.sound + real(1))));
    add_quartic(q, p, sn, sv, rated ? viscous_share(q, p, sv, inward, inverse_reynolds * jacobian[p]) : fast, increment);
    for (int l = 0; l < ghost_layers; ++l) {
        space.project(increment[l], field);
        entering_shares(space, state[0], field, share);
        if (rated) share[4] = real(0);
        for (int v = 0; v < gas_variables; ++v) field[v] *= real(1) - share[v];
        space.restore(field, ghost);
        for (int v = 0; v < gas_variables; ++v) ghost[v] = state[v] + ghost[v];
        keep_admissible(ghost, state);
        for (int v = 0; v < gas_variables; ++v) q[v * sv + p - (long long)(l + 1) * sn] = ghost[v];
    }
    // This part comes last, because the part above needs the most registers.
    const real shrinking = rated ? shrinking_share(m, jacobian, p, sn, sv) : real(0);
    if (shrinking <= real(0)) return;
    real nodes[4][gas_variables];
    const real smooth = smooth_share(q, p, 2 * sn, sv, nodes);
    for (int l = 1; l <= ghost_layers; ++l) {
        cubic_increment<2>(nodes, smooth, l, share);
        for (int v = 0; v < gas_variables; ++v) {
            ghost[v] = q[v * sv + p - (long long)l * sn];
            share[v] += nodes[0][v] - ghost[v];
        }
        space.project(share, field);
        for (int v = 0; v < 4; ++v) field[v] = real(0);
        field[4] *= shrinking;
        space.restore(field, share);
        for (int v = 0; v < gas_variables; ++v) ghost[v] += share[v];
        keep_admissible(ghost, nodes[0]);
        for (int v = 0; v < gas_variables; ++v) q[v * sv + p - (long long)l * sn] = ghost[v];
    }
}

#ifdef HX_VISCOUS
// Ghosts of the normal viscous flux behind a supersonic outflow: the cubic through the four nodes at the face. The
// cubic is reduced towards the value at the node on the face (zero normal derivative of the flux) where density or
// pressure jumps. It is also reduced where the slowest wave leaves so slowly that viscosity carries the errors of the
// cubic inwards; with given nu they would grow on fine grids. The cubic is used fully where the cell Reynolds number
// (u_n - c) d/nu is above 4, and not at all below 3. variables: number of fluxes, 1 for a scalar. inverse_reynolds:
// 1/Re_c; for a scalar 1/(Re_c Sc) if Sc < 1.
KERNEL(outflow_flux, int i, int j, int k, int o, int s1, int s2, int sn, stride sv, int variables,
       real direction, real inverse_reynolds, const_work_field<3> m, const_work_field<1> jacobian,
       const_state_field<gas_variables> q, work_field<1> flux) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    real state[4][gas_variables], outward = real(0), area2 = real(0);
    real share = smooth_share(q, p, sn, sv, state);
    for (int c = 0; c < 3; ++c) {
        const real n = m[c * sv + p];
        outward -= direction * n * state[0][c + 1];
        area2 += n * n;
    }
    const real rho = state[0][0], warmth = gas_gamma * primitive(state[0]).p / rho;
    const real slowest = outward - rho * square_root(warmth * area2);
    const real viscous = viscosity(warmth) * inverse_reynolds * jacobian[p] * area2;
    share *= larger(real(0), smaller(real(1), slowest / viscous - real(3)));
    for (int v = 0; v < variables; ++v) {
        work_real *f = flux + v * sv + p;
        const real at_face = f[0];
        real ghosts[viscous_reach];
        extrapolated([&](int l) { return real(f[l * sn]); }, 3, ghosts);
        for (int l = 0; l < viscous_reach; ++l) f[-(l + 1) * sn] = at_face + share * (ghosts[l] - at_face);
    }
}
#endif
