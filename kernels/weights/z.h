// WENO-Z weights (Borges, Carmona, Costa & Don, J. Comput. Phys. 227, 2008):
// w_k ~ ideal_k (1 + (tau/(epsilon + beta_k))^2), tau = |beta_0 - beta_2|.
// Receives 3 beta_k; the quotients are brought over one denominator. epsilon only keeps a uniform field from 0/0.
template <class T> HD void nonlinear_weights(const T *beta3, T *a) {
    constexpr real epsilon3 = real(3.0 * HX_EPSILON);
    T tau = absolute(beta3[0] - beta3[2]);
    T x0 = beta3[0] + epsilon3, x1 = beta3[1] + epsilon3, x2 = beta3[2] + epsilon3;
    T scale = real(1) / larger(x0, larger(x1, x2));  // sixth powers follow
    x0 = x0 * scale, x1 = x1 * scale, x2 = x2 * scale, tau = tau * scale;
    T y0 = x0 * x0, y1 = x1 * x1, y2 = x2 * x2, t2 = tau * tau;
    a[0] = (y0 + t2) * (y1 * y2);
    a[1] = (y1 + t2) * (y0 * y2);
    a[2] = (y2 + t2) * (y0 * y1);
}
