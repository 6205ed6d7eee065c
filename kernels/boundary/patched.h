// Patched faces: ghosts are interpolated from the nodes of other blocks. Every part of the grid computes its
// contribution to each ghost that lies between its nodes (patched_state, patched_flux). The part that has the ghost
// adds the contributions of all parts (patched_ghosts, patched_fluxes). weights[(2, 3, 6)][n]: first of the
// interpolation of high order, then of the linear one, each along i, j, k.
#include "../boxes.h"
#include "../interpolated.h"

// Contributions to the state of n ghosts. buffer[to[i]]: the sixth-order values of the variables, behind them the
// linear ones.
KERNEL(patched_state, int i, int j, int k, int n, int wi, int wj, int wk, int sj, int sk, stride sv,
       const int *giving, const int *to, const real *weights, const_state_field<conserved_variables> q, real *buffer) {
    real high[conserved_variables], low[conserved_variables], along[6];
    for (int v = 0; v < conserved_variables; ++v) high[v] = low[v] = real(0);
    const real *w = weights + i;
    for (int a = 0; a < 6; ++a) along[a] = a < wi ? w[(long long)a * n] : real(0);
    for (int c = 0; c < wk; ++c)
        for (int b = 0; b < wj; ++b) {
            const real across = w[(long long)(6 + b) * n] * w[(long long)(12 + c) * n];
            const real over = w[(long long)(24 + b) * n] * w[(long long)(30 + c) * n];
            const auto p = q + giving[i] + (long long)b * sj + (long long)c * sk;
            if (across != real(0))
                for (int v = 0; v < conserved_variables; ++v) {
                    real sum = real(0);
                    for (int a = 0; a < 6; ++a)
                        if (along[a] != real(0)) sum += along[a] * p[v * sv + a];
                    high[v] += across * sum;
                }
            if (over == real(0)) continue;
            for (int a = 0; a < wi; ++a) {
                const real weight = over * w[(long long)(18 + a) * n];
                if (weight == real(0)) continue;
                for (int v = 0; v < conserved_variables; ++v) low[v] += weight * p[v * sv + a];
            }
        }
    real *out = buffer + (long long)to[i] * (2 * conserved_variables);
    for (int v = 0; v < conserved_variables; ++v) out[v] = high[v], out[conserved_variables + v] = low[v];
}

// found[i][j]: the sixth-order value of gas variable j at position i. weights[(3, 6)][n].
KERNEL(interpolated_values, int i, int j, int k, int n, int wi, int wj, int wk, int sj, int sk, stride sv,
       const int *giving, const real *weights, const_state_field<gas_variables> q, real *found) {
    const real *w = weights + i;
    real along[6], value = real(0);
    for (int a = 0; a < 6; ++a) along[a] = a < wi ? w[(long long)a * n] : real(0);
    for (int c = 0; c < wk; ++c)
        for (int b = 0; b < wj; ++b) {
            const real across = w[(long long)(6 + b) * n] * w[(long long)(12 + c) * n];
            const auto p = q + j * sv + giving[i] + (long long)b * sj + (long long)c * sk;
            real sum = real(0);
            // Where a weight is 0 the node may be a ghost at a corner, which is never set.
            for (int a = 0; a < 6; ++a)
                if (along[a] != real(0)) sum += along[a] * p[a];
            if (across != real(0)) value += across * sum;
        }
    found[(long long)i * gas_variables + j] = value;
}

// The ghosts of a part from number `ghosts` on, counted over all parts: the addresses of the array that has them and of
// the area vectors along the direction of the face, and the stride between variables.
struct patched_part {
    long long ghosts, array, area, sv;
};

// Ghosts to[i] of a part from the contributions rows[begin[i]..begin[i + 1] - 1] of a buffer.
KERNEL(patched_ghosts, int i, int j, int k, const int *to, const int *begin, const int *rows, const real *buffer,
       int parts, const long long *part) {
    const patched_part &own = box_of(part, parts, &patched_part::ghosts, (long long)i);
    const state_pointer q = reinterpret_cast<stored_real *>(own.array);
    const stride sv = own.sv;
    real value[conserved_variables];
    interpolated_state(rows, begin[i], begin[i + 1], buffer, nullptr, 0, value);
    for (int v = 0; v < conserved_variables; ++v) q[v * sv + to[i]] = value[v];
}

// Contributions to a field that a term gives, of so many `variables`. buffer[to[i]][variable]: the linear value, which
// lies between those of the nodes around it, as it must for a sensor.
KERNEL(patched_field, int i, int j, int k, int n, int wi, int wj, int wk, int sj, int sk, stride sv, const int *giving,
       const int *to, const real *weights, int variables, const_work_field<1> field, real *buffer) {
    const real *w = weights + i;
    for (int v = 0; v < variables; ++v) {
        real sum = real(0);
        for (int c = 0; c < wk; ++c)
            for (int b = 0; b < wj; ++b)
                for (int a = 0; a < wi; ++a) {
                    const real weight =
                        w[(long long)(18 + a) * n] * w[(long long)(24 + b) * n] * w[(long long)(30 + c) * n];
                    if (weight == real(0)) continue;
                    sum += weight * field[v * sv + giving[i] + a + (long long)b * sj + (long long)c * sk];
                }
        buffer[(long long)to[i] * variables + v] = sum;
    }
}

// Ghosts of a field of patched_field.
KERNEL(patched_field_ghosts, int i, int j, int k, const int *to, const int *begin, const int *rows, const real *buffer,
       int parts, const long long *part, int variables) {
    const patched_part &own = box_of(part, parts, &patched_part::ghosts, (long long)i);
    work_real *field = reinterpret_cast<work_real *>(own.array);
    for (int v = 0; v < variables; ++v) {
        real sum = real(0);
        for (int r = begin[i]; r < begin[i + 1]; ++r) sum += buffer[(long long)rows[r] * variables + v];
        field[v * own.sv + to[i]] = sum;
    }
}

// Contributions to the viscous fluxes through planes of constant x, y and z, from the fluxes through the three
// directions of the grid: buffer[to[i]][3 v + c], v = momentum, energy and the scalars.
KERNEL(patched_flux, int i, int j, int k, int n, int wi, int wj, int wk, int sj, int sk, stride sv,
       const int *giving, const int *to, const real *weights, const work_real *m, const work_real *flux, real *buffer) {
    constexpr int width = 3 * gradient_variables;
    real sum[width];
    for (int v = 0; v < width; ++v) sum[v] = real(0);
    const real *w = weights + i;
    for (int c = 0; c < wk; ++c)
        for (int b = 0; b < wj; ++b)
            for (int a = 0; a < wi; ++a) {
                const long long p = giving[i] + a + (long long)b * sj + (long long)c * sk;
                const real weight = w[(long long)a * n] * w[(long long)(6 + b) * n] * w[(long long)(12 + c) * n];
                if (weight == real(0)) continue;
                add_cartesian_fluxes(weight, p, wj, wk, sv, m, flux, sum);
            }
    for (int v = 0; v < width; ++v) buffer[(long long)to[i] * width + v] = sum[v];
}

// Viscous fluxes along the index direction of the face at the ghosts. area: area vectors of that direction.
KERNEL(patched_fluxes, int i, int j, int k, const int *to, const int *begin, const int *rows, const real *buffer,
       int parts, const long long *part) {
    const patched_part &own = box_of(part, parts, &patched_part::ghosts, (long long)i);
    const work_real *area = reinterpret_cast<const work_real *>(own.area);
    work_real *flux = reinterpret_cast<work_real *>(own.array);
    real sum[gradient_variables];
    for (int v = 0; v < gradient_variables; ++v) sum[v] = real(0);
    for (int r = begin[i]; r < begin[i + 1]; ++r) {
        const real *given = buffer + (long long)rows[r] * (3 * gradient_variables);
        for (int v = 0; v < gradient_variables; ++v)
            for (int x = 0; x < 3; ++x) sum[v] += given[3 * v + x] * area[x * own.sv + to[i]];
    }
    for (int v = 0; v < gradient_variables; ++v) flux[v * own.sv + to[i]] = sum[v];
}
