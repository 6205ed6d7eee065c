// Shocks, contacts and impulsive starts: Jameson's sensor (AIAA Paper 81-1259, 1981) of pressure and density, and a tenth
// of the divergence of the velocity over the rate at which sound crosses the cell; the largest of them.
constexpr real usual_threshold[1] = {real(2.0 / 100)};

template <class A> HD typename A::number sensor_value(const A &around) {
    using T = typename A::number;
    const Primitive<T> own = around.at(0, 0);
    Largest<T> found;
    T opening = T(real(0)), widest = T(real(0));
    for (int d = 0; d < 3; ++d) {
        if (!around.has(d)) continue;
        const Primitive<T> l = around.at(d, -1), r = around.at(d, 1);
        found.second_difference(l.p, own.p, r.p);
        found.second_difference(l.rho, own.rho, r.rho);
        const T x = around.area(d, 0), y = around.area(d, 1), z = around.area(d, 2);
        opening = opening + x * (r.u - l.u) + y * (r.v - l.v) + z * (r.w - l.w);
        widest = larger(widest, x * x + y * y + z * z);
    }
    const T crossing = reciprocal_root(widest * gas_gamma * own.p * own.volume);
    return larger(found.value(), real(0.05) * absolute(opening) * crossing);
}
