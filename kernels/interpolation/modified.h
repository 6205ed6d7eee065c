// The modified AFWENO5 interpolation (Ye et al. 2022): characteristic space at node i. One stencil, i-2..i+2, and
// one set of smoothness indicators give both u^-_{i+1/2} and u^+_{i-1/2}.
// `at(offset, v)` is q_v at i + offset; m the area vector at node i.
#include "weno5.h"
#include "roughness.h"

constexpr int interpolation_reach = 3;
constexpr int correction_reach = 3;
constexpr bool interpolates_nodes = true;
constexpr int weighted_nodes = 5;

template <class T, class At> HD Rough<T> interpolate(const At &at, const T *m, T *minus, T *plus) {
    T q[gas_variables], d[4][gas_variables], c[4][gas_variables];
    T left[gas_variables], right[gas_variables], ends[gas_variables];
    for (int v = 0; v < gas_variables; ++v) {
        T a = at(-2, v), b = at(-1, v), e = at(1, v), g = at(2, v);
        q[v] = at(0, v);
        d[0][v] = b - a, d[1][v] = q[v] - b, d[2][v] = e - q[v], d[3][v] = g - e;
    }
    Space<T> space = Space<T>::at(q, m);
    for (int k = 0; k < 4; ++k) space.project(d[k], c[k]);
    for (int v = 0; v < gas_variables; ++v)
        interpolate_both(c[0][v], c[1][v], c[2][v], c[3][v], left[v], right[v], ends[v]);
    space.restore(right, minus);
    space.restore(left, plus);
    for (int v = 0; v < gas_variables; ++v) minus[v] = q[v] + minus[v], plus[v] = q[v] + plus[v];
    keep_admissible(minus, q);
    keep_admissible(plus, q);
    return rough_where(space.density2(ends), q[0]);
}
