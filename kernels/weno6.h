// One interpolation to i+1/2 of the six nodes i-2..i+3, from the five differences d[n] = c_{i-1+n} - c_{i-2+n} of a
// field: the stencils of TENO6 (Fu, Hu & Adams, J. Comput. Phys. 305, 2016), i-2..i, i-1..i+1, i..i+2 and i..i+3, for
// nodes' values. With the ideal weights (1, 15, 10, 6)/32 it is the central interpolation (3, -25, 150, 150, -25,
// 3)/256 of sixth order; the value from the other side is then the same, and the flux has no dissipation. The
// increment over c_i keeps a uniform field exact. All betas integrate over [i-1/2, i+1/2].
//
// tau = |beta_6 - (beta_0 + 6 beta_1 + beta_2)/8| is of sixth order, beta_6 being the smoothness of the polynomial
// through all six nodes. For interpolants through values at nodes this sum has the same term f' f''' h^4/12 as beta_6;
// for interpolants of cell averages the sum would be (beta_0 + 4 beta_1 + beta_2)/6.
#include "weno5.h"
#include "weno7.h"

// Returns three times beta_6.
template <class T> HD T smoothness_of_six(const T *d) {
    const T rows = d[0] * (real(525910327) * d[0] - real(3510343976) * d[1] + real(4289157444) * d[2]
                           - real(2321537096) * d[3] + real(472758974) * d[4])
                 + d[1] * (real(6698685232) * d[1] - real(17415163056) * d[2] + real(9791938784) * d[3]
                           - real(2046074216) * d[4])
                 + d[2] * (real(12550583772) * d[2] - real(14865023856) * d[3] + real(3216453924) * d[4])
                 + d[3] * (real(4740275632) * d[3] - real(2158505096) * d[4]) + real(263126407) * d[4] * d[4];
    return rows * real(1.0 / 77414400);
}

// c^-_{i+1/2} - c_i. The value from the other side is the mirror image: call this function with the differences
// reversed and negated.
template <class T> HD T interpolate_one_of_six(const T *d) {
    T beta3[4], a[4];
    smoothness3(d[0], d[1], d[2], d[3], beta3);
    beta3[3] = smoothness_of_cubic<25729, -63436, 22778, 45076, -33916, 6649>(d[2], d[3], d[4]);
    const T mean = real(0.125) * (beta3[0] + beta3[2]) + real(0.75) * beta3[1];
    nonlinear_weights<4, 5>(d, beta3, absolute(smoothness_of_six(d) - mean), a);
    // interpolants times 16, ideal weights times 32
    const T c0 = real(14) * d[1] - real(6) * d[0], c1 = real(2) * d[1] + real(6) * d[2];
    const T c2 = real(10) * d[2] - real(2) * d[3], c3 = real(11) * d[2] - real(4) * d[3] + d[4];
    const T a1 = real(15) * a[1], a2 = real(10) * a[2], a3 = real(6) * a[3];
    return (a[0] * c0 + a1 * c1 + a2 * c2 + a3 * c3) * real(1.0 / 16) * reciprocal(a[0] + a1 + a2 + a3);
}
