// The 6th-order central difference, of metrics and viscous terms. hiresx/equations/stencil.py reads its numbers here.
constexpr int difference_reach = 3;

// What the difference of the values 1, 2, 3 nodes ahead and behind weighs, unit spacing.
constexpr real difference_weights[difference_reach] = {real(3.0 / 4), real(-3.0 / 20), real(1.0 / 60)};

// First derivative of values at(offset), unit spacing. Written out, as a loop takes more registers of a GPU.
template <class T, class At> HD T derivative(const At &at) {
    constexpr real one = difference_weights[0], two = difference_weights[1], three = difference_weights[2];
    return one * (at(1) - at(-1)) + two * (at(2) - at(-2)) + three * (at(3) - at(-3));
}
