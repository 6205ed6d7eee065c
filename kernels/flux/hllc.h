// HLLC: between the outer waves the flux is F + S (q* - q) of the left side if the contact moves to the right (S* >= 0), of
// the right side otherwise.
#include "../hllc_states.h"

#define HX_SPLIT_JACOBIAN 0.0

template <class T> HD void numerical_flux(const T *ql, const T *qr, const T *m, T *f) {
    const HllcWaves<T> s = hllc_waves(ql, qr, m);
    T fl[gas_variables], fr[gas_variables], left[gas_variables], right[gas_variables];
    flux_of(ql, s.l, s.n, fl);
    flux_of(qr, s.r, s.n, fr);
    star_change(ql, s.l, s.n, s.ul, s.wave_l, s.contact, left);
    star_change(qr, s.r, s.n, s.ur, s.wave_r, s.contact, right);
    T zero = T(real(0));
    for (int k = 0; k < gas_variables; ++k)
        f[k] = s.area * select(s.wave_l >= zero, fl[k],
                               select(s.wave_r <= zero, fr[k],
                                      select(s.contact >= zero, fl[k] + s.wave_l * left[k], fr[k] + s.wave_r * right[k])));
}
