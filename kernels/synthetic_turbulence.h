// Synthetic turbulence at inflows: three random fields of unit variance on a lattice that moves with the convection
// velocity. The Cholesky factor of the Reynolds stresses gives them these stresses (Lund, Wu & Squires, J. Comput. Phys.
// 140, 1998). The fields are random numbers at the lattice points, smoothed by cubic B-splines along the three axes (the
// digital filter of Klein, Sadiki & Janicka, J. Comput. Phys. 186, 2003), or eddies at random places in the cells of the
// lattice (Jarrin, Benhamadouche, Laurence & Prosser, Int. J. Heat Fluid Flow 27, 2006). All random numbers are a hash of
// lattice point and seed, so that no state is kept: a restarted run, or one with another decomposition, has the same.
#include "clock.h"

// The finaliser of SplitMix64 (Steele, Lea & Flood, OOPSLA 2014).
HD unsigned long long mixed(unsigned long long x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

// Random bits of a lattice point, or of the cell behind it.
HD unsigned long long lattice_bits(int seed, int a, int b, int c) {
    constexpr unsigned long long step = 0x9e3779b97f4a7c15ull;
    unsigned long long x = mixed((unsigned long long)seed * step + (unsigned long long)a);
    x = mixed(x * step + (unsigned long long)b);
    return mixed(x * step + (unsigned long long)c);
}

// Three uniform random numbers of mean 0 and variance 1 of a lattice point.
HD void lattice_numbers(int seed, int a, int b, int c, real *found) {
    const unsigned long long x = lattice_bits(seed, a, b, c);
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

// Position of a point along the first axis in the moving lattice, at the fraction `share` of the step of the clock.
HD double moved_place(double place, double speed, double share, const double *clock) {
    const double t = clock[CLOCK_TIME] + share * clock[CLOCK_DT];
    return place - speed * t;
}

// Writes the conservative state of point i to target[variable][point]: the mean flow with the fluctuation of its
// velocity, which is the Cholesky factor times three random numbers of unit variance.
HD void set_fluctuating(int i, long long points, const real *mean, const real *root, const real *number, real *target) {
    real velocity[3], squares = real(0);
    for (int e = 0, r = 0; e < 3; ++e) {
        velocity[e] = mean[(e + 1) * points + i];
        for (int f = 0; f <= e; ++f, ++r) velocity[e] += root[r * points + i] * number[f];
        squares += velocity[e] * velocity[e];
    }
    const real rho = mean[i], p = mean[4 * points + i];
    target[i] = rho;
    for (int e = 0; e < 3; ++e) target[(e + 1) * points + i] = rho * velocity[e];
    target[4 * points + i] = p / gas_gamma_1 + real(0.5) * rho * squares;
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
    const double along = moved_place(places[i], speed, share, clock), first = floor(along);
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
    set_fluctuating(i, points, mean, root, fluctuation, target);
}

// A box of eddies around a face, one in each cell of the lattice: planes x rows x columns cells along its axes, from
// plane floor(least) - 2, row first1 and column first2 on; least: the least position of a node along the first axis.
// eddies[plane % planes][row][column][6]: the place of the eddy in its cell, uniform in [0, 1)^3, and three signs.
KERNEL(place_eddies, int i, int j, int k, int planes, int rows, int columns, int first1, int first2, double least,
       int seed, double speed, int period1, int period2, double share, const double *clock, real *eddies) {
    const int plane = int(floor(moved_place(least, speed, share, clock))) - 2 + k;
    const unsigned long long bits =
        lattice_bits(seed, plane, wrapped(first1 + j, period1), wrapped(first2 + i, period2));
    real *eddy = eddies + 6 * (((long long)wrapped(plane, planes) * rows + j) * columns + i);
    for (int e = 0; e < 3; ++e) {
        eddy[e] = (real(int(bits >> (20 * e)) & 0xfffff) + real(0.5)) * real(1.0 / (1 << 20));
        eddy[3 + e] = real((int(bits >> (59 + e)) & 2) - 1);
    }
}

// The same as synthetic_turbulence by these eddies. Their shape along each axis is the root of 3/2 times 1 - |distance|
// up to the distance 1, so that the variance at each place is 1 on the average over all places of eddies.
KERNEL(synthetic_eddies, int i, int j, int k, int n, int planes, int rows, int columns, int first1, int first2,
       double speed, double share, const double *clock, const double *places, const real *mean, const real *root,
       const real *eddies, real *target) {
    const long long points = n;
    const double at[3] = {moved_place(places[i], speed, share, clock), places[points + i], places[2 * points + i]};
    int cell[3];
    real within[3], fluctuation[3] = {real(0), real(0), real(0)};
    for (int e = 0; e < 3; ++e) {
        const double first = floor(at[e]);
        cell[e] = int(first) - 1;
        within[e] = real(at[e] - first);
    }
    int plane = wrapped(cell[0], planes);
#pragma unroll 1
    for (int a = 0; a < 3; ++a, plane = plane + 1 < planes ? plane + 1 : 0) {
        for (int b = 0; b < 3; ++b) {
            const long long row = (long long)plane * rows + cell[1] - first1 + b;
            const real *eddy = eddies + 6 * (row * columns + cell[2] - first2);
            for (int c = 0; c < 3; ++c, eddy += 6) {
                const real distance[3] = {within[0] - real(a - 1) - eddy[0], within[1] - real(b - 1) - eddy[1],
                                          within[2] - real(c - 1) - eddy[2]};
                real shape = real(0.22963966338592295);  // root of (3/2)^3, over 2^3
                for (int e = 0; e < 3; ++e) {
                    const real inside = real(1) - OF_REAL(fabs)(distance[e]);
                    shape *= inside + OF_REAL(fabs)(inside);  // twice the larger one of it and 0, without a branch
                }
                for (int e = 0; e < 3; ++e) fluctuation[e] += shape * eddy[3 + e];
            }
        }
    }
    set_fluctuating(i, points, mean, root, fluctuation, target);
}
