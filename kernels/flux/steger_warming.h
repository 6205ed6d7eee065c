// Steger-Warming flux vector splitting: h(ql, qr) = F+(ql) + F-(qr), eigenvalues U, U +- a|m| split by their sign.
// |lambda| has a kink at 0; with HX_FLUX_SMOOTHING = s > 0 it is sqrt(lambda^2 + (s a |m|)^2), which restores the
// order at sonic and stagnation points. F+(q) + F-(q) = F(q) either way.
#include "flux_splitting.h"

struct StegerWarming {
    template <int side, class T, class A> HD static void flux(const T *q, const A *m, A area, A inverse_area, T *f) {
        Primitive<T> s = primitive(q);
        T a2 = gas_gamma * s.p * s.volume, a = positive_root(a2);
        T volume = m[0] * s.u + m[1] * s.v + m[2] * s.w;
        T speed = a * area;
        T lambda[3] = {volume, volume + speed, volume - speed}, l[3];
        for (int k = 0; k < 3; ++k) {
            T size;
            if constexpr (HX_FLUX_SMOOTHING > 0.0) {
                T delta = real(HX_FLUX_SMOOTHING) * speed;
                size = square_root(lambda[k] * lambda[k] + delta * delta);
            } else {
                size = absolute(lambda[k]);
            }
            l[k] = real(0.5) * (lambda[k] + real(side) * size);
        }
        T acoustic = l[1] + l[2];
        T total = real(2) * gas_gamma_1 * l[0] + acoustic;
        T push = a * (l[1] - l[2]) * inverse_area;  // along m
        T b = s.rho * real(0.5 / HX_GAMMA);
        f[0] = b * total;
        f[1] = b * (total * s.u + push * m[0]);
        f[2] = b * (total * s.v + push * m[1]);
        f[3] = b * (total * s.w + push * m[2]);
        f[4] = b * (real(0.5) * total * (s.u * s.u + s.v * s.v + s.w * s.w) + push * volume
                    + acoustic * a2 * real(1.0 / (HX_GAMMA - 1.0)));
    }
    // The derivative of the flux along a change of the state
    template <int side, class T> HD static FluxChange<T> change(const StateChange<T> &c, const T *m, T area, T inverse_area) {
        const Primitive<T> &s = c.state;
        const T over = reciprocal_root(c.square), a = c.square * over, changed = real(0.5) * over * c.of_square;
        const T volume = m[0] * s.u + m[1] * s.v + m[2] * s.w, of_volume = m[0] * c.u + m[1] * c.v + m[2] * c.w;
        T l[3], d[3];
        for (int k = 0; k < 3; ++k) {
            const real sound = k == 0 ? 0 : k == 1 ? 1 : -1;
            const T speed = a * area, lambda = volume + sound * speed, rate = of_volume + sound * (changed * area);
            if constexpr (HX_FLUX_SMOOTHING > 0.0) {
                const T delta = real(HX_FLUX_SMOOTHING) * speed, size = square_root(lambda * lambda + delta * delta);
                const T of_size = (lambda * rate + delta * (real(HX_FLUX_SMOOTHING) * (changed * area))) / size;
                l[k] = real(0.5) * (lambda + real(side) * size), d[k] = real(0.5) * (rate + real(side) * of_size);
            } else {
                const auto below = lambda < T(real(0));
                l[k] = side > 0 ? select(below, T(real(0)), lambda) : select(below, lambda, T(real(0)));
                d[k] = side > 0 ? select(below, T(real(0)), rate) : select(below, rate, T(real(0)));
            }
        }
        const T acoustic = l[1] + l[2], of_acoustic = d[1] + d[2], b = s.rho * real(0.5 / HX_GAMMA), of_b = c.rho * real(0.5 / HX_GAMMA);
        const T total = real(2) * gas_gamma_1 * l[0] + acoustic, flow = b * total;
        const T jump = l[1] - l[2], ba = b * a, push = inverse_area * (ba * jump);
        return {
            b * (real(2) * gas_gamma_1 * d[0] + of_acoustic) + of_b * total, flow,
            inverse_area * (ba * (d[1] - d[2]) + (of_b * a + b * changed) * jump),
            push * of_volume + real(0.5 / (HX_GAMMA - 1.0)) * (of_acoustic * s.p + acoustic * c.p),
        };
    }
};
#define HX_SPLIT_CHANGE
#define HX_SPLIT_JACOBIAN 1.0 / HX_GAMMA

#define HX_SPLIT_FLUX
typedef StegerWarming flux_splitting;
template <class T> HD void numerical_flux(const T *ql, const T *qr, const T *m, T *f) {
    sum_of_splits<flux_splitting>(ql, qr, m, f);
}
