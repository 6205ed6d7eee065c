// Numbers given at the nodes of outflows (boundary/outflow.h, implicit/outflow.h)
#pragma once
#include "gas.h"

// Numbers of a patch: pressure far away or mean mass flux, relaxation, firmness (rate per length); then the means over
// its face of V for the normal velocity and of V along the face (see outflow_sums), of the pressure, the velocity of
// entering gas and the mass flux; then what the patch holds (OF_EDDIES, ...).
// Shares of the firmness. At most 5 % of sound at 45 degrees is reflected, and nothing grows.
constexpr double hold_shear = 1.4, hold_pressure = 0.35, upwind_share = 1.0 / 60;
constexpr int outflow_given = 15, outflow_sums_count = 19, mean_mass_flux = 13, what_is_held = 14;
// `pressure-outflow` has P = Q = 0 and a = 0, so that p is the pressure far away where the flow is steady, whatever its
// gradients. With a given mass flux, c times the excess of the mean mass flux replaces pressure far away - p.
enum { OF_EDDIES, OF_PRESSURE, OF_MASS_FLUX };

// 0 where gas enters at a Mach number up to `threshold`, 1 from 0.04 more on. outward: the outward velocity.
HD real inflow_share(real outward, real sound, real threshold) {
    return smaller(real(1), larger(real(0), real(-25) * (outward / sound + threshold)));
}

// Outward unit normal and area of face 2 d + (0: first, 1: last node).
HD real outward_normal(const work_real *m, long long p, stride sv, int face, real *n) {
    const real side = face % 2 ? real(1) : real(-1);
    for (int c = 0; c < 3; ++c) n[c] = side * m[(3 * (face / 2) + c) * sv + p];
    const real area = square_root(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
    for (int c = 0; c < 3; ++c) n[c] = n[c] / area;
    return area;
}
