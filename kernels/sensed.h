// What sensors of shocks take of the flow around a node (kernels/sensor/), and the sensor that a run has chosen.
#if HX_SENSORS
// steps: strides along i, j and k, 0 in a direction with one node
template <class T> struct Around {
    using number = T;
    const_state_pointer q;
    const work_real *m, *jacobian;
    stride sv;
    long long p;
    const int *steps;

    HD Primitive<T> at(int d, int s) const {
        T state[gas_variables];
        for (int v = 0; v < gas_variables; ++v) state[v] = load<T>(q + v * sv + p + s * (long long)steps[d]);
        return primitive(state);
    }
    HD bool has(int d) const { return steps[d] != 0; }
    HD T area(int d, int c) const { return load<T>(m + (3 * d + c) * (long long)sv + p); }
    HD T inverse_volume() const { return load<T>(jacobian + p); }
};

// The largest of quotients with positive denominators, with one division for all of them.
template <class T> struct Largest {
    T above = T(real(0)), below = T(real(1));

    // How far a positive value is from the mean of those before and behind it, over the sum of all: 0 to 1.
    HD void second_difference(T before, T at, T after) {
        const T sum = before + after, other = absolute(sum - real(2) * at), whole = sum + real(2) * at;
        const auto more = other * below > above * whole;
        above = select(more, other, above), below = select(more, whole, below);
    }
    HD T value() const { return above * reciprocal(below); }
};

// Divergence of the velocity and the square of its curl, by differences of the next nodes.
template <class T> struct Turning {
    T divergence, curl2;
};

template <class A> HD Turning<typename A::number> turning(const A &around) {
    using T = typename A::number;
    T g[3][3];  // of component a along x, y, z
    for (int a = 0; a < 3; ++a)
        for (int c = 0; c < 3; ++c) g[a][c] = T(real(0));
    for (int d = 0; d < 3; ++d) {
        if (!around.has(d)) continue;
        const Primitive<T> l = around.at(d, -1), r = around.at(d, 1);
        const T half = real(0.5) * around.inverse_volume();
        const T rate[3] = {half * (r.u - l.u), half * (r.v - l.v), half * (r.w - l.w)};
        for (int c = 0; c < 3; ++c) {
            const T area = around.area(d, c);
            for (int a = 0; a < 3; ++a) g[a][c] = g[a][c] + rate[a] * area;
        }
    }
    const T x = g[2][1] - g[1][2], y = g[0][2] - g[2][0], z = g[1][0] - g[0][1];
    return {g[0][0] + g[1][1] + g[2][2], x * x + y * y + z * z};
}

// The rate at which sound crosses a cell, in the direction in which that takes the least time.
template <class A> HD typename A::number crossing_rate(const A &around) {
    using T = typename A::number;
    T largest = T(real(0));
    for (int d = 0; d < 3; ++d) {
        if (!around.has(d)) continue;
        const T x = around.area(d, 0), y = around.area(d, 1), z = around.area(d, 2);
        largest = larger(largest, x * x + y * y + z * z);
    }
    const Primitive<T> s = around.at(0, 0);
    return square_root(largest * gas_gamma * s.p * s.volume) * around.inverse_volume();
}
#endif
