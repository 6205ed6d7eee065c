// TENO with a cut-off that depends on the flow (Fu, Hu & Adams 2018): C_T 10^-floor(5 g(m)), which is scheme.cutoff (C_T)
// at a jump and 1e-5 of it where the flow is smooth. g(m) = (1 - m)^4 (1 + 4m), m = 1 - min(1, eta/C_r). eta measures how
// similar the differences on both sides of a node are; the least value of the inner nodes counts:
//   eta = (2 |d_- d_+| + e)/(d_-^2 + d_+^2 + e),    e = 0.9 C_r/(1 - 0.9 C_r) epsilon,    C_r = 0.24.
// floor(5 g) increases by one at each of five values of eta. The code compares eta with these values, so that it computes
// neither g nor a power of 10.
#include "cut_stencils.h"

constexpr bool weighs_six_nodes = true;
constexpr bool has_cutoff = true;

template <int stencils, int differences, class T> HD void nonlinear_weights(const T *d, const T *beta3, T tau3, T *a) {
    constexpr real least_alike = real(0.24);  // C_r
    constexpr real noise = real(0.9 * 0.24 / (1 - 0.9 * 0.24) * HX_EPSILON);
    // eta/C_r at which 5 g(m) is 1, 2, ... 5
    constexpr real steps[] = {real(0.50980766), real(0.63501477), real(0.73443130), real(0.83139115), real(1)};
    T cutoff = T(real(HX_CUTOFF));
    for (int s = 0; s < 5; ++s) {
        T alike = T(real(1));  // negative if eta of a node is below the step
        for (int k = 0; k + 1 < differences; ++k) {
            const T product = real(2) * absolute(d[k] * d[k + 1]) + noise;
            const T squares = d[k] * d[k] + d[k + 1] * d[k + 1] + noise;
            alike = smaller(alike, product - least_alike * steps[s] * squares);
        }
        cutoff = select(alike < T(real(0)), cutoff, cutoff * real(0.1));
    }
    cut_stencils<stencils>(beta3, tau3, cutoff, a);
}
