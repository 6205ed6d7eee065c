// Passive scalars at physical faces. o, s1, s2, sn, sv as in boundary/; q: the state, of which the gas has its ghosts
// already; scalar: rho s of one scalar. target[layer][j][i]: s of the patch's n1 x n2 nodes, layer 0 on the face.
#include "viscous.h"
#include "wall_sums.h"
#include "half_point.h"
#include "continuation.h"

#if HX_SCALARS
// on the face and in its ghosts as given
KERNEL(scalar_given, int i, int j, int k, int o, int s1, int s2, int sn, int n1, int n2, const real *target,
       const_state_field<1> q, state_field<1> scalar) {
    const long long p = o + (long long)i * s1 + (long long)j * s2, layer = (long long)n1 * n2;
    for (int l = 0; l <= ghost_layers; ++l) {
        const long long to = p - (long long)l * sn;
        scalar[to] = q[to] * target[l * layer + (long long)j * n1 + i];
    }
}

// Behind walls and planes of symmetry: even, or odd about what a wall holds (`target`).
KERNEL(scalar_wall, int i, int j, int k, int o, int s1, int s2, int sn, int n1, optional<const real *> target,
       const_state_field<1> q, state_field<1> scalar) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    const real wall = target ? target[(long long)j * n1 + i] : real(0);
    for (int l = 1; l <= ghost_layers; ++l) {
        const long long from = p + (long long)l * sn, to = p - (long long)l * sn;
        const real inside = scalar[from] / q[from];
        scalar[to] = q[to] * (target ? real(2) * wall - inside : inside);
    }
}

// The node on a wall that holds s; where it meets others that do, the mean of what they hold: share[node] of it is that of
// this wall and those before it (hiresx/rhs/wall_corners.py).
KERNEL(scalar_held, int i, int j, int k, int o, int s1, int s2, int n1, const real *target, optional<const real *> share,
       const_state_field<1> q, state_field<1> scalar) {
    const long long p = o + (long long)i * s1 + (long long)j * s2, at = (long long)j * n1 + i;
    real own = target[at];
    if (share != nullptr && share[at] != real(1)) {
        const real before = scalar[p] / q[p];
        own = before + share[at] * (own - before);
    }
    scalar[p] = q[p] * own;
}

// Ghosts of in- and outflows: what leaves goes on by the quartic through five nodes, where it is not smooth by the cubic
// through four, and is drawn back to the node where it jumps. What enters is what is given, or else repeats the node, slow
// flow by the share of `entering_share` (continuation.h). A change above 1, the scale of a scalar, counts as 1; one of the
// variable of a model of turbulence (`transported`) is relative to its own values. direction: see boundary/extrapolate.h
KERNEL(scalar_open, int i, int j, int k, int o, int s1, int s2, int sn, stride sv, int n1, real direction,
       int transported, optional<const real *> target, const_work_field<3> m, const_state_field<gas_variables> q,
       state_field<1> scalar) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    real s[extrapolated_from], state[gas_variables], inward[3], sensor = real(0);
    for (int l = 0; l < extrapolated_from; ++l) s[l] = scalar[p + (long long)l * sn] / q[p + (long long)l * sn];
    for (int v = 0; v < gas_variables; ++v) state[v] = q[v * sv + p];
    for (int d = 0; d < 3; ++d) inward[d] = direction * m[d * sv + p];
    const CharacteristicSpace<real> space = CharacteristicSpace<real>::at(state, inward);
    for (int l = 1; l < 3; ++l) sensor = larger(sensor, jump_of_scalar(s + l, transported));
    const real smooth = correction_scale(sensor), entering = target ? target[(long long)j * n1 + i] : s[0];
    const real own = transported ? absolute(s[0]) + least_transported : real(1);
    real fourth = fourth_difference(s[0], s[1], s[2], s[3], s[4]);
    const real roughness = fourth / own;
    fourth *= quartic_share(roughness * roughness);
    for (int l = 1; l <= ghost_layers; ++l) {
        real sum = real(quartic_weight(l)) * fourth;
        for (int a = 1; a <= 3; ++a) sum += real(cubic_weight(l, a)) * (s[a] - s[0]);
        const real leaving = s[0] + smooth * sum, change = entering - leaving;
        const real scale = transported ? absolute(entering) + absolute(leaving) + least_transported : real(1);
        const real part = smaller(absolute(change) / scale, real(1));
        const real share = entering_share(space.un, state[0] * part, space.sound, state[0]);
        const long long to = p - (long long)l * sn;
        scalar[to] = q[to] * (leaving + share * change);
    }
}

// Where a condition sets the rate of the density, that of rho s is changed with it, so that s changes as by convection.
// hold: stores the rate of rho s less s rho_t in `held` behind the face; follow: adds it to the new s rho_t. Calling
// follow twice has no further effect.
KERNEL(scalar_hold, int i, int j, int k, int o, int s1, int s2, int sn, const_state_field<1> q,
       const_state_field<1> scalar,
       const_rate_field<1> r, const_rate_field<1> rate, rate_field<1> held) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    held[p - sn] = rate[p] - scalar[p] / q[p] * r[p];
}

KERNEL(scalar_follow, int i, int j, int k, int o, int s1, int s2, int sn, const_state_field<1> q,
       const_state_field<1> scalar,
       const_rate_field<1> r, const_rate_field<1> held, rate_field<1> rate) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    rate[p] = held[p - sn] + scalar[p] / q[p] * r[p];
}

// Nothing diffuses through a plane of symmetry or slip wall: the diffusive flux normal to it vanishes there and is odd, so
// that the central differences add up to nothing.
KERNEL(scalar_closed, int i, int j, int k, int o, int s1, int s2, int sn, work_field<1> flux) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    flux[p] = real(0);
    for (int l = 1; l <= ghost_layers; ++l) flux[p - (long long)l * sn] = -flux[p + (long long)l * sn];
}

// Nothing diffuses through the nodes of a no-slip wall. Behind them the diffusive flux is continued as a cubic. The
// last ghost, which only the difference at the wall's node uses, is set such that the central differences conserve the
// sum of wall_sums.h.
KERNEL(scalar_shut, int i, int j, int k, int o, int s1, int s2, int sn, work_field<1> flux) {
    (void)sn;
    flux[o + (long long)i * s1 + (long long)j * s2] = real(0);
}

KERNEL(scalar_behind, int i, int j, int k, int o, int s1, int s2, int sn, work_field<1> flux) {
    work_real *f = flux + (o + (long long)i * s1 + (long long)j * s2);
    auto at = [&](long long l) { return real(f[l * sn]); };
    real ghosts[viscous_reach];
    extrapolated(at, 3, ghosts);
    for (int l = 0; l < viscous_reach; ++l) f[-(l + 1ll) * sn] = ghosts[l];
    // the last ghost enters only the first value at half points, with the last weight of the difference
    constexpr long long last = -viscous_reach;
    const real left = wall_sum([&](int h) { return derivative_flux<viscous_reach, real>([&](int l) { return at(h - 1 + l); }); });
    f[last * sn] = at(last) + left / central_weight<viscous_reach>(viscous_reach);
}
#endif
