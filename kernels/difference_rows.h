// Rows of m + 1 nodes in a row, of which the m-th difference is taken. Where a line ends at a physical face, those that
// would go on behind it are left out.

// Of node n of m + 1 in delta^m: (-1)^n m! / (n! (m - n)!).
HD real difference_weight(int m, int n) {
    constexpr real weights[3][6] = {{1, -3, 3, -1, 0, 0}, {1, -4, 6, -4, 1, 0}, {1, -5, 10, -10, 5, -1}};
    return weights[m - 3][n];
}

// `share`, or 0 for a row that is left out: of a node, that which begins so many nodes `before` it. ends: m inside. Nearer
// than m nodes to the first node of a line it is the distance from that node, and near the last node minus the distance
// from that. 0: no row of the node is taken.
template <int m, class T> HD T of_row(T ends, int before, T share) {
    const T none = T(real(0));
    share = select(ends * ends < real(0.5), none, share);
    // ends > 0: nodes before this one; ends < 0: nodes behind it
    if (before > 0) share = select(ends > none, select(ends < real(before - 0.5), none, share), share);
    if (before < m) share = select(ends < none, select(ends > real(0.5 - m + before), none, share), share);
    return share;
}
