// A no-slip wall whose boundary layer the grid does not resolve. The flow slips along the wall's nodes, as along a slip
// wall (reflect.h). The viscous flux through these nodes is that of a modelled layer below a node further inside (the
// exchange node): tangential stress and heat flux by the equations of an equilibrium boundary layer (Kawai & Larsson,
// Phys. Fluids 24 (2012) 015105),
//   (mu + mu_t) du/dy = tau,   (mu/Pr + mu_t/Pr_t)/(gamma - 1) dT/dy = -(heat + tau u),
//   mu_t = kappa y sqrt(rho tau) (1 - exp(-y sqrt(rho tau)/(17 mu)))^2,   kappa = 0.41, Pr_t = 0.9,
// at the pressure of the exchange node. The damping takes the density and the viscosity at each height (semi-local
// units: Yang & Lv, AIAA J. 56 (2018) 1).
#include "../half_point.h"
#include "../wall_sums.h"
#include "../viscous.h"

#ifdef HX_VISCOUS
constexpr real layer_kappa = real(0.41), layer_damping = real(17), layer_heat = real(HX_PRANDTL / 0.9);
// The layer is integrated over cells of x with two Gauss points each, y = height x^6. layer_steps: steps of Newton's
// method (docs/numerics.md has the errors).
constexpr int layer_cells = 12, layer_steps = 6;
constexpr real least_speed = real(1e-10);

// exp(-a), a >= 0, with an error below 3e-6, which is enough for the damping; it also works for packs.
template <class T> HD T decay(T a) {
    const T z = a * real(1.0 / 16);
    T power = real(1) / (real(1) + z * (real(1) + z * (real(0.5) + z * (real(1.0 / 6) + z * real(1.0 / 24)))));
    for (int n = 0; n < 4; ++n) power = power * power;
    return power;
}

// Stress and heat flux into the gas at a wall. given: temperature of the wall, 0 for an adiabatic wall. still, p, t:
// velocity relative to the wall (not 0), pressure and temperature of the flow at `height`.
template <class T>
HD void equilibrium_layer(T still, T height, T p, T t, real given, real inverse_reynolds, T *stress, T *heat) {
    constexpr real gain = real(HX_GAMMA - 1.0), pr = real(HX_PRANDTL), recovery = real(0.89), sixth = real(0.288675134594813);
    constexpr real at[2] = {real(0.211324865405187), real(0.788675134594813)}, h = real(1.0 / layer_cells);
    const T isobar = gas_gamma * p;  // rho T
    T wall = given > real(0) ? T(given) : t + real(0.5) * gain * recovery * still * still;
    // ratio: heat flux over stress
    T ratio = given > real(0) ? ((wall - t) / gain - real(0.5) * recovery * still * still) / (pr * still) : T(real(0));
    // The first guess is the larger stress of u+ = y+ and of the power law u+ = 8.3 y+^(1/7). root: the square root of
    // the stress
    const T mu = viscosity(wall) * inverse_reynolds, rho = isobar / wall;
    T root = larger(square_root(mu * still / height),
                    square_root(rho) * power(still * real(1.0 / 8.3) * power(mu / (rho * height), real(1.0 / 7)), real(0.875)));
#pragma unroll 1
    for (int step = 0; step < layer_steps; ++step) {
        // u, and the integrals of Pr du and of Pr u du from the wall on, with the Pr of mu and mu_t together; they give
        // T.
        T u = T(real(0)), linear = T(real(0)), square = T(real(0)), local = wall, rise = T(real(1));
        // du/dx and Pr at the Gauss points of a cell
        T slope[2] = {T(real(0)), T(real(0))}, mixed[2] = {T(pr), T(pr)};
#pragma unroll 1
        for (int n = 0; n < layer_cells; ++n) {
            // The temperature in the middle of the cell, with du/dx extrapolated from the previous cell.
            const T way = real(0.5) * h * (slope[1] + real(0.799038105676658) * (slope[1] - slope[0]));
            const T middle = local - gain * mixed[1] * way * (ratio + u + real(0.5) * way);
            const T warm = larger(middle, real(0.1) * wall), laminar = viscosity(warm) * inverse_reynolds;
            const T units = root * square_root(isobar / warm) / laminar;  // y+ over y
            const T shear = root * root * height / laminar;
            for (int e = 0; e < 2; ++e) {
                const real x = (real(n) + at[e]) * h, x2 = x * x;
                const T plus = height * (x2 * x2 * x2) * units, damped = real(1) - decay(plus * (real(1) / layer_damping));
                const T eddies = layer_kappa * plus * damped * damped;  // mu_t over mu
                rise = shear / (real(1) + eddies);                      // height du/dy
                slope[e] = real(6) * x2 * x2 * x * rise;
                mixed[e] = pr * (real(1) + eddies) / (real(1) + layer_heat * eddies);
            }
            const T first = u + h * (real(0.25) * slope[0] + (real(0.25) - sixth) * slope[1]);
            const T second = u + h * ((real(0.25) + sixth) * slope[0] + real(0.25) * slope[1]);
            u = u + real(0.5) * h * (slope[0] + slope[1]);
            linear = linear + real(0.5) * h * (mixed[0] * slope[0] + mixed[1] * slope[1]);
            square = square + real(0.5) * h * (mixed[0] * slope[0] * first + mixed[1] * slope[1] * second);
            local = larger(wall - gain * (ratio * linear + square), real(0.1) * wall);
        }
        // d u/d root = (u + y du/dy)/root for constant mu
        const T change = (still - u) / (u + rise), part = still / u;
        root = root * (real(1) + larger(T(real(-0.5)), smaller(T(real(1)), change)));
        linear = linear * part, square = square * part * part;
        if (given > real(0))
            ratio = ((wall - t) / gain - square) / linear;
        else
            wall = t + gain * square;
    }
    *stress = root * root, *heat = ratio * root * root;
}

// The flow at the exchange nodes of a patch of `count` nodes, n1 along its first direction. exchange[node]: how many
// nodes the exchange node lies before the wall's. u, v, w: velocity of the wall. flow[6][node]: the unit vector x, y, z
// of the velocity along and relative to the wall, its magnitude, p and T.
KERNEL(exchange_flow, int i, int j, int k, int o, int s1, int s2, int sn, stride sv, int n1, int count, real u, real v,
       real w, const int *exchange, const_work_field<3> m, const_state_field<gas_variables> q, real *flow) {
    const long long p = o + (long long)i * s1 + (long long)j * s2;
    const int at = j * n1 + i;
    real state[gas_variables];
    for (int c = 0; c < gas_variables; ++c) state[c] = q[c * sv + p + (long long)exchange[at] * sn];
    const Primitive<real> s = primitive(state);
    const real n[3] = {m[p], m[sv + p], m[2 * sv + p]};
    real along[3] = {s.u - u, s.v - v, s.w - w}, squares = real(0);
    const real normal = (along[0] * n[0] + along[1] * n[1] + along[2] * n[2]) / (n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
    for (int c = 0; c < 3; ++c) along[c] -= normal * n[c], squares += along[c] * along[c];
    const real speed = larger(square_root(squares), least_speed);
    for (int c = 0; c < 3; ++c) flow[c * count + at] = along[c] / speed;
    flow[3 * count + at] = speed, flow[4 * count + at] = s.p, flow[5 * count + at] = gas_gamma * s.p / s.rho;
}

// modelled[4][node]: the force of the gas on the wall per area, x, y, z, and the heat flux into the gas; heights[node]:
// distance of the exchange node from the wall.
VECTOR_KERNEL(modelled_wall, int i, int j, int k, int count, real temperature, real inverse_reynolds, const real *heights,
              const real *flow, real *modelled) {
    T stress, heat;
    equilibrium_layer(load<T>(flow + 3 * count + i), load<T>(heights + i), load<T>(flow + 4 * count + i),
                      load<T>(flow + 5 * count + i), temperature, inverse_reynolds, &stress, &heat);
    for (int c = 0; c < 3; ++c) store(modelled + c * count + i, stress * load<T>(flow + c * count + i));
    store(modelled + 3 * count + i, heat);
}

// The viscous flux through the wall's nodes is that of `modelled`, except for the normal stress. The ghosts of the flux
// are odd about this value, and the normal stress is even, so exactly this flux enters the gas.
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
    for (int l = 0; l <= viscous_reach; ++l) {
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
