// WENO-ZA weights (Liu, Shen, Zeng & Yu, Int. J. Numer. Methods Fluids 87, 2018):
// w_k ~ ideal_k (1 + A tau/(epsilon + beta_k)). With D1, D2 the first and second derivatives at the node of the two
// outer interpolants, beta = D1^2 + 13/12 D2^2,
//   tau = (|D1_0| - |D1_2|)^2 + 13/12 (|D2_0| - |D2_2|)^2,    A = tau/(epsilon + beta_0 + beta_2 - tau),
// so that the added part is proportional to tau^2 where the flow is smooth, and A is large at a jump.
// The quotients get one common denominator.
#include "weighting.h"

template <int stencils, int differences, class T> HD void nonlinear_weights(const T *d, const T *beta3, T, T *a) {
    static_assert(stencils == 3, "written for five nodes");
    // three times the tau above; the constants include the factors of D1 and D2
    const T first = absolute(real(3) * d[1] - d[0]) - absolute(real(3) * d[2] - d[3]);
    const T second = absolute(d[1] - d[0]) - absolute(d[3] - d[2]);
    T tau = real(0.75) * first * first + real(3.25) * second * second;
    T x[stencils];
    smoothness_above_zero<stencils>(beta3, x);
    const T scale = reciprocal(largest_of<stencils>(x));  // without it, fourth powers of x could overflow
    for (int k = 0; k < stencils; ++k) x[k] = x[k] * scale;
    tau = tau * scale;
    const T rest = x[0] + x[2] - tau, t2 = tau * tau;
    products_of_others<stencils>(x, a);
    for (int k = 0; k < stencils; ++k) a[k] = (x[k] * rest + t2) * a[k];
}
