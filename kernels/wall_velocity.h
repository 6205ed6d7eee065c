#pragma once

// The velocity of the gas at a node of the wall: the wall's own (u, v, w) and, unless `blown` is null, blown[at] along
// the inward normal, a velocity or with `of_mass` a mass flux. rho: density of the node; at: number of the node in the
// patch.
HD void gas_at_wall(real u, real v, real w, const real *blown, int of_mass, long long at, real direction,
                    const work_real *m, long long p, stride sv, real rho, real *wall) {
    wall[0] = u, wall[1] = v, wall[2] = w;
    if (blown == nullptr) return;
    real n[3];
    for (int c = 0; c < 3; ++c) n[c] = direction * m[c * sv + p];
    const real area = square_root(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]);
    const real speed = of_mass ? blown[at] / rho : blown[at];
    for (int c = 0; c < 3; ++c) wall[c] += speed * n[c] / area;
}
