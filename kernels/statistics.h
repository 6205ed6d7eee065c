// Sums and extremes of the whole flow for monitors. Columns run along j, so that neighbours along i share a pack or a
// warp. A column is cut into pieces of `height` of its `nodes` nodes. The result of a piece is stored at
// [quantity][piece][k][i], with `rows` planes k.
#include "viscous.h"

// Sums of weight times q, and with `both` the sums of `other` times q behind them: 5 quantities each
VECTOR_KERNEL(column_totals, int i, int j, int k, int o, int sj, int sk, int height, int nodes, int rows, int columns,
              int width, stride sv, const_state_field<gas_variables> q, const_field<1> weight, const_field<1> other,
              int both, real *partial) {
    T sum[2 * gas_variables];
    for (int v = 0; v < 2 * gas_variables; ++v) sum[v] = T(real(0));
    for (int l = j * height; l < nodes && l < (j + 1) * height; ++l) {
        const long long p = o + i + (long long)l * sj + (long long)k * sk;
        T share = load<T>(weight + p), second = both ? load<T>(other + p) : T(real(0));
        for (int v = 0; v < gas_variables; ++v) {
            T value = load<T>(q + v * sv + p);
            sum[v] = sum[v] + share * value;
            if (both) sum[gas_variables + v] = sum[gas_variables + v] + second * value;
        }
    }
    const long long at = ((long long)j * rows + k) * width + i;
    for (int v = 0; v < 2 * gas_variables; ++v)
        if (v < gas_variables || both) store(partial + (long long)v * columns + at, sum[v]);
}

// The variables whose extremes are searched: rho, u, v, w, p, T, Mach number
constexpr int watched_variables = 7;
template <class T> HD void watched(const_state_pointer q, long long p, stride sv, T *value) {
    T state[gas_variables];
    for (int v = 0; v < gas_variables; ++v) state[v] = load<T>(q + v * sv + p);
    Primitive<T> s = primitive(state);
    T temperature = gas_gamma * s.p / s.rho;
    value[0] = s.rho, value[1] = s.u, value[2] = s.v, value[3] = s.w, value[4] = s.p, value[5] = temperature;
    value[6] = square_root((s.u * s.u + s.v * s.v + s.w * s.w) / temperature);
}

// The least value of each variable, then the largest of each; a NaN wins.
VECTOR_KERNEL(column_extrema, int i, int j, int k, int o, int sj, int sk, int height, int nodes, int rows, int columns,
              int width, stride sv, const_state_field<gas_variables> q, real *partial) {
    T found[2][watched_variables];
    for (int l = j * height; l < nodes && l < (j + 1) * height; ++l) {
        T value[watched_variables];
        watched<T>(q, o + i + (long long)l * sj + (long long)k * sk, sv, value);
        for (int v = 0; v < watched_variables; ++v) {
            if (l == j * height) found[0][v] = found[1][v] = value[v];
            auto none = value[v] != value[v];
            found[0][v] = select(either(value[v] < found[0][v], none), value[v], found[0][v]);
            found[1][v] = select(either(value[v] > found[1][v], none), value[v], found[1][v]);
        }
    }
    const long long at = ((long long)j * rows + k) * width + i;
    for (int f = 0; f < 2; ++f)
        for (int v = 0; v < watched_variables; ++v)
            store(partial + (long long)(watched_variables * f + v) * columns + at, found[f][v]);
}

// For variable i, the least and the largest of counts[part] <= 32 values of each of the `parts`. found (parts, 2,
// variables, 32): each part fills rows (2, variables, counts[part]). best (2, variables): these extremes. bounds (2,
// variables): the values up to which others count as equal to them, within `tie` times the largest magnitude or, if
// that is larger, scales[i].
KERNEL(extreme_bounds, int i, int j, int k, int parts, const int *counts, double tie, const double *scales,
       const real *found, double *best, real *bounds) {
    double extreme[2] = {0.0, 0.0};
    for (int part = 0; part < parts; ++part)
        for (int f = 0; f < 2; ++f)
            for (int l = 0; l < counts[part]; ++l) {
                const int row = f * watched_variables + i;
                const double value = found[part * 64 * watched_variables + row * counts[part] + l];
                const bool beyond = f == 0 ? value < extreme[0] : value > extreme[1];
                if ((part == 0 && l == 0) || beyond || value != value) extreme[f] = value;
            }
    double scale = scales[i];
    for (int f = 0; f < 2; ++f) {
        const double size = extreme[f] < 0.0 ? -extreme[f] : extreme[f];
        if (size > scale) scale = size;
    }
    for (int f = 0; f < 2; ++f) {
        best[f * watched_variables + i] = extreme[f];
        bounds[f * watched_variables + i] = real(f == 0 ? extreme[0] + tie * scale : extreme[1] - tie * scale);
    }
}

// The first j at which each variable is at most its first bound, then the first j at which it is at least its second
// bound; NaN counts for both. `nodes` where there is no such j in the piece of the column.
VECTOR_KERNEL(column_places, int i, int j, int k, int o, int sj, int sk, int height, int nodes, int rows, int columns,
              int width, stride sv, const_state_field<gas_variables> q, const real *bounds, real *partial) {
    T first[2][watched_variables];
    for (int f = 0; f < 2; ++f)
        for (int v = 0; v < watched_variables; ++v) first[f][v] = T(real(nodes));
    const int end = (j + 1) * height < nodes ? (j + 1) * height : nodes;
    for (int l = end - 1; l >= j * height; --l) {
        T value[watched_variables], here = T(real(l));
        watched<T>(q, o + i + (long long)l * sj + (long long)k * sk, sv, value);
        for (int v = 0; v < watched_variables; ++v) {
            auto none = value[v] != value[v];
            first[0][v] = select(either(value[v] <= T(bounds[v]), none), here, first[0][v]);
            first[1][v] = select(either(value[v] >= T(bounds[watched_variables + v]), none), here, first[1][v]);
        }
    }
    const long long at = ((long long)j * rows + k) * width + i;
    for (int f = 0; f < 2; ++f)
        for (int v = 0; v < watched_variables; ++v)
            store(partial + (long long)(watched_variables * f + v) * columns + at, first[f][v]);
}

// For row j of `column_places`: the least number among its nodes, over every threads-th column from i on, or `nowhere`
// if there is none. Node (i, j, k) of the part has the number origin + (k whole_j + j) whole_i + i.
KERNEL(least_numbers, int i, int j, int k, int columns, int threads, int nodes, int rows, int width, double origin,
       int whole_i, int whole_j, double nowhere, const real *places, double *numbers) {
    double least = nowhere;
    for (int c = i; c < columns; c += threads) {
        const double height = places[(long long)j * columns + c];
        if (!(height < nodes)) continue;
        const double number = origin + (double(c / width % rows) * whole_j + height) * whole_i + c % width;
        if (number < least) least = number;
    }
    numbers[(long long)j * threads + i] = least;
}

// Sums of weight times: kinetic energy, rho |vorticity|^2/2, tau_ij du_i/dx_j, mu |vorticity|^2, 4/3 mu (div u)^2
// (the last three divided by Re_c), p div u, (div u)^2, and with a turbulence model tau_ij du_i/dx_j of its eddy
// viscosity. w: (u, v, w, T) with the ghosts of the viscous terms; di, dj, dk: strides of the derivatives, as in
// viscous_flux.
VECTOR_KERNEL(column_energy, int i, int j, int k, int o, int sj, int sk, int di, int dj, int dk, int height, int nodes,
              int rows, int columns, int width, stride sv, const_state_field<gas_variables> q,
              const_work_field<gas_gradients> w, const_work_field<9> m, const_work_field<1> jacobian,
              const_field<1> weight, real inverse_reynolds, const_work_field<HX_EDDY_FIELDS> eddies, real *partial) {
    T sum[7 + HX_EDDY_FIELDS];
    for (int v = 0; v < 7 + HX_EDDY_FIELDS; ++v) sum[v] = T(real(0));
    for (int l = j * height; l < nodes && l < (j + 1) * height; ++l) {
        const long long p = o + i + (long long)l * sj + (long long)k * sk;
        T g[3][3], scale = load<T>(jacobian + p);
        for (int v = 0; v < 3; ++v) {
            const work_real *field = w + v * sv + p;
            T xi = nodal_derivative<T>([&](int s) { return load<T>(field + s * di); }) * scale;
            T eta = nodal_derivative<T>([&](int s) { return load<T>(field + (long long)s * dj); }) * scale;
            T zeta = T(real(0));
            if (dk) zeta = nodal_derivative<T>([&](int s) { return load<T>(field + (long long)s * dk); }) * scale;
            for (int c = 0; c < 3; ++c)
                g[v][c] = load<T>(m + c * sv + p) * xi + load<T>(m + (3 + c) * sv + p) * eta
                          + load<T>(m + (6 + c) * sv + p) * zeta;
        }
        T u = load<T>(w + p), v = load<T>(w + sv + p), s = load<T>(w + 2 * sv + p), t = load<T>(w + 3 * sv + p);
        T rho = load<T>(q + p), share = load<T>(weight + p);
        T x = g[2][1] - g[1][2], y = g[0][2] - g[2][0], z = g[1][0] - g[0][1];
        T turn = x * x + y * y + z * z, dilatation = g[0][0] + g[1][1] + g[2][2], square = dilatation * dilatation;
        T half = real(0.5) * share * rho;
        sum[0] = sum[0] + half * (u * u + v * v + s * s);
        sum[1] = sum[1] + half * turn;
#ifdef HX_VISCOUS
        T a = g[0][1] + g[1][0], b = g[0][2] + g[2][0], c = g[1][2] + g[2][1];
        T strain = real(2) * (g[0][0] * g[0][0] + g[1][1] * g[1][1] + g[2][2] * g[2][2]) + a * a + b * b + c * c;
        T mu = viscosity(t) * (inverse_reynolds * share);
        sum[2] = sum[2] + mu * (strain - real(2.0 / 3) * square);
        sum[3] = sum[3] + mu * turn;
        sum[4] = sum[4] + mu * real(4.0 / 3) * square;
#if HX_EDDY_FIELDS
        const T eddy = load<T>(eddies + p) * (inverse_reynolds * share);
        sum[7] = sum[7] + eddy * (strain - real(2.0 / 3) * square);
#endif
#else
        (void)inverse_reynolds;
#endif
        sum[5] = sum[5] + share * rho * t * real(1.0 / HX_GAMMA) * dilatation;
        sum[6] = sum[6] + share * square;
    }
    const long long at = ((long long)j * rows + k) * width + i;
    for (int v = 0; v < 7 + HX_EDDY_FIELDS; ++v) store(partial + (long long)v * columns + at, sum[v]);
    (void)eddies;
}
