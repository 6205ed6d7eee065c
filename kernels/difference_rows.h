// Rows of m + 1 successive nodes, of which the m-th difference delta^m is taken. Where a line ends at a physical face,
// rows that would extend beyond the face are left out.

// The weight of node n = 0, ..., m in delta^m: (-1)^n m! / (n! (m - n)!).
HD real difference_weight(int m, int n) {
    constexpr real weights[3][6] = {{1, -3, 3, -1, 0, 0}, {1, -4, 6, -4, 1, 0}, {1, -5, 10, -10, 5, -1}};
    return weights[m - 3][n];
}

// Returns `share`, or 0 if the row that begins `before` nodes before a node is left out. ends: m for a node inside. For
// a node nearer than m nodes to the first node of a line, it is the distance from that node; near the last node it is
// minus the distance from that. 0: all rows of the node are left out.
template <int m, class T> HD T of_row(T ends, int before, T share) {
    const T none = T(real(0));
    share = select(ends * ends < real(0.5), none, share);
    // ends > 0: the number of nodes before this one; ends < 0: minus the number of nodes after it
    if (before > 0) share = select(ends > none, select(ends < real(before - 0.5), none, share), share);
    if (before < m) share = select(ends < none, select(ends > real(0.5 - m + before), none, share), share);
    return share;
}
