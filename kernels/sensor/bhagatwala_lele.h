// Bhagatwala & Lele (J. Comput. Phys. 228, 2009): the sensor of Ducros et al. times (1 - tanh(2.5 + 10 div d/c))/2,
// with d the width of the cell. This factor vanishes where the gas is compressed slowly, compared with the time in
// which sound crosses the cell.
constexpr real usual_threshold[1] = {real(10.0 / 100)};
constexpr bool sensor_is_share = true;
constexpr int nodes_beside = 1;

template <class T> struct Sensor : Turning<T> {
    HD T value(const Primitive<T> &own, T inverse_volume) const {
        const T divergence = this->divergence(inverse_volume), crossing = this->crossing_rate(own, inverse_volume);
        const T square = divergence * divergence, least = real(1e-6) * crossing;
        const T x = smaller(real(5) + real(20) * divergence / crossing, T(real(80)));
        return square / ((real(1) + exponential(x)) * (square + this->curl2(inverse_volume) + least * least));
    }
};
