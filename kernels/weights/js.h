// Jiang-Shu weights, eq. (15): w_k ~ ideal_k / (epsilon + beta_k)^2, epsilon = 1e-6 in the paper. The quotients
// get one common denominator, so that only the normalisation divides.
#include "weighting.h"

constexpr bool weighs_seven_nodes = true;

template <int stencils, int differences, class T> HD void nonlinear_weights(const T *, const T *beta3, T, T *a) {
    T x[stencils];
    smoothness_above_zero<stencils>(beta3, x);
#ifdef HX_FP32  // products of four and more would overflow or underflow a float
    const T scale = reciprocal(largest_of<stencils>(x));
    for (int k = 0; k < stencils; ++k) x[k] = x[k] * scale;
#endif
    products_of_others<stencils>(x, a);
    for (int k = 0; k < stencils; ++k) a[k] = a[k] * a[k];
}
