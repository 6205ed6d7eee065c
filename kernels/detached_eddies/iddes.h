// Improved delayed detached-eddy simulation (Shur et al. 2008): as ddes where the inflow has no turbulence, and a model
// of the wall layer below resolved eddies where it has. With a = 1/4 - d/h_max,
//   f (1 + f_e) d + (1 - f) psi C_DES delta,  f = max(1 - f_dt, f_B),  delta = min(max(C_w d, C_w h_max, h_wn), h_max)
//   f_dt = 1 - tanh((8 r_dt)^3),  f_B = min(2 exp(-9 a^2), 1),  f_e = max(f_e1 - 1, 0) psi f_e2
//   f_e1 = 2 exp(-11.09 a^2) where a >= 0, else 2 exp(-9 a^2),  f_e2 = 1 - max(tanh((c_t^2 r_dt)^3), tanh((c_l^2 r_dl)^10))
// r_dt is computed with the eddy viscosity, r_dl with the viscosity of the gas.
constexpr int spacings = 2;
constexpr real usual_des_constant[1] = {real(0.65 / 1)};
#include "../detached.h"
constexpr real iddes_cw = real(0.15), iddes_ct_2 = real(1.63 * 1.63), iddes_cl_2 = real(3.55 * 3.55);

template <class T> HD DetachedLength<T> detached_length(const DetachedNode<T> &n) {
    const T turbulent = n.ratio(n.model.eddies()), laminar = iddes_cl_2 * n.ratio(n.model.mu);
    const T eight = real(8) * turbulent, scaled = iddes_ct_2 * turbulent;
    const T a = real(0.25) - n.distance / n.largest, near = real(2) * exponential(real(-9) * a * a);
    const T averaged = larger(real(1) - from_tangent(eight * eight * eight), smaller(near, T(real(1))));
    const T fe1 = select(a < T(real(0)), near, real(2) * exponential(real(-11.09) * a * a));
    const T square = laminar * laminar, fourth = square * square;
    const T fe2 = smaller(from_tangent(scaled * scaled * scaled), from_tangent(fourth * fourth * square));
    const T psi = n.correction(), fe = larger(fe1 - real(1), T(real(0))) * psi * fe2;
    const T width = larger(larger(iddes_cw * n.distance, iddes_cw * n.largest), n.normal);
    const T resolved = real(HX_EDDY_CONSTANT) * psi * smaller(width, n.largest);
    return {averaged * (real(1) + fe) * n.distance + (real(1) - averaged) * resolved, real(1) - averaged};
}
