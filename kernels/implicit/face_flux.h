// The flux through the face between two nodes that the implicit integrator differentiates: the chosen numerical flux
// between the states of the nodes, the thin-layer viscous flux, and the fluxes of a turbulence model and of scalars.
#pragma once
#include "dual.h"
#include "small_matrices.h"
#include "passive_scalars.h"
#include "transported.h"

// Subtracts from the flux f the viscous flux through the face between two nodes with states ql and qr. m, `jacobian`:
// area vector and Jacobian (1/volume) of the face, reals or packs.
// Thin layer: only derivatives across the face (T. H. Pulliam, von Karman Institute LS 1986-02, section 3). The flux of
// momentum is mu J (|m|^2 du + m (m.du)/3), that of energy u times it and mu/((gamma - 1) Pr) J |m|^2 dT. A turbulence
// model adds to mu and mu/Pr. A model without transported variables gives `eddies`, over mu_ref, which are constants.
// For a model with transported variables `known` holds the quantities of the node that are constants.
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
// Adds the derivative of the viscous flux along a change of one state, the left one if `of_left`, for all models
// without transported variables. still: the other state. The derivative with constant viscosity is added to `change`;
// its momentum and energy do not depend on `still`. The part by the change of the viscosity is added to f.
template <bool of_left, class T>
HD void add_viscous_change(const StateChange<T> &c, const T *still, const T *m, T jacobian, real inverse_reynolds, T eddies,
                           FluxChange<T> &change, T *f) {
#ifdef HX_VISCOUS
    const Primitive<T> s = c.state, o = primitive(still);
    const T scale = inverse_reynolds * jacobian, area2 = m[0] * m[0] + m[1] * m[1] + m[2] * m[2];
    const T heated = c.square - gas_gamma * o.p * o.volume;
    dual<1, T> temperature(c.square - real(0.5) * heated);
    temperature.slope[0] = real(0.5) * c.of_square;
    const dual<1, T> laminar = viscosity(temperature) * scale;
#if HX_EDDY_FIELDS
    const T eddy = eddies * scale, mu = laminar.value + eddy;
    const T heat = real(1.0 / HX_PRANDTL) * laminar.value + real(1.0 / HX_EDDY_PRANDTL) * eddy;
#else
    const T mu = laminar.value, heat = real(1.0 / HX_PRANDTL) * mu;
    (void)eddies;
#endif
    const real sign = of_left ? 1 : -1;
    change.along_change = change.along_change + sign * (area2 * mu);
    change.along_area = change.along_area + sign * real(1.0 / 3.0) * mu * (m[0] * c.u + m[1] * c.v + m[2] * c.w);
    change.energy = change.energy + sign * real(1.0 / (HX_GAMMA - 1.0)) * area2 * (heat * c.of_square);
    if (laminar.slope[0].none) return;
    // jump: the changed state minus `still`
    const T of_mu = laminar.slope[0].number, jump[3] = {s.u - o.u, s.v - o.v, s.w - o.w};
    const T across = real(1.0 / 3.0) * (m[0] * jump[0] + m[1] * jump[1] + m[2] * jump[2]), mean[3] = {s.u + o.u, s.v + o.v, s.w + o.w};
    for (int n = 0; n < 3; ++n) {
        const T stress = sign * of_mu * (area2 * jump[n] + m[n] * across);
        f[n + 1] = f[n + 1] + stress;
        f[4] = f[4] + real(0.5) * mean[n] * stress;
    }
    f[4] = f[4] + sign * real(1.0 / (HX_PRANDTL * (HX_GAMMA - 1.0))) * area2 * of_mu * heated;
#else
    (void)c, (void)still, (void)m, (void)jacobian, (void)inverse_reynolds, (void)eddies, (void)change, (void)f;
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
