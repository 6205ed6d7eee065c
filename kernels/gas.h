// Calorically perfect gas in the scales of the solver: p = rho T / gamma, e = p/(gamma-1) + rho |u|^2/2.
// Conservative state q = (rho, rho u, rho v, rho w, e), without 1/J.
constexpr real gas_gamma = real(HX_GAMMA);
constexpr real gas_gamma_1 = real(HX_GAMMA - 1.0);
// Fluxes add this number to the square of an area, so that the inverse of the area is finite at faces without area, as
// at the branch line of a grid beyond a wing's tip. It is far below the square of any other area, in any unit.
constexpr real no_area = real(sizeof(real) == 8 ? 1e-300 : 1e-36);

template <class T> struct Primitive {
    T rho, u, v, w, p, volume;  // volume: 1/rho
};

template <class T> HD Primitive<T> primitive(const T *q) {
    T inverse = reciprocal(q[0]);
    T u = q[1] * inverse, v = q[2] * inverse, w = q[3] * inverse;
    T p = gas_gamma_1 * (q[4] - real(0.5) * (q[1] * u + q[2] * v + q[3] * w));
    return {q[0], u, v, w, p, inverse};
}

// Inviscid flux through the area vector m = grad(xi)/J of a state, eq. (4). A: T, or `real` where the area is a
// constant of the differentiation.
template <class T, class A> HD void flux_of(const T *q, const Primitive<T> &s, const A *m, T *f) {
    T volume = m[0] * s.u + m[1] * s.v + m[2] * s.w;
    f[0] = q[0] * volume;
    f[1] = q[1] * volume + m[0] * s.p;
    f[2] = q[2] * volume + m[1] * s.p;
    f[3] = q[3] * volume + m[2] * s.p;
    f[4] = (q[4] + s.p) * volume;
}
#include "characteristic_space.h"
