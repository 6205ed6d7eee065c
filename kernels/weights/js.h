// Jiang-Shu weights, eq. (15): w_k ~ ideal_k / (epsilon + beta_k)^2, epsilon = 1e-6 as the paper.
// Receives 3 beta_k and returns a_k with a_k ~ 1/(epsilon + beta_k)^2 up to a common factor: the three quotients are
// brought over one denominator so that only the normalisation divides.
template <class T> HD void nonlinear_weights(const T *beta3, T *a) {
    constexpr real epsilon3 = real(3.0 * HX_EPSILON);
    T x0 = beta3[0] + epsilon3, x1 = beta3[1] + epsilon3, x2 = beta3[2] + epsilon3;
#ifdef HX_FP32  // products of four would overflow or underflow a float
    T scale = reciprocal(larger(x0, larger(x1, x2)));
    x0 = x0 * scale, x1 = x1 * scale, x2 = x2 * scale;
#endif
    a[0] = x1 * x2;
    a[1] = x0 * x2;
    a[2] = x0 * x1;
    a[0] = a[0] * a[0];
    a[1] = a[1] * a[1];
    a[2] = a[2] * a[2];
}
