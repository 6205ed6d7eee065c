// Common parts of the shock sensors (kernels/sensor/). Each of them is a template `Sensor` of the number type. For
// every direction `along(at, area)` is called, with the primitives at(s) of the nodes s = -nodes_beside..nodes_beside
// along it and the area of node 0. Then `value(own, inverse_volume)`, with the primitives of node 0, returns the
// sensor. `may_exceed(own, limit)` is false only where the sensor is less than `limit`, so that a GPU needs no division
// at most nodes. A sensor that cannot tell without a division returns true.
#if !HX_SENSORS
// Without a shock sensor its value is 0.
constexpr int nodes_beside = 1;
template <class T> struct Sensor {
    template <class At> HD void along(const At &, const T *) {}
    HD bool may_exceed(const Primitive<T> &, T) const { return false; }
    HD T value(const Primitive<T> &, T) const { return T(real(0)); }
};
#else
// The largest of several quotients with positive denominators, with one division for all of them
template <class T> struct Largest {
    T above = T(real(0)), below = T(real(1));

    // The absolute second difference of positive values over before + 2 at + after: 0 to 1
    HD void second_difference(T before, T at, T after) {
        const T sum = before + after, other = absolute(sum - real(2) * at), whole = sum + real(2) * at;
        const auto more = other * below > above * whole;
        above = select(more, other, above), below = select(more, whole, below);
    }
    HD T value() const { return above * reciprocal(below); }
    HD auto exceeds(T limit) const { return above > limit * below; }
};

// Divergence and curl of the velocity by differences of the neighbouring nodes, times twice the volume; widest: the
// square of the largest area over the directions
template <class T> struct Turning {
    T opening = T(real(0)), curl[3] = {T(real(0)), T(real(0)), T(real(0))}, widest = T(real(0));

    template <class At> HD void along(const At &at, const T *area) {
        const Primitive<T> l = at(-1), r = at(1);
        const T u = r.u - l.u, v = r.v - l.v, w = r.w - l.w;
        opening = opening + area[0] * u + area[1] * v + area[2] * w;
        curl[0] = curl[0] + (area[1] * w - area[2] * v);
        curl[1] = curl[1] + (area[2] * u - area[0] * w);
        curl[2] = curl[2] + (area[0] * v - area[1] * u);
        widest = larger(widest, area[0] * area[0] + area[1] * area[1] + area[2] * area[2]);
    }
    HD bool may_exceed(const Primitive<T> &, T) const { return true; }
    HD T divergence(T inverse_volume) const { return real(0.5) * inverse_volume * opening; }
    HD T curl2(T inverse_volume) const {
        const T half = real(0.5) * inverse_volume;
        return half * half * (curl[0] * curl[0] + curl[1] * curl[1] + curl[2] * curl[2]);
    }
    // One over the time in which sound crosses the cell in the direction in which it takes the least time
    HD T crossing_rate(const Primitive<T> &own, T inverse_volume) const {
        return square_root(widest * gas_gamma * own.p * own.volume) * inverse_volume;
    }
};
#endif
