// A no-slip wall whose layer the grid does not resolve. The flow slips along the wall's nodes, as along a slip wall
// (reflect.h), and the viscous flux through them is that of the layer below a node further inside (the exchange node):
// tangential stress and heat flux by the equations of an equilibrium boundary layer (Kawai & Larsson, Phys. Fluids 24
// (2012) 015105),
//   (mu + mu_t) du/dy = tau,   (mu/Pr + mu_t/Pr_t)/(gamma - 1) dT/dy = -(heat + tau u),
//   mu_t = kappa y sqrt(rho tau) (1 - exp(-y sqrt(rho tau)/(17 mu)))^2,   kappa = 0.41, Pr_t = 0.9,
// at the pressure of the exchange node, with the density and the viscosity of each height in the damping (semi-local
// units: Yang & Lv, AIAA J. 56 (2018) 1).
#include "../half_point.h"
#include "../wall_sums.h"
#include "../viscous.h"

#ifdef HX_VISCOUS
constexpr real layer_kappa = real(0.41), layer_damping = real(17), layer_heat = real(HX_PRANDTL / 0.9);
// Cells of two Gauss points each in x, with y = height x^6, and steps of Newton's method: taken from 12 cells of any layer
// up to y+ = 5000 the stress is within 0.3 % of that of 800 cells.
constexpr int layer_cells = 12, layer_steps = 6;

// Stress and heat flux into the gas at a wall of temperature `given` (0: adiabatic) below a flow of temperature t, pressure
// p and velocity `speed` relative to the wall, at `height`.
HD void equilibrium_layer(real speed, real height, real p, real t, real given, real inverse_reynolds, real *stress,
                          real *heat) {
    constexpr real gain = real(HX_GAMMA - 1.0), pr = real(HX_PRANDTL), recovery = real(0.89), sixth = real(0.288675134594813);
    constexpr real at[2] = {real(0.211324865405187), real(0.788675134594813)}, h = real(1.0 / layer_cells);
    const real isobar = gas_gamma * p;  // rho T
    const real still = speed < real(1e-10) ? real(1e-10) : speed;
    real wall = given > real(0) ? given : t + real(0.5) * gain * recovery * still * still;
    // heat over stress
    real ratio = given > real(0) ? ((wall - t) / gain - real(0.5) * recovery * still * still) / (pr * still) : real(0);
    // To begin with: u+ = y+, or the power law u+ = 8.3 y+^(1/7). root: of the stress
    const real mu = viscosity(wall) * inverse_reynolds, rho = isobar / wall;
    real root = larger(square_root(mu * still / height),
                       square_root(rho) * power(still / real(8.3) * power(mu / (rho * height), real(1.0 / 7)), real(0.875)));
#pragma unroll 1
    for (int step = 0; step < layer_steps; ++step) {
        // u and the integrals of Pr du and Pr u du from the wall on, Pr that of mu and mu_t together; T follows from them
        real u = real(0), linear = real(0), square = real(0), local = wall;
        // du/dx and Pr at the Gauss points of a cell, and du/dx at those of the cell before
        real slope[2] = {real(0), real(0)}, mixed[2] = {pr, pr}, before[2], rise = real(1);
#pragma unroll 1
        for (int n = 0; n < layer_cells; ++n) {
            before[0] = slope[0], before[1] = slope[1];
            for (int e = 0; e < 2; ++e) {
                const real x = (real(n) + at[e]) * h, x2 = x * x;
                // the temperature by du/dx continued to the middle of the way
                const real way = h * at[e]
                                 * (e == 0 ? before[1] + real(0.549038105676658) * (before[1] - before[0])
                                           : slope[0] + real(0.433012701892219) * (slope[0] - before[1]));
                const real found = local - gain * mixed[1 - e] * way * (ratio + u + real(0.5) * way);
                const real warm = larger(found, real(0.1) * wall);
                const real y = height * x2 * x2 * x2, laminar = viscosity(warm) * inverse_reynolds;
                const real friction = y * root * square_root(isobar / warm);  // y+ times mu
                const real damped = real(1) - exponential(-friction / (layer_damping * laminar));
                const real ratio_of_eddies = layer_kappa * friction * damped * damped / laminar;
                rise = root * root * height / (laminar * (real(1) + ratio_of_eddies));  // du/dy times height
                slope[e] = real(6) * x2 * x2 * x * rise;
                mixed[e] = pr * (real(1) + ratio_of_eddies) / (real(1) + ratio_of_eddies * layer_heat);
            }
            const real first = u + h * (real(0.25) * slope[0] + (real(0.25) - sixth) * slope[1]);
            const real second = u + h * ((real(0.25) + sixth) * slope[0] + real(0.25) * slope[1]);
            u += real(0.5) * h * (slope[0] + slope[1]);
            linear += real(0.5) * h * (mixed[0] * slope[0] + mixed[1] * slope[1]);
            square += real(0.5) * h * (mixed[0] * slope[0] * first + mixed[1] * slope[1] * second);
            local = larger(wall - gain * (ratio * linear + square), real(0.1) * wall);
        }
        // d u/d root = (u + y du/dy)/root where mu is constant
        root *= real(1) + larger(real(-0.5), smaller(real(1), (still - u) / (u + rise)));
        linear *= still / u, square *= (still / u) * (still / u);
        if (given > real(0))
            ratio = ((wall - t) / gain - square) / linear;
        else
            wall = t + gain * square;
    }
    *stress = speed < real(1e-10) ? real(0) : root * root;
    *heat = ratio * root * root;
}

// modelled[4][node] of a patch of n1 nodes along its first direction, `count` in all: the force of the gas on the wall over
// its area, x, y, z, and the heat flux into the gas. The exchange node is the exchange[node]-th before the wall's, at the
// distance heights[node] from it.
KERNEL(modelled_wall, int i, int j, int k, int o, int s1, int s2, int sn, stride sv, int n1, int count, real u, real v,
       real w, real temperature, real inverse_reynolds, const int *exchange, const real *heights, const_work_field<3> m,
       const_state_field<gas_variables> q, real *modelled) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    const int at = j * n1 + i;
    real state[gas_variables];
    for (int c = 0; c < gas_variables; ++c) state[c] = q[c * sv + p + (long long)exchange[at] * sn];
    const Primitive<real> s = primitive(state);
    const real n[3] = {m[p], m[sv + p], m[2 * sv + p]};
    real along[3] = {s.u - u, s.v - v, s.w - w}, squares = real(0);
    const real normal = (along[0] * n[0] + along[1] * n[1] + along[2] * n[2]) / (n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
    for (int c = 0; c < 3; ++c) along[c] -= normal * n[c], squares += along[c] * along[c];
    const real speed = square_root(squares);
    real stress, heat;
    equilibrium_layer(speed, heights[at], s.p, gas_gamma * s.p / s.rho, temperature, inverse_reynolds, &stress, &heat);
    for (int c = 0; c < 3; ++c) modelled[c * count + at] = speed > real(0) ? stress * along[c] / speed : real(0);
    modelled[3 * count + at] = heat;
}

// The viscous flux through the wall's nodes is what `modelled` says, its normal stress but for that, and its ghosts are odd
// about it, the normal stress even: what enters the gas is then exactly this.
KERNEL(modelled_wall_flux, int i, int j, int k, int o, int s1, int s2, int sn, stride sv, int n1, int count,
       real direction, real u, real v, real w, const real *modelled, const_work_field<3> m,
       work_field<gas_gradients> flux) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    const int at = j * n1 + i;
    const real n[3] = {m[p], m[sv + p], m[2 * sv + p]}, wall[3] = {u, v, w};
    const real area2 = n[0] * n[0] + n[1] * n[1] + n[2] * n[2], area = direction * square_root(area2);
    real given[gas_gradients] = {real(0), real(0), real(0), -area * modelled[3 * count + at]};
    for (int c = 0; c < 3; ++c) {
        given[c] = area * modelled[c * count + at];
        given[3] += wall[c] * given[c];
    }
    for (int l = 0; l <= difference_reach; ++l) {
        const long long from = p + (long long)l * sn, to = p - (long long)l * sn;
        const real normal = (n[0] * flux[from] + n[1] * flux[sv + from] + n[2] * flux[2 * sv + from]) / area2;
        if (l == 0) {
            for (int c = 0; c < 3; ++c) flux[c * sv + p] = given[c] + normal * n[c];
            flux[3 * sv + p] = given[3];
            continue;
        }
        for (int c = 0; c < 3; ++c)
            flux[c * sv + to] = real(2) * (given[c] + normal * n[c]) - flux[c * sv + from];
        flux[3 * sv + to] = real(2) * given[3] - flux[3 * sv + from];
    }
}
#endif
