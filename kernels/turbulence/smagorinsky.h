// Smagorinsky (Mon. Weather Rev. 91, 1963): mu_t = rho (C delta)^2 |S|, |S|^2 = 2 S_ij S_ij. C = 0.17 by Lilly (Proc.
// IBM Sci. Comput. Symp. Environ. Sci., 1967) for isotropic turbulence. mu_t vanishes neither in pure shear nor at
// walls.
#include "../velocity_gradient.h"
constexpr int eddy_fields = 1;
constexpr real usual_constant[1] = {real(0.17 / 1)};

template <class T> HD T eddy_viscosity(T (*g)[3], T rho, T width_square) {
    constexpr real square = real(HX_EDDY_CONSTANT * HX_EDDY_CONSTANT);
    return square * width_square * rho * square_root(real(2) * strain_square(g));
}
