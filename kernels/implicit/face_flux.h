// The flux through the face between two nodes, of which the implicit integrator takes derivatives: the chosen numerical flux
// between the states of the nodes, the thin-layer viscous flux, and what a model of turbulence and scalars add.
#pragma once
#include "dual.h"
#include "small_matrices.h"
#include "passive_scalars.h"
#include "transported.h"

// The flux through the face between two nodes with states ql and qr, as it enters the rates: `m` its area vector,
// `jacobian` that of the face (1/volume), reals or packs of them.
// Thin layer: derivatives across the face alone (T. H. Pulliam, von Karman Institute LS 1986-02, section 3), so that the
// flux of momentum is mu J (|m|^2 du + m (m.du)/3), of energy u times it and mu/((gamma - 1) Pr) J |m|^2 dT. With a model of
// turbulence mu and mu/Pr have its share; one that transports nothing has given `eddies`, over mu_ref, and they do not change,
// nor does what the node of one that transports variables is `known` to have.
template <class T, class A>
HD void viscous_flux_between(const T *ql, const T *qr, const A *m, A jacobian, real inverse_reynolds, A eddies, T *f,
                             const TransportedConstants<A> &known = TransportedConstants<A>()) {
#ifdef HX_VISCOUS
    const Primitive<T> l = primitive(ql), r = primitive(qr);
    const T tl = gas_gamma * l.p * l.volume, tr = gas_gamma * r.p * r.volume;
    (void)known;
    const T scale = T(inverse_reynolds * jacobian), laminar = viscosity(real(0.5) * (tl + tr)) * scale;
#if HX_TRANSPORTED
    const T eddy = transported_face(ql, qr, viscosity(tl), viscosity(tr), m, scale, known, f), mu = laminar + eddy;
    const T heat = real(1.0 / HX_PRANDTL) * laminar + real(1.0 / HX_EDDY_PRANDTL) * eddy;
    (void)eddies;
#elif HX_EDDY_FIELDS
    const T eddy = eddies * scale, mu = laminar + eddy;
    const T heat = real(1.0 / HX_PRANDTL) * laminar + real(1.0 / HX_EDDY_PRANDTL) * eddy;
#else
    const T eddy = T(real(0)), mu = laminar, heat = real(1.0 / HX_PRANDTL) * laminar;
    (void)eddies;
#endif
    const A area2 = m[0] * m[0] + m[1] * m[1] + m[2] * m[2];
    spread_scalars(ql, qr, area2 * laminar, area2 * eddy, f);
    const T jump[3] = {r.u - l.u, r.v - l.v, r.w - l.w}, mean[3] = {l.u + r.u, l.v + r.v, l.w + r.w};
    const T across = m[0] * jump[0] + m[1] * jump[1] + m[2] * jump[2];
    T work = T(real(0));
    for (int c = 0; c < 3; ++c) {
        const T stress = mu * (area2 * jump[c] + real(1.0 / 3.0) * m[c] * across);
        f[c + 1] = f[c + 1] - stress;
        work = work + real(0.5) * mean[c] * stress;
    }
    f[4] = f[4] - work - real(1.0 / (HX_GAMMA - 1.0)) * area2 * heat * (tr - tl);
#else
    (void)ql, (void)qr, (void)m, (void)jacobian, (void)inverse_reynolds, (void)eddies, (void)f, (void)known;
#endif
}
// f = f + the derivative of this flux along a change of one state, the left one if `of_left`, of a gas without a model that
// transports variables. still: the other state
template <bool of_left, class T>
HD void add_viscous_change(const StateChange<T> &c, const Primitive<T> &still, const T *m, T jacobian, real inverse_reynolds,
                           T eddies, T *f) {
#ifdef HX_VISCOUS
    const real sign = of_left ? -1 : 1;
    const T other = gas_gamma * still.p * still.volume, scale = inverse_reynolds * jacobian;
    dual<1, T> temperature(real(0.5) * (c.square + other));
    temperature.slope[0] = real(0.5) * c.of_square;
    const dual<1, T> mu = viscosity(temperature);
    const T laminar = mu.value * scale, area2 = m[0] * m[0] + m[1] * m[1] + m[2] * m[2];
    const slope_number<T> of_mu = mu.slope[0] * scale;
#if HX_EDDY_FIELDS
    const T eddy = eddies * scale, whole = laminar + eddy;
    const T heat = real(1.0 / HX_PRANDTL) * laminar + real(1.0 / HX_EDDY_PRANDTL) * eddy;
#else
    const T whole = laminar, heat = real(1.0 / HX_PRANDTL) * laminar;
    (void)eddies;
#endif
    const T jump[3] = {c.state.u - still.u, c.state.v - still.v, c.state.w - still.w}, change[3] = {c.u, c.v, c.w};
    const T mean[3] = {c.state.u + still.u, c.state.v + still.v, c.state.w + still.w};
    const T across = real(1.0 / 3.0) * (m[0] * jump[0] + m[1] * jump[1] + m[2] * jump[2]);
    const T turned = real(1.0 / 3.0) * (m[0] * change[0] + m[1] * change[1] + m[2] * change[2]);
    T work = T(real(0));
    for (int i = 0; i < 3; ++i) {
        const T strain = area2 * jump[i] + m[i] * across;
        const T of_stress = slope_number<T>(whole * (area2 * change[i] + m[i] * turned)) + of_mu * strain;
        f[i + 1] = f[i + 1] - sign * of_stress;
        work = work + mean[i] * of_stress + change[i] * (whole * strain);
    }
    const T flow = slope_number<T>(heat * c.of_square) + real(1.0 / HX_PRANDTL) * of_mu * (c.square - other);
    f[4] = f[4] - sign * (real(0.5) * work + real(1.0 / (HX_GAMMA - 1.0)) * area2 * flow);
#else
    (void)c, (void)still, (void)m, (void)jacobian, (void)inverse_reynolds, (void)eddies, (void)f;
#endif
}
template <class T, class A>
HD void face_flux(const T *ql, const T *qr, const A *m, A jacobian, real inverse_reynolds, A eddies, T *f,
                  const TransportedConstants<A> &known = TransportedConstants<A>()) {
    const T area[3] = {T(m[0]), T(m[1]), T(m[2])};
    numerical_flux(ql, qr, area, f);
    carry_scalars(ql, qr, f);
    viscous_flux_between(ql, qr, m, jacobian, inverse_reynolds, eddies, f, known);
}
