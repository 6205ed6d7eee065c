// The largest of Jameson's sensor (AIAA Paper 81-1259, 1981) of the pressure, that of the density, and a tenth of the
// divergence of the velocity over the rate at which sound crosses the cell. Detects shocks, contacts and impulsive
// starts.
constexpr real usual_threshold[1] = {real(2.0 / 100)};
constexpr int nodes_beside = 1;

template <class T> struct Sensor {
    Largest<T> found;
    T opening = T(real(0)), widest = T(real(0));

    template <class At> HD void along(const At &at, const T *area) {
        const Primitive<T> l = at(-1), own = at(0), r = at(1);
        found.second_difference(l.p, own.p, r.p);
        found.second_difference(l.rho, own.rho, r.rho);
        opening = opening + area[0] * (r.u - l.u) + area[1] * (r.v - l.v) + area[2] * (r.w - l.w);
        widest = larger(widest, area[0] * area[0] + area[1] * area[1] + area[2] * area[2]);
    }
    HD auto may_exceed(const Primitive<T> &own, T limit) const {
        return either(found.exceeds(limit), real(0.05 * 0.05) * (opening * opening) * own.rho >
                                                limit * limit * (widest * gas_gamma * own.p));
    }
    HD T value(const Primitive<T> &own, T) const {
        const T crossing = reciprocal_root(widest * gas_gamma * own.p * own.volume);
        return larger(found.value(), real(0.05) * absolute(opening) * crossing);
    }
};
