// The modified form (Ye et al. 2022) with seven nodes: characteristic space at node i. One stencil, i-3..i+3, and one
// set of smoothness indicators give both u^-_{i+1/2} and u^+_{i-1/2}. `at(offset, v)` is q_v at i + offset; m the area
// vector at node i.
#include "weno7.h"
#include "roughness.h"

constexpr int interpolation_reach = 4;
constexpr int correction_reach = 4;
constexpr bool interpolates_nodes = true;
constexpr bool interpolates_scalars = true;
constexpr int weighted_nodes = 7;

template <class T, class At> HD Rough<T> interpolate(const At &at, const T *m, T *minus, T *plus) {
    constexpr int differences = 6;  // of seven nodes
    T q[gas_variables], c[differences][gas_variables];
    T left[gas_variables], right[gas_variables], jumps[gas_variables];
    for (int v = 0; v < gas_variables; ++v) q[v] = at(0, v);
    Space<T> space = Space<T>::at(q, m);
    for (int k = 0; k < differences; ++k) {
        T d[gas_variables];
        for (int v = 0; v < gas_variables; ++v) d[v] = at(k - 2, v) - at(k - 3, v);
        space.project(d, c[k]);
    }
    for (int v = 0; v < gas_variables; ++v) {
        T d[differences];
        for (int k = 0; k < differences; ++k) d[k] = c[k][v];
        interpolate_both(d, left[v], right[v]);
        jumps[v] = sum_of_squares<differences>(d);
    }
    space.restore(right, minus);
    space.restore(left, plus);
    for (int v = 0; v < gas_variables; ++v) minus[v] = q[v] + minus[v], plus[v] = q[v] + plus[v];
    keep_admissible(minus, q);
    keep_admissible(plus, q);
    return rough_where(space.density2(jumps), q[0]);
}

// c^-_{i+1/2} - c_i of one variable c, from difference(n) = c_{i+n} - c_{i+n-1}.
template <class T, class At> HD T interpolate_scalar(const At &difference) {
    const T d[] = {difference(-2), difference(-1), difference(0), difference(1), difference(2), difference(3)};
    return interpolate_one_of_seven(d);
}
