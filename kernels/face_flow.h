// The flow at nodes of faces, and the fluxes through faces, for monitors. Numbers are at least double, as fluxes
// through closed surfaces cancel. Arrays hold rows of `count` numbers, one for each face node of a rank; a part has
// those from `start` on.
#include "node_sample.h"
#include "viscous.h"
#include "wall_velocity.h"

constexpr int inward_nodes = 5, along_nodes = 2 * difference_reach + 1;
// Rows of `flow`: rho, u, v, w, p; friction on the wall along x, y, z; heat into it; the power of friction and heat.
constexpr int flow_rows = 10, of_friction = 5, of_heat = 8, of_power = 9;

// places: indexes in the padded arrays of the part: the node, the next four inwards, then along_nodes along each
// tangent. area: outward normal times the node's share of the face. one_sided (inward_nodes) and factors (tangents,
// along_nodes): weights of the derivatives inwards and along the face. slopes (1 + tangents, 3): factors of these
// derivatives in those with respect to x, y, z. mirror: whether the face transmits neither shear nor heat. curvature:
// 1/y of axisymmetric flow, else 0. Without `viscous`, friction, heat and power are 0.
KERNEL(face_flow, int i, int j, int k, int start, long long count, stride sv, const_state_field<gas_variables> q,
       const int *places, const double *area, int viscous, int tangents, const double *one_sided,
       optional<const double *> factors, optional<const double *> slopes, const int *mirror, const double *curvature,
       const_work_field<HX_EDDY_FIELDS> eddies, real inverse_reynolds, wide *flow) {
    const long long n = start + i;
    wide own[6], friction[3] = {0.0, 0.0, 0.0}, heat = 0.0;
    sampled(q, places[n], sv, own);
#ifdef HX_VISCOUS
    if (viscous) {
        wide gradient[4][3];
        for (int v = 0; v < 4; ++v)
            for (int c = 0; c < 3; ++c) gradient[v][c] = 0.0;
        for (int d = 0; d <= tangents; ++d) {
            const int rows = d == 0 ? inward_nodes : along_nodes;
            const int row = d == 0 ? 0 : inward_nodes + (d - 1) * along_nodes;
            wide change[4] = {0.0, 0.0, 0.0, 0.0};
            for (int r = 0; r < rows; ++r) {
                const double weight = d == 0 ? one_sided[r] : factors[(row - inward_nodes + r) * count + n];
                wide other[6];
                sampled(q, places[(row + r) * count + n], sv, other);
                for (int v = 0; v < 3; ++v) change[v] += weight * other[1 + v];
                change[3] += weight * other[5];
            }
            for (int v = 0; v < 4; ++v)
                for (int c = 0; c < 3; ++c) gradient[v][c] += slopes[(3 * d + c) * count + n] * change[v];
        }
        const wide laminar = viscosity(real(own[5])) * inverse_reynolds;
#if HX_EDDY_FIELDS
        const wide eddy = wide(eddies[places[n]]) * inverse_reynolds;
        const wide mu = laminar + eddy, conductivity = laminar * viscous_heat + eddy * eddy_heat;
#else
        const wide mu = laminar, conductivity = laminar * viscous_heat;
#endif
        // axisymmetric swirl: a rigid rotation gives no friction
        const wide curved = curvature[n], swirl = own[3] * curved;
        const wide bulk = 2.0 / 3.0 * (gradient[0][0] + gradient[1][1] + gradient[2][2] + own[2] * curved);
        wide through = 0.0, square = 0.0;
        for (int a = 0; a < 3; ++a) {
            wide stress = -bulk * area[a * count + n];
            for (int b = 0; b < 3; ++b) {
                const wide shear = gradient[a][b] + gradient[b][a] - (a != b && a + b == 3 ? swirl : 0.0);
                stress += shear * area[b * count + n];
            }
            friction[a] = -mu * stress;
            heat -= conductivity * gradient[3][a] * area[a * count + n];
            through += friction[a] * area[a * count + n], square += area[a * count + n] * area[a * count + n];
        }
        if (mirror[n]) {
            const wide normal = square > 0.0 ? through / square : 0.0;  // on an axis there is no area
            for (int a = 0; a < 3; ++a) friction[a] = normal * area[a * count + n];
            heat = 0.0;
        }
    }
#endif
    for (int v = 0; v < gas_variables; ++v) flow[v * count + n] = own[v];
    for (int a = 0; a < 3; ++a) flow[(of_friction + a) * count + n] = friction[a];
    flow[of_heat * count + n] = heat;
    flow[of_power * count + n] = own[1] * friction[0] + own[2] * friction[1] + own[3] * friction[2] + heat;
}

// Sums of the fluxes of mass, momentum and energy out of the nodes begin[i] to begin[i + 1] - 1. chunks: the number of
// groups.
KERNEL(face_flux_sums, int i, int j, int k, const int *begin, int chunks, long long count, const double *area,
       const wide *flow, double *partial) {
    double sum[gas_variables];
    for (int v = 0; v < gas_variables; ++v) sum[v] = 0.0;
    for (int n = begin[i]; n < begin[i + 1]; ++n) {
        double s[flow_rows], volume = 0.0, square = 0.0;
        for (int v = 0; v < flow_rows; ++v) s[v] = flow[v * count + n];
        for (int a = 0; a < 3; ++a) volume += area[a * count + n] * s[1 + a], square += s[1 + a] * s[1 + a];
        const double mass = s[0] * volume, enthalpy = s[4] * (HX_GAMMA / (HX_GAMMA - 1.0)) + 0.5 * s[0] * square;
        sum[0] += mass, sum[4] += enthalpy * volume + s[of_power];
        for (int a = 0; a < 3; ++a) sum[1 + a] += mass * s[1 + a] + s[4] * area[a * count + n] + s[of_friction + a];
    }
    for (int v = 0; v < gas_variables; ++v) partial[v * chunks + i] = sum[v];
}

// Replaces friction and heat at the nodes mine[i] by values that only the wall condition knows, at its nodes of_wall[i]
// of `own`. sizes: areas of the nodes. modelled (4, own): friction along x, y, z and heat into the gas per area by the
// model of a wall that moves with u, v, w. heat: heat into the gas per area, where there is no model. Where both are
// null, the wall is adiabatic.
KERNEL(face_of_wall, int i, int j, int k, long long count, int own, const int *mine, const int *of_wall,
       const double *sizes, optional<const real *> modelled, optional<const real *> heat, double u, double v, double w,
       wide *flow) {
    const long long n = mine[i], l = of_wall[i];
    const wide size = sizes[n], before = flow[of_heat * count + n];
    if (modelled) {
        const double velocity[3] = {u, v, w};
        wide power = 0.0;
        for (int a = 0; a < 3; ++a) {
            const wide friction = modelled[a * own + l] * size;
            flow[(of_friction + a) * count + n] = friction;
            power += velocity[a] * friction;
        }
        flow[of_heat * count + n] = -modelled[3 * own + l] * size;
        flow[of_power * count + n] = power - modelled[3 * own + l] * size;
    } else {
        const wide into = heat ? -heat[l] * size : 0.0;
        flow[of_heat * count + n] = into;
        flow[of_power * count + n] += into - before;
    }
}

// Gives the nodes mine[i] the velocity of the gas at their own wall, in which they have the numbers of_wall[i]. Where
// several walls meet, the state has the mean of their velocities, but the gas gets the mass that each wall passes.
// The arguments from u on are those of gas_at_wall.
KERNEL(face_velocity, int i, int j, int k, long long count, stride sv, const int *places, const int *mine,
       const int *of_wall, real u, real v, real w, optional<const real *> blown, int of_mass, real direction,
       const_work_field<3> m, wide *flow) {
    const long long n = mine[i];
    real wall[3];
    gas_at_wall(u, v, w, blown, of_mass, of_wall[i], direction, m, places[n], sv, real(flow[n]), wall);
    for (int a = 0; a < 3; ++a) {
        const wide before = flow[(1 + a) * count + n];
        flow[of_power * count + n] += (wall[a] - before) * flow[(of_friction + a) * count + n];
        flow[(1 + a) * count + n] = wall[a];
    }
}

// Sums over the nodes begin[i] to begin[i + 1] - 1, for `chunks` groups: the force of the pressure above `pressure`
// along x, y, z, the force of friction, and heat. With arms (3, count) also the moment of both forces about x, y, z,
// and with radii that of the friction along z.
constexpr int force_rows = 11;
KERNEL(face_force_sums, int i, int j, int k, const int *begin, int chunks, long long count, double pressure,
       const double *area, optional<const double *> arms, optional<const double *> radii, const wide *flow,
       double *partial) {
    double sum[force_rows];
    for (int v = 0; v < force_rows; ++v) sum[v] = 0.0;
    for (int n = begin[i]; n < begin[i + 1]; ++n) {
        double force[3];
        for (int a = 0; a < 3; ++a) {
            const double pushed = (flow[4 * count + n] - pressure) * area[a * count + n];
            const double friction = flow[(of_friction + a) * count + n];
            sum[a] += pushed, sum[3 + a] += friction, force[a] = pushed + friction;
        }
        sum[6] += flow[of_heat * count + n];
        for (int a = 0; arms && a < 3; ++a) {
            const int b = (a + 1) % 3, c = (a + 2) % 3;
            sum[7 + a] += arms[b * count + n] * force[c] - arms[c * count + n] * force[b];
        }
        if (radii) sum[10] += radii[n] * flow[(of_friction + 2) * count + n];
    }
    for (int v = 0; v < force_rows; ++v) partial[v * chunks + i] = sum[v];
}
