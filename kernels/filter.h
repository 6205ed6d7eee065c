// Filtered samples of a probe. Each is the mean of the flow weighted by the cubic B-spline over the two intervals
// before it and the two after it, which equals four successive running means over an interval. A frequency f passes
// with the factor sinc(f T)^4, T the interval. The weights are positive, so that a mean of admissible states is
// admissible.
//
// At the `position` 0 <= x <= 1 in an interval four samples are being summed: sample 0 is one interval before the
// interval's beginning, 1 at its beginning, 2 at its end and 3 one interval later. The weights of samples 3 and 2
// mirror those of samples 0 and 1.
#include "clock.h"

HD double spline_weight(int sample, double x) {
    const double y = sample < 2 ? x : 1.0 - x;
    if (sample == 0 || sample == 3) return (1.0 - y) * (1.0 - y) * (1.0 - y) * (1.0 / 6);
    return ((3.0 * y - 6.0) * y * y + 4.0) * (1.0 / 6);
}

// The fraction of a sample's weights that lies before the position x.
HD double spline_past(int sample, double x) {
    const double y = sample < 2 ? x : 1.0 - x;
    const double outer = 1.0 - (1.0 - y) * (1.0 - y) * (1.0 - y) * (1.0 - y) * (1.0 / 24);
    const double inner = 0.5 + ((3.0 * y - 8.0) * y * y + 16.0) * y * (1.0 / 24);
    const double past = sample == 0 || sample == 3 ? outer : inner;
    return sample < 2 ? past : 1.0 - past;
}

// Adds the flow at the nodes places[0..count-1] to the four sums: rho, u, v, w, p and scalars. Between the time `seen`
// and the clock's time the flow changes linearly from `held`, and the weights, of third degree, are integrated exactly.
// A time that was seen already adds nothing, so that a step may be repeated. Without an earlier flow (`seen` is
// negative) the flow is taken as constant up to now. interval: the time at which it began, its length, and, if the
// position counts steps, the fraction of the interval that a step takes, else 0.
KERNEL(filter_state, int i, int j, int k, int count, stride sv, const int *places,
       const_state_field<conserved_variables> q, const double *clock, const double *interval, double *position,
       double *seen, double *held, double *sums) {
    const double time = clock[CLOCK_TIME];
    if (!(time > seen[i])) return;
    const long long p = places[i];
    const double rho = q[p], inverse = 1.0 / rho;
    const double u = q[sv + p] * inverse, v = q[2 * sv + p] * inverse, w = q[3 * sv + p] * inverse;
    double flow[conserved_variables];
    flow[0] = rho, flow[1] = u, flow[2] = v, flow[3] = w;
    flow[4] = (HX_GAMMA - 1.0) * (q[4 * sv + p] - 0.5 * rho * (u * u + v * v + w * w));
    for (int n = gas_variables; n < conserved_variables; ++n) flow[n] = q[n * sv + p] * inverse;

    const bool first = seen[i] < 0.0;
    const double from = position[i];
    double to = interval[2] > 0.0 ? from + interval[2] : (time - interval[0]) / interval[1];
    if (first || to < from) to = from;
    if (to > 1.0) to = 1.0;
    // Points and weights of the Gauss-Legendre rule with three points
    const double place[3] = {0.1127016653792583, 0.5, 0.8872983346207417}, share[3] = {5.0 / 18, 8.0 / 18, 5.0 / 18};
    for (int s = 0; s < 4; ++s) {
        double before = 0.0, now = 0.0;
        for (int g = 0; g < 3; ++g) {
            const double weight = share[g] * (to - from) * spline_weight(s, from + place[g] * (to - from));
            before += (1.0 - place[g]) * weight, now += place[g] * weight;
        }
        if (first) now = spline_past(s, from);
        for (int n = 0; n < conserved_variables; ++n) {
            const long long at = (long long)n * count + i;
            double *sum = sums + (long long)s * conserved_variables * count + at;
            *sum = first ? now * flow[n] : *sum + (before * held[at] + now * flow[n]);
        }
    }
    for (int n = 0; n < conserved_variables; ++n) held[(long long)n * count + i] = flow[n];
    position[i] = to, seen[i] = time;
}

// Ends the interval if the clock is at a sample (kernels/clock.h), as found by the host or by the device. The first sum
// is complete and is stored among `samples`; the next interval begins.
KERNEL(filter_sample, int i, int j, int k, int count, const double *clock, double *interval, double *position,
       double *sums, double *samples) {
    if (!(clock[CLOCK_AT_SAMPLE] > 0.0)) return;
    const int slot = int(clock[CLOCK_SLOT] + clock[CLOCK_SAMPLES]) - 1;
    for (int n = 0; n < conserved_variables; ++n) {
        double *sum = sums + (long long)n * count + i;
        const long long next = (long long)conserved_variables * count;
        samples[slot * next + (long long)n * count + i] = sum[0];
        for (int s = 0; s < 3; ++s) sum[s * next] = sum[(s + 1) * next];
        sum[3 * next] = 0.0;
    }
    position[i] = 0.0;
    if (i == 0) interval[0] = clock[CLOCK_BEGINS];
}

// sample: the values of samples 0, 1 and 2 if the flow remains as it is.
KERNEL(filter_rest, int i, int j, int k, int count, const double *position, const double *held, const double *sums,
       double *sample) {
    for (int s = 0; s < 3; ++s) {
        const double rest = 1.0 - spline_past(s, position[i]);
        for (int n = 0; n < conserved_variables; ++n) {
            const long long at = (long long)n * count + i, of = (long long)s * conserved_variables * count + at;
            sample[of] = sums[of] + rest * held[at];
        }
    }
}
