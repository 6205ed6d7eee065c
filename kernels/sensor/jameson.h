// Jameson, Schmidt & Turkel (AIAA Paper 81-1259, 1981): |second difference| of the pressure over its sum, the largest of
// all directions. Sees shocks, not contacts.
constexpr real usual_threshold[1] = {real(2.0 / 100)};
constexpr bool sensor_is_share = true;

template <class A> HD typename A::number sensor_value(const A &around) {
    using T = typename A::number;
    const T p = around.at(0, 0).p;
    Largest<T> found;
    for (int d = 0; d < 3; ++d)
        if (around.has(d)) found.second_difference(around.at(d, -1).p, p, around.at(d, 1).p);
    return found.value();
}
