// Central differences, unit spacing. hiresx/equations/stencil.py reads the numbers of the first here.
//
// The 6th-order one, of the viscous terms.
constexpr int difference_reach = 3;

// What the difference of the values 1, 2, 3 nodes ahead and behind weighs.
constexpr real difference_weights[difference_reach] = {real(3.0 / 4), real(-3.0 / 20), real(1.0 / 60)};

// First derivative of values at(offset). Written out, as a loop takes more registers of a GPU.
template <class T, class At> HD T derivative(const At &at) {
    constexpr real one = difference_weights[0], two = difference_weights[1], three = difference_weights[2];
    return one * (at(1) - at(-1)) + two * (at(2) - at(-2)) + three * (at(3) - at(-3));
}

// The same of values that are odd about node 0.
template <class T, class At> HD T derivative_of_odd(const At &at) {
    constexpr real one = difference_weights[0], two = difference_weights[1], three = difference_weights[2];
    return real(2) * (one * at(1) + two * at(2) + three * at(3));
}

// That of the metrics, of which the differences of half_point.h are made: the 6th-order one, or the 8th-order one where
// the corrections of the fluxes reach four nodes.
constexpr real wide_weights[4] = {real(4.0 / 5), real(-1.0 / 5), real(4.0 / 105), real(-1.0 / 280)};

template <class T, class At> HD T metric_derivative(const At &at) {
    if constexpr (correction_reach == difference_reach) {
        return derivative<T>(at);
    } else {
        constexpr real one = wide_weights[0], two = wide_weights[1], three = wide_weights[2], four = wide_weights[3];
        return one * (at(1) - at(-1)) + two * (at(2) - at(-2)) + three * (at(3) - at(-3)) + four * (at(4) - at(-4));
    }
}
