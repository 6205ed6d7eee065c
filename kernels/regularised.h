// The numerical flux of the regularised inviscid terms (information geometric regularisation: Cao & Schaefer,
// arXiv 2308.14127; Wilfong et al., arXiv 2505.07392): the physical flux of the mean of two linearly interpolated states,
// with the entropic pressure Sigma (terms/entropic_pressure.h) added to that of the gas, and a local Lax-Friedrichs
// dissipation with the speed of the mean of both nodes, which is admissible whatever the interpolation does:
//     F((ql + qr)/2, p + Sigma).m - (|U| + a|m|)/2 (qr - ql)
// fields(offset, 0): Sigma at nodes, interpolated with the weights of the metrics. Its part of the flux has no correction:
// Sigma is of the order of the square of the spacing. q(offset, v): states of nodes.
constexpr int flux_fields = 1;

template <class T, class At> HD T interpolate_metric(const At &at);  // half_point.h

template <class T, class Fields, class Q>
HD void numerical_flux(const T *ql, const T *qr, const T *m, const Fields &fields, const Q &q, T *f) {
    T mean[gas_variables];
    for (int v = 0; v < gas_variables; ++v) mean[v] = real(0.5) * (q(0, v) + q(1, v));
    Primitive<T> s = primitive(mean);
    const T square = m[0] * m[0] + m[1] * m[1] + m[2] * m[2];
    const T speed = absolute(m[0] * s.u + m[1] * s.v + m[2] * s.w) + square_root(gas_gamma * s.p * s.volume * square);
    for (int v = 0; v < gas_variables; ++v) mean[v] = real(0.5) * (ql[v] + qr[v]);
    s = primitive(mean);
    s.p = s.p + interpolate_metric<T>([&](int offset) { return fields(offset, 0); });
    flux_of(mean, s, m, f);
    for (int v = 0; v < gas_variables; ++v) f[v] = f[v] - real(0.5) * speed * (qr[v] - ql[v]);
}
