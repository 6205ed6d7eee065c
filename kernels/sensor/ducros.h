// Ducros et al. (J. Comput. Phys. 152, 1999), where the gas is compressed: div^2/(div^2 + curl^2 + (c/(100 d))^2), with d
// the width of the cell. Sees shocks and sound that is strong beside the vorticity, not contacts.
constexpr real usual_threshold[1] = {real(50.0 / 100)};
constexpr bool sensor_is_share = true;

template <class A> HD typename A::number sensor_value(const A &around) {
    using T = typename A::number;
    const Turning<T> rates = turning(around);
    const T least = real(0.01) * crossing_rate(around), squeezed = smaller(rates.divergence, T(real(0)));
    const T square = squeezed * squeezed;
    return square / (square + rates.curl2 + least * least);
}
