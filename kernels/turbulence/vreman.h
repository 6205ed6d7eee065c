// Vreman (Phys. Fluids 16, 2004) with one width for all directions: mu_t = rho C delta^2 sqrt(B/(g_ij g_ij)), g the
// velocity gradient and B the second invariant of g^T g: the sum of the squares of the minors of g. C = 0.07, which is
// 2.5 C_S^2 of Smagorinsky's 0.17. mu_t is zero in pure shear.
#include "../velocity_gradient.h"
constexpr int eddy_fields = 1;
constexpr real usual_constant[1] = {real(0.07 / 1)};

template <class T> HD T eddy_viscosity(T (*g)[3], T rho, T width_square) {
    const T all = larger(square_sum(g), T(least_invariant));
    return real(HX_EDDY_CONSTANT) * width_square * rho * square_root(cofactor_square_sum(g) / all);
}
