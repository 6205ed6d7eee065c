// Detached-eddy simulation with the models of spalart_allmaras.h. A length replaces the distance d to the wall: d
// itself near walls, and C_DES delta times a correction psi where the eddies are resolved (Spalart, Deck, Shur,
// Squires, Strelets & Travin, Theoret. Comput. Fluid Dynamics 20, 2006, for ddes; Shur, Spalart, Strelets & Travin,
// Int. J. Heat Fluid Flow 29, 2008, for iddes). psi removes the effect of the damping functions of low Reynolds numbers
// on the eddy viscosity in the balance of production and destruction. The eddy viscosity is then (cb1/(cw1 fw*)) (C_DES
// delta)^2 S at every Reynolds number.
#include "velocity_gradient.h"

constexpr real des_fw = real(0.424);  // fw* of that balance
constexpr real des_largest_square = real(100), des_least_share = real(1e-10), des_least_gradient = real(1e-10);
// Ratio and exponent from which hyperbolic tangents of the powers of a ratio are taken as 1, so that no power
// overflows.
constexpr real des_largest_ratio = real(10), des_largest_exponent = real(20);

// 1 - tanh(a), a >= 0
template <class T> HD T from_tangent(T a) {
    return real(2) / (exponential(real(2) * smaller(a, T(des_largest_exponent))) + real(1));
}

// resolved: fraction of resolved eddies, 0 where the model averages, 1 where it resolves.
template <class T> struct DetachedLength {
    T length, resolved;
};

// The quantities at a node that determine the length. distance: to the wall; gradient: (U_ij U_ij)^(1/2) of the
// velocity gradient U; largest, normal: the largest spacing of the grid, and that normal to the wall, the largest
// change of d to a neighbour.
template <class T> struct DetachedNode {
    TransportedNode<T> model;
    T distance, gradient, largest, normal;

    // r = mu/(rho kappa^2 d^2 (U_ij U_ij)^(1/2)), the ratio by which boundary layers are found; mu: a viscosity over
    // mu_ref
    HD T ratio(T mu) const {
        const T rate = sa_kappa * sa_kappa * distance * distance * larger(gradient, T(des_least_gradient));
        const T found = mu / model.rho * model.inverse_reynolds / larger(rate, T(sa_least));
        return smaller(found, T(des_largest_ratio));
    }
    // psi
    HD T correction() const {
        constexpr real share = sa_cb1 / (sa_cw1 * sa_kappa * sa_kappa * des_fw);
        const T ft2 = model.ft2(), fv2 = model.fv2();
        const T above = real(1) - share * (ft2 + (real(1) - ft2) * fv2);
        const T below = model.fv1() * larger(real(1) - ft2, T(des_least_share));
        return square_root(smaller(above / larger(below, T(sa_least)), T(des_largest_square)));
    }
};

// Gives the node the length of the detached-eddy model. spacings: largest and normal spacing, sv apart, or only the
// largest. ratio, resolved (may be null): receive the ratio of the length to the distance to the wall and the resolved
// fraction.
template <class T>
HD void take_length(TransportedNode<T> &node, T (*gradient)[3], const work_real *spacings, stride sv,
                             work_real *ratio, work_real *resolved) {
    const T distance = node.distance, size = square_root(square_sum(gradient));
    const DetachedNode<T> here = {node, distance, size, load<T>(spacings), load<T>(spacings + (HX_SPACINGS - 1) * sv)};
    const DetachedLength<T> found = detached_length(here);
    node.distance = found.length;
    if (ratio) store(ratio, select(distance > T(real(0)), found.length / larger(distance, T(sa_least)), T(real(1))));
    if (resolved) store(resolved, found.resolved);
}
