// Nicoud, Toda, Cabrit, Bose & Lee (Phys. Fluids 23, 2011); s1 >= s2 >= s3 >= 0: singular values of the velocity
// gradient g.
//     mu_t = rho (C delta)^2 s3 (s1 - s2) (s2 - s3) / s1^2,  C = 1.35.
// mu_t is zero in two-dimensional flow, which includes pure shear and solid rotation, and in axisymmetric and isotropic
// strain. Near a wall it is of third order in the distance.
#include "../velocity_gradient.h"
constexpr int eddy_fields = 1;
constexpr real usual_constant[1] = {real(1.35 / 1)};

template <class T> HD T eddy_viscosity(T (*g)[3], T rho, T width_square) {
    constexpr real square = real(HX_EDDY_CONSTANT * HX_EDDY_CONSTANT);
    // invariants of g^T g, whose eigenvalues are the squares of the singular values
    const T first = larger(square_sum(g), T(least_invariant)), second = cofactor_square_sum(g);
    const T det = g[0][0] * cofactor(g, 0, 0) + g[0][1] * cofactor(g, 0, 1) + g[0][2] * cofactor(g, 0, 2);
    const T third = det * det;
    // The largest eigenvalue is computed directly. The other two follow from their sum and product, without
    // cancellation where they are small.
    const T mean = first * real(1.0 / 3);
    const T a = larger(mean * mean - second * real(1.0 / 3), T(real(0))), root = square_root(a);
    const T b = mean * mean * mean - first * second * real(1.0 / 6) + third * real(0.5);
    const T cosine_of_three = b / larger(a * root, T(least_invariant));
    const T angle = arc_cosine(larger(smaller(cosine_of_three, T(real(1))), T(real(-1))));
    const T largest = mean + real(2) * root * cosine(angle * real(1.0 / 3));
    const T product = third / largest, sum = (second - product) / largest;
    const T apart = square_root(larger(sum * sum - real(4) * product, T(real(0))));
    const T s1 = square_root(largest), s2 = square_root(larger(real(0.5) * (sum + apart), T(real(0))));
    const T s3 = smaller(absolute(det) / larger(s1 * s2, T(least_invariant)), s2);
    const T rate = s3 * larger(s1 - s2, T(real(0))) * (s2 - s3) / largest;
    return square * width_square * rho * rate;
}
