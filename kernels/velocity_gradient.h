// Invariants of the velocity gradient g[i][j] = du_i/dx_j, for the eddy viscosities of turbulence/.

// The sum of the squares of all g_ij
template <class T> HD T square_sum(T (*g)[3]) {
    T sum = T(real(0));
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) sum = sum + g[i][j] * g[i][j];
    return sum;
}

// S_ij S_ij of the rate of strain S = (g + g^T)/2
template <class T> HD T strain_square(T (*g)[3]) {
    const T a = g[0][1] + g[1][0], b = g[0][2] + g[2][0], c = g[1][2] + g[2][1];
    return g[0][0] * g[0][0] + g[1][1] * g[1][1] + g[2][2] * g[2][2] + real(0.5) * (a * a + b * b + c * c);
}

// The minor of g without row i and column j, with its sign: the cofactor
template <class T> HD T cofactor(T (*g)[3], int i, int j) {
    const int a = (i + 1) % 3, b = (i + 2) % 3, c = (j + 1) % 3, d = (j + 2) % 3;
    return g[a][c] * g[b][d] - g[a][d] * g[b][c];
}

// The sum of the squares of all minors: the second invariant of g^T g, without cancellation
template <class T> HD T cofactor_square_sum(T (*g)[3]) {
    T sum = T(real(0));
    for (int i = 0; i < 3; ++i)
        for (int j = 0; j < 3; ++j) {
            const T minor = cofactor(g, i, j);
            sum = sum + minor * minor;
        }
    return sum;
}

// A number below the invariants of any flow; a denominator that is not less than it is not zero.
constexpr real least_invariant = real(sizeof(real) == 8 ? 1e-200 : 1e-35);
