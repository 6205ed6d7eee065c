// Roe's flux (1981) with Harten's entropy fix on the acoustic fields (roe_waves.h).
#include "../roe_waves.h"

template <class T> HD void numerical_flux(const T *ql, const T *qr, const T *m, T *f) {
    roe_flux(ql, qr, m, [](T speed) { return speed; }, f);
}
