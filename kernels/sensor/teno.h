// The selection of stencils of TENO (cut_stencils.h; Fu, Hu & Adams 2016) as a sensor. The five nodes around this node
// hold three stencils along each direction. gamma_k of stencil k is computed of three variables: the density and the
// pressure, divided by their values at the node, and the velocity along the direction, divided by the sound speed of
// the node. s is the least gamma_k/(gamma_0 + gamma_1 + gamma_2) of all stencils, variables and directions. The sensor
// is C_T/(C_T + s) with C_T = scheme.cutoff. It is 1/2 or more where TENO would leave a stencil out. Detects shocks,
// contacts and impulsive starts.
#include "../cut_stencils.h"
#include "../weno5.h"

constexpr real usual_threshold[1] = {real(50.0 / 100)};
constexpr bool sensor_is_share = true;
constexpr bool sensor_has_cutoff = true;
constexpr int nodes_beside = 2;

// The least gamma_k/(gamma_0 + gamma_1 + gamma_2) of the values c at five nodes.
template <class T> HD T share_of_the_roughest(const T *c) {
    T beta3[3], gamma[3];
    smoothness3(c[1] - c[0], c[2] - c[1], c[3] - c[2], c[4] - c[3], beta3);
    const T total = shares_of_stencils<3>(beta3, absolute(beta3[0] - beta3[2]), gamma);
    return smaller(smaller(gamma[0], gamma[1]), gamma[2]) * reciprocal(total);
}

template <class T> struct Sensor {
    T least = T(real(1));

    template <class At> HD void along(const At &at, const T *area) {
        const Primitive<T> own = at(0);
        const T per_p = reciprocal(own.p), per_speed = reciprocal_root(
            (area[0] * area[0] + area[1] * area[1] + area[2] * area[2]) * (gas_gamma * own.p * own.volume));
        T rho[2 * nodes_beside + 1], p[2 * nodes_beside + 1], speed[2 * nodes_beside + 1];
        for (int s = 0; s <= 2 * nodes_beside; ++s) {
            const Primitive<T> state = at(s - nodes_beside);
            rho[s] = state.rho * own.volume, p[s] = state.p * per_p;
            speed[s] = (area[0] * state.u + area[1] * state.v + area[2] * state.w) * per_speed;
        }
        least = smaller(least, smaller(share_of_the_roughest(rho), share_of_the_roughest(p)));
        least = smaller(least, share_of_the_roughest(speed));
    }
    HD bool may_exceed(const Primitive<T> &, T) const { return true; }
    HD T value(const Primitive<T> &, T) const {
        const T cutoff = T(real(HX_CUTOFF));
        return cutoff * reciprocal(cutoff + least);
    }
};
