// Jameson, Schmidt & Turkel (AIAA Paper 81-1259, 1981): |second difference| of the pressure over its sum, the largest
// of all directions. It detects shocks, not contacts.
constexpr real usual_threshold[1] = {real(2.0 / 100)};
constexpr bool sensor_is_share = true;
constexpr int nodes_beside = 1;

template <class T> struct Sensor {
    Largest<T> found;

    template <class At> HD void along(const At &at, const T *) {
        found.second_difference(at(-1).p, at(0).p, at(1).p);
    }
    HD auto may_exceed(const Primitive<T> &, T limit) const { return found.exceeds(limit); }
    HD T value(const Primitive<T> &, T) const { return found.value(); }
};
