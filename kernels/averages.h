// Time averages at nodes and over lines of nodes: Reynolds and Favre averages, and the terms of the turbulence budgets.
#include "node_sample.h"
#include "viscous.h"

// Update of running means m and covariances c by a sample x whose share of the averaged time, sample included, is
// `share` (West 1979): d = x - m, m += share d, c_xy = (1 - share) (c_xy + share d_x d_y), where d is taken from the
// mean before the update. Nothing cancels, as it would in <x y> - <x><y>. Differences from the new mean are avoided,
// since a value that is not stored may be rounded, or fused into such differences, in two ways. Numbers are always
// double. mean: arrays of width x height x ... nodes without ghosts. Where averages of other nodes are merged (Chan,
// Golub & LeVeque 1983), d is the difference of the means, and share own_xy is added, with their covariances `own`. A
// single node has no covariances (NoMoments).
struct NoMoments {
    static constexpr bool there = false;
    HD double operator[](int) const { return 0.0; }
};
struct Moments {
    static constexpr bool there = true;
    const double *at;
    long long count;
    HD double operator[](int n) const { return at[n * count]; }
};
template <class Own> HD void covary(double *held, double share, double product, const Own &own, int n) {
    *held = (1.0 - share) * (*held + share * product);
    if constexpr (Own::there) *held += share * own[n];
}

constexpr int reynolds_means = 6, favre_means = 5, rate_means = 15, paired = 9;
constexpr int of_reynolds = reynolds_means + paired, of_favre = favre_means + paired, of_scalar = 5;
constexpr int of_budget = rate_means + 11, of_stress_budgets = rate_means + 43;

// now: rho, u, v, w, p, T, with stride `apart`, of a node or the means of merged averages. at: their means, their
// variances, then the covariances uv, uw, vw, with stride `count`.
template <class Own>
HD void add_reynolds(const double *now, long long apart, double share, long long count, double *at, const Own &own) {
    double d[reynolds_means];
    for (int n = 0; n < reynolds_means; ++n) {
        d[n] = now[n * apart] - at[n * count];
        at[n * count] += share * d[n];
        covary(at + (reynolds_means + n) * count, share, d[n] * d[n], own, n);
    }
    covary(at + 12 * count, share, d[1] * d[2], own, 6);
    covary(at + 13 * count, share, d[1] * d[3], own, 7);
    covary(at + 14 * count, share, d[2] * d[3], own, 8);
}

// The share of a sample in the averaged mass; before: the mean density before the sample
HD double mass_share(double rho, double share, double before) {
    return share * rho / (before + share * (rho - before));
}

// now: u, v, w, T, as above. at: the mean of rho, the means of u, v, w, T weighted with rho, then uu, vv, ww, uv, uw,
// vw, uT, vT, wT.
template <class Own>
HD void add_favre(double rho, const double *now, long long apart, double share, long long count, double *at,
                  const Own &own) {
    const double density = at[0] + share * (rho - at[0]), mass = share * rho / density;
    at[0] = density;
    double d[gas_gradients];
    for (int n = 0; n < gas_gradients; ++n) {
        d[n] = now[n * apart] - at[(1 + n) * count];
        at[(1 + n) * count] += mass * d[n];
    }
    const int first[paired] = {0, 1, 2, 0, 0, 1, 0, 1, 2}, second[paired] = {0, 1, 2, 1, 2, 2, 3, 3, 3};
    for (int n = 0; n < paired; ++n)
        covary(at + (favre_means + n) * count, mass, d[first[n]] * d[second[n]], own, n);
}

// now: a scalar s. velocity: u, v, w as above; gas: their means before the sample. at: the mean of s, then ss, us, vs,
// ws. share: for Favre averages the share of the mass.
template <class Own>
HD void add_scalar(double now, const double *velocity, long long apart, double share, long long count,
                   const double *gas, double *at, const Own &own) {
    const double d = now - at[0];
    at[0] += share * d;
    covary(at + count, share, d * d, own, 0);
    for (int c = 0; c < 3; ++c)
        covary(at + (2 + c) * count, share, d * (velocity[c * apart] - gas[c * count]), own, 1 + c);
}

// At node p, the viscous stress (xx, yy, zz, xy, xz, yz) and the velocity gradient (du_i/dx_j row by row), 15 numbers.
// The arguments are those of column_energy.
HD void stress_and_gradient(long long p, int di, int dj, int dk, stride sv, const work_real *w, const work_real *m,
                            const work_real *jacobian, real inverse_reynolds, const work_real *eddies, double *value) {
    real own[gas_gradients], g[gas_gradients][3];
    for (int v = 0; v < gas_gradients; ++v) {
        const work_real *field = w + v * sv + p;
        own[v] = field[0];
        const real xi = nodal_derivative<real>([&](int s) { return real(field[s * di]); }) * jacobian[p];
        const real eta = nodal_derivative<real>([&](int s) { return real(field[(long long)s * dj]); }) * jacobian[p];
        const real zeta = nodal_derivative<real>([&](int s) { return real(field[(long long)s * dk]); }) * jacobian[p];
        for (int c = 0; c < 3; ++c)
            g[v][c] = m[c * sv + p] * xi + m[(3 + c) * sv + p] * eta + m[(6 + c) * sv + p] * zeta;
    }
    for (int n = 0; n < 6; ++n) value[n] = 0.0;
#ifdef HX_VISCOUS
#if HX_EDDY_FIELDS
    const real eddy = eddies[p];
#else
    const real eddy = real(0);
#endif
    const ViscousStress<real> stress = viscous_stress(own, g, eddy, inverse_reynolds);
    value[0] = stress.xx, value[1] = stress.yy, value[2] = stress.zz;
    value[3] = stress.xy, value[4] = stress.xz, value[5] = stress.yz;
#else
    (void)inverse_reynolds;
#endif
    (void)eddies;
    for (int n = 0; n < 9; ++n) value[6 + n] = g[n / 3][n % 3];
}

// The place of component (a, b) of a symmetric tensor among xx, yy, zz, xy, xz, yz
HD int symmetric(int a, int b) { return a == b ? a : a + b + 2; }

// The deviations of a sample that the budgets need. rho: its density. d, f: u_i minus the Reynolds means and minus the
// Favre means before the sample. p: the pressure minus its mean. tau, g: viscous stress and velocity gradient minus
// their means, which the constructor updates.
struct Fluctuations {
    double rho, d[3], f[3], p, tau[6], g[9];
    // now, massive: `now` of add_reynolds and of add_favre; value: the result of stress_and_gradient; reynolds, favre:
    // the means before the sample; at: the means of `value`
    HD Fluctuations(const double *now, const double *massive, const double *value, long long apart, double share,
                    const double *reynolds, const double *favre, long long count, double *at) {
        rho = now[0], p = now[4 * apart] - reynolds[4 * count];
        for (int c = 0; c < 3; ++c) {
            d[c] = now[(1 + c) * apart] - reynolds[(1 + c) * count];
            f[c] = massive[c * apart] - favre[(1 + c) * count];
        }
        for (int n = 0; n < 6; ++n) tau[n] = value[n * apart] - at[n * count], at[n * count] += share * tau[n];
        for (int n = 0; n < 9; ++n) {
            double *held = at + (6 + n) * count;
            g[n] = value[(6 + n) * apart] - *held, *held += share * g[n];
        }
    }
};

// Called before add_reynolds and add_favre, which update the means. Updates in `at`, behind the means of
// stress_and_gradient: the covariances of p with u, v, w and div u, of u_i with tau_ix, tau_iy, tau_iz, and of tau_ij
// with du_i/dx_j (sums over i and j); and the Favre third moments u_i u_i u, v, w over 2 (Pebay 2008). favre: the Favre
// averages before the sample. own, own_favre: the covariances of merged averages.
template <class Own>
HD void add_budget(const Fluctuations &now, double share, long long count, const double *favre, double *at,
                   const Own &own, const Own &own_favre) {
    const double *d = now.d, *f = now.f;
    double product[8] = {
        now.p * d[0], now.p * d[1], now.p * d[2], now.p * (now.g[0] + now.g[4] + now.g[8]), 0.0, 0.0, 0.0, 0.0};
    for (int n = 0; n < 9; ++n) {
        product[4 + n % 3] += d[n / 3] * now.tau[symmetric(n / 3, n % 3)];
        product[7] += now.tau[symmetric(n / 3, n % 3)] * now.g[n];
    }
    for (int n = 0; n < 8; ++n) covary(at + (rate_means + n) * count, share, product[n], own, n);
    const double mass = mass_share(now.rho, share, favre[0]);
    const double *moments = favre + favre_means * count;  // uu, vv, ww, uv, uw, vw before the sample
    auto moment = [&](int n) { return moments[n * count] - own_favre[n]; };
    const double square = f[0] * f[0] + f[1] * f[1] + f[2] * f[2];
    const double trace = moment(0) + moment(1) + moment(2);
    for (int c = 0; c < 3; ++c) {
        double with = trace * f[c];
        for (int n = 0; n < 3; ++n) with += 2.0 * moment(symmetric(n, c)) * f[n];
        covary(at + (23 + c) * count, mass, 0.5 * ((1.0 - 2.0 * mass) * square * f[c] - with), own, 8 + c);
    }
}

// Takes the place of add_budget for the budgets of all Reynolds stresses. Updates the covariances of p with u, v, w; of
// p with du_i/dx_j + du_j/dx_i (xx, yy, zz, xy, xz, yz); of u, of v and of w with each component of tau; the sums over
// k of the covariances of tau_ik with du_j/dx_k and of tau_jk with du_i/dx_k; and the Favre third moments uuu, uuv,
// uuw, uvv, uvw, uww, vvv, vvw, vww, www.
template <class Own>
HD void add_stress_budgets(const Fluctuations &now, double share, long long count, const double *favre, double *at,
                           const Own &own, const Own &own_favre) {
    const double *f = now.f, *dg = now.g, *dtau = now.tau;
    int held = 0;
    auto covariance = [&](double part, double product) {
        covary(at + (rate_means + held) * count, part, product, own, held), ++held;
    };
    for (int c = 0; c < 3; ++c) covariance(share, now.p * now.d[c]);
    const int first[6] = {0, 1, 2, 0, 0, 1}, second[6] = {0, 1, 2, 1, 2, 2};
    for (int n = 0; n < 6; ++n)
        covariance(share, now.p * (dg[3 * first[n] + second[n]] + dg[3 * second[n] + first[n]]));
    for (int c = 0; c < 3; ++c)
        for (int n = 0; n < 6; ++n) covariance(share, now.d[c] * dtau[n]);
    for (int n = 0; n < 6; ++n) {
        double sum = 0.0;
        for (int c = 0; c < 3; ++c)
            sum += dtau[symmetric(first[n], c)] * dg[3 * second[n] + c]
                   + dtau[symmetric(second[n], c)] * dg[3 * first[n] + c];
        covariance(share, sum);
    }
    const double mass = mass_share(now.rho, share, favre[0]);
    const double *moments = favre + favre_means * count;  // uu, vv, ww, uv, uw, vw before the sample
    auto moment = [&](int a, int b) { return moments[symmetric(a, b) * count] - own_favre[symmetric(a, b)]; };
    for (int a = 0; a < 3; ++a)
        for (int b = a; b < 3; ++b)
            for (int c = b; c < 3; ++c) {
                const double with = moment(a, b) * f[c] + moment(a, c) * f[b] + moment(b, c) * f[a];
                covariance(mass, (1.0 - 2.0 * mass) * f[a] * f[b] * f[c] - with);
            }
}

// Launched before average_moments, which updates the averages `reynolds` and `favre`. share: an array of one number.
KERNEL(average_budget, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, stride sv,
       const_state_field<gas_variables> q, const_work_field<gas_gradients> w, const_work_field<9> m,
       const_work_field<1> jacobian, real inverse_reynolds, const_work_field<HX_EDDY_FIELDS> eddies, int width,
       int height, long long count, const double *share, const double *reynolds, const double *favre,
       double *mean) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    const long long node = i + (long long)width * (j + (long long)height * k);
    const double part = *share;
    double now[reynolds_means], value[rate_means];
    sampled(q, p, sv, now);
    stress_and_gradient(p, di, dj, dk, sv, w, m, jacobian, inverse_reynolds, eddies, value);
    const Fluctuations found(now, now + 1, value, 1, part, reynolds + node, favre + node, count, mean + node);
    add_budget(found, part, count, favre + node, mean + node, NoMoments(), NoMoments());
}

// The arguments are those of average_budget.
KERNEL(average_stress_budgets, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, stride sv,
       const_state_field<gas_variables> q, const_work_field<gas_gradients> w, const_work_field<9> m,
       const_work_field<1> jacobian, real inverse_reynolds, const_work_field<HX_EDDY_FIELDS> eddies, int width,
       int height, long long count, const double *share, const double *reynolds, const double *favre,
       double *mean) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    const long long node = i + (long long)width * (j + (long long)height * k);
    const double part = *share;
    double now[reynolds_means], value[rate_means];
    sampled(q, p, sv, now);
    stress_and_gradient(p, di, dj, dk, sv, w, m, jacobian, inverse_reynolds, eddies, value);
    const Fluctuations found(now, now + 1, value, 1, part, reynolds + node, favre + node, count, mean + node);
    add_stress_budgets(found, part, count, favre + node, mean + node, NoMoments(), NoMoments());
}

// --- Averages over lines of nodes. All kinds are updated together, since each needs the previous means of the others.

enum { AVERAGES_REYNOLDS = 1, AVERAGES_FAVRE = 2, AVERAGES_BUDGET = 4, AVERAGES_STRESS_BUDGETS = 8 };

// Pointers to the averages of a node. The array holds the kinds (bits) one behind the other, with stride `count`
// between quantities. Averages of scalars follow those of the gas, for Reynolds and for Favre averages.
template <class Pointer> struct Averages {
    Pointer reynolds = nullptr, favre = nullptr, budget = nullptr;
    int kinds;
    long long count;
    HD Averages(int some, Pointer at, long long nodes) : kinds(some), count(nodes) {
        if (kinds & AVERAGES_REYNOLDS) reynolds = at, at += (of_reynolds + of_scalar * scalar_variables) * count;
        if (kinds & AVERAGES_FAVRE) favre = at, at += (of_favre + of_scalar * scalar_variables) * count;
        if (kinds & (AVERAGES_BUDGET | AVERAGES_STRESS_BUDGETS)) budget = at;
    }
};

// The number of averages of a node
HD int quantities_of(int kinds) {
    const int scalars = of_scalar * scalar_variables;
    return (kinds & AVERAGES_REYNOLDS ? of_reynolds + scalars : 0) + (kinds & AVERAGES_FAVRE ? of_favre + scalars : 0)
           + (kinds & AVERAGES_BUDGET ? of_budget : 0) + (kinds & AVERAGES_STRESS_BUDGETS ? of_stress_budgets : 0);
}

// A sample, or the means of many nodes, with stride `apart`. now: rho, u, v, w, p, T; massive: rho, u, v, w, T for
// Favre averages; rates: the result of stress_and_gradient.
struct Taken {
    const double *now, *massive, *rates;
    long long apart;
};

// Returns `count`, but the compiler cannot know that. Otherwise it would keep the addresses of all quantities in
// registers over a loop, and there are not enough registers.
HD long long unknown(long long count) {
#if defined(__CUDA_ARCH__)
    asm volatile("" : "+l"(count));
#endif
    return count;
}

template <bool many> HD auto moments_of(const double *at, int first, long long count) {
    if constexpr (many) return Moments{at + first * count, count};
    else return NoMoments();
}

// Adds one node, or (many) the merged averages `from`. scalar(n, kind): the value of scalar n, or its mean of a kind.
template <bool many, class Scalars>
HD void take(const Averages<double *> &at, const Taken &s, double share, const Averages<const double *> &from,
             Scalars scalar) {
    const long long count = at.count, apart = many ? s.apart : 1;
    const double *massive = s.massive + apart;
    if (at.budget) {
        const Fluctuations found(s.now, massive, s.rates, apart, share, at.reynolds, at.favre, count, at.budget);
        const auto own = moments_of<many>(from.budget, rate_means, from.count);
        const auto own_favre = moments_of<many>(from.favre, favre_means, from.count);
        if (at.kinds & AVERAGES_BUDGET) add_budget(found, share, count, at.favre, at.budget, own, own_favre);
        else add_stress_budgets(found, share, count, at.favre, at.budget, own, own_favre);
    }
    for (int n = 0; n < scalar_variables; ++n) {
        auto add = [&](double *gas, const double *other, int first, int kind, double part, const double *velocity) {
            const auto own = moments_of<many>(other, first + of_scalar * n + 1, from.count);
            double *held = gas + (first + of_scalar * n) * count;
            add_scalar(scalar(n, kind), velocity, apart, part, count, gas + count, held, own);
        };
        if (at.reynolds) add(at.reynolds, from.reynolds, of_reynolds, AVERAGES_REYNOLDS, share, s.now + apart);
        if (at.favre)
            add(at.favre, from.favre, of_favre, AVERAGES_FAVRE, mass_share(s.massive[0], share, at.favre[0]), massive);
    }
    if (at.favre)
        add_favre(s.massive[0], massive, apart, share, count, at.favre,
                  moments_of<many>(from.favre, favre_means, from.count));
    if (at.reynolds)
        add_reynolds(s.now, apart, share, count, at.reynolds,
                     moments_of<many>(from.reynolds, reynolds_means, from.count));
}

// Adds a node to its averages of one kind, Reynolds or Favre. All averages are loaded before the first is stored, so
// that a GPU waits for memory once.
template <int kind>
HD void take_node(const double *now, const_state_pointer q, long long p, stride sv, double share, long long count,
                  double *mean) {
    constexpr int numbers = (kind == AVERAGES_REYNOLDS ? of_reynolds : of_favre) + of_scalar * scalar_variables;
    double held[numbers];
    for (int n = 0; n < numbers; ++n) held[n] = mean[n * count];
    const double massive[favre_means] = {now[0], now[1], now[2], now[3], now[5]};
    take<false>(Averages<double *>(kind, held, 1), {now, massive, nullptr, 1}, share,
                Averages<const double *>(0, nullptr, 0),
                [&](int n, int) { return q[(gas_variables + n) * sv + p] / now[0]; });
    for (int n = 0; n < numbers; ++n) mean[n * count] = held[n];
}

// Updates the Reynolds and the Favre averages of nodes, or one kind of them, with the scalars. share: an array of one
// number.
KERNEL(average_moments, int i, int j, int k, int o, int sj, int sk, stride sv,
       const_state_field<conserved_variables> q, int width, int height, int kinds, long long count, const double *share,
       double *mean) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    const Averages<double *> at(kinds & (AVERAGES_REYNOLDS | AVERAGES_FAVRE),
                                mean + i + (long long)width * (j + (long long)height * k), count);
    double now[reynolds_means];
    sampled(q, p, sv, now);
    if (at.reynolds) take_node<AVERAGES_REYNOLDS>(now, q, p, sv, *share, count, at.reynolds);
    if (at.favre) take_node<AVERAGES_FAVRE>(now, q, p, sv, *share, count, at.favre);
}

// Thread (i, j, k) of width x height x depth averages one sample over the nodes i, i + width, ... before end_i, and
// likewise along j and k, with equal weights. w: null without a budget.
KERNEL(average_lines, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, stride sv,
       const_state_field<conserved_variables> q, optional<const_work_field<gas_gradients>> w, const_work_field<9> m,
       const_work_field<1> jacobian, real inverse_reynolds, const_work_field<HX_EDDY_FIELDS> eddies, int width,
       int height, int depth, int end_i, int end_j, int end_k, int kinds, long long count, double *mean) {
    double *first = mean + i + (long long)width * (j + (long long)height * k);
    const Averages<const double *> none(0, nullptr, 0);
    for (int n = 0; n < quantities_of(kinds); ++n) first[n * count] = 0.0;
    double nodes = 0.0;
    for (int c = k; c < end_k; c += depth)
        for (int b = j; b < end_j; b += height)
            for (int a = i; a < end_i; a += width) {
                const long long p = o + a + (long long)b * sj + (long long)c * sk;
                double now[reynolds_means], rates[rate_means];
                sampled(q, p, sv, now);
                const double massive[favre_means] = {now[0], now[1], now[2], now[3], now[5]};
                if (w) stress_and_gradient(p, di, dj, dk, sv, w, m, jacobian, inverse_reynolds, eddies, rates);
                const Averages<double *> at(kinds, first, unknown(count));
                take<false>(at, {now, massive, rates, 1}, 1.0 / ++nodes, none,
                            [&](int n, int) { return q[(gas_variables + n) * sv + p] / now[0]; });
            }
}

// Adds the averages of `lanes` to averages that have the weight `before`; without such a weight the result is the
// average of the lanes. weights: one for each lane. Thread (i, j, k) of width x height x ... merges across_i x across_j
// x across_k lanes, the first of which is (i, j, k) of lane_width x lane_height x ....
KERNEL(merge_averages, int i, int j, int k, int width, int height, int lane_width, int lane_height, int across_i,
       int across_j, int across_k, int kinds, long long count, long long lane_count, double before,
       const double *weights, const double *lanes, double *mean) {
    double *first = mean + i + (long long)width * (j + (long long)height * k);
    if (before == 0.0)
        for (int n = 0; n < quantities_of(kinds); ++n) first[n * count] = 0.0;
    double total = before;
    for (int c = k; c < k + across_k; ++c)
        for (int b = j; b < j + across_j; ++b)
            for (int a = i; a < i + across_i; ++a) {
                const long long lane = a + (long long)lane_width * (b + (long long)lane_height * c);
                const double weight = weights[lane];
                if (!(weight > 0.0)) continue;
                total += weight;
                const Averages<double *> at(kinds, first, unknown(count));
                const Averages<const double *> from(kinds, lanes + lane, unknown(lane_count));
                const Taken s = {from.reynolds, from.favre, from.budget, from.count};
                take<true>(at, s, weight / total, from, [&](int n, int kind) {
                    return kind == AVERAGES_FAVRE ? from.favre[(of_favre + of_scalar * n) * lane_count]
                                                  : from.reynolds[(of_reynolds + of_scalar * n) * lane_count];
                });
            }
}
