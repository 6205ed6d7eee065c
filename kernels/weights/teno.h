// TENO: stencils that hold a jump are left out, the others keep their ideal weights (cut_stencils.h). C_T is
// scheme.cutoff.
#include "cut_stencils.h"

constexpr bool weighs_six_nodes = true;
constexpr bool has_cutoff = true;

template <int stencils, int differences, class T> HD void nonlinear_weights(const T *, const T *beta3, T tau3, T *a) {
    cut_stencils<stencils>(beta3, tau3, T(real(HX_CUTOFF)), a);
}
