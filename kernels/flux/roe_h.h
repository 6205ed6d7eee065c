// Roe's flux with the H-correction (Sanders, Morano & Druguet, J. Comput. Phys. 145 (1998) 511; Pandolfi & D'Ambrosio, J.
// Comput. Phys. 166 (2001) 271): no absolute eigenvalue is below eta, the largest (|change of u_n| + |change of a|)/2 over
// the half points that lie across the two nodes of this one (terms/h_correction.h). Along a strong shock that follows a
// grid line, this damps differences between neighbouring grid lines. The published eta includes the half point itself,
// which is left out here, so that a contact or a shear layer along grid lines is as sharp as with Roe's flux.
#include "../roe_waves.h"

constexpr int flux_fields = 1;
constexpr bool reads_across = true;
#define HX_H_CORRECTION

// The field has the opposite sign in ghosts of a connected block whose direction is opposite.
template <class T, class Fields>
HD void numerical_flux(const T *ql, const T *qr, const T *m, const Fields &fields, T *f) {
    const T eta = larger(absolute(T(fields(0, 0))), absolute(T(fields(1, 0))));
    roe_flux(ql, qr, m, [&](T speed) { return larger(speed, eta); }, f);
}

// Roe's flux, for the matrices of the implicit integrator.
template <class T> HD void numerical_flux(const T *ql, const T *qr, const T *m, T *f) {
    roe_flux(ql, qr, m, [](T speed) { return speed; }, f);
}
