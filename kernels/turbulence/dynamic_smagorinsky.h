// Dynamic Smagorinsky (Germano, Piomelli, Moin & Cabot, Phys. Fluids A 3, 1991; Lilly, Phys. Fluids A 4, 1992): mu_t =
// rho C delta^2 |S|, |S|^2 = 2 S_ij S_ij. terms/dynamic_smagorinsky.h computes C at each node from the flow.
#include "../velocity_gradient.h"
constexpr int eddy_fields = 1;
constexpr int eddy_coefficients = 1;
constexpr real usual_constant[1] = {real(1 / 1)};

template <class T> HD T eddy_viscosity(T (*g)[3], T rho, T width_square) {
    return width_square * rho * square_root(real(2) * strain_square(g));
}
