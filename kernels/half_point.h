// Half-point values that the metrics and the fluxes share. With the six-point interpolation of the node metrics,
// eq. (19) applied to a quantity linear in the metrics is identically the 6th-order central derivative.
#include "jump_sensor.h"

template <class T, class At> HD T interpolate_metric(const At &at) {
    return (real(150) * (at(0) + at(1)) - real(25) * (at(-1) + at(2)) + real(3) * (at(-2) + at(3))) * real(1.0 / 256);
}

// What eq. (19) makes of them: the interpolated metrics and their correction, whose differences are the 6th-order central
// derivative. Over the faces of a node they add up to nothing.
template <class T, class At> HD T corrected_metric(const At &at) {
    return (real(37) * (at(0) + at(1)) - real(8) * (at(-1) + at(2)) + (at(-2) + at(3))) * real(1.0 / 60);
}

// The linear correction of eqs (11) and (18) at i+1/2, -f_xx/24 + 7 f_xxxx/5760, as one six-point sum.
template <class T, class At> HD T flux_correction(const At &at) {
    T sum = real(118) * (at(0) + at(1)) - real(137) * (at(-1) + at(2)) + real(19) * (at(-2) + at(3));
    return sum * real(1.0 / 3840);
}

// Flux at i+1/2: two-state numerical flux of the interpolated states plus the scaled correction.
// f(offset, v): physical flux at i + offset; sensor: largest jump sensor over i-1..i+2.
template <class T, class At> HD void half_point_flux(const T *minus, const T *plus, const T *m, const At &f, T sensor,
                                                     T *flux) {
    numerical_flux(minus, plus, m, flux);
    T scale = correction_scale(sensor);
    for (int v = 0; v < gas_variables; ++v)
        flux[v] = flux[v] + scale * flux_correction<T>([&](int offset) { return f(offset, v); });
}
