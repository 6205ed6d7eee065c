// Local Lax-Friedrichs: see lax_friedrichs.h.
#include "lax_friedrichs.h"

template <class T> HD void numerical_flux(const T *ql, const T *qr, const T *m, T *f) {
    lax_friedrichs_flux(ql, qr, m, f);
}
