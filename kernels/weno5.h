// One WENO interpolation from the four differences d1..d4 = c_{i-1}-c_{i-2}, ..., c_{i+2}-c_{i+1} of a field around
// node i, eqs (13) to (17) with the sub-stencils paired by position (A: i-2..i, B: i-1..i+1, C: i..i+2).
// The increments over c_i keep a uniform field exact. The betas integrate over [i-1/2, i+1/2], so one set serves
// both sides: `right` = c^-_{i+1/2} - c_i (ideal weights 1/16, 5/8, 5/16) and its mirror image
// `left` = c^+_{i-1/2} - c_i (5/16, 5/8, 1/16).
template <class T> HD void smoothness3(T d1, T d2, T d3, T d4, T *beta3) {
    beta3[0] = d1 * (real(4) * d1 - real(11) * d2) + real(10) * d2 * d2;
    beta3[1] = d2 * (real(4) * d2 - real(5) * d3) + real(4) * d3 * d3;
    beta3[2] = d4 * (real(4) * d4 - real(11) * d3) + real(10) * d3 * d3;
}

// The ratios a of the weights to the ideal weights, up to a common factor
template <class T> HD void weights_of_five(T d1, T d2, T d3, T d4, T *a, T &ends) {
    const T d[4] = {d1, d2, d3, d4};
    T beta3[3];
    smoothness3(d1, d2, d3, d4, beta3);
    ends = beta3[0] + beta3[2];
    nonlinear_weights<3, 4>(d, beta3, absolute(beta3[0] - beta3[2]), a);
}

// left, right: increments over c_i. ends: the sum of the outer two 3 beta_k, between 0.73 and 13.3 times the sum of the
// squares of the differences.
template <class T> HD void interpolate_both(T d1, T d2, T d3, T d4, T &left, T &right, T &ends) {
    T a[3];
    weights_of_five(d1, d2, d3, d4, a, ends);
    // interpolants times 8, ideal weights times 16
    T rA = real(7) * d2 - real(3) * d1, rB = d2 + real(3) * d3, rC = real(5) * d3 - d4;
    T lA = d1 - real(5) * d2, lB = -(real(3) * d2 + d3), lC = real(3) * d4 - real(7) * d3;
    T a1 = real(10) * a[1], a0 = real(5) * a[0], a2 = real(5) * a[2];
    T sum_right = a[0] + a1 + a2, sum_left = a0 + a1 + a[2];
    T inverse = real(0.125) * reciprocal(sum_right * sum_left);
    right = (a[0] * rA + a1 * rB + a2 * rC) * (sum_left * inverse);
    left = (a0 * lA + a1 * lB + a[2] * lC) * (sum_right * inverse);
}

// The left-biased value alone, for the original scheme: c^-_{i+1/2} - c_i. The right-biased value at the same half
// point is the mirror image: call this function with the differences reversed and negated.
template <class T> HD T interpolate_one(T d1, T d2, T d3, T d4, T &ends) {
    T a[3];
    weights_of_five(d1, d2, d3, d4, a, ends);
    T rA = real(7) * d2 - real(3) * d1, rB = d2 + real(3) * d3, rC = real(5) * d3 - d4;
    T a1 = real(10) * a[1], a2 = real(5) * a[2];
    return real(0.125) * (a[0] * rA + a1 * rB + a2 * rC) / (a[0] + a1 + a2);
}
