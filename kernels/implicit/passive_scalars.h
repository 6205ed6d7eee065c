// The entries of the Jacobian of the right-hand side for passive scalars s. In a node the variables rho s follow those
// of the gas.
#pragma once
#include "../schmidt.h"

constexpr int passive_scalars = block_variables - gas_variables - HX_TRANSPORTED;

// The flux of rho s between two nodes: the mass flux f[0] carries the s of its upwind node.
template <class T> HD void carry_scalars(const T *ql, const T *qr, T *f) {
    for (int v = gas_variables; v < gas_variables + passive_scalars; ++v)
        f[v] = f[0] * select(f[0] > T(real(0)), ql[v] / ql[0], qr[v] / qr[0]);
}

// Adds the thin-layer diffusion of s, as in face_flux. laminar, eddy: viscosity times the square of the face's area.
template <class T> HD void spread_scalars(const T *ql, const T *qr, const T &laminar, const T &eddy, T *f) {
#if HX_EDDY_FIELDS
    constexpr real over_eddy = real(1.0 / HX_EDDY_SCHMIDT);
#else
    constexpr real over_eddy = real(0);
#endif
    for (int n = 0, v = gas_variables; n < passive_scalars; ++n, ++v)
        f[v] = f[v] - (over_schmidt(n) * laminar + over_eddy * eddy) * (qr[v] / qr[0] - ql[v] / ql[0]);
}
