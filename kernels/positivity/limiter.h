// The method of fallback.h and, where it does not suffice, a flux limiter with the bar states of Guermond & Popov (SIAM
// J. Numer. Anal. 54, 2016) and Kuzmin (Comput. Methods Appl. Mech. Eng. 361, 2020).
//
// With s = max(|U| + a|m|) of the two nodes of a half point, and the corrected metrics m, the parts F(q_i).m of a
// node's fluxes add up to 0 over its faces, so that an Euler step is
//   q_i + sum over faces of dt J s (b - q_i),    b = q_l - (F - F(q_l).m)/s  or  q_r + (F - F(q_r).m)/s:
// It has positive density and pressure if every b has them and dt J times the sum of s is at most 1, as with cfl = 1/2.
// A uniform flow has b = q_i. The Lax-Friedrichs flux gives both sides the same b, which is always admissible; where a
// bar state of the flux is not, the flux is blended with the Lax-Friedrichs flux by the least share that suffices. The
// blending uses neither the time step nor other directions, so that both sides of a half point get the same flux, on
// whichever rank it is computed.
#include "admissible.h"

constexpr bool limits_flux = true;
constexpr bool scales_correction = true;

// The limiter skips half points around which the flow is smooth. There, the root of the smoothness of the outer
// stencils, summed over i-2..i+2 and all characteristic fields, is below this share of the density. No difference of
// neighbours among i-2..i+3 is then above 0.12 of density or sound speed, and interpolation and correction change b by
// less than half of the node's state.
constexpr real roughness = real(0.1);

template <class T> HD auto is_rough(T density2, T density) {
    return density2 > real(roughness * roughness) * density * density;
}

// Least density and pressure of b, as a share of the least of the two nodes and of the Lax-Friedrichs state.
constexpr real least_share = real(0.1);

// Largest theta in [0, 1] for which a + theta (b - a) has at least the given density and pressure. The state a has
// them.
template <class T> HD T positive_share(const T *a, T *b, T pressure, T least_density, T least_pressure) {
    constexpr real tiny = real(1e-30);
    T one = T(real(1));
    T theta = select(b[0] < least_density, (a[0] - least_density) / larger(a[0] - b[0], T(tiny)), one);
    for (int v = 0; v < gas_variables; ++v) b[v] = a[v] + theta * (b[v] - a[v]);
    T found = primitive(b).p;
    // p is concave in q, so that the linear estimate is not too large
    return theta * select(found < least_pressure, (pressure - least_pressure) / larger(pressure - found, T(tiny)), one);
}

// m: corrected metrics. f, the flux of the scheme, is changed only where `asked`.
template <class T, class Mask> HD void limit_flux(const T *ql, const T *qr, const T *m, Mask asked, T *f) {
    T fl[gas_variables], fr[gas_variables], bar[gas_variables], left[gas_variables], right[gas_variables];
    T low[gas_variables];
    Primitive<T> l = primitive(ql), r = primitive(qr);
    flux_of(ql, l, m, fl);
    flux_of(qr, r, m, fr);
    T area = square_root(m[0] * m[0] + m[1] * m[1] + m[2] * m[2]);
    T ul = m[0] * l.u + m[1] * l.v + m[2] * l.w, ur = m[0] * r.u + m[1] * r.v + m[2] * r.w;
    T al = square_root(gas_gamma * l.p / l.rho) * area, ar = square_root(gas_gamma * r.p / r.rho) * area;
    T speed = larger(absolute(ul) + al, absolute(ur) + ar), inverse = real(1) / speed;
    for (int v = 0; v < gas_variables; ++v) {
        bar[v] = real(0.5) * (ql[v] + qr[v] - (fr[v] - fl[v]) * inverse);
        low[v] = real(0.5) * (fl[v] + fr[v] - speed * (qr[v] - ql[v]));
        T change = (f[v] - low[v]) * inverse;
        left[v] = bar[v] - change, right[v] = bar[v] + change;
    }
    T pressure = primitive(bar).p;
    T least_density = least_share * smaller(bar[0], smaller(l.rho, r.rho));
    T least_pressure = least_share * smaller(pressure, smaller(l.p, r.p));
    T theta = smaller(positive_share(bar, left, pressure, least_density, least_pressure),
                      positive_share(bar, right, pressure, least_density, least_pressure));
    auto limited = both(asked, theta < T(real(1)));
    theta = larger(theta, T(real(0)));
    for (int v = 0; v < gas_variables; ++v) f[v] = select(limited, low[v] + theta * (f[v] - low[v]), f[v]);
}
