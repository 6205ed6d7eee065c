// Local Lax-Friedrichs (Rusanov): (F(ql) + F(qr))/2 - max(|U| + a|m|)/2 (qr - ql). It is a numerical flux of its own,
// and the low-order flux towards which the limiter of positivity/limiter.h draws.
template <class T> HD void lax_friedrichs_flux(const T *ql, const T *qr, const T *m, T *f) {
    T area = square_root(m[0] * m[0] + m[1] * m[1] + m[2] * m[2]), g[gas_variables];
    Primitive<T> l = primitive(ql), r = primitive(qr);
    flux_of(ql, l, m, f);
    flux_of(qr, r, m, g);
    T ul = m[0] * l.u + m[1] * l.v + m[2] * l.w, ur = m[0] * r.u + m[1] * r.v + m[2] * r.w;
    T al = square_root(gas_gamma * l.p / l.rho) * area, ar = square_root(gas_gamma * r.p / r.rho) * area;
    T speed = larger(absolute(ul) + al, absolute(ur) + ar);
    for (int v = 0; v < gas_variables; ++v) f[v] = real(0.5) * (f[v] + g[v] - speed * (qr[v] - ql[v]));
}
