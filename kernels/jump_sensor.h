// The size of a jump of the pressure, or of another variable, at a node, and the factor of high-order terms there. The
// linear correction of eq. (19) reaches across a jump. It is therefore scaled, in flux form, by 1/(1 + (s/0.2)^4), with
// s the largest |second difference of p| / (p_- + 2p + p_+) at the nodes of the correction but the outermost. Closures
// at faces are scaled by the same factor. With a header of positivity/ whose `scales_correction` is false the factor is
// 1 everywhere.
template <class T> HD T jump_sensor(T before, T at, T after) {
    if constexpr (!scales_correction) return T(real(0));
    T sum = before + after;
    return absolute(sum - real(2) * at) * reciprocal(sum + real(2) * at);
}

template <class T> HD T correction_scale(T sensor) {
    if constexpr (!scales_correction) return T(real(1));
    T x = sensor * real(5);
    x = x * x;
    return reciprocal(real(1) + x * x);
}

// The sensor of a passive scalar, whose values are of the order of 1.
template <class T> HD T scalar_sensor(T before, T at, T after) {
    return real(0.25) * absolute(before - real(2) * at + after);
}

// The sensor of a variable of a turbulence model, relative to its own values, since its scale depends on the units.
constexpr real least_transported = real(sizeof(real) == 8 ? 1e-100 : 1e-30);
template <class T> HD T transported_sensor(T before, T at, T after) {
    const T sum = absolute(before) + real(2) * absolute(at) + absolute(after);
    return absolute(before - real(2) * at + after) / (sum + least_transported);
}

// The sensor of a passive scalar, or of a transported variable of a turbulence model, at the node of s[0].
HD real jump_of_scalar(const real *s, int transported) {
    return transported ? transported_sensor(s[-1], s[0], s[1]) : scalar_sensor(s[-1], s[0], s[1]);
}
