// Sums over grid lines that no-slip walls conserve. The weights of the nodes of a line are those of Gregory's formula
// with differences up to the third (Fröberg, Introduction to Numerical Analysis, 1969, section 9.5), which integrates
// with fifth order: from a wall on as below, then 1. With the trapezoidal rule the rate of the wall's node would be of
// first order. hiresx/decomposition/quadrature.py reads these numbers here.
constexpr int wall_weighted = 4;
constexpr real wall_weights[wall_weighted] = {real(251.0 / 720), real(299.0 / 240), real(211.0 / 240),
                                              real(739.0 / 720)};

// F_0 is the flux behind the wall's node, F_1 the one before it and so on, all positive away from the wall; node l adds
// F_l - F_{l+1} to its rate. The sum is conserved if the wall's node gets in addition
//     p_1 + p_3 - p_0,    p_0 = F_0 + F_1,    p_l of F_l and F_{l+1} by `wall_part`.
// The nodes l with a `wall_row` store p_l, of fluxes along the index, in that ghost row of wall_sums
// (hiresx/device/fields.py).
HD constexpr int wall_row(int l) { return l == 0 ? 1 : l == 1 ? 2 : l == 3 ? 3 : 0; }
HD constexpr real wall_share(int l) { return (l < wall_weighted ? wall_weights[l] : real(1)) / wall_weights[0]; }

// p_l of a node with a `wall_row`; outer: flux on the side of the wall
template <class T> HD T wall_part(int l, T outer, T inner) {
    const real own = l == 0 ? real(1) : l == 1 ? real(2) - wall_share(1) : wall_share(2) - wall_share(3);
    const real next = l == 0 ? real(1) : l == 1 ? wall_share(1) - wall_share(2) : wall_share(3) - wall_share(4);
    return own * outer + next * inner;
}

// p_1 + p_3 - p_0 of the fluxes flux(0..4)
template <class Flux> HD real wall_sum(const Flux &flux) {
    return wall_part(1, flux(1), flux(2)) + wall_part(3, flux(3), flux(4)) - wall_part(0, flux(0), flux(1));
}

// Where a slip wall continues as a no-slip wall on the same face, the weights of the nodes l before the two walls
// differ: before the slip wall they are one half on the face and else 1. wall_step is the excess of the weights before
// the no-slip wall, divided by the weight of its own node.
HD constexpr real wall_step(int l) { return wall_share(l) - (l == 0 ? real(0.5) : real(1)) / wall_weights[0]; }
