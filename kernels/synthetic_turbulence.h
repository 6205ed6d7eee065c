// Synthetic turbulence at inflows. Random numbers on a lattice that moves with the convection velocity are smoothed by
// cubic B-splines along its three axes and scaled to unit variance. The Cholesky factor of the Reynolds stresses then
// gives them these stresses (the digital filter of Klein, Sadiki & Janicka, J. Comput. Phys. 186, 2003, with the factor
// of Lund, Wu & Squires, J. Comput. Phys. 140, 1998). The random numbers are a hash of lattice point and seed, so that
// no state is kept: a restarted run, or one with another decomposition, has the same numbers.
#include "clock.h"

// The finaliser of SplitMix64 (Steele, Lea & Flood, OOPSLA 2014).
HD unsigned long long mixed(unsigned long long x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

// Three uniform random numbers of mean 0 and variance 1 of a lattice point.
HD void lattice_numbers(int seed, int a, int b, int c, real *found) {
    constexpr unsigned long long step = 0x9e3779b97f4a7c15ull;
    unsigned long long x = mixed((unsigned long long)seed * step + (unsigned long long)a);
    x = mixed(x * step + (unsigned long long)b);
    x = mixed(x * step + (unsigned long long)c);
    const double share = 1.0 / (1 << 21), size = 3.4641016151377544;  // root of 12
    for (int n = 0; n < 3; ++n) found[n] = real(size * ((double((x >> (21 * n)) & 0x1fffff) + 0.5) * share - 0.5));
}

// Values at `at` in [0, 1) of the cubic B-splines about the lattice points -1, 0, 1, 2, over the root of the sum of
// their squares, so that the variance is 1.
HD void spline_shares(double at, real *share) {
    const double back = 1.0 - at, square = at * at, cube = square * at;
    const double value[4] = {back * back * back / 6.0, (4.0 - 6.0 * square + 3.0 * cube) / 6.0,
                             (1.0 + 3.0 * at + 3.0 * square - 3.0 * cube) / 6.0, cube / 6.0};
    double sum = 0.0;
    for (int n = 0; n < 4; ++n) sum += value[n] * value[n];
    const double over = 1.0 / sqrt(sum);
    for (int n = 0; n < 4; ++n) share[n] = real(value[n] * over);
}

HD int wrapped(int at, int period) {
    if (period <= 0) return at;
    const int rest = at % period;
    return rest < 0 ? rest + period : rest;
}

// Point i of n. places[axis][point]: position in units of the lattice; speed: of the lattice along the first axis, in
// these units; periods: of the other two axes, 0 for none. share: fraction of the step after the time of the clock.
// mean[5][point]: rho, u, v, w, p; root[6][point]: xx, yx, yy, zx, zy, zz of the Cholesky factor. known[slot][point]:
// the lattice plane whose smoothed numbers planes[slot][3][point] holds; a slot is computed again when the motion of
// the lattice needs another plane. target[variable][point] takes the conservative state.
KERNEL(synthetic_turbulence, int i, int j, int k, int n, int seed, double speed, int period1, int period2, double share,
       const double *clock, const double *places, const real *mean, const real *root, double *known, real *planes,
       real *target) {
    const long long points = n;
    const double t = clock[CLOCK_TIME] + share * clock[CLOCK_DT];
    const double along = places[i] - speed * t, first = floor(along);
    real weight[4], fluctuation[3] = {real(0), real(0), real(0)};
    spline_shares(along - first, weight);
#pragma unroll 1
    for (int a = 0; a < 4; ++a) {
        const int plane = int(first) + a - 1, slot = plane & 3;
        real *value = planes + 3 * slot * points + i;
        if (known[slot * points + i] != double(plane)) {
            const double y = places[points + i], z = places[2 * points + i], low = floor(y), left = floor(z);
            real across[4], beside[4], sum[3] = {real(0), real(0), real(0)};
            spline_shares(y - low, across);
            spline_shares(z - left, beside);
#pragma unroll 1
            for (int b = 0; b < 4; ++b)
                for (int c = 0; c < 4; ++c) {
                    real number[3];
                    lattice_numbers(seed, plane, wrapped(int(low) + b - 1, period1),
                                    wrapped(int(left) + c - 1, period2), number);
                    for (int e = 0; e < 3; ++e) sum[e] += across[b] * beside[c] * number[e];
                }
            for (int e = 0; e < 3; ++e) value[e * points] = sum[e];
            known[slot * points + i] = double(plane);
        }
        for (int e = 0; e < 3; ++e) fluctuation[e] += weight[a] * value[e * points];
    }
    real velocity[3], squares = real(0);
    for (int e = 0, r = 0; e < 3; ++e) {
        velocity[e] = mean[(e + 1) * points + i];
        for (int f = 0; f <= e; ++f, ++r) velocity[e] += root[r * points + i] * fluctuation[f];
        squares += velocity[e] * velocity[e];
    }
    const real rho = mean[i], p = mean[4 * points + i];
    target[i] = rho;
    for (int e = 0; e < 3; ++e) target[(e + 1) * points + i] = rho * velocity[e];
    target[4 * points + i] = p / gas_gamma_1 + real(0.5) * rho * squares;
}
