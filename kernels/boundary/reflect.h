// Slip wall and symmetry. The node on the face keeps density and internal energy, and its normal momentum is set to 0.
// The ghosts mirror the flow inside about the face's normal at that node.
#include "../continuation.h"
#include "../interpolated.h"
#include "../viscous.h"

// Node (i, j) of n1 along the first direction. Where the node meets other such walls that are not normal to this one,
// which[node] is at least 0, and the 3 x 3 matrix number which[node] of `left` gives the momentum that remains
// (hiresx/rhs/wall_corners.py).
KERNEL(reflect_node, int i, int j, int k, int o, int s1, int s2, int sn, stride sv, int n1, optional<const int *> which,
       optional<const real *> left, const_work_field<3> m, state_field<gas_variables> q) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    if (which != nullptr && which[(long long)j * n1 + i] >= 0) {
        const real *turn = left + 9ll * which[(long long)j * n1 + i];
        real before = real(0), after = real(0), kept[3];
        for (int c = 0; c < 3; ++c) {
            kept[c] = real(0);
            for (int e = 0; e < 3; ++e) kept[c] += turn[3 * c + e] * q[(e + 1) * sv + p];
        }
        for (int c = 0; c < 3; ++c) {
            const real momentum = q[(c + 1) * sv + p];
            before += momentum * momentum, after += kept[c] * kept[c];
            q[(c + 1) * sv + p] = kept[c];
        }
        q[4 * sv + p] -= real(0.5) * (before - after) / q[p];
        return;
    }
    const real n[3] = {m[p], m[sv + p], m[2 * sv + p]};
    const real area2 = n[0] * n[0] + n[1] * n[1] + n[2] * n[2];
    const real flow = n[0] * q[sv + p] + n[1] * q[2 * sv + p] + n[2] * q[3 * sv + p];
    for (int c = 0; c < 3; ++c) q[(c + 1) * sv + p] -= flow / area2 * n[c];
    q[4 * sv + p] -= real(0.5) * flow * flow / (area2 * q[p]);
}

KERNEL(reflect_ghost, int i, int j, int k, int o, int s1, int s2, int sn, stride sv, const_work_field<3> m,
       state_field<gas_variables> q) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    const real n[3] = {m[p], m[sv + p], m[2 * sv + p]};
    const real area2 = n[0] * n[0] + n[1] * n[1] + n[2] * n[2];
    for (int l = 1; l <= ghost_layers; ++l) {
        const long long from = p + (long long)l * sn, to = p - (long long)l * sn;
        const real twice = real(2) * (n[0] * q[sv + from] + n[1] * q[2 * sv + from] + n[2] * q[3 * sv + from]) / area2;
        q[to] = q[from];
        for (int c = 0; c < 3; ++c) q[(c + 1) * sv + to] = q[(c + 1) * sv + from] - twice * n[c];
        q[4 * sv + to] = q[4 * sv + from];
    }
}

// Where grid lines are not normal to the wall, and where it is curved, a ghost takes the flow at the mirror image of
// its own position (hiresx/decomposition/mirror_points.py). The image lies between nodes, so the flow there is a sum of
// contributions as on patched faces. turn[3 c + x][r]: the matrix that rotates vectors of row r, of `shares` rows, to
// the axes of the ghost's block; behind a plane it includes the reflection.
KERNEL(mirrored_ghosts, int i, int j, int k, int shares, const int *to, const int *begin, const int *rows,
       const real *buffer, const real *turn, stride sv, state_field<conserved_variables> q) {
    real value[conserved_variables];
    interpolated_state(rows, begin[i], begin[i + 1], buffer, turn, shares, value);
    for (int v = 0; v < conserved_variables; ++v) q[v * sv + to[i]] = value[v];
}

// Ghosts behind a curved wall, from the states at the mirror image, at the foot of the normal n and at a third position
// on n (begin[3 i], begin[3 i + 1] and begin[3 i + 2]). geometry[12][ghost]: n, the distance d, the derivative of n
// along the wall, the distance of the third position over d, and the square of a few cells' length along the wall over
// d. The pressure has the slope rho u.(dn/ds) u that keeps the flow on the wall (Dadone and Grossman, AIAA Journal 32,
// 1994, have it for plane flow). Density and tangential velocity have the slopes of the parabolas through the three
// positions, since no condition determines entropy and vorticity there. (The parabolas themselves are so steep behind
// the wall that disturbances grow.) In viscous flow the slopes are those without heat flux and friction. The normal
// velocity is odd except for the curvature of a parabola. At jumps the flow is mirrored as at a plane, and also where
// the tangential velocity changes by the sound speed or more between foot and image. Otherwise a ghost would be faster
// than the wall's node by as much as this node is faster than the gas before it, which sustains a growing jet in one
// row of nodes (at the nose of a wing to a total enthalpy of 250 times that of the stream). Within a few cells of a
// stagnation line of inviscid flow the ghost has the entropy of the image (Dadone and Grossman). With the parabola of
// the density the entropy of that line, and of the wall downstream, would keep its initial value: no gas arrives along
// the wall, and the parabola has the same entropy on both sides of the line. With a body force of the acceleration a
// (`kept` is its array, the arguments are those of the kernel `body_force`) rho a.n is added to the slope of the
// pressure, also at planes to which the force has a normal component. The temperature then has the slope of its
// parabola, in place of the density, so that an isothermal layer keeps its temperature.
KERNEL(curved_ghosts, int i, int j, int k, int n, int shares, const int *to, const int *begin, const int *rows,
       const real *buffer, const real *turn, const real *geometry, real ax, real ay, real az, real kx, real ky, real kz,
       optional<const real *> kept, stride sv, state_field<conserved_variables> q) {
    real value[3][conserved_variables], normal[3], along[3][3], through[3], density[3], pressure[3];
    for (int c = 0; c < 3; ++c) normal[c] = geometry[(long long)c * n + i];
    for (int a = 0; a < 3; ++a) {
        interpolated_state(rows, begin[3 * i + a], begin[3 * i + a + 1], buffer, turn, shares, value[a]);
        const Primitive<real> s = primitive(value[a]);
        density[a] = s.rho, pressure[a] = s.p;
        through[a] = normal[0] * s.u + normal[1] * s.v + normal[2] * s.w;
        const real velocity[3] = {s.u, s.v, s.w};
        for (int c = 0; c < 3; ++c) along[c][a] = velocity[c] - through[a] * normal[c];
    }
    auto of = [&](int c) { return geometry[(long long)c * n + i]; };
    const real d = of(3), u[3] = {along[0][1], along[1][1], along[2][1]};
    const real turned[3] = {of(4) * u[0] + of(7) * u[1] + of(8) * u[2], of(7) * u[0] + of(5) * u[1] + of(9) * u[2],
                            of(8) * u[0] + of(9) * u[1] + of(6) * u[2]};
    const bool forced = kept != nullptr;
    const real more = forced ? kept[0] : real(0);
    const real force =
        (ax + more * kx) * normal[0] + (ay + more * ky) * normal[1] + (az + more * kz) * normal[2];
    const real slope = density[1] * (turned[0] * u[0] + turned[1] * u[1] + turned[2] * u[2] + force);
    real shear = real(0);
    for (int c = 0; c < 3; ++c) shear += (along[c][0] - u[c]) * (along[c][0] - u[c]);
    const real jump = larger(jump_sensor(density[1], density[2], density[0]), jump_sensor(pressure[1], pressure[2], pressure[0]));
    // Polynomials may give a negative pressure or density beside shocks. The flow is then mirrored as at a jump.
    const real admissible = smaller(density[0], pressure[0]) > real(0) ? real(1) : real(0);
    const real mach2 = shear * density[0] * admissible / (gas_gamma * larger(pressure[0], real(1e-30)));
    const real share = admissible * correction_scale(larger(jump, square_root(mach2) * real(0.25)));
    // odd, even: -2 d f' and d^2 f'' at the foot, for the parabola f through the image, the foot and the third position
    const real apart = of(10), weight = share / (apart - real(1));
    auto odd = [&](const real *f) {
        return real(-2) * weight * (apart * (f[0] - f[1]) - (f[2] - f[1]) / apart);
    };
    auto even = [&](const real *f) { return real(2) * weight * ((f[2] - f[1]) / apart - (f[0] - f[1])); };
    auto bounded = [&](real image, real added) {
        return image + larger(real(-0.5) * image, smaller(image, added));
    };
    const real p = bounded(pressure[0], -share * real(2) * d * slope);
#ifdef HX_VISCOUS
    const real rho = density[0] * (p / pressure[0]);
    const real velocity_slope = share * real(-2) * d;
#else
    real warmth[3];
    for (int a = 0; a < 3; ++a) warmth[a] = pressure[a] / density[a];
    // along_wall: 1 where gas arrives along the wall, 0 where the flow stagnates
    const real meeting = smaller(through[0], real(0)), past = u[0] * u[0] + u[1] * u[1] + u[2] * u[2] + real(1e-20);
    const real along_wall = past / (past + of(11) * meeting * meeting);
    const real isentropic = density[0] * (real(1) + (p / pressure[0] - real(1)) / gas_gamma);
    const real continued = bounded(density[0], odd(density));
    const real rho = forced ? p / bounded(warmth[0], odd(warmth)) : isentropic + along_wall * (continued - isentropic);
#endif
    const real across = -through[0] + even(through);
    real squares = real(0);
    q[to[i]] = rho;
    for (int c = 0; c < 3; ++c) {
#ifdef HX_VISCOUS
        const real added = velocity_slope * turned[c];
#else
        const real added = odd(along[c]);
#endif
        const real velocity = along[c][0] + added + across * normal[c];
        q[(c + 1) * sv + to[i]] = rho * velocity;
        squares += velocity * velocity;
    }
    q[4 * sv + to[i]] = p * real(1.0 / (HX_GAMMA - 1.0)) + real(0.5) * rho * squares;
    for (int v = gas_variables; v < conserved_variables; ++v) q[v * sv + to[i]] = value[0][v] * (rho / value[0][0]);
}

#ifdef HX_VISCOUS
// Ghosts of the normal viscous flux behind such walls, by parabolas through the inner nodes. Where the flow jumps they
// are replaced by the mirrored flux of the same grid line. Beside a jump the parabolas could remove more heat than a
// node has.
KERNEL(viscous_mirrored, int i, int j, int k, int o, int s1, int s2, int sn, stride sv, const_work_field<3> m,
       const_state_field<gas_variables> q, work_field<gas_gradients> flux) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    const real n[3] = {m[p], m[sv + p], m[2 * sv + p]};
    const real area2 = n[0] * n[0] + n[1] * n[1] + n[2] * n[2];
    real state[4][gas_variables], parabola[gas_gradients][viscous_reach];
    const real share = smooth_share(q, p, sn, sv, state);
    for (int v = 0; v < gas_gradients; ++v) {
        const work_real *f = flux + v * sv + p;
        extrapolated([&](int l) { return real(f[l * sn]); }, 2, parabola[v]);
    }
    for (int l = 1; l <= viscous_reach; ++l) {
        const long long from = p + (long long)l * sn, to = p - (long long)l * sn;
        const real normal =
            real(2) * (n[0] * flux[from] + n[1] * flux[sv + from] + n[2] * flux[2 * sv + from]) / area2;
        for (int v = 0; v < gas_gradients; ++v) {
            const real mirrored = (v < 3 ? normal * n[v] : real(0)) - flux[v * sv + from];
            flux[v * sv + to] = mirrored + share * (parabola[v][l - 1] - mirrored);
        }
    }
}
#endif
