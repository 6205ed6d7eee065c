// Inflow of planes that another run recorded. At each node they are interpolated in time by the polynomial through up
// to four planes, which is cubic with four. The host has interpolated each plane onto the nodes of the face.
#include "../clock.h"

// The index of the last of `planes` increasing times that is not after t, but at most planes - 2.
HD int plane_before(const double *times, int planes, double t) {
    int low = 0, high = planes - 1;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (times[middle] <= t) low = middle;
        else high = middle;
    }
    return low;
}

// Node i of n. begin: time in the file at which the run begins. period: time after which the planes repeat; 0: they do
// not repeat, and the first plane holds before all others and the last one after them. times[plane]: of all `planes`;
// slots[plane]: position of a plane in held[slot][rho, u, v, w, p][node]. target[variable][node]: the conservative
// state at the time of the clock (clock.h) plus the fraction `share` of the time step.
KERNEL(precursor_planes, int i, int j, int k, int n, int planes, double begin, double period, double share,
       const double *clock, const double *times, const int *slots, const real *held, real *target) {
    double t = begin + (clock[CLOCK_TIME] + share * clock[CLOCK_DT]);
    const double first = times[0];
    if (period > 0.0) t -= period * floor((t - first) / period);
    else if (t < first) t = first;
    else if (t > times[planes - 1]) t = times[planes - 1];
    const int count = planes < 4 ? planes : 4;
    int low;
    if (period > 0.0) {
        low = t >= times[planes - 1] ? planes - 1 : plane_before(times, planes, t);
        low -= count < 4 ? 0 : 1;
    } else {
        low = plane_before(times, planes, t) - (count - 1) / 2;
        low = low < 0 ? 0 : low + count > planes ? planes - count : low;
    }
    double at[4];
    int plane[4];
    for (int a = 0; a < count; ++a) {
        const int turn = low + a < 0 ? -1 : low + a >= planes ? 1 : 0;
        plane[a] = low + a - turn * planes;
        at[a] = times[plane[a]] + turn * period;
    }
    real value[gas_variables];
    for (int v = 0; v < gas_variables; ++v) value[v] = real(0);
    for (int a = 0; a < count; ++a) {
        double weight = 1.0;
        for (int b = 0; b < count; ++b)
            if (b != a) weight *= (t - at[b]) / (at[a] - at[b]);
        const real *state = held + (long long)slots[plane[a]] * gas_variables * n + i;
        for (int v = 0; v < gas_variables; ++v) value[v] += real(weight) * state[(long long)v * n];
    }
    const real rho = value[0];
    real squares = real(0);
    for (int e = 1; e < 4; ++e) squares += value[e] * value[e];
    target[i] = rho;
    for (int e = 1; e < 4; ++e) target[(long long)e * n + i] = rho * value[e];
    target[4ll * n + i] = value[4] / gas_gamma_1 + real(0.5) * rho * squares;
}

// Sets the nodes on the face. state[variable][j][i]: of the patch's n1 x n2 nodes.
KERNEL(precursor_node, int i, int j, int k, int o, int s1, int s2, int sn, stride sv, int n1, int n2, const real *state,
       state_field<gas_variables> q) {
    const long long p = o + (long long)i * s1 + (long long)j * s2, nodes = (long long)n1 * n2;
    for (int v = 0; v < gas_variables; ++v) q[v * sv + p] = state[v * nodes + (long long)j * n1 + i];
}
