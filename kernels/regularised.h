// The flux of the regularised inviscid terms (information geometric regularisation: Cao & Schaefer, arXiv 2308.14127;
// Wilfong et al., arXiv 2505.07392). ql and qr are the linear interpolations through five nodes that AFWENO5 yields in
// smooth flow; the entropic pressure Sigma (terms/entropic_pressure.h) is added to the pressure of the gas:
//     F(q, p + Sigma).m - (|U| + a|m|)/2 (qr - ql),    q = (ql + qr)/2
// The sound speed a is that of |p|, so that it exists where p is below 0 between the two sides of a jump. Sigma is the
// mean of both nodes, and its part of the flux has no correction, since it is of the order of the square of the
// spacing. A compressive stress Pi takes the place of Sigma: Pi.m is added to the flux of momentum, u.(Pi.m) to that of
// energy.
#include "compressive_part.h"

// The mean q and the jump qr - ql at half point 1/2, from states at(offset, v) of nodes.
template <class T, class At> HD void regularised_states(const At &at, T *mean, T *jump) {
    for (int v = 0; v < gas_variables; ++v) {
        const T l = at(0, v), r = at(1, v), behind = at(-1, v), ahead = at(2, v), first = at(-2, v), last = at(3, v);
        mean[v] = (real(150) * (l + r) - real(25) * (behind + ahead) + real(3) * (first + last)) * real(1.0 / 256);
        jump[v] = (real(10) * (r - l) - real(5) * (ahead - behind) + (last - first)) * real(3.0 / 128);
    }
}

// fields(offset, n): at nodes, Sigma, or Pi with the entries xx, yy, zz, xy, xz, yz.
template <class T, class Fields>
HD void regularised_flux(const T *mean, const T *jump, const T *m, const Fields &fields, T *f) {
    Primitive<T> s = primitive(mean);
    const T through = m[0] * s.u + m[1] * s.v + m[2] * s.w, square = m[0] * m[0] + m[1] * m[1] + m[2] * m[2];
    const T half = real(0.5) * (absolute(through) + square_root(absolute(gas_gamma * s.p * s.volume) * square));
#if HX_COMPRESSIVE
    flux_of(mean, s, m, f);
    for (int v = 0; v < gas_variables; ++v) f[v] = f[v] - half * jump[v];
    // The stress comes last, when registers are free.
    T stress[tensor_entries], force[3];
    for (int n = 0; n < tensor_entries; ++n) stress[n] = real(0.5) * (fields(0, n) + fields(1, n));
    tensor_times(stress, m, force);
    for (int c = 0; c < 3; ++c) f[c + 1] = f[c + 1] + force[c];
    f[4] = f[4] + (s.u * force[0] + s.v * force[1] + s.w * force[2]);
#else
    s.p = s.p + real(0.5) * (fields(0, 0) + fields(1, 0));
    flux_of(mean, s, m, f);
    for (int v = 0; v < gas_variables; ++v) f[v] = f[v] - half * jump[v];
#endif
}

// Where the positivity limiter checks the flux. Interpolated states differ from both nodes by about four times the jump
// qr - ql. Density and pressure stay positive where the jumps are below this share of the lesser density, of the lesser
// internal energy, and of the momentum that corresponds to both. at(offset, v): states of nodes.
constexpr real rough_share = real(0.02);

template <class T, class At> HD auto is_rough_between(const At &at, const T *jump) {
    T inner[2];  // density times internal energy
    for (int s = 0; s < 2; ++s) {
        const T x = at(s, 1), y = at(s, 2), z = at(s, 3);
        inner[s] = at(s, 0) * at(s, 4) - real(0.5) * (x * x + y * y + z * z);
    }
    const T l = at(0, 0), r = at(1, 0), least = rough_share * smaller(inner[0], inner[1]);
    const T squares = jump[1] * jump[1] + jump[2] * jump[2] + jump[3] * jump[3];
    return either(either(absolute(jump[0]) > rough_share * smaller(l, r), absolute(jump[4]) * larger(l, r) > least),
                  squares > rough_share * least);
}
