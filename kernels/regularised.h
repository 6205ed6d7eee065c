// The flux of the regularised inviscid terms (information geometric regularisation: Cao & Schaefer, arXiv 2308.14127;
// Wilfong et al., arXiv 2505.07392). ql and qr are the linear interpolations through five nodes with which AFWENO5 ends in
// smooth flow, Sigma the entropic pressure (terms/entropic_pressure.h), which is added to that of the gas:
//     F(q, p + Sigma).m - (|U| + a|m|)/2 (qr - ql),    q = (ql + qr)/2
// The speed a is that of |p|, so that a pressure below 0 between the two sides of a jump still has one. Sigma is
// interpolated with the weights of the metrics; its part of the flux has no correction: it is of the order of the square of
// the spacing. q(offset, v), fields(offset, 0): states and Sigma of nodes.
template <class T, class Q, class Fields> HD void regularised_flux(const Q &q, const T *m, const Fields &fields, T *f) {
    T mean[gas_variables], jump[gas_variables];
    for (int v = 0; v < gas_variables; ++v) {
        const T l = q(0, v), r = q(1, v), behind = q(-1, v), ahead = q(2, v), first = q(-2, v), last = q(3, v);
        mean[v] = (real(150) * (l + r) - real(25) * (behind + ahead) + real(3) * (first + last)) * real(1.0 / 256);
        jump[v] = (real(10) * (r - l) - real(5) * (ahead - behind) + (last - first)) * real(3.0 / 128);
    }
    Primitive<T> s = primitive(mean);
    const T through = m[0] * s.u + m[1] * s.v + m[2] * s.w, square = m[0] * m[0] + m[1] * m[1] + m[2] * m[2];
    const T half = real(0.5) * (absolute(through) + square_root(absolute(gas_gamma * s.p * s.volume) * square));
    s.p = s.p + symmetric_sum<150, -25, 3, 0, T>([&](int offset) { return fields(offset, 0); }) * real(1.0 / 256);
    flux_of(mean, s, m, f);
    for (int v = 0; v < gas_variables; ++v) f[v] = f[v] - half * jump[v];
}

#ifdef HX_LIMITER
// What is interpolated differs from both nodes by about four times as much as qr from ql: below this share of the density,
// of the internal energy and of the momentum that this makes, density and pressure stay positive.
constexpr real rough_share = real(0.02);

template <class T, class Q> HD auto is_rough_between(const Q &q) {
    T jump[gas_variables], inner[2];  // inner: density times internal energy
    for (int v = 0; v < gas_variables; ++v)
        jump[v] = (real(10) * (q(1, v) - q(0, v)) - real(5) * (q(2, v) - q(-1, v)) + (q(3, v) - q(-2, v))) * real(3.0 / 128);
    for (int s = 0; s < 2; ++s) {
        const T x = q(s, 1), y = q(s, 2), z = q(s, 3);
        inner[s] = q(s, 0) * q(s, 4) - real(0.5) * (x * x + y * y + z * z);
    }
    const T least = rough_share * smaller(inner[0], inner[1]), l = q(0, 0), r = q(1, 0);
    const T squares = jump[1] * jump[1] + jump[2] * jump[2] + jump[3] * jump[3];
    return either(either(absolute(jump[0]) > rough_share * smaller(l, r), absolute(jump[4]) * larger(l, r) > least),
                  squares > rough_share * least);
}
#endif
