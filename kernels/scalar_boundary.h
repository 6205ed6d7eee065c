// Passive scalars at physical faces. o, s1, s2, sn, sv: as in boundary/; q: the state, with the ghosts of the gas
// already set; scalar: rho s of one scalar; target[layer][j][i]: s of the patch's n1 x n2 nodes, layer 0 on the face.
#include "viscous.h"
#include "wall_sums.h"
#include "half_point.h"
#include "continuation.h"

#if HX_SCALARS
// Sets s on the face and in its ghosts to `target`.
KERNEL(scalar_given, int i, int j, int k, int o, int s1, int s2, int sn, int n1, int n2, const real *target,
       const_state_field<1> q, state_field<1> scalar) {
    const long long p = o + (long long)i * s1 + (long long)j * s2, layer = (long long)n1 * n2;
    for (int l = 0; l <= ghost_layers; ++l) {
        const long long to = p - (long long)l * sn;
        scalar[to] = q[to] * target[l * layer + (long long)j * n1 + i];
    }
}

// Ghosts behind walls and planes of symmetry: even, or odd about the value `target` that a wall holds.
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

// Sets the node on a wall that holds s. Where several such walls meet, s is the mean of their values: share[node] is
// the weight of this wall in the mean over it and the walls before it (hiresx/rhs/wall_corners.py).
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

// Ghosts of in- and outflows. Where gas leaves, s is continued by the quartic through five nodes, where it is not
// smooth by the cubic through four, and where it jumps by the value of the node. Where gas enters, s is `target` or
// else that of the node, in slow flow by the fraction `entering_share` (continuation.h). A change above 1, the scale of
// a scalar, counts as 1. The change of a variable of a turbulence model (`transported`) is relative to its own values.
// direction: sign of the grid line, 1 where it leads into the block.
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

// Where a condition sets the rate of the density, the rate of rho s is changed too, so that s changes as by convection.
// scalar_hold stores the rate of rho s minus s rho_t in `held` behind the face. scalar_follow adds it to the new s
// rho_t; a second call has no further effect.
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

// Nothing diffuses through a plane of symmetry or slip wall: the normal diffusive flux vanishes there and is odd, so
// that central differences conserve the scalar.
KERNEL(scalar_closed, int i, int j, int k, int o, int s1, int s2, int sn, work_field<1> flux) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    flux[p] = real(0);
    for (int l = 1; l <= ghost_layers; ++l) flux[p - (long long)l * sn] = -flux[p + (long long)l * sn];
}

// Nothing diffuses through the nodes of a no-slip wall (scalar_shut). Behind them the diffusive flux is continued as a
// cubic (scalar_behind). The last ghost enters only the difference at the wall's node. Its value makes the central
// differences conserve the sum of wall_sums.h.
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
    // The last ghost enters only the first value at half points, with the last weight of the difference.
    constexpr long long last = -viscous_reach;
    const real left = wall_sum([&](int h) { return derivative_flux<viscous_reach, real>([&](int l) { return at(h - 1 + l); }); });
    f[last * sn] = at(last) + left / central_weight<viscous_reach>(viscous_reach);
}
#endif
