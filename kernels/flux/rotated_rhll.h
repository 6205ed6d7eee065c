// The rotated flux of Nishikawa & Kitamura (J. Comput. Phys. 227 (2008) 2560), Rotated-RHLL: with n = a1 n1 + a2 n2,
//   F.n = a1 F_HLL(n1) + a2 F_Roe(n2),
// where n1 is the direction of the difference of both velocities, a1 >= 0, and n2 is perpendicular to n1 in their
// plane. At a shock n1 is normal to the shock, whatever the direction n of the half point is, and the HLL flux, which
// has no contact wave, damps disturbances that would grow to a carbuncle. At a shear layer along the half point a1 is
// 0; where the velocities are the same n2 is n: contacts and shear layers are those of Roe's flux. The velocities count
// as the same below 1e-6 of the sound speed.
#include "../roe_waves.h"

constexpr real same_velocity = real(1e-6);
constexpr real no_part = real(1e-30);  // n2 may be 0; with this addend the root of its square has a derivative there (implicit/dual.h)

template <class T> HD void numerical_flux(const T *ql, const T *qr, const T *m, T *f) {
    const T area = square_root(m[0] * m[0] + m[1] * m[1] + m[2] * m[2] + no_area), inverse_area = real(1) / area;
    const T n[3] = {m[0] * inverse_area, m[1] * inverse_area, m[2] * inverse_area};
    const Primitive<T> l = primitive(ql), r = primitive(qr);
    const RoeMeans<T> mean = roe_means(ql, qr, l, r);
    const T zero = T(real(0)), one = T(real(1));

    const T jump[3] = {r.u - l.u, r.v - l.v, r.w - l.w};
    const T square = jump[0] * jump[0] + jump[1] * jump[1] + jump[2] * jump[2];
    const auto differs = square > real(same_velocity * same_velocity) * mean.a2;
    const T along = n[0] * jump[0] + n[1] * jump[1] + n[2] * jump[2];
    const T over = select(differs, select(along < zero, -one, one) / square_root(select(differs, square, one)), zero);
    const T n1[3] = {jump[0] * over, jump[1] * over, jump[2] * over};  // 0 where the velocities are the same
    const T a1 = along * over;
    T n2[3] = {n[0] - a1 * n1[0], n[1] - a1 * n1[1], n[2] - a1 * n1[2]};
    const T a2 = square_root(n2[0] * n2[0] + n2[1] * n2[1] + n2[2] * n2[2] + no_part), inverse_a2 = real(1) / a2;
    for (int d = 0; d < 3; ++d) n2[d] = n2[d] * inverse_a2;

    T fl[gas_variables], fr[gas_variables], hl[gas_variables], hr[gas_variables], roe[gas_variables];
    const T ul = n1[0] * l.u + n1[1] * l.v + n1[2] * l.w, ur = n1[0] * r.u + n1[1] * r.v + n1[2] * r.w;
    const T un = n1[0] * mean.u + n1[1] * mean.v + n1[2] * mean.w;
    const T slow = smaller(smaller(ul - square_root(gas_gamma * l.p / l.rho), un - mean.a), zero);
    const T fast = larger(larger(ur + square_root(gas_gamma * r.p / r.rho), un + mean.a), zero);
    const T inverse = real(1) / (fast - slow), lean = (fast + slow) * inverse, spread = real(2) * fast * slow * inverse;
    flux_of(ql, l, m, fl);
    flux_of(qr, r, m, fr);
    flux_of(ql, l, n1, hl);
    flux_of(qr, r, n1, hr);
    roe_dissipation(mean, l, r, n2, [](T speed) { return speed; }, roe);
    for (int k = 0; k < gas_variables; ++k) {
        const T hll = lean * (hr[k] - hl[k]) - spread * (qr[k] - ql[k]);
        f[k] = real(0.5) * (fl[k] + fr[k] - area * (a1 * hll + a2 * roe[k]));
    }
}
