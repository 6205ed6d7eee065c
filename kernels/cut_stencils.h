// The selection of TENO (Fu, Hu & Adams, J. Comput. Phys. 305, 2016): with gamma_k = (1 + tau/(epsilon + beta_k))^6, a
// small stencil whose share gamma_k/sum(gamma) is less than the cut-off C_T contains a jump and is left out; the others
// keep their ideal weights. The quotients are computed with a common denominator. The stencil with the largest share is
// never left out, since C_T is less than the share of equal stencils.
#include "weighting.h"

// Sets a[k] to gamma_k over the largest gamma; returns the sum of a.
template <int stencils, class T> HD T shares_of_stencils(const T *beta3, T tau3, T *a) {
    T x[stencils], total = T(real(0));
    smoothness_above_zero<stencils>(beta3, x);
    products_of_others<stencils>(x, a);
    for (int k = 0; k < stencils; ++k) a[k] = (x[k] + tau3) * a[k];
    const T scale = reciprocal(largest_of<stencils>(a));  // keeps the sixth powers finite
    for (int k = 0; k < stencils; ++k) {
        const T share = a[k] * scale, cube = share * share * share;
        a[k] = cube * cube;
        total = total + a[k];
    }
    return total;
}

template <int stencils, class T> HD void cut_stencils(const T *beta3, T tau3, T cutoff, T *a) {
    const T least = cutoff * shares_of_stencils<stencils>(beta3, tau3, a);
    for (int k = 0; k < stencils; ++k) a[k] = select(a[k] < least, T(real(0)), T(real(1)));
}
