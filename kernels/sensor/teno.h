// TENO's own selection (cut_stencils.h; Fu, Hu & Adams 2016) as a sensor. Along every direction, of the three parts of the
// five nodes around this one, gamma_k is that of the density and of the pressure, over their values at the node, and of
// the velocity along the direction, over the sound speed there. With s the least share of a part in the sum of its
// gamma_k, of all these, the value is C_T/(C_T + s): 1/2 and more where TENO would leave a part out, C_T being
// scheme.cutoff. Sees shocks, contacts and impulsive starts.
#include "../cut_stencils.h"
#include "../weno5.h"

constexpr real usual_threshold[1] = {real(50.0 / 100)};
constexpr bool sensor_is_share = true;
constexpr bool sensor_has_cutoff = true;
constexpr int nodes_beside = 2;

// Of values at five nodes.
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
    HD T value(const Primitive<T> &, T) const {
        const T cutoff = T(real(HX_CUTOFF));
        return cutoff * reciprocal(cutoff + least);
    }
};
