// Values on a face by a formula of position and time that the case gives, user_face(which, x, y, z, t). The time is
// that of the clock (clock.h) plus the fraction `share` of the time step. places[c][node]: coordinates of the n nodes
// of a patch.
#include "../clock.h"

#ifdef HX_FACE_FORMULAS
KERNEL(face_formula, int i, int j, int k, int n, int which, const real *places, const double *clock, double share,
       real *values) {
    const real t = real(clock[CLOCK_TIME] + share * clock[CLOCK_DT]);
    values[i] = user_face(which, places[i], places[n + i], places[2 * n + i], t);
}
#endif
