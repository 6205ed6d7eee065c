// Ideal weights: the linear interpolation, for verification on smooth flows only.
constexpr bool weighs_six_nodes = true;
constexpr bool weighs_seven_nodes = true;

template <int stencils, int differences, class T> HD void nonlinear_weights(const T *, const T *, T, T *a) {
    for (int k = 0; k < stencils; ++k) a[k] = T(real(1));
}
