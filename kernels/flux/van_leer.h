// Van Leer's flux vector splitting (1982) through the area vector m: for |M| < 1, M = U/(a|m|),
//   mass+- = +- rho a |m| (M +- 1)^2 / 4,
//   momentum+- = mass+- (u + n (-un +- 2a)/gamma),
//   energy+- = mass+- (((gamma-1) un +- 2a)^2 / (2(gamma^2-1)) + (|u|^2 - un^2)/2);
// for |M| >= 1 the upwind part is the whole flux and the other part is 0.
#include "flux_splitting.h"

struct VanLeer {
    template <int side, class T, class A> HD static void flux(const T *q, const A *m, A area, A inverse_area, T *f) {
        Primitive<T> s = primitive(q);
        T a = square_root(gas_gamma * s.p / s.rho);
        T un = (m[0] * s.u + m[1] * s.v + m[2] * s.w) * inverse_area;
        T mach = un / a;
        T whole[gas_variables];
        flux_of(q, s, m, whole);
        T square = (mach + real(side)) * (mach + real(side));
        T mass = real(0.25 * side) * s.rho * a * area * square;
        T push = (real(2 * side) * a - un) * real(1.0 / HX_GAMMA) * inverse_area;
        T wave = gas_gamma_1 * un + real(2 * side) * a;
        T part[gas_variables] = {mass, mass * (s.u + push * m[0]), mass * (s.v + push * m[1]),
                                 mass * (s.w + push * m[2]),
                                 mass * (wave * wave * real(0.5 / (HX_GAMMA * HX_GAMMA - 1.0))
                             + real(0.5) * (s.u * s.u + s.v * s.v + s.w * s.w - un * un))};
        auto all = real(side) * mach >= T(real(1));
        auto none = real(side) * mach <= T(real(-1));
        for (int v = 0; v < gas_variables; ++v) f[v] = select(all, whole[v], select(none, T(real(0)), part[v]));
    }
};

#define HX_SPLIT_FLUX
typedef VanLeer flux_splitting;
template <class T> HD void numerical_flux(const T *ql, const T *qr, const T *m, T *f) {
    sum_of_splits<flux_splitting>(ql, qr, m, f);
}
