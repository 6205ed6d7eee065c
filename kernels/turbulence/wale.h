// Nicoud & Ducros (Flow Turbul. Combust. 62, 1999); W: symmetric part of g g without its trace, g: velocity gradient.
//     mu_t = rho (C delta)^2 (W_ij W_ij)^(3/2) / ((S_ij S_ij)^(5/2) + (W_ij W_ij)^(5/4)),  C = 0.5.
// mu_t is zero in pure shear, and of third order in the distance from a wall.
#include "../velocity_gradient.h"
constexpr int eddy_fields = 1;
constexpr real usual_constant[1] = {real(0.5 / 1)};

template <class T> HD T eddy_viscosity(T (*g)[3], T rho, T width_square) {
    constexpr real square = real(HX_EDDY_CONSTANT * HX_EDDY_CONSTANT);
    T w[3][3], product[3][3];
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) product[i][j] = g[i][0] * g[0][j] + g[i][1] * g[1][j] + g[i][2] * g[2][j];
    const T third = (product[0][0] + product[1][1] + product[2][2]) * real(1.0 / 3);
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) w[i][j] = real(0.5) * (product[i][j] + product[j][i]);
    for (int i = 0; i < 3; ++i) w[i][i] = w[i][i] - third;
    const T turning = square_sum(w), strain = strain_square(g), root = square_root(turning);
    const T below = strain * strain * square_root(strain) + turning * square_root(root);
    return square * width_square * rho * (turning * root / larger(below, T(least_invariant)));
}
