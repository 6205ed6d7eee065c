// One WENO interpolation of seven nodes from the six differences d[n] = c_{i-2+n} - c_{i-3+n} of a field around node
// i: four cubic interpolants (of the nodes i-3..i, i-2..i+1, i-1..i+2, i..i+3), whose increments over c_i keep a
// uniform field exact. Their betas (Jiang & Shu, J. Comput. Phys. 126, 1996, of the cubics through nodes' values)
// integrate over [i-1/2, i+1/2], so one set serves both sides: `right` = c^-_{i+1/2} - c_i with the ideal weights (1,
// 21, 35, 7)/64, `left` = c^+_{i-1/2} - c_i with (7, 35, 21, 1)/64. tau = |beta_0 + 3 beta_1 - 3 beta_2 - beta_3|
// (Castro, Costa & Don, J. Comput. Phys. 230, 2011).
#include "weighting.h"

// Three times the smoothness of the cubic through four nodes, a quadratic form of its three differences with
// coefficients over 960.
template <int aa, int ab, int ac, int bb, int bc, int cc, class T> HD T smoothness_of_cubic(T a, T b, T c) {
    const T of_a = a * (real(aa) * a + real(ab) * b + real(ac) * c), of_b = b * (real(bb) * b + real(bc) * c);
    return (of_a + of_b + real(cc) * c * c) * real(1.0 / 960);
}

template <class T> HD void smoothness4(const T *d, T *beta3) {
    beta3[0] = smoothness_of_cubic<6649, -33916, 22778, 45076, -63436, 25729>(d[0], d[1], d[2]);
    beta3[1] = smoothness_of_cubic<3169, -13036, 5978, 17236, -17116, 6649>(d[1], d[2], d[3]);
    beta3[2] = smoothness_of_cubic<3169, -13036, 5978, 17236, -17116, 6649>(d[4], d[3], d[2]);
    beta3[3] = smoothness_of_cubic<6649, -33916, 22778, 45076, -63436, 25729>(d[5], d[4], d[3]);
}

// The ratios a of the weights to the ideal weights, up to a common factor.
template <class T> HD void weights_of_seven(const T *d, T *a) {
    T beta3[4];
    smoothness4(d, beta3);
    nonlinear_weights<4, 6>(d, beta3, absolute(beta3[0] - beta3[3] + real(3) * (beta3[1] - beta3[2])), a);
}

// The four interpolants at i+1/2 minus c_i, times 16.
template <class T> HD void interpolants_of_seven(const T *d, T *right) {
    right[0] = real(5) * d[0] - real(16) * d[1] + real(19) * d[2];
    right[1] = real(4) * d[2] - d[1] + real(5) * d[3];
    right[2] = d[2] + real(8) * d[3] - d[4];
    right[3] = real(11) * d[3] - real(4) * d[4] + d[5];
}

template <class T> HD void interpolate_both(const T *d, T &left, T &right) {
    T a[4], c[4];
    weights_of_seven(d, a);
    interpolants_of_seven(d, c);
    // ideal weights times 64
    const T left0 = real(4) * d[1] - d[0] - real(11) * d[2], left1 = d[1] - real(8) * d[2] - d[3];
    const T left2 = d[4] - real(4) * d[3] - real(5) * d[2], left3 = real(16) * d[4] - real(5) * d[5] - real(19) * d[3];
    const T inner0 = real(35) * a[1], outer0 = real(21) * a[1], inner1 = real(35) * a[2], outer1 = real(21) * a[2];
    const T first = real(7) * a[0], last = real(7) * a[3];
    const T sum_right = a[0] + outer0 + inner1 + last, sum_left = first + inner0 + outer1 + a[3];
    const T inverse = real(1.0 / 16) * reciprocal(sum_right * sum_left);
    right = (a[0] * c[0] + outer0 * c[1] + inner1 * c[2] + last * c[3]) * (sum_left * inverse);
    left = (first * left0 + inner0 * left1 + outer1 * left2 + a[3] * left3) * (sum_right * inverse);
}

// The value `right` of interpolate_both alone.
template <class T> HD T interpolate_one_of_seven(const T *d) {
    T a[4], c[4];
    weights_of_seven(d, a);
    interpolants_of_seven(d, c);
    const T a1 = real(21) * a[1], a2 = real(35) * a[2], a3 = real(7) * a[3];
    return (a[0] * c[0] + a1 * c[1] + a2 * c[2] + a3 * c[3]) * real(1.0 / 16) * reciprocal(a[0] + a1 + a2 + a3);
}
