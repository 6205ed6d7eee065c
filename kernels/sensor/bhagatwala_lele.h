// Bhagatwala & Lele (J. Comput. Phys. 228, 2009): the sensor of Ducros et al. times (1 - tanh(2.5 + 10 div d/c))/2,
// with d the width of the cell. This factor vanishes for compression that is much slower than sound crosses the cell.
constexpr real usual_threshold[1] = {real(10.0 / 100)};
constexpr bool sensor_is_share = true;

template <class A> HD typename A::number sensor_value(const A &around) {
    using T = typename A::number;
    const Turning<T> rates = turning(around);
    const T crossing = crossing_rate(around), square = rates.divergence * rates.divergence;
    const T x = smaller(real(5) + real(20) * rates.divergence / crossing, T(real(80)));
    const T least = real(1e-6) * crossing;
    return square / ((real(1) + exponential(x)) * (square + rates.curl2 + least * least));
}
