// Roe's linearisation (1981): the means of two states, and the dissipation of its waves along the unit normal n with
// Harten's entropy fix on the acoustic fields: |lambda| < d is replaced by (lambda^2 + d^2)/(2d), d = 0.1 (|un~| + a~).
// raised(|lambda|): the absolute eigenvalue that the flux uses instead.
template <class T> struct RoeMeans {
    T rho, u, v, w, enthalpy, a2, a;
};

template <class T>
HD RoeMeans<T> roe_means(const T *ql, const T *qr, const Primitive<T> &l, const Primitive<T> &r) {
    T rl = square_root(l.rho), rr = square_root(r.rho), weight = real(1) / (rl + rr);
    T rho = rl * rr;
    T u = (rl * l.u + rr * r.u) * weight, v = (rl * l.v + rr * r.v) * weight, w = (rl * l.w + rr * r.w) * weight;
    T enthalpy = (rl * (ql[4] + l.p) / l.rho + rr * (qr[4] + r.p) / r.rho) * weight;
    T kinetic = real(0.5) * (u * u + v * v + w * w);
    T floor = real(0.01) * gas_gamma * smaller(l.p / l.rho, r.p / r.rho);
    T a2 = larger(gas_gamma_1 * (enthalpy - kinetic), floor);
    return {rho, u, v, w, enthalpy, a2, square_root(a2)};
}

// g: the sum over the waves along n of |lambda| times the part of the wave in qr - ql.
template <class T, class Raised>
HD void roe_dissipation(const RoeMeans<T> &s, const Primitive<T> &l, const Primitive<T> &r, const T *n,
                        const Raised &raised, T *g) {
    const T u = s.u, v = s.v, w = s.w, enthalpy = s.enthalpy, a = s.a, rho = s.rho;
    T kinetic = real(0.5) * (u * u + v * v + w * w), un = n[0] * u + n[1] * v + n[2] * w;
    T du = r.u - l.u, dv = r.v - l.v, dw = r.w - l.w, dp = r.p - l.p, drho = r.rho - l.rho;
    T dun = n[0] * du + n[1] * dv + n[2] * dw;
    T half = real(0.5) / s.a2;
    T minus = (dp - rho * a * dun) * half, plus = (dp + rho * a * dun) * half, entropy = drho - dp / s.a2;
    T d = real(0.1) * (absolute(un) + a), inverse = real(0.5) / d;
    T lm = absolute(un - a), lp = absolute(un + a), l0 = absolute(un);
    lm = select(lm < d, (lm * lm + d * d) * inverse, lm);
    lp = select(lp < d, (lp * lp + d * d) * inverse, lp);
    lm = raised(lm), lp = raised(lp), l0 = raised(l0);
    minus = minus * lm, plus = plus * lp, entropy = entropy * l0;
    T shear = rho * l0;
    g[0] = minus + plus + entropy;
    g[1] = minus * (u - a * n[0]) + plus * (u + a * n[0]) + entropy * u + shear * (du - dun * n[0]);
    g[2] = minus * (v - a * n[1]) + plus * (v + a * n[1]) + entropy * v + shear * (dv - dun * n[1]);
    g[3] = minus * (w - a * n[2]) + plus * (w + a * n[2]) + entropy * w + shear * (dw - dun * n[2]);
    g[4] = minus * (enthalpy - a * un) + plus * (enthalpy + a * un) + entropy * kinetic
           + shear * (u * du + v * dv + w * dw - un * dun);
}

// Roe's flux through the area vector m.
template <class T, class Raised> HD void roe_flux(const T *ql, const T *qr, const T *m, const Raised &raised, T *f) {
    T area = square_root(m[0] * m[0] + m[1] * m[1] + m[2] * m[2] + no_area), inverse_area = real(1) / area;
    T n[3] = {m[0] * inverse_area, m[1] * inverse_area, m[2] * inverse_area};
    Primitive<T> l = primitive(ql), r = primitive(qr);
    T g[gas_variables], fl[gas_variables], fr[gas_variables];
    roe_dissipation(roe_means(ql, qr, l, r), l, r, n, raised, g);
    flux_of(ql, l, m, fl);
    flux_of(qr, r, m, fr);
    for (int k = 0; k < gas_variables; ++k) f[k] = real(0.5) * (fl[k] + fr[k] - area * g[k]);
}
