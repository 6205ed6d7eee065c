// The entropic pressure Sigma of the regularised inviscid terms (regularised.h), from the elliptic equation
//     Sigma/rho - alpha div(grad Sigma / rho) = alpha (tr((grad u)^2) + (div u)^2)
// in index space: alpha is in cells squared, so that a shock is as many cells wide on any grid. With D_ab the difference
// of the velocity from node to node along b, of its component normal to the grid surfaces of a, which in cells of width h
// is h grad u, and differences over the cells between a node i and its neighbours j,
//     Sigma_i + alpha sum over j of 2 rho_i/(rho_i + rho_j) (Sigma_i - Sigma_j) = alpha rho_i (tr(D^2) + (tr D)^2)
// is solved by some sweeps of Jacobi from what the last stage has left. In a uniform flow all D are 0, and Sigma is.
// di, dj, dk: strides along i, j and k, 0 in a direction with one node.
#include "../scheme.h"

#if HX_REGULARISED
// The right-hand side, and in `start` the values from which the sweeps start: those of `before`, or 0 where a failed
// step has left a NaN or a number above 1e30.
VECTOR_KERNEL(entropic_source, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, stride sv,
              const_state_field<gas_variables> q, const_work_field<9> m, real alpha, const_work_field<1> before,
              work_field<1> source, work_field<1> start) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    const long long steps[3] = {di, dj, dk};
    // prefetch: the hardware does not do so for rows of so many arrays
    for (int v = 0; v < 9; ++v) expect_read<T>(m + v * (long long)sv + p + sj);
    for (int v = 0; v < 4; ++v) expect_read<T>(address(q + v * sv + p + dk + sj));
    expect_write<T>(source + p + sj);
    T change[3][3], normal[3][3], size[3];  // of component c along direction d
    for (int d = 0; d < 3; ++d) {
        size[d] = T(real(1));
        for (int c = 0; c < 3; ++c) change[d][c] = normal[d][c] = T(real(0));
        if (steps[d] == 0) continue;
        // both quotients by one division, and all three widths
        const T r = load<T>(q + p + steps[d]), l = load<T>(q + (p - steps[d])), over = reciprocal(l * r);
        const T ahead = over * l, behind = over * r;
        for (int c = 0; c < 3; ++c) {
            const auto momentum = q + (c + 1) * sv + p;
            change[d][c] = load<T>(momentum + steps[d]) * ahead - load<T>(momentum + -steps[d]) * behind;
            normal[d][c] = load<T>(m + (3 * d + c) * (long long)sv + p);
        }
        const T square = normal[d][0] * normal[d][0] + normal[d][1] * normal[d][1] + normal[d][2] * normal[d][2];
        size[d] = square_root(larger(square, T(real(1e-30))));
    }
    const T over = real(0.5) * reciprocal(size[0] * size[1] * size[2]);
    const T scale[3] = {over * size[1] * size[2], over * size[2] * size[0], over * size[0] * size[1]};
    T trace = T(real(0)), squares = T(real(0));
    T rate[3][3];  // D_ab
    for (int a = 0; a < 3; ++a)
        for (int b = 0; b < 3; ++b)
            rate[a][b] = scale[a] * (normal[a][0] * change[b][0] + normal[a][1] * change[b][1] + normal[a][2] * change[b][2]);
    for (int a = 0; a < 3; ++a) {
        trace = trace + rate[a][a];
        for (int b = 0; b < 3; ++b) squares = squares + rate[a][b] * rate[b][a];
    }
    store(source + p, alpha * load<T>(q + p) * (squares + trace * trace));
    const T last = load<T>(before + p);
    store(start + p, select(absolute(last) < T(real(1e30)), last, T(real(0))));
}

// One sweep, from `before` into `after`.
VECTOR_KERNEL(entropic_sweep, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, stride sv,
              const_state_field<1> q, real alpha, const_work_field<1> source, const_work_field<1> before,
              work_field<1> after) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    const long long steps[3] = {di, dj, dk};
    const T rho = load<T>(q + p), twice = real(2) * alpha * rho;
    T sum = load<T>(source + p), weight = T(real(1));
    for (int d = 0; d < 3; ++d) {
        if (steps[d] == 0) continue;
        // both quotients by one division
        const T l = rho + load<T>(q + (p - steps[d])), r = rho + load<T>(q + p + steps[d]), over = twice * reciprocal(l * r);
        const T behind = over * r, ahead = over * l;
        sum = sum + behind * load<T>(before + p - steps[d]) + ahead * load<T>(before + p + steps[d]);
        weight = weight + behind + ahead;
    }
    store(after + p, sum * reciprocal(weight));
}
#endif
