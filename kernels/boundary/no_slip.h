// No-slip wall moving with (u, v, w). The node keeps its density and takes the wall's velocity. With temperature > 0 it
// takes that temperature. Otherwise it keeps its internal energy, which obeys the equations with the wall's heat flux
// (none for an adiabatic wall). Where gas is blown or sucked through the wall (`blown`), the node has that normal
// velocity in addition.
#include "../half_point.h"
#include "../viscous.h"
#include "../wall_sums.h"
#include "../wall_velocity.h"

// The change of T per node away from the wall by the heat flux heat[at] into the gas; 0 if `heat` is null. conduction:
// 1/(Re_c Pr (gamma - 1)), so that the heat flux is -conduction mu dT/dn.
HD real heated(const real *heat, long long at, real conduction, const work_real *m, const work_real *jacobian,
               long long p, stride sv, real T) {
    if (heat == nullptr) return real(0);
    const real area = square_root(m[p] * m[p] + m[sv + p] * m[sv + p] + m[2 * sv + p] * m[2 * sv + p]);
#ifdef HX_VISCOUS
    const real mu = viscosity(T);
#else
    const real mu = real(1);
    (void)T;
#endif
    return -heat[at] / (conduction * mu * area * jacobian[p]);
}

// The temperature of an adiabatic wall's node is bounded by the temperatures t[1..3] of the three nodes before it.
// Beyond their range it may go by the difference of the largest and the least of them, or by the fraction `beyond` of
// the largest. Without this bound, heat that a shock leaves in the wall's node alone, in a layer thinner than a cell,
// would remain there. Where the layer is resolved the bound has no effect.
constexpr double beyond = 0.02;

// slope: change of T per node by the given heat flux, which widens the bounds.
HD real within_reach(real wall, const real *t, real slope) {
    const real low = smaller(t[1], smaller(t[2], t[3])), high = larger(t[1], larger(t[2], t[3]));
    const real reach = larger(high - low, real(beyond) * high) + real(2) * absolute(slope);
    return larger(larger(real(0.5) * low, low - reach), smaller(smaller(real(2) * high, high + reach), wall));
}

HD real temperature_at(const_state_pointer q, long long p, stride sv) {
    real state[gas_variables];
    for (int c = 0; c < gas_variables; ++c) state[c] = q[c * sv + p];
    const Primitive<real> s = primitive(state);
    return gas_gamma * s.p / s.rho;
}

// Where several walls meet at a node (hiresx/rhs/wall_corners.py), its velocity or temperature is the mean of the
// values that the walls give. before: the mean over the walls that were applied before this one; own: the value of this
// wall. corner[count row + at]: the weight of this wall in the mean, row 0 for velocities, 1 for temperatures; row 2:
// the number of walls.
HD real met(real before, real own, const real *corner, int row, long long count, long long at) {
    const real share = corner[count * row + at];
    return share == real(1) ? own : before + share * (own - before);
}

// The density of the node stays. wall: temperature
HD void put_wall_node(state_pointer q, long long p, stride sv, real u, real v, real w, real wall) {
    const real rho = q[p];
    q[sv + p] = rho * u;
    q[2 * sv + p] = rho * v;
    q[3 * sv + p] = rho * w;
    q[4 * sv + p] = rho * (wall * real(1.0 / (HX_GAMMA * (HX_GAMMA - 1.0))) + real(0.5) * (u * u + v * v + w * w));
}

KERNEL(no_slip_node, int i, int j, int k, int o, int s1, int s2, int sn, stride sv, int n1, real direction, real u,
       real v, real w, optional<const real *> blown, int of_mass, real temperature, optional<const real *> heat,
       real conduction, int count, optional<const real *> corner, optional<const int *> inward,
       const_work_field<3> m, const_work_field<1> jacobian, state_field<gas_variables> q) {
    const long long p = o + (long long)i * s1 + (long long)j * s2, at = (long long)j * n1 + i;
    real wall = temperature, own[3];
    gas_at_wall(u, v, w, blown, of_mass, at, direction, m, p, sv, q[p], own);
    if (corner != nullptr)
        for (int c = 0; c < 3; ++c) own[c] = met(q[(c + 1) * sv + p] / q[p], own[c], corner, 0, count, at);
    if (temperature > real(0)) {
        if (corner != nullptr) wall = met(temperature_at(q, p, sv), wall, corner, 1, count, at);
    } else {
        const real inside = temperature_at(q, p, sv);
        const long long step = inward == nullptr ? sn : inward[at];
        real t[4], gain = real(0);
        for (int l = 1; l <= 3; ++l) t[l] = temperature_at(q, p + l * step, sv);
        // mu is that of the next node, which no wall sets, so that the result does not depend on the order of walls
        // that meet.
        wall = within_reach(inside, t, heated(heat, at, conduction, m, jacobian, p, sv, t[1]));
        // Another wall that meets this one gives the temperature.
        if (corner != nullptr && corner[count + at] == real(0)) wall = inside;
        if (wall == inside) {  // only the kinetic energy changes, so that equal momenta cause no round-off
            const real rho = q[p];
            for (int c = 0; c < 3; ++c) {
                const real momentum = q[(c + 1) * sv + p], put = rho * own[c];
                gain += (put - momentum) * (put + momentum);
                q[(c + 1) * sv + p] = put;
            }
            q[4 * sv + p] += real(0.5) * gain / rho;
            return;
        }
    }
    put_wall_node(q, p, sv, own[0], own[1], own[2], wall);
}

// The derivative along a face, per node, of the values at(-1), at(0), at(1), ...: central where both neighbours exist,
// else one-sided. near[0], near[count]: whether the node has a neighbour before it, and one behind it.
template <class At> HD real along_face(const real *near, long long count, const At &at) {
    const bool below = near[0] != real(0), above = near[count] != real(0);
    if (below && above) return real(0.5) * (at(1) - at(-1));
    if (above) return real(-1.5) * at(0) + real(2) * at(1) - real(0.5) * at(2);
    if (below) return real(1.5) * at(0) - real(2) * at(-1) + real(0.5) * at(-2);
    return real(0);
}

// The node of a wall whose temperature is not given, in an initial state. T follows from the polynomial through the
// three next nodes whose normal derivative at the wall is zero or that of the heat flux (third order; mu is that of the
// wall, by iteration). Along an oblique grid line T also changes as it does along the wall; this part is taken from the
// same nodes. m, m1, m2: area vectors of the wall's direction and of the two directions along it. near: as in
// along_face, for the nodes n1 x n2 of the patch, first for the first direction of the face, then for the second. Where
// walls meet, the derivative of T is zero in every direction (without heat flux), and the polynomial follows the
// diagonal of the cells.
KERNEL(no_slip_start, int i, int j, int k, int o, int s1, int s2, int sn, stride sv, int n1, int n2, real direction,
       real u, real v, real w, optional<const real *> blown, int of_mass, optional<const real *> heat, real conduction,
       const real *near, optional<const real *> corner, optional<const int *> inward, const_work_field<3> m,
       const_work_field<3> m1, const_work_field<3> m2, const_work_field<1> jacobian, state_field<gas_variables> q) {
    const long long p = o + (long long)i * s1 + (long long)j * s2, count = (long long)n1 * n2;
    const long long at_wall = (long long)j * n1 + i, step_in = inward == nullptr ? sn : inward[at_wall];
    const real walls = corner == nullptr ? real(1) : corner[2 * count + at_wall];
    const real *own = near + at_wall;
    real t[4], across = real(0), first = real(0), second = real(0), slope = real(0);
    for (int c = 0; c < 3; ++c) {
        across += m[c * sv + p] * m[c * sv + p];
        first += m[c * sv + p] * m1[c * sv + p];
        second += m[c * sv + p] * m2[c * sv + p];
    }
    for (int l = 1; l <= 3; ++l) t[l] = temperature_at(q, p + l * step_in, sv);
#pragma unroll 1
    for (int e = 0; e < (walls > real(1) ? 0 : 2); ++e) {
        const long long step = e ? s2 : s1;
        real change = real(0);
#pragma unroll 1
        for (int l = 1; l <= 3; ++l) {
            const real share = l == 1 ? real(3) : l == 2 ? real(-3) : real(1);
            change += share * along_face(own + 2 * e * count, count, [&](int at) {
                return temperature_at(q, p + (long long)l * sn + at * step, sv);
            });
        }
        slope -= direction * (e ? second : first) / across * change;
    }
    real wall = t[1], given = real(0), gas[3];
    for (int n = 0; n < (heat == nullptr ? 1 : 4); ++n) {
        given = walls * heated(heat, at_wall, conduction, m, jacobian, p, sv, wall);
        wall = (real(18) * t[1] - real(9) * t[2] + real(2) * t[3] - real(6) * (slope + given)) * real(1.0 / 11);
        wall = within_reach(wall, t, given);
    }
    gas_at_wall(u, v, w, blown, of_mass, at_wall, direction, m, p, sv, q[p], gas);
    if (corner != nullptr) {
        for (int c = 0; c < 3; ++c) gas[c] = met(q[(c + 1) * sv + p] / q[p], gas[c], corner, 0, count, at_wall);
        wall = met(temperature_at(q, p, sv), wall, corner, 1, count, at_wall);
    }
    put_wall_node(q, p, sv, gas[0], gas[1], gas[2], wall);
}

// Number of nodes before the wall that are read: those that ghosts mirror, and the four others of a quartic.
constexpr int before_wall = ghost_layers > 4 ? ghost_layers : 4;

// Velocity relative to the wall, its magnitude, pressure and temperature at node p on the face and at the nodes before
// it.
HD void flow_before_wall(const_state_pointer q, long long p, int sn, stride sv, const real *wall, real (*flow)[3],
                         real *size, real *pressure, real *t) {
    for (int l = 0; l <= before_wall; ++l) {
        real state[gas_variables];
        for (int c = 0; c < gas_variables; ++c) state[c] = q[c * sv + p + (long long)l * sn];
        const Primitive<real> s = primitive(state);
        flow[l][0] = s.u - wall[0], flow[l][1] = s.v - wall[1], flow[l][2] = s.w - wall[2];
        size[l] = square_root(flow[l][0] * flow[l][0] + flow[l][1] * flow[l][1] + flow[l][2] * flow[l][2]);
        pressure[l] = s.p, t[l] = gas_gamma * s.p / s.rho;
    }
}

// The least, or largest, of `found`, that of nodes 0 to 3, and of the nodes beyond node 3, from which the farther
// ghosts are made.
HD real least_with(real found, const real *value) {
    for (int l = 4; l <= ghost_layers; ++l) found = smaller(found, value[l]);
    return found;
}

HD real most_with(real found, const real *value) {
    for (int l = 4; l <= ghost_layers; ++l) found = larger(found, value[l]);
    return found;
}

// Ghosts of the inviscid terms. The pressure is even and the normal velocity odd about the wall's, which reflects sound
// completely. For temperature and tangential velocity the mirror image would have a kink in slope and curvature, and
// the flux splittings of Steger-Warming and van Leer and Lax-Friedrichs diffuse shear and entropy wherever the two
// states at a half point differ (Couette flow on 33 nodes: T wrong by 7e-4). The mirror image has the wrong sign of the
// slope of T and of the curvature of the velocity. Both are corrected from the parabola through the face's node and two
// more. Parabolas measured better than cubics (velocity on 9 nodes: error less by a third) and quartics (which blew
// up). Where the layer is not resolved, the correction is reduced: temperatures stay between half the least and twice
// the largest of the line, and velocities relative to the wall below twice the largest plus half the wall's speed of
// sound.
KERNEL(no_slip_ghost, int i, int j, int k, int o, int s1, int s2, int sn, stride sv, int n1, real direction, real u,
       real v, real w, optional<const real *> blown, int of_mass, const_work_field<3> m, state_field<gas_variables> q) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    real wall[3];
    gas_at_wall(u, v, w, blown, of_mass, (long long)j * n1 + i, direction, m, p, sv, q[p], wall);
    real flow[before_wall + 1][3], size[before_wall + 1], pressure[before_wall + 1], t[before_wall + 1];
    flow_before_wall(q, p, sn, sv, wall, flow, size, pressure, t);
    real slope = real(4) * t[1] - real(3) * t[0] - t[2], bend[3];
    const real n[3] = {m[p], m[sv + p], m[2 * sv + p]};
    real along = real(0);
    for (int c = 0; c < 3; ++c) {
        bend[c] = flow[0][c] - real(2) * flow[1][c] + flow[2][c];
        along += n[c] * bend[c];
    }
    along /= n[0] * n[0] + n[1] * n[1] + n[2] * n[2];
    for (int c = 0; c < 3; ++c) bend[c] -= along * n[c];

    const real low = real(0.5) * least_with(smaller(smaller(t[0], t[1]), smaller(t[2], t[3])), t);
    const real high = real(2) * most_with(larger(larger(t[0], t[1]), larger(t[2], t[3])), t);
    const real fast = real(2) * most_with(larger(size[1], larger(size[2], size[3])), size) + real(0.5) * square_root(t[0]);
    const real curvature = square_root(bend[0] * bend[0] + bend[1] * bend[1] + bend[2] * bend[2]);
    real warm = real(1), swift = real(1);
    for (int l = 1; l <= ghost_layers; ++l) {
        const real drop = real(l) * slope, room = drop > real(0) ? t[l] - low : high - t[l], change = absolute(drop);
        if (change > room) warm = smaller(warm, room / change);
        const real turn = real(l * l) * curvature, allowed = fast - size[l];
        if (turn > allowed) swift = smaller(swift, allowed / turn);
    }
    for (int l = 1; l <= ghost_layers; ++l) {
        const long long to = p - (long long)l * sn;
        const real rho = gas_gamma * pressure[l] / (t[l] - warm * real(l) * slope);
        real squares = real(0);
        q[to] = rho;
        for (int c = 0; c < 3; ++c) {
            const real velocity = wall[c] - flow[l][c] + swift * real(l * l) * bend[c];
            q[(c + 1) * sv + to] = rho * velocity;
            squares += velocity * velocity;
        }
        q[4 * sv + to] = pressure[l] * real(1.0 / (HX_GAMMA - 1.0)) + real(0.5) * rho * squares;
    }
}

// The weight of polynomials through the nodes at a wall: 1 where the flow is smooth, 0 where density or pressure jumps,
// by the function that also reduces the correction of the inviscid terms. last: the last node that the sensor reads.
constexpr int looked_at = 5;
HD real smooth_share(const_state_pointer q, long long p, int sn, stride sv, int last = 3) {
    real pressure[looked_at], rho[looked_at], sensor = real(0);
    for (int l = 0; l <= last; ++l) {
        real state[gas_variables];
        for (int c = 0; c < gas_variables; ++c) state[c] = q[c * sv + p + (long long)l * sn];
        rho[l] = state[0], pressure[l] = primitive(state).p;
    }
    for (int l = 0; l + 2 <= last; ++l) {
        sensor = larger(sensor, jump_sensor(pressure[l], pressure[l + 1], pressure[l + 2]));
        sensor = larger(sensor, jump_sensor(rho[l], rho[l + 1], rho[l + 2]));
    }
    return correction_scale(sensor);
}

// The odd part of a polynomial about the wall. at(l): the difference by which the polynomial at ghost l lies below the
// mirror image.
struct OddPart {
    real slope, third;
    HD real at(int l) const { return real(l) * slope + real(l * l * l) * third; }
};

// The odd part of the cubic through the wall's node and three more.
HD OddPart odd_part(const real *f) {
    return {(real(18) * f[1] - real(11) * f[0] - real(9) * f[2] + real(2) * f[3]) * real(1.0 / 3),
            (f[3] - real(3) * f[2] + real(3) * f[1] - f[0]) * real(1.0 / 3)};
}

// Corrections to the ghosts of no_slip_ghost. Along the grid line the pressure is continued with the odd part of the
// cubic through the face's node and the three before it, and the velocity with the curvature of this cubic. So p is
// right where friction or an oblique line give it a slope. The velocity normal to the wall is continued with the even
// part of the quartic, since it enters the equation of mass, which alone determines the density of the wall's node.
// `cubic`: where the temperature is given and the wall is curved, or a heat flux is given, the density is continued by
// the cubic, as the flux splittings interpolate it. The parabola of T, whose slope is not zero there, would leave an
// error of lower order in the rate of mass of the wall's node. The mirror image is used where density or pressure
// jumps, and as far as velocity, pressure and temperature would leave their range. m: area vectors of the wall's
// direction.
KERNEL(no_slip_bend, int i, int j, int k, int o, int s1, int s2, int sn, stride sv, int n1, real direction, real u,
       real v, real w, optional<const real *> blown, int of_mass, int cubic, const_work_field<3> m,
       state_field<gas_variables> q) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    real wall[3];
    gas_at_wall(u, v, w, blown, of_mass, (long long)j * n1 + i, direction, m, p, sv, q[p], wall);
    real flow[before_wall + 1][3], size[before_wall + 1], pressure[before_wall + 1], t[before_wall + 1], bend[3];
    flow_before_wall(q, p, sn, sv, wall, flow, size, pressure, t);
    const OddPart odd = odd_part(pressure);
    const real cold = real(0.5) * least_with(smaller(smaller(t[0], t[1]), smaller(t[2], t[3])), t);
    const real hot = real(2) * most_with(larger(larger(t[0], t[1]), larger(t[2], t[3])), t);
    const real least = least_with(smaller(smaller(pressure[0], pressure[1]), smaller(pressure[2], pressure[3])), pressure);
    const real most = most_with(larger(larger(pressure[0], pressure[1]), larger(pressure[2], pressure[3])), pressure);
    real fourth[3], through = real(0), area2 = real(0);
    for (int c = 0; c < 3; ++c) {
        bend[c] = real(2) * flow[0][c] - real(5) * flow[1][c] + real(4) * flow[2][c] - flow[3][c];
        const real n = m[c * sv + p];
        through += n * (flow[0][c] - real(4) * flow[1][c] + real(6) * flow[2][c] - real(4) * flow[3][c] + flow[4][c]);
        area2 += n * n;
    }
    for (int c = 0; c < 3; ++c) fourth[c] = through / area2 * m[c * sv + p] * real(1.0 / 12);
    auto even = [&](int l, int c) { return real(l * l) * (bend[c] + real(11 + l * l) * fourth[c]); };
    const real fast = real(2) * most_with(larger(size[1], larger(size[2], size[3])), size)
                      + real(0.5) * square_root(t[0]);
    real share = smooth_share(q, p, sn, sv);
    for (int l = 1; l <= ghost_layers; ++l) {
        const real drop = odd.at(l), change = absolute(drop);
        const real room = drop > real(0) ? pressure[l] - real(0.5) * least : real(2) * most - pressure[l];
        if (change > room) share = smaller(share, room / change);
        real turn = real(0);
        for (int c = 0; c < 3; ++c) turn += even(l, c) * even(l, c);
        turn = square_root(turn);
        const real allowed = fast - size[l];
        if (turn > allowed) share = smaller(share, allowed / turn);
    }
    for (int l = 1; l <= ghost_layers; ++l) {
        const long long to = p - (long long)l * sn;
        real state[gas_variables], squares = real(0);
        for (int c = 0; c < gas_variables; ++c) state[c] = q[c * sv + to];
        const Primitive<real> s = primitive(state);
        const real mirror[3] = {s.u, s.v, s.w};
        const real found = s.p - share * odd.at(l);
        real density = s.rho * found / s.p;
        if (cubic) {
            auto rho = [&](int n) { return real(q[p + (long long)n * sn]); };
            const real a = rho(0), b = rho(1), c = rho(2), third = rho(3) - real(3) * (c - b) - a;
            const real cubic = a - real(l) * (b - a) + real(l * (l + 1) / 2) * (a - real(2) * b + c)
                               - real(l * (l + 1) * (l + 2) / 6) * third;
            const real within = larger(gas_gamma * found / hot, smaller(gas_gamma * found / cold, cubic));
            density += share * (within - density);
        }
        q[to] = density;
        for (int c = 0; c < 3; ++c) {
            const real continued = wall[c] - flow[l][c] + even(l, c);
            const real velocity = mirror[c] + share * (continued - mirror[c]);
            q[(c + 1) * sv + to] = density * velocity;
            squares += velocity * velocity;
        }
        q[4 * sv + to] = found * real(1.0 / (HX_GAMMA - 1.0)) + real(0.5) * density * squares;
    }
}

// No mass passes a wall at rest, for any values of the ghosts: the sum of wall_sums.h is conserved. sums: the fluxes
// that are added for this, p_0, p_1 and p_3 of wall_sums.h. The mass that the velocity of a moving wall carries through
// the areas of the same half points is left out, so that a uniform flow that moves with the wall stays uniform.
// carried: the density, or rho s. Where density or pressure jumps among the first five nodes, the parts p_1 and p_3,
// fluxes of half points far from the wall, could empty the wall's node. There they are added to the nodes 1 and 3
// instead, divided by the weights of these nodes, and remove less than the fluxes of these nodes bring. Between two
// walls of seven nodes, where node 3 belongs to both walls, node 0 gets all parts (`takers` 1, else 3). given: what is
// added to the nodes 0, 1 and 3.
constexpr int given_nodes[3] = {0, 1, 3};

HD void closing_wall(const_state_pointer q, long long p, int sn, stride sv, real direction, const real *wall,
                     const work_real *m, real carried, const rate_real *sums, int takers, real *given) {
    const bool rests = wall[0] == real(0) && wall[1] == real(0) && wall[2] == real(0);
    auto volume = [&](int h) {
        real sum = real(0);
        for (int c = 0; c < 3; ++c)
            sum += wall[c] * corrected_metric<real>([&](int l) { return real(m[c * sv + p + (h + l - 1ll) * sn]); });
        return sum;
    };
    real part[3];
    for (int n = 0; n < 3; ++n) {
        const int l = given_nodes[n];
        part[n] = direction * real(sums[p - (long long)wall_row(l) * sn]);
        if (!rests) part[n] -= direction * carried * wall_part(l, volume(l), volume(l + 1));
    }
    const real smooth = smooth_share(q, p, sn, sv, 4), share = takers > 1 ? smooth * smooth : real(1);
    given[0] = share * (part[1] + part[2]) - part[0];
    given[1] = (real(1) - share) / wall_share(1) * part[1];
    given[2] = (real(1) - share) / wall_share(3) * part[2];
}

// Mass that is added to a node or removed from it has the velocity and the enthalpy of the node.
KERNEL(no_slip_mass, int i, int j, int k, int o, int s1, int s2, int sn, stride sv, int n1, real direction, real u,
       real v, real w, optional<const real *> blown, int of_mass, const_work_field<3> m,
       const_state_field<gas_variables> q, const_rate_field<1> sums, int takers, rate_field<gas_variables> r) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    real state[gas_variables], wall[3], given[3];
    gas_at_wall(u, v, w, blown, of_mass, (long long)j * n1 + i, direction, m, p, sv, q[p], wall);
    closing_wall(q, p, sn, sv, direction, wall, m, q[p], sums, takers, given);
#pragma unroll
    for (int n = 0; n < 3; ++n) {
        if (n >= takers) break;
        const long long at = p + (long long)given_nodes[n] * sn;
        for (int c = 0; c < gas_variables; ++c) state[c] = q[c * sv + at];
        state[4] += primitive(state).p;
        for (int c = 0; c < gas_variables; ++c) r[c * sv + at] += given[n] * state[c] / state[0];
    }
}

#if HX_SCALARS
// The same for rho s
KERNEL(no_slip_scalar, int i, int j, int k, int o, int s1, int s2, int sn, stride sv, real direction, real u, real v,
       real w, const_work_field<3> m, const_state_field<gas_variables> q, const_state_field<1> scalar,
       const_rate_field<1> sums, int takers, rate_field<1> r) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    const real wall[3] = {u, v, w};
    real given[3];
    closing_wall(q, p, sn, sv, direction, wall, m, scalar[p], sums, takers, given);
#pragma unroll
    for (int n = 0; n < 3; ++n)
        if (n < takers) r[p + (long long)given_nodes[n] * sn] += given[n];
}
#endif

#ifdef HX_VISCOUS
// Ghosts of the normal viscous flux behind a wall of given heat flux (adiabatic if `heat` is null). The momentum fluxes
// are continued as cubics. So is the flux of energy relative to the velocity of the gas at the wall, which is the heat
// flux at the wall's node.
KERNEL(no_slip_heat, int i, int j, int k, int o, int s1, int s2, int sn, stride sv, int n1, real direction, real u,
       real v, real w, optional<const real *> blown, int of_mass, optional<const real *> heat, const_work_field<3> m,
       const_state_field<gas_variables> q, work_field<gas_gradients> flux) {
    const long long p = o + (long long)i * s1 + (long long)j * s2, at = (long long)j * n1 + i;
    real wall[3], passing = real(0);
    gas_at_wall(u, v, w, blown, of_mass, at, direction, m, p, sv, q[p], wall);
    if (heat != nullptr)
        passing = -direction * heat[at]
                  * square_root(m[p] * m[p] + m[sv + p] * m[sv + p] + m[2 * sv + p] * m[2 * sv + p]);
    real energy[4], ghosts[viscous_reach], carried[viscous_reach];
    for (int l = 0; l < viscous_reach; ++l) carried[l] = real(0);
    for (int l = 0; l <= 3; ++l) energy[l] = l == 0 ? passing : real(flux[3 * sv + p + (long long)l * sn]);
    real at_wall = real(0);
    for (int c = 0; c < 3; ++c) {
        work_real *f = flux + c * sv + p;
        for (int l = 1; l <= 3; ++l) energy[l] -= wall[c] * f[l * sn];
        extrapolated([&](int l) { return real(f[l * sn]); }, 3, ghosts);
        for (int l = 0; l < viscous_reach; ++l) f[-(l + 1) * sn] = ghosts[l], carried[l] += wall[c] * ghosts[l];
        at_wall += wall[c] * f[0];
    }
    extrapolated([&](int l) { return energy[l]; }, 3, ghosts);
    work_real *f = flux + 3 * sv + p;
    f[0] = at_wall + passing;
    for (int l = 0; l < viscous_reach; ++l) f[-(l + 1) * sn] = ghosts[l] + carried[l];
}
#endif
