// Common parts of the HLLC fluxes (Toro, Spruce & Speares 1994): the speeds of the outer waves by Einfeldt/Batten, S_L
// = min(un_l - a_l, un~ - a~), S_R = max(un_r + a_r, un~ + a~), with Roe averages marked by ~; the speed of the
// contact; and the states between the waves.
template <class T> struct HllcWaves {
    Primitive<T> l, r;
    T n[3], area, ul, ur, al, ar, wave_l, wave_r, contact;
};

template <class T> HD HllcWaves<T> hllc_waves(const T *ql, const T *qr, const T *m) {
    HllcWaves<T> s;
    s.area = square_root(m[0] * m[0] + m[1] * m[1] + m[2] * m[2] + no_area);
    const T inverse_area = real(1) / s.area;
    for (int d = 0; d < 3; ++d) s.n[d] = m[d] * inverse_area;
    const T *n = s.n;
    s.l = primitive(ql), s.r = primitive(qr);
    const Primitive<T> &l = s.l, &r = s.r;
    s.ul = n[0] * l.u + n[1] * l.v + n[2] * l.w, s.ur = n[0] * r.u + n[1] * r.v + n[2] * r.w;
    s.al = square_root(gas_gamma * l.p / l.rho), s.ar = square_root(gas_gamma * r.p / r.rho);
    T rl = square_root(l.rho), rr = square_root(r.rho), weight = real(1) / (rl + rr);
    T u = (rl * l.u + rr * r.u) * weight, v = (rl * l.v + rr * r.v) * weight, w = (rl * l.w + rr * r.w) * weight;
    T enthalpy = (rl * (ql[4] + l.p) / l.rho + rr * (qr[4] + r.p) / r.rho) * weight;
    T un = n[0] * u + n[1] * v + n[2] * w;
    // Roe's a^2 can be negative only for inadmissible states; the floor keeps the lane finite.
    T a = square_root(larger(gas_gamma_1 * (enthalpy - real(0.5) * (u * u + v * v + w * w)), real(0.01) * s.al * s.al));
    s.wave_l = smaller(s.ul - s.al, un - a), s.wave_r = larger(s.ur + s.ar, un + a);
    T flow_l = l.rho * (s.wave_l - s.ul), flow_r = r.rho * (s.wave_r - s.ur);
    s.contact = (r.p - l.p + flow_l * s.ul - flow_r * s.ur) / (flow_l - flow_r);
    return s;
}

// q* - q between a `wave` and the contact. q: the state on that side; un: its normal velocity.
template <class T>
HD void star_change(const T *q, const Primitive<T> &s, const T *n, T un, T wave, T contact, T *change) {
    T factor = s.rho * (wave - un) / (wave - contact);
    T pressure = contact + s.p / (s.rho * (wave - un));
    change[0] = factor - q[0];
    change[1] = factor * (s.u + (contact - un) * n[0]) - q[1];
    change[2] = factor * (s.v + (contact - un) * n[1]) - q[2];
    change[3] = factor * (s.w + (contact - un) * n[2]) - q[3];
    change[4] = factor * (q[4] / s.rho + (contact - un) * pressure) - q[4];
}
