// Values prescribed on faces as sums of waves (hiresx.case.wave_sums): mean + sum over m of c_m cos(2 pi f_m t) + s_m
// sin(2 pi f_m t), at the time t of the clock on the device. Points are those nodes that have waves. Amplitudes are
// [term][point], first the c_m, then the s_m. at: places of the points among the prescribed values.
#include "clock.h"

// cos(2 pi f t) of all frequencies, then sin(2 pi f t), at the time of the clock (clock.h) plus `share` of the step. By
// fma whole turns are subtracted without an error, so that late times are as accurate as early ones.
KERNEL(wave_weights, int i, int j, int k, int frequencies, double share, const double *frequency, const double *clock,
       real *weights) {
    const double t = clock[CLOCK_TIME] + share * clock[CLOCK_DT], f = frequency[i];
    const double turns = fma(f, t, -rint(f * t));
    weights[i] = real(cosine_of_turns(turns));
    weights[frequencies + i] = real(sine_of_turns(turns));
}

// The sum of the waves of one point, whose amplitudes have the stride `points`
HD real sum_of_waves(const real *amplitude, const real *weights, int terms, long long points) {
    real sum = real(0);
    for (int n = 0; n < terms; ++n) sum += amplitude[n * points] * weights[n];
    return sum;
}

// The gas. Of rho, u, v, w, p those have waves whose bit in `waving` is set; their amplitudes follow each other in
// `amplitudes`. mean[variable][point]. target takes the conservative state, with stride `apart` between variables.
KERNEL(gas_waves, int i, int j, int k, int points, int terms, int waving, long long apart, const int *at,
       const real *mean, const real *amplitudes, const real *weights, real *target) {
    const real *amplitude = amplitudes + i;
    real state[gas_variables];
    for (int v = 0; v < gas_variables; ++v) {
        state[v] = mean[(long long)v * points + i];
        if (waving >> v & 1) {
            state[v] += sum_of_waves(amplitude, weights, terms, points);
            amplitude += (long long)terms * points;
        }
    }
    const real rho = state[0], p = state[4];
    real energy = real(0);
    for (int d = 1; d < 4; ++d) energy += state[d] * state[d];
    for (int d = 1; d < 4; ++d) target[d * apart + at[i]] = rho * state[d];
    target[at[i]] = rho;
    target[4 * apart + at[i]] = p / gas_gamma_1 + real(0.5) * rho * energy;
}

#if HX_SCALARS
// A passive scalar
KERNEL(scalar_waves, int i, int j, int k, int points, int terms, const int *at, const real *mean,
       const real *amplitudes, const real *weights, real *target) {
    target[at[i]] = mean[i] + sum_of_waves(amplitudes + i, weights, terms, points);
}
#endif
