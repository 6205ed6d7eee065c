// Values on a face by a formula of place and time that a case gives: user_face(which, x, y, z, t), of the nodes of a patch,
// places[c][node], at the time `share` of the step after that of the clock (clock.h).
#include "../clock.h"

#ifdef HX_FACE_FORMULAS
KERNEL(face_formula, int i, int j, int k, int n, int which, const real *places, const double *clock, double share,
       real *values) {
    const real t = real(clock[CLOCK_TIME] + share * clock[CLOCK_DT]);
    values[i] = user_face(which, places[i], places[n + i], places[2 * n + i], t);
}
#endif
