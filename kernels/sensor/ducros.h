// Ducros et al. (J. Comput. Phys. 152, 1999), where the gas is compressed: div^2/(div^2 + curl^2 + (c/(100 d))^2), with
// d the width of the cell. It detects shocks, and sound waves that are strong compared with the vorticity, but not
// contacts.
constexpr real usual_threshold[1] = {real(50.0 / 100)};
constexpr bool sensor_is_share = true;
constexpr int nodes_beside = 1;

template <class T> struct Sensor : Turning<T> {
    HD T value(const Primitive<T> &own, T inverse_volume) const {
        const T least = real(0.01) * this->crossing_rate(own, inverse_volume);
        const T squeezed = smaller(this->divergence(inverse_volume), T(real(0))), square = squeezed * squeezed;
        return square / (square + this->curl2(inverse_volume) + least * least);
    }
};
