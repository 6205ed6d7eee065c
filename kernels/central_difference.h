// Central differences for unit spacing. hiresx/equations/stencil.py reads the numbers here.
//
// Nodes on each side that the difference of sixth order reads
constexpr int difference_reach = 3;

// Weights of f(i + s) - f(i - s) for s = 1, 2, 3
constexpr real difference_weights[difference_reach] = {real(3.0 / 4), real(-3.0 / 20), real(1.0 / 60)};

// First derivative of values at(offset). It is written out, as a loop takes more registers of a GPU.
template <class T, class At> HD T derivative(const At &at) {
    constexpr real one = difference_weights[0], two = difference_weights[1], three = difference_weights[2];
    return one * (at(1) - at(-1)) + two * (at(2) - at(-2)) + three * (at(3) - at(-3));
}

// The same for values that are odd about node 0
template <class T, class At> HD T derivative_of_odd(const At &at) {
    constexpr real one = difference_weights[0], two = difference_weights[1], three = difference_weights[2];
    return real(2) * (one * at(1) + two * at(2) + three * at(3));
}

// Weights of the difference of eighth order, for s = 1 to 4
constexpr real wide_weights[4] = {real(4.0 / 5), real(-1.0 / 5), real(4.0 / 105), real(-1.0 / 280)};

// First derivative of sixth order for a reach of three nodes, and of eighth order for four
template <int reach, class T, class At> HD T central_derivative(const At &at) {
    static_assert(reach == 3 || reach == 4, "central differences are written for these");
    if constexpr (reach == difference_reach) {
        return derivative<T>(at);
    } else {
        constexpr real one = wide_weights[0], two = wide_weights[1], three = wide_weights[2], four = wide_weights[3];
        return one * (at(1) - at(-1)) + two * (at(2) - at(-2)) + three * (at(3) - at(-3)) + four * (at(4) - at(-4));
    }
}

template <int reach> HD constexpr real central_weight(int k) {
    return reach == difference_reach ? difference_weights[k - 1] : wide_weights[k - 1];
}

// The derivative for the metrics, from which the differences of half_point.h are made
template <class T, class At> HD T metric_derivative(const At &at) { return central_derivative<correction_reach, T>(at); }

// The derivative for the viscous terms and for gradients in monitors
template <class T, class At> HD T nodal_derivative(const At &at) { return central_derivative<viscous_reach, T>(at); }
