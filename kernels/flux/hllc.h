// HLLC (Toro, Spruce & Speares 1994) with the wave speeds of Einfeldt/Batten: S_L = min(un_l - a_l, un~ - a~),
// S_R = max(un_r + a_r, un~ + a~), Roe averages marked by ~.
template <class T> HD void star_flux(const T *q, const Primitive<T> &s, const T *n, T un, T wave, T contact, T *f) {
    // F* = F + S (q* - q)
    flux_of(q, s, n, f);
    T factor = s.rho * (wave - un) / (wave - contact);
    T pressure = contact + s.p / (s.rho * (wave - un));
    f[0] = f[0] + wave * (factor - q[0]);
    f[1] = f[1] + wave * (factor * (s.u + (contact - un) * n[0]) - q[1]);
    f[2] = f[2] + wave * (factor * (s.v + (contact - un) * n[1]) - q[2]);
    f[3] = f[3] + wave * (factor * (s.w + (contact - un) * n[2]) - q[3]);
    f[4] = f[4] + wave * (factor * (q[4] / s.rho + (contact - un) * pressure) - q[4]);
}

template <class T> HD void numerical_flux(const T *ql, const T *qr, const T *m, T *f) {
    T area = square_root(m[0] * m[0] + m[1] * m[1] + m[2] * m[2]), inverse_area = real(1) / area;
    T n[3] = {m[0] * inverse_area, m[1] * inverse_area, m[2] * inverse_area};
    Primitive<T> l = primitive(ql), r = primitive(qr);
    T ul = n[0] * l.u + n[1] * l.v + n[2] * l.w, ur = n[0] * r.u + n[1] * r.v + n[2] * r.w;
    T al = square_root(gas_gamma * l.p / l.rho), ar = square_root(gas_gamma * r.p / r.rho);
    T rl = square_root(l.rho), rr = square_root(r.rho), weight = real(1) / (rl + rr);
    T u = (rl * l.u + rr * r.u) * weight, v = (rl * l.v + rr * r.v) * weight, w = (rl * l.w + rr * r.w) * weight;
    T enthalpy = (rl * (ql[4] + l.p) / l.rho + rr * (qr[4] + r.p) / r.rho) * weight;
    T un = n[0] * u + n[1] * v + n[2] * w;
    // Roe's a^2 can be negative only for inadmissible states; the floor keeps the lane finite
    T a = square_root(larger(gas_gamma_1 * (enthalpy - real(0.5) * (u * u + v * v + w * w)), real(0.01) * al * al));
    T wave_l = smaller(ul - al, un - a), wave_r = larger(ur + ar, un + a);
    T flow_l = l.rho * (wave_l - ul), flow_r = r.rho * (wave_r - ur);
    T contact = (r.p - l.p + flow_l * ul - flow_r * ur) / (flow_l - flow_r);
    T fl[gas_variables], fr[gas_variables], sl[gas_variables], sr[gas_variables];
    flux_of(ql, l, n, fl);
    flux_of(qr, r, n, fr);
    star_flux(ql, l, n, ul, wave_l, contact, sl);
    star_flux(qr, r, n, ur, wave_r, contact, sr);
    T zero = T(real(0));
    for (int k = 0; k < gas_variables; ++k)
        f[k] = area * select(wave_l >= zero, fl[k],
                             select(wave_r <= zero, fr[k], select(contact >= zero, sl[k], sr[k])));
}
