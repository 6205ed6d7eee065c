// The original AFWENO5 interpolation: characteristic space of the averaged state and the interpolated area vector at
// i+1/2; six-point stencil i-2..i+3, two interpolations: u^-_{i+1/2} and u^+_{i+1/2}.
// `at(offset, v)` is q_v at i + offset; m the area vector at i+1/2.
#include "weno5.h"
#include "roughness.h"

constexpr int interpolation_reach = 3;
constexpr int correction_reach = 3;
constexpr bool interpolates_nodes = false;
constexpr int weighted_nodes = 5;

template <class T, class At> HD Rough<T> interpolate(const At &at, const T *m, T *minus, T *plus) {
    constexpr int differences = 5;  // of six nodes
    T average[gas_variables], d[differences][gas_variables], c[differences][gas_variables];
    T left[gas_variables], right[gas_variables], q[gas_variables], p[gas_variables];
    T ends[gas_variables], others[gas_variables];
    for (int v = 0; v < gas_variables; ++v) {
        T a = at(-2, v), b = at(-1, v), e = at(2, v), g = at(3, v);
        q[v] = at(0, v), p[v] = at(1, v);
        average[v] = real(0.5) * (q[v] + p[v]);
        d[0][v] = b - a, d[1][v] = q[v] - b, d[2][v] = p[v] - q[v], d[3][v] = e - p[v], d[4][v] = g - e;
    }
    Space<T> space = Space<T>::at(average, m);
    for (int k = 0; k < differences; ++k) space.project(d[k], c[k]);
    for (int v = 0; v < gas_variables; ++v) {
        right[v] = interpolate_one(c[0][v], c[1][v], c[2][v], c[3][v], ends[v]);
        left[v] = interpolate_one(-c[4][v], -c[3][v], -c[2][v], -c[1][v], others[v]);
        ends[v] = ends[v] + others[v];
    }
    space.restore(right, minus);
    space.restore(left, plus);
    for (int v = 0; v < gas_variables; ++v) minus[v] = q[v] + minus[v], plus[v] = p[v] + plus[v];
    keep_admissible(minus, q);
    keep_admissible(plus, p);
    return rough_where(space.density2(ends), average[0]);
}
