// Linear interpolation of seventh order: of the polynomial through the nodes i-3..i+3 the values at i+1/2 and i-1/2.
// `at(offset, v)` is q_v at i + offset.
#include "roughness.h"

constexpr int interpolation_reach = 4;
constexpr int correction_reach = 4;
constexpr bool interpolates_nodes = true;
constexpr bool interpolates_scalars = true;

template <class T, class At> HD Rough<T> interpolate(const At &at, const T *, T *minus, T *plus) {
    constexpr int before[3] = {-175, 42, -5}, behind[3] = {525, -70, 7};  // by distance, of the side away and towards
    T q[gas_variables], jumps = T(real(0));
    for (int v = 0; v < gas_variables; ++v) {
        q[v] = at(0, v);
        T left = T(real(0)), right = T(real(0));
        for (int s = 1; s <= 3; ++s) {  // over the node, so that a uniform field stays exact
            const T below = at(-s, v) - q[v], above = at(s, v) - q[v];
            right = right + real(before[s - 1]) * below + real(behind[s - 1]) * above;
            left = left + real(before[s - 1]) * above + real(behind[s - 1]) * below;
            if (v == 0) jumps = jumps + below * below + above * above;
        }
        minus[v] = q[v] + right * real(1.0 / 1024), plus[v] = q[v] + left * real(1.0 / 1024);
    }
    keep_admissible(minus, q);
    keep_admissible(plus, q);
    return rough_where(jumps, q[0]);
}

// Of one variable c: c^-_{i+1/2} - c_i from difference(n) = c_{i+n} - c_{i+n-1}.
template <class T, class At> HD T interpolate_scalar(const At &difference) {
    constexpr int weights[6] = {5, -37, 138, 462, -63, 7};
    T sum = T(real(0));
    for (int n = 0; n < 6; ++n) sum = sum + real(weights[n]) * difference(n - 2);
    return sum * real(1.0 / 1024);
}
