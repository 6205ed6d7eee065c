// Sums, extremes and averages of the whole flow for monitors. Columns run along j, so that neighbours along i share a
// pack or a warp: a column's result is stored at [quantity][k][i], and the host finishes with the columns in a fixed
// order.
#include "viscous.h"

// sums of weight q, and if `both` those of other q: 5 quantities each
VECTOR_KERNEL(column_totals, int i, int j, int k, int o, int sj, int sk, int height, int columns, int width,
              stride sv, const_state_field<gas_variables> q, const_field<1> weight, const_field<1> other, int both,
              real *partial) {
    T sum[2 * gas_variables];
    for (int v = 0; v < 2 * gas_variables; ++v) sum[v] = T(real(0));
    for (int l = 0; l < height; ++l) {
        const long long p = o + i + (long long)(j + l) * sj + (long long)k * sk;
        T share = load<T>(weight + p), second = both ? load<T>(other + p) : T(real(0));
        for (int v = 0; v < gas_variables; ++v) {
            T value = load<T>(q + v * sv + p);
            sum[v] = sum[v] + share * value;
            if (both) sum[gas_variables + v] = sum[gas_variables + v] + second * value;
        }
    }
    const long long at = (long long)k * width + i;
    for (int v = 0; v < 2 * gas_variables; ++v) store(partial + (long long)v * columns + at, sum[v]);
}

// the variables whose extremes are searched: rho, u, v, w, p, T, Mach number
template <class T> HD void watched(const_state_pointer q, long long p, stride sv, T *value) {
    T state[gas_variables];
    for (int v = 0; v < gas_variables; ++v) state[v] = load<T>(q + v * sv + p);
    Primitive<T> s = primitive(state);
    T temperature = gas_gamma * s.p / s.rho;
    value[0] = s.rho, value[1] = s.u, value[2] = s.v, value[3] = s.w, value[4] = s.p, value[5] = temperature;
    value[6] = square_root((s.u * s.u + s.v * s.v + s.w * s.w) / temperature);
}

// for each of them the least value and the largest; a NaN wins
VECTOR_KERNEL(column_extrema, int i, int j, int k, int o, int sj, int sk, int height, int columns, int width,
              stride sv, const_state_field<gas_variables> q, real *partial) {
    T found[7][2];
    for (int l = 0; l < height; ++l) {
        T value[7];
        watched<T>(q, o + i + (long long)(j + l) * sj + (long long)k * sk, sv, value);
        for (int v = 0; v < 7; ++v) {
            if (l == 0) found[v][0] = found[v][1] = value[v];
            auto none = value[v] != value[v];
            found[v][0] = select(either(value[v] < found[v][0], none), value[v], found[v][0]);
            found[v][1] = select(either(value[v] > found[v][1], none), value[v], found[v][1]);
        }
    }
    const long long at = (long long)k * width + i;
    for (int v = 0; v < 7; ++v)
        for (int f = 0; f < 2; ++f) store(partial + (long long)(2 * v + f) * columns + at, found[v][f]);
}

// for each of them the first j at which it is at most bounds[2 v], and at least bounds[2 v + 1] (or no number); height
// where it is nowhere in the column
VECTOR_KERNEL(column_places, int i, int j, int k, int o, int sj, int sk, int height, int columns, int width,
              stride sv, const_state_field<gas_variables> q, const real *bounds, real *partial) {
    T first[7][2];
    for (int v = 0; v < 7; ++v) first[v][0] = first[v][1] = T(real(height));
    for (int l = height - 1; l >= 0; --l) {
        T value[7], here = T(real(l));
        watched<T>(q, o + i + (long long)(j + l) * sj + (long long)k * sk, sv, value);
        for (int v = 0; v < 7; ++v) {
            auto none = value[v] != value[v];
            first[v][0] = select(either(value[v] <= T(bounds[2 * v]), none), here, first[v][0]);
            first[v][1] = select(either(value[v] >= T(bounds[2 * v + 1]), none), here, first[v][1]);
        }
    }
    const long long at = (long long)k * width + i;
    for (int v = 0; v < 7; ++v)
        for (int f = 0; f < 2; ++f) store(partial + (long long)(2 * v + f) * columns + at, first[v][f]);
}

// Sums of weight times: kinetic energy, rho |vorticity|^2/2, tau_ij du_i/dx_j, mu |vorticity|^2, 4/3 mu (div u)^2 (the
// last three divided by Re_c), p div u, (div u)^2, and where there is a model the tau_ij du_i/dx_j of its eddy viscosity.
// w: (u, v, w, T) with the ghosts of the viscous terms; di, dj, dk as there.
VECTOR_KERNEL(column_energy, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, int height,
              int columns, int width, stride sv, const_state_field<gas_variables> q, const_work_field<gas_gradients> w,
              const_work_field<9> m, const_work_field<1> jacobian, const_field<1> weight, real inverse_reynolds,
              const_work_field<HX_EDDY_FIELDS> eddies, real *partial) {
    T sum[7 + HX_EDDY_FIELDS];
    for (int v = 0; v < 7 + HX_EDDY_FIELDS; ++v) sum[v] = T(real(0));
    for (int l = 0; l < height; ++l) {
        const long long p = o + i + (long long)(j + l) * sj + (long long)k * sk;
        T g[3][3], scale = load<T>(jacobian + p);
        for (int v = 0; v < 3; ++v) {
            const work_real *field = w + v * sv + p;
            T xi = derivative<T>([&](int s) { return load<T>(field + s * di); }) * scale;
            T eta = derivative<T>([&](int s) { return load<T>(field + (long long)s * dj); }) * scale;
            T zeta = T(real(0));
            if (dk) zeta = derivative<T>([&](int s) { return load<T>(field + (long long)s * dk); }) * scale;
            for (int c = 0; c < 3; ++c)
                g[v][c] = load<T>(m + c * sv + p) * xi + load<T>(m + (3 + c) * sv + p) * eta
                          + load<T>(m + (6 + c) * sv + p) * zeta;
        }
        T u = load<T>(w + p), v = load<T>(w + sv + p), s = load<T>(w + 2 * sv + p), t = load<T>(w + 3 * sv + p);
        T rho = load<T>(q + p), share = load<T>(weight + p);
        T x = g[2][1] - g[1][2], y = g[0][2] - g[2][0], z = g[1][0] - g[0][1];
        T turn = x * x + y * y + z * z, dilatation = g[0][0] + g[1][1] + g[2][2], square = dilatation * dilatation;
        T half = real(0.5) * share * rho;
        sum[0] = sum[0] + half * (u * u + v * v + s * s);
        sum[1] = sum[1] + half * turn;
#ifdef HX_VISCOUS
        T a = g[0][1] + g[1][0], b = g[0][2] + g[2][0], c = g[1][2] + g[2][1];
        T strain = real(2) * (g[0][0] * g[0][0] + g[1][1] * g[1][1] + g[2][2] * g[2][2]) + a * a + b * b + c * c;
        T mu = viscosity(t) * (inverse_reynolds * share);
        sum[2] = sum[2] + mu * (strain - real(2.0 / 3) * square);
        sum[3] = sum[3] + mu * turn;
        sum[4] = sum[4] + mu * real(4.0 / 3) * square;
#if HX_EDDY_FIELDS
        const T eddy = load<T>(eddies + p) * (inverse_reynolds * share);
        sum[7] = sum[7] + eddy * (strain - real(2.0 / 3) * square);
#endif
#else
        (void)inverse_reynolds;
#endif
        sum[5] = sum[5] + share * rho * t * real(1.0 / HX_GAMMA) * dilatation;
        sum[6] = sum[6] + share * square;
    }
    const long long at = (long long)k * width + i;
    for (int v = 0; v < 7 + HX_EDDY_FIELDS; ++v) store(partial + (long long)v * columns + at, sum[v]);
    (void)eddies;
}

// Running means m and covariances c after a sample that stands for `share` of the time averaged so far (it included):
// d = x - m, m += share d, c_xy = (1 - share) (c_xy + share d_x d_y) with the m of before (West 1979). Nothing cancels, as
// it would in <x y> - <x><y>, or in a difference from the new m: a value that is not stored anywhere may be rounded, or
// fused into such differences, in two ways. Always in double. mean: arrays of width x height x ... nodes without ghosts.

// rho, u, v, w, p, T; their squares; uv, uw, vw
KERNEL(average_reynolds, int i, int j, int k, int o, int sj, int sk, stride sv, const_state_field<gas_variables> q,
       int width, int height, long long count, double share, double *mean) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    double *at = mean + i + (long long)width * (j + (long long)height * k);
    const double rho = q[p], inverse = 1.0 / rho, left = 1.0 - share;
    const double u = q[sv + p] * inverse, v = q[2 * sv + p] * inverse, w = q[3 * sv + p] * inverse;
    const double pressure = (HX_GAMMA - 1.0) * (q[4 * sv + p] - 0.5 * rho * (u * u + v * v + w * w));
    const double value[6] = {rho, u, v, w, pressure, HX_GAMMA * pressure * inverse};
    double d[6];
    for (int n = 0; n < 6; ++n) {
        d[n] = value[n] - at[n * count];
        at[n * count] += share * d[n];
        at[(6 + n) * count] = left * (at[(6 + n) * count] + share * d[n] * d[n]);
    }
    at[12 * count] = left * (at[12 * count] + share * d[1] * d[2]);
    at[13 * count] = left * (at[13 * count] + share * d[1] * d[3]);
    at[14 * count] = left * (at[14 * count] + share * d[2] * d[3]);
}

// rho; weighted with rho u, v, w, T, uu, vv, ww, uv, uw, vw, uT, vT, wT
KERNEL(average_favre, int i, int j, int k, int o, int sj, int sk, stride sv, const_state_field<gas_variables> q,
       int width,
       int height, long long count, double share, double *mean) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    double *at = mean + i + (long long)width * (j + (long long)height * k);
    const double rho = q[p], inverse = 1.0 / rho;
    const double u = q[sv + p] * inverse, v = q[2 * sv + p] * inverse, w = q[3 * sv + p] * inverse;
    const double pressure = (HX_GAMMA - 1.0) * (q[4 * sv + p] - 0.5 * rho * (u * u + v * v + w * w));
    const double value[4] = {u, v, w, HX_GAMMA * pressure * inverse};
    const double density = at[0] + share * (rho - at[0]), mass = share * rho / density, left = 1.0 - mass;
    at[0] = density;
    double d[4];
    for (int n = 0; n < 4; ++n) {
        d[n] = value[n] - at[(1 + n) * count];
        at[(1 + n) * count] += mass * d[n];
    }
    const int first[9] = {0, 1, 2, 0, 0, 1, 0, 1, 2}, second[9] = {0, 1, 2, 1, 2, 2, 3, 3, 3};
    for (int n = 0; n < 9; ++n) {
        double *c = at + (gas_gradients + 1 + n) * count;
        *c = left * (*c + mass * d[first[n]] * d[second[n]]);
    }
}

#if HX_SCALARS
// The averages of each scalar: s; ss, us, vs, ws. Launched before either of the kernels above, whose means are in
// `gas`. weighted: with rho.
KERNEL(average_scalars, int i, int j, int k, int o, int sj, int sk, stride sv, const_state_field<conserved_variables> q,
       int width, int height, long long count, double share, int weighted, const double *gas, double *mean) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    const long long node = i + (long long)width * (j + (long long)height * k);
    const double rho = q[p], before = gas[node];
    const double part = weighted ? share * rho / (before + share * (rho - before)) : share, left = 1.0 - part;
    constexpr int averages = 5;
    for (int n = 0; n < scalar_variables; ++n) {
        double *at = mean + averages * n * count + node;
        const double d = q[(gas_variables + n) * sv + p] / rho - at[0];
        at[0] += part * d;
        at[count] = left * (at[count] + part * d * d);
        for (int c = 0; c < 3; ++c) {
            double *with = at + (2 + c) * count;
            *with = left * (*with + part * d * (q[(1 + c) * sv + p] / rho - gas[(1 + c) * count + node]));
        }
    }
}
#endif

// Of the node p: the fluctuations dtau of the viscous stress (xx, yy, zz, xy, xz, yz) and dg of the velocity gradient
// (du_i/dx_j row by row) about their means, the 15 first of `at`, which take the sample in. Arguments as of column_energy.
HD void stress_and_gradient(long long p, int di, int dj, int dk, stride sv, const work_real *w, const work_real *m,
                            const work_real *jacobian, real inverse_reynolds, const work_real *eddies, long long count,
                            double share, double *at, double *dtau, double *dg) {
    real own[gas_gradients], g[gas_gradients][3];
    for (int v = 0; v < gas_gradients; ++v) {
        const work_real *field = w + v * sv + p;
        own[v] = field[0];
        const real xi = derivative<real>([&](int s) { return real(field[s * di]); }) * jacobian[p];
        const real eta = derivative<real>([&](int s) { return real(field[(long long)s * dj]); }) * jacobian[p];
        const real zeta = derivative<real>([&](int s) { return real(field[(long long)s * dk]); }) * jacobian[p];
        for (int c = 0; c < 3; ++c)
            g[v][c] = m[c * sv + p] * xi + m[(3 + c) * sv + p] * eta + m[(6 + c) * sv + p] * zeta;
    }
    double tau[6] = {};
#ifdef HX_VISCOUS
#if HX_EDDY_FIELDS
    const real eddy = eddies[p];
#else
    const real eddy = real(0);
#endif
    const ViscousStress<real> stress = viscous_stress(own, g, eddy, inverse_reynolds);
    tau[0] = stress.xx, tau[1] = stress.yy, tau[2] = stress.zz;
    tau[3] = stress.xy, tau[4] = stress.xz, tau[5] = stress.yz;
#else
    (void)inverse_reynolds;
#endif
    (void)eddies;
    for (int n = 0; n < 6; ++n) dtau[n] = tau[n] - at[n * count], at[n * count] += share * dtau[n];
    for (int n = 0; n < 9; ++n) {
        double *held = at + (6 + n) * count;
        dg[n] = g[n / 3][n % 3] - *held, *held += share * dg[n];
    }
}

// Of the node p: its density and the fluctuations of u_i about the Reynolds means (d) and the Favre means (f) of before,
// and of the pressure
struct Fluctuations {
    double rho, d[3], f[3], p;
};
HD Fluctuations fluctuations(const_state_pointer q, long long p, stride sv, const double *reynolds, const double *favre,
                             long long count) {
    Fluctuations found;
    double u[3];
    found.rho = q[p];
    for (int c = 0; c < 3; ++c) {
        u[c] = q[(1 + c) * sv + p] / found.rho;
        found.d[c] = u[c] - reynolds[(1 + c) * count], found.f[c] = u[c] - favre[(1 + c) * count];
    }
    const double twice = found.rho * (u[0] * u[0] + u[1] * u[1] + u[2] * u[2]);
    found.p = (HX_GAMMA - 1.0) * (q[4 * sv + p] - 0.5 * twice) - reynolds[4 * count];
    return found;
}

// Places of the components of a symmetric tensor, row by row, among xx, yy, zz, xy, xz, yz
HD int symmetric(int a, int b) { return a == b ? a : a + b + 2; }

// Before average_reynolds and average_favre, whose values are in `reynolds` and `favre`: what stress_and_gradient has; the
// covariances of p with u, v, w and div u, of u_i with tau_ix, tau_iy, tau_iz, and of tau_ij with du_i/dx_j; and the
// Favre third moments u_i u_i u, v, w over 2 (Pebay 2008).
KERNEL(average_budget, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, stride sv,
       const_state_field<gas_variables> q, const_work_field<gas_gradients> w, const_work_field<9> m,
       const_work_field<1> jacobian, real inverse_reynolds, const_work_field<HX_EDDY_FIELDS> eddies, int width,
       int height, long long count, double share, const double *reynolds, const double *favre, double *mean) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    const long long node = i + (long long)width * (j + (long long)height * k);
    double *at = mean + node, dtau[6], dg[9];
    const Fluctuations now = fluctuations(q, p, sv, reynolds + node, favre + node, count);
    stress_and_gradient(p, di, dj, dk, sv, w, m, jacobian, inverse_reynolds, eddies, count, share, at, dtau, dg);
    const double *d = now.d, *f = now.f, left = 1.0 - share;
    double product[8] = {now.p * d[0], now.p * d[1], now.p * d[2], now.p * (dg[0] + dg[4] + dg[8]), 0.0, 0.0, 0.0, 0.0};
    for (int n = 0; n < 9; ++n) {
        product[4 + n % 3] += d[n / 3] * dtau[symmetric(n / 3, n % 3)];
        product[7] += dtau[symmetric(n / 3, n % 3)] * dg[n];
    }
    for (int n = 0; n < 8; ++n) {
        double *held = at + (15 + n) * count;
        *held = left * (*held + share * product[n]);
    }
    const double before = favre[node], mass = share * now.rho / (before + share * (now.rho - before)), rest = 1.0 - mass;
    const double *moments = favre + gas_gradients * count + count + node;  // uu, vv, ww, uv, uw, vw of before
    const double square = f[0] * f[0] + f[1] * f[1] + f[2] * f[2];
    const double trace = moments[0] + moments[count] + moments[2 * count];
    for (int c = 0; c < 3; ++c) {
        double *held = at + (23 + c) * count, with = trace * f[c];
        for (int n = 0; n < 3; ++n) with += 2.0 * moments[symmetric(n, c) * count] * f[n];
        *held = rest * (*held + 0.5 * mass * ((1.0 - 2.0 * mass) * square * f[c] - with));
    }
}

// In the place of average_budget, for the budgets of all Reynolds stresses: what stress_and_gradient has; the covariances of
// p with u, v, w; of p with du_i/dx_j + du_j/dx_i (xx, yy, zz, xy, xz, yz); of u, of v and of w with each component of
// tau; the sums over k of those of tau_ik with du_j/dx_k and of tau_jk with du_i/dx_k; and the Favre third moments uuu,
// uuv, uuw, uvv, uvw, uww, vvv, vvw, vww, www. Arguments as of average_budget.
KERNEL(average_stress_budgets, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, stride sv,
       const_state_field<gas_variables> q, const_work_field<gas_gradients> w, const_work_field<9> m,
       const_work_field<1> jacobian, real inverse_reynolds, const_work_field<HX_EDDY_FIELDS> eddies, int width,
       int height, long long count, double share, const double *reynolds, const double *favre, double *mean) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    const long long node = i + (long long)width * (j + (long long)height * k);
    double *at = mean + node, dtau[6], dg[9];
    const Fluctuations now = fluctuations(q, p, sv, reynolds + node, favre + node, count);
    stress_and_gradient(p, di, dj, dk, sv, w, m, jacobian, inverse_reynolds, eddies, count, share, at, dtau, dg);
    const double *f = now.f, left = 1.0 - share;
    at += 15 * count;
    auto covariance = [&](double product) { *at = left * (*at + share * product), at += count; };
    for (int c = 0; c < 3; ++c) covariance(now.p * now.d[c]);
    const int first[6] = {0, 1, 2, 0, 0, 1}, second[6] = {0, 1, 2, 1, 2, 2};
    for (int n = 0; n < 6; ++n) covariance(now.p * (dg[3 * first[n] + second[n]] + dg[3 * second[n] + first[n]]));
    for (int c = 0; c < 3; ++c)
        for (int n = 0; n < 6; ++n) covariance(now.d[c] * dtau[n]);
    for (int n = 0; n < 6; ++n) {
        double sum = 0.0;
        for (int c = 0; c < 3; ++c)
            sum += dtau[symmetric(first[n], c)] * dg[3 * second[n] + c] + dtau[symmetric(second[n], c)] * dg[3 * first[n] + c];
        covariance(sum);
    }
    const double before = favre[node], mass = share * now.rho / (before + share * (now.rho - before)), rest = 1.0 - mass;
    const double *moments = favre + gas_gradients * count + count + node;  // uu, vv, ww, uv, uw, vw of before
    for (int a = 0; a < 3; ++a)
        for (int b = a; b < 3; ++b)
            for (int c = b; c < 3; ++c) {
                const double with = moments[symmetric(a, b) * count] * f[c] + moments[symmetric(a, c) * count] * f[b]
                                    + moments[symmetric(b, c) * count] * f[a];
                *at = rest * (*at + mass * ((1.0 - 2.0 * mass) * f[a] * f[b] * f[c] - with)), at += count;
            }
}
