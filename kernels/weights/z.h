// WENO-Z weights (Borges, Carmona, Costa & Don, J. Comput. Phys. 227, 2008):
// w_k ~ ideal_k (1 + (tau/(epsilon + beta_k))^2). The quotients get one common denominator. epsilon
// only prevents 0/0 in a uniform field.
#include "weighting.h"

constexpr bool weighs_seven_nodes = true;

template <int stencils, int differences, class T> HD void nonlinear_weights(const T *, const T *beta3, T tau3, T *a) {
    T x[stencils];
    smoothness_above_zero<stencils>(beta3, x);
    const T scale = real(1) / largest_of<stencils>(x);  // without it, sixth and eighth powers of x could overflow
    tau3 = tau3 * scale;
    const T t2 = tau3 * tau3;
    for (int k = 0; k < stencils; ++k) x[k] = x[k] * scale, x[k] = x[k] * x[k];
    products_of_others<stencils>(x, a);
    for (int k = 0; k < stencils; ++k) a[k] = (x[k] + t2) * a[k];
}
