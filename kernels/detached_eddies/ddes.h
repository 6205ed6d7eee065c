// Delayed detached-eddy simulation (Spalart et al. 2006): d - f_d max(0, d - psi C_DES delta), delta the largest spacing
// of the grid. f_d = 1 - tanh((8 r_d)^3) is 0 in a boundary layer, whatever the spacing.
constexpr int spacings = 1;
constexpr real usual_des_constant[1] = {real(0.65 / 1)};
#include "../detached.h"

template <class T> HD DetachedLength<T> detached_length(const DetachedNode<T> &n) {
    const T r = real(8) * n.ratio(n.model.mu + n.model.eddies()), fd = from_tangent(r * r * r);
    const T excess = n.distance - real(HX_EDDY_CONSTANT) * n.largest * n.correction();
    return {n.distance - fd * larger(excess, T(real(0))), fd};
}
