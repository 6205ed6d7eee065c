// HLLC-LM (Fleischmann, Adami & Adams, J. Comput. Phys. 423 (2020) 109762, eqs. (23) to (25)): HLLC in its centred form,
//   F = (F_l + F_r)/2 + (phi S_l (q*_l - q_l) + |S*| (q*_l - q*_r) + phi S_r (q*_r - q_r))/2,
// in which the outer waves are scaled by phi. phi rises from 0 to 1 with the larger of both normal Mach numbers, up to
// 0.1. Where a strong shock follows a grid line, hardly any gas passes the half points between neighbouring lines. The
// dissipation of the pressure there is not balanced and lets a carbuncle grow. The wave of the contact is not scaled,
// and phi is 1 in supersonic flow. phi is the cubic x (3 - x^2)/2 in place of sin(pi x/2), from which it differs by
// 0.02 at most.
#include "../hllc_states.h"

constexpr real slowest_whole_flux = real(0.1);

template <class T> HD void numerical_flux(const T *ql, const T *qr, const T *m, T *f) {
    const HllcWaves<T> s = hllc_waves(ql, qr, m);
    T fl[gas_variables], fr[gas_variables], left[gas_variables], right[gas_variables];
    flux_of(ql, s.l, s.n, fl);
    flux_of(qr, s.r, s.n, fr);
    star_change(ql, s.l, s.n, s.ul, s.wave_l, s.contact, left);
    star_change(qr, s.r, s.n, s.ur, s.wave_r, s.contact, right);
    const T mach = larger(absolute(s.ul) / s.al, absolute(s.ur) / s.ar);
    const T x = smaller(mach * (real(1) / slowest_whole_flux), T(real(1)));
    const T phi = x * (real(1.5) - real(0.5) * x * x);
    const T contact = absolute(s.contact), zero = T(real(0));
    for (int k = 0; k < gas_variables; ++k) {
        const T outer = phi * (s.wave_l * left[k] + s.wave_r * right[k]);
        const T inner = contact * ((ql[k] + left[k]) - (qr[k] + right[k]));
        const T between = real(0.5) * (fl[k] + fr[k] + outer + inner);
        f[k] = s.area * select(s.wave_l >= zero, fl[k], select(s.wave_r <= zero, fr[k], between));
    }
}
