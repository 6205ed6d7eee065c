// The coefficient C of dynamic_smagorinsky, mu_t = rho C delta^2 |S|, from the flow itself. With the test filter <f>,
// of twice the width delta,
//   L_ij = <rho u_i u_j> - <rho u_i><rho u_j>/<rho>,   M_ij = 2 delta^2 (<rho |S| S*_ij> - 4 <rho> |<S>| <S*_ij>),
// with S* = S without its trace, and C = <L_ij M_ij>/<M_ij M_ij> (Lilly 1992). <> filters both again; C >= 0.
//   strain_rate -> (ghosts) -> germano -> (ghosts) -> dynamic_coefficient
// <f> is f plus an eighth of its second differences along the grid lines of each direction. It reads the neighbours of
// a node along the lines only, and so needs no ghosts of edges. The variance of its weights is 1/4 in units of the
// spacing squared. With the 1/12 of the grid's own box filter this is the variance of a box of twice the width.
#include "../compact.h"
#include "../viscous.h"
#include "../velocity_gradient.h"

#if HX_EDDY_COEFFICIENTS
constexpr int strains = 6;
HD int row_of(int n) {
    constexpr int rows[strains] = {0, 1, 2, 0, 0, 1};
    return rows[n];
}
HD int column_of(int n) {
    constexpr int columns[strains] = {0, 1, 2, 1, 2, 2};
    return columns[n];
}

// Calls visit(offset, weight) for the nodes of the test filter.
template <class Visit> HD void test_filter(int di, int dj, int dk, const Visit &visit) {
    const int steps[3] = {di, dj, dk};
    real own = real(1);
    for (int d = 0; d < 3; ++d) {
        if (steps[d] == 0) continue;
        visit((long long)steps[d], real(0.125));
        visit(-(long long)steps[d], real(0.125));
        own -= real(0.25);
    }
    visit(0ll, own);
}

// Removes the trace of s[6]; returns |S| of the s with its trace.
template <class T> HD T without_trace(T *s) {
    const T square = s[0] * s[0] + s[1] * s[1] + s[2] * s[2] + real(2) * (s[3] * s[3] + s[4] * s[4] + s[5] * s[5]);
    const T third = (s[0] + s[1] + s[2]) * real(1.0 / 3);
    for (int a = 0; a < 3; ++a) s[a] = s[a] - third;
    return square_root(real(2) * square);
}

// strain: S_ij in the order xx, yy, zz, xy, xz, yz
VECTOR_KERNEL(strain_rate, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, stride sv,
              const_state_field<conserved_variables> q, const_work_field<9> metrics, const_work_field<1> jacobian,
              work_field<strains> strain) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    T rate[3][gradient_variables], g[3][3];
    primitive_rates(q, p, (long long)di, sv, rate[0]);
    primitive_rates(q, p, (long long)dj, sv, rate[1]);
    primitive_rates(q, p, (long long)dk, sv, rate[2]);
    const T scale = load<T>(jacobian + p);
    for (int c = 0; c < 3; ++c) {
        T area[3];
        for (int d = 0; d < 3; ++d) area[d] = load<T>(metrics + (3 * d + c) * sv + p) * scale;
        for (int a = 0; a < 3; ++a) g[a][c] = area[0] * rate[0][a] + area[1] * rate[1][a] + area[2] * rate[2][a];
    }
    for (int n = 0; n < strains; ++n)
        store(strain + n * sv + p, real(0.5) * (g[row_of(n)][column_of(n)] + g[column_of(n)][row_of(n)]));
}

// products: L_ij M_ij and M_ij M_ij
VECTOR_KERNEL(germano, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, stride sv,
              const_state_field<gas_variables> q, const_work_field<strains> strain, const_work_field<1> jacobian,
              work_field<2> products) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    T rho = T(real(0)), momentum[3], flux[strains], stress[strains], mean[strains];
    for (int c = 0; c < 3; ++c) momentum[c] = T(real(0));
    for (int n = 0; n < strains; ++n) flux[n] = stress[n] = mean[n] = T(real(0));
    test_filter(di, dj, dk, [&](long long at, real weight) {
        const T density = load<T>(q + p + at), share = weight / density;
        T own[3], s[strains];
        for (int c = 0; c < 3; ++c) {
            own[c] = load<T>(q + (c + 1) * sv + p + at);
            momentum[c] = momentum[c] + weight * own[c];
        }
        for (int n = 0; n < strains; ++n) {
            s[n] = load<T>(strain + n * sv + p + at);
            mean[n] = mean[n] + weight * s[n];
            flux[n] = flux[n] + share * own[row_of(n)] * own[column_of(n)];
        }
        const T size = weight * density * without_trace(s);
        for (int n = 0; n < strains; ++n) stress[n] = stress[n] + size * s[n];
        rho = rho + weight * density;
    });
    const T coarse = real(4) * rho * without_trace(mean);
    const T twice = real(2) * power(load<T>(jacobian + p), real(-2) / real(directions_of(di, dj, dk)));
    T above = T(real(0)), below = T(real(0));
    for (int n = 0; n < strains; ++n) {
        const T found = flux[n] - momentum[row_of(n)] * momentum[column_of(n)] / rho;
        const T model = twice * (stress[n] - coarse * mean[n]);
        const real times = n < 3 ? real(1) : real(2);
        above = above + times * found * model, below = below + times * model * model;
    }
    store(products + p, above), store(products + sv + p, below);
}

VECTOR_KERNEL(dynamic_coefficient, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, stride sv,
              const_work_field<2> products, work_field<1> eddy_coefficient) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    T above = T(real(0)), below = T(least_invariant);
    test_filter(di, dj, dk, [&](long long at, real weight) {
        above = above + weight * load<T>(products + p + at), below = below + weight * load<T>(products + sv + p + at);
    });
    store(eddy_coefficient + p, larger(above, T(real(0))) / below);
}
#endif
