// The original form with six nodes for each of its two values: characteristic space of the averaged state and the
// interpolated area vector at i+1/2; u^-_{i+1/2} and u^+_{i+1/2} both use the stencil i-2..i+3.
// `at(offset, v)` is q_v at i + offset; m the area vector at i+1/2.
#include "weno6.h"
#include "roughness.h"

constexpr int interpolation_reach = 3;
constexpr int correction_reach = 3;
constexpr bool interpolates_nodes = false;
constexpr bool interpolates_scalars = true;
constexpr int weighted_nodes = 6;

template <class T, class At> HD Rough<T> interpolate(const At &at, const T *m, T *minus, T *plus) {
    constexpr int differences = 5;  // of six nodes
    T average[gas_variables], q[gas_variables], p[gas_variables], c[differences][gas_variables];
    T left[gas_variables], right[gas_variables], jumps[gas_variables];
    for (int v = 0; v < gas_variables; ++v) {
        q[v] = at(0, v), p[v] = at(1, v);
        average[v] = real(0.5) * (q[v] + p[v]);
    }
    Space<T> space = Space<T>::at(average, m);
    for (int k = 0; k < differences; ++k) {
        T d[gas_variables];
        for (int v = 0; v < gas_variables; ++v) d[v] = at(k - 1, v) - at(k - 2, v);
        space.project(d, c[k]);
    }
    for (int v = 0; v < gas_variables; ++v) {
        T d[differences], mirrored[differences];
        for (int k = 0; k < differences; ++k) d[k] = c[k][v], mirrored[differences - 1 - k] = -c[k][v];
        right[v] = interpolate_one_of_six(d);
        left[v] = interpolate_one_of_six(mirrored);
        jumps[v] = sum_of_squares<differences>(d);
    }
    space.restore(right, minus);
    space.restore(left, plus);
    for (int v = 0; v < gas_variables; ++v) minus[v] = q[v] + minus[v], plus[v] = p[v] + plus[v];
    keep_admissible(minus, q);
    keep_admissible(plus, p);
    return rough_where(space.density2(jumps), average[0]);
}

// c^-_{i+1/2} - c_i of one variable c, from difference(n) = c_{i+n} - c_{i+n-1}.
template <class T, class At> HD T interpolate_scalar(const At &difference) {
    const T d[] = {difference(-1), difference(0), difference(1), difference(2), difference(3)};
    return interpolate_one_of_six(d);
}
