// Common parts of the nonlinear weights. A header of weights/ gives
//  template <int stencils, int differences, class T>
//  HD void nonlinear_weights(const T *d, const T *beta3, T tau3, T *a)
// d: the differences of neighbours along the stencil of the interpolation; beta3: three times the smoothness of each
// small stencil; tau3: three times the global smoothness tau. a[k] returns the ratio of the weight of small stencil k
// to its ideal weight, up to a common factor.

// Sets a[k] to the product of all x except x[k], the numerators of quotients 1/x[k] over a common denominator.
template <int count, class T> HD void products_of_others(const T *x, T *a) {
    static_assert(count == 3 || count == 4, "written for these");
    if constexpr (count == 3) {
        a[0] = x[1] * x[2], a[1] = x[0] * x[2], a[2] = x[0] * x[1];
    } else {
        const T low = x[0] * x[1], high = x[2] * x[3];
        a[0] = x[1] * high, a[1] = x[0] * high, a[2] = low * x[3], a[3] = low * x[2];
    }
}

template <int count, class T> HD T largest_of(const T *x) {
    T found = x[0];
    for (int k = 1; k < count; ++k) found = larger(found, x[k]);
    return found;
}

// Adds scheme.epsilon to the smoothness: x = beta3 + 3 epsilon.
template <int count, class T> HD void smoothness_above_zero(const T *beta3, T *x) {
    constexpr real epsilon3 = real(3.0 * HX_EPSILON);
    for (int k = 0; k < count; ++k) x[k] = beta3[k] + epsilon3;
}

template <int count, class T> HD T sum_of_squares(const T *d) {
    T sum = d[0] * d[0];
    for (int k = 1; k < count; ++k) sum = sum + d[k] * d[k];
    return sum;
}
