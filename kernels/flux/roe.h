// Roe's flux (1981) with Harten's entropy fix on the acoustic fields (roe_waves.h).
#include "../roe_waves.h"

template <class T> HD void numerical_flux(const T *ql, const T *qr, const T *m, T *f) {
    T area = square_root(m[0] * m[0] + m[1] * m[1] + m[2] * m[2] + no_area), inverse_area = real(1) / area;
    T n[3] = {m[0] * inverse_area, m[1] * inverse_area, m[2] * inverse_area};
    Primitive<T> l = primitive(ql), r = primitive(qr);
    T g[gas_variables], fl[gas_variables], fr[gas_variables];
    roe_dissipation(roe_means(ql, qr, l, r), l, r, n, g);
    flux_of(ql, l, m, fl);
    flux_of(qr, r, m, fr);
    for (int k = 0; k < gas_variables; ++k) f[k] = real(0.5) * (fl[k] + fr[k] - area * g[k]);
}
