// The flow at a node for sums over time or over faces, at least in double
#pragma once

// rho, u, v, w, p, T of a node
template <class Number> HD void sampled(const_state_pointer q, long long p, stride sv, Number *value) {
    const Number rho = q[p], inverse = 1.0 / rho;
    for (int c = 1; c < 4; ++c) value[c] = q[c * sv + p] * inverse;
    const Number square = value[1] * value[1] + value[2] * value[2] + value[3] * value[3];
    value[0] = rho, value[4] = (HX_GAMMA - 1.0) * (q[4 * sv + p] - 0.5 * rho * square);
    value[5] = HX_GAMMA * value[4] * inverse;
}
