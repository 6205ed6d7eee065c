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

// A state and a change of its conserved variables, `change`; the changes of the other variables are of first order.
template <class T> struct StateChange {
    Primitive<T> state;
    // kinetic: energy per mass; square, of_square: the square of the sound speed, equal to T, and its change
    T kinetic, square, rho, u, v, w, p, of_square;
    HD StateChange(const T *q, const T *change) : state(primitive(q)), rho(change[0]) {
        kinetic = real(0.5) * (state.u * state.u + state.v * state.v + state.w * state.w);
        u = (change[1] - state.u * rho) * state.volume, v = (change[2] - state.v * rho) * state.volume;
        w = (change[3] - state.w * rho) * state.volume;
        p = gas_gamma_1 * (change[4] - (state.u * change[1] + state.v * change[2] + state.w * change[3]) + kinetic * rho);
        square = gas_gamma * state.p * state.volume, of_square = (gas_gamma * p - square * rho) * state.volume;
    }
};

// The derivative of a flux through the area vector m along a change of a state. The flux of mass changes by `mass`,
// that of momentum by mass u + along_change du + along_area m, and that of energy by mass |u|^2/2 + along_change u.du +
// along_area u.m + energy.
template <class T> struct FluxChange {
    T mass, along_change, along_area, energy;
    // Adds the derivative to f.
    HD void add_to(const StateChange<T> &c, const T *m, T *f) const {
        const Primitive<T> &s = c.state;
        f[0] = f[0] + mass;
        f[1] = f[1] + mass * s.u + along_change * c.u + along_area * m[0];
        f[2] = f[2] + mass * s.v + along_change * c.v + along_area * m[1];
        f[3] = f[3] + mass * s.w + along_change * c.w + along_area * m[2];
        f[4] = f[4] + mass * c.kinetic + along_change * (s.u * c.u + s.v * c.v + s.w * c.w)
               + along_area * (s.u * m[0] + s.v * m[1] + s.w * m[2]) + energy;
    }
};

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
