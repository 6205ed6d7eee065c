// Interpolation of the flow at positions between nodes, from contributions that several blocks or ranks may have
// computed (kernels/boundary/patched.h, level_ghosts.h).

// The weight of the sixth-order value relative to the linear value: 1 in smooth flow, 0 at jumps. apart: the relative
// difference of both.
HD real patched_share(real apart) {
    const real s = apart * real(1.0 / 0.1), s2 = s * s;
    return real(1) / (real(1) + s2 * s2);
}

// The state at a position from its sixth-order (high) and its linear (low) interpolation.
HD void smooth_or_linear(const real *high, const real *low, real *value) {
    const Primitive<real> fine = primitive(high), coarse = primitive(low);
    const real apart = larger(absolute(fine.rho - coarse.rho) / coarse.rho, absolute(fine.p - coarse.p) / coarse.p);
    const bool admissible = fine.rho > real(0.1) * coarse.rho && fine.p > real(0.1) * coarse.p;
    const real share = admissible ? patched_share(apart) : real(0);
    for (int v = 0; v < gas_variables; ++v) value[v] = low[v] + share * (high[v] - low[v]);
    for (int v = gas_variables; v < conserved_variables; ++v) {  // for scalars that jump where the gas does not
        const real own = patched_share(high[v] / fine.rho - low[v] / coarse.rho);
        value[v] = low[v] + smaller(share, own) * (high[v] - low[v]);
    }
}

// The state at a position: the sum of the contributions rows[first] ... rows[last - 1] of a buffer. turn[3 c + x][r]:
// matrix that rotates vectors of contribution r, of `shares` in all, to the axes of the receiving block; null: no
// rotation.
HD void interpolated_state(const int *rows, int first, int last, const real *buffer, const real *turn, int shares,
                           real *value) {
    constexpr int n = conserved_variables;
    real high[n], low[n];
    for (int v = 0; v < n; ++v) high[v] = low[v] = real(0);
    for (int r = first; r < last; ++r) {
        const real *part = buffer + (long long)rows[r] * (2 * n);
        for (int v = 0; v < n; ++v) {
            if (turn != nullptr && v >= 1 && v <= 3) {
                for (int x = 0; x < 3; ++x) {
                    const real factor = turn[(long long)(3 * (v - 1) + x) * shares + r];
                    high[v] += factor * part[1 + x], low[v] += factor * part[n + 1 + x];
                }
            } else {
                high[v] += part[v], low[v] += part[n + v];
            }
        }
    }
    smooth_or_linear(high, low, value);
}

// Adds to sum[3 v + c] `weight` times the viscous flux of v = momentum, energy and the scalars through planes normal to
// axis c = x, y, z at node p. m: 9 metrics. Along a direction with one node (wj, wk = 1) they are zero and there is no
// flux. flux: all of viscous_flux.
HD void add_cartesian_fluxes(real weight, long long p, int wj, int wk, stride sv, const work_real *m,
                             const work_real *flux, real *sum) {
    real area[3][3], column[3][3];
    for (int d = 0; d < 3; ++d)
        for (int x = 0; x < 3; ++x) area[d][x] = m[(3 * d + x) * sv + p];
    if (wj == 1) area[1][1] = real(1);
    if (wk == 1) area[2][2] = real(1);
    for (int d = 0; d < 3; ++d) {
        const real *e = area[(d + 1) % 3], *f = area[(d + 2) % 3];
        for (int x = 0; x < 3; ++x) {
            const int y = (x + 1) % 3, z = (x + 2) % 3;
            column[d][x] = e[y] * f[z] - e[z] * f[y];
        }
    }
    real determinant = real(0);
    for (int x = 0; x < 3; ++x) determinant += area[0][x] * column[0][x];
    const real scale = weight / determinant;
    for (int d = 0; d < 3; ++d)
        for (int v = 0; v < gradient_variables; ++v) {
            const real through = scale * flux[(gradient_variables * d + v) * sv + p];
            for (int x = 0; x < 3; ++x) sum[3 * v + x] += through * column[d][x];
        }
}
