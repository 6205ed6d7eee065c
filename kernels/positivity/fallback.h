// Keeps strong shocks alive and leaves a uniform flow untouched:
// an interpolated state without positive density and pressure falls back to its node (first order), and the linear
// correction of eq. (19), which reaches across a jump, is scaled in flux form by 1/(1 + (s/0.2)^4) with s the largest
// |second difference of p| / (p_- + 2p + p_+) over i-1..i+2.
template <class T> HD void keep_admissible(T *u, const T *q) {
    T internal2 = real(2) * u[0] * u[4] - (u[1] * u[1] + u[2] * u[2] + u[3] * u[3]);
    auto admissible = both(u[0] > T(real(0)), internal2 > T(real(0)));
    for (int v = 0; v < 5; ++v) u[v] = select(admissible, u[v], q[v]);
}

template <class T> HD T jump_sensor(T before, T at, T after) {
    T sum = before + after;
    return absolute(sum - real(2) * at) / (sum + real(2) * at);
}

template <class T> HD T correction_scale(T sensor) {
    T x = sensor * real(5);
    x = x * x;
    return real(1) / (real(1) + x * x);
}
