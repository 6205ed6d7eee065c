// Vectors of the size of the state (hiresx/solver/vectors.py), in the number type of the arithmetic. They are a
// separate program, compiled for time integrators that use vectors. Ghosts are not changed.
#include "reduce.h"

// y = a x + b y. With b = 0, y is not read.
VECTOR_KERNEL(add_vectors, int i, int j, int k, int o, int sj, int sk, stride sv, const_field<conserved_variables> x,
              field<conserved_variables> y, real a, real b) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    for (int v = 0; v < conserved_variables; ++v) {
        T sum = a * load<T>(x + v * sv + p);
        if (b != real(0)) sum = sum + b * load<T>(y + v * sv + p);
        store(y + v * sv + p, sum);
    }
}

// x = J r = dq/dt
VECTOR_KERNEL(rates_to_vector, int i, int j, int k, int o, int sj, int sk, stride sv,
              const_rate_field<conserved_variables> r, const_work_field<1> jacobian, field<conserved_variables> x) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    for (int v = 0; v < conserved_variables; ++v)
        store(x + v * sv + p, load<T>(jacobian + p) * load<T>(r + v * sv + p));
}

VECTOR_KERNEL(state_to_vector, int i, int j, int k, int o, int sj, int sk, stride sv,
              const_state_field<conserved_variables> q, field<conserved_variables> x) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    for (int v = 0; v < conserved_variables; ++v) store(x + v * sv + p, load<T>(q + v * sv + p));
}

VECTOR_KERNEL(vector_to_state, int i, int j, int k, int o, int sj, int sk, stride sv,
              const_field<conserved_variables> x, state_field<conserved_variables> q) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    for (int v = 0; v < conserved_variables; ++v) store(q + v * sv + p, load<T>(x + v * sv + p));
}

#ifdef HX_DIFFERENCES
// As state_to_vector and vector_to_state, with the rounding error of the stored state in `carry`.
VECTOR_KERNEL(carried_state_to_vector, int i, int j, int k, int o, int sj, int sk, stride sv,
              const_state_field<conserved_variables> q, const_stored_field<conserved_variables> carry,
              field<conserved_variables> x) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    for (int v = 0; v < conserved_variables; ++v)
        store(x + v * sv + p, load<T>(q + v * sv + p) + load<T>(carry + v * sv + p));
}

VECTOR_KERNEL(carried_vector_to_state, int i, int j, int k, int o, int sj, int sk, stride sv,
              const_field<conserved_variables> x, state_field<conserved_variables> q,
              stored_field<conserved_variables> carry) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    for (int v = 0; v < conserved_variables; ++v) {
        const T value = load<T>(x + v * sv + p);
        store(q + v * sv + p, value);
        store(carry + v * sv + p, value - load<T>(q + v * sv + p));
    }
}
#endif

// For each piece k of a column, `height` of the `nodes` nodes along k, the sum of the products of all variables.
// Products of scalar n are multiplied by weights[n].
VECTOR_KERNEL(column_products, int i, int j, int k, int o, int sj, int sk, int rows, int nodes, int height, stride sv,
              const_field<conserved_variables> x, const_field<conserved_variables> y, const real *weights, int width,
              real *partial) {
    T sum = T(real(0));
    for (int l = k * height; l < nodes && l < (k + 1) * height; ++l) {
        const long long p = o + i + (long long)j * sj + (long long)l * sk;
        for (int v = 0; v < conserved_variables; ++v) {
            const T product = load<T>(x + v * sv + p) * load<T>(y + v * sv + p);
            sum = sum + (v < gas_variables ? product : real(weights[v - gas_variables]) * product);
        }
    }
    store(partial + ((long long)k * rows + j) * width + i, sum);
}

// The same for x and the vectors `first` to `first` + 7 of a basis of `count` vectors, which are `apart` in memory.
// There is a sum for each of the 8 vectors, 0 beyond the last vector of the basis.
constexpr int products_at_once = 8;
VECTOR_KERNEL(basis_products, int i, int j, int k, int o, int sj, int sk, int rows, int nodes, int height, stride sv,
              long long apart, int first, int count, const real *basis, const_field<conserved_variables> x,
              const real *weights, int width, int columns, real *partial) {
    T sum[products_at_once];
    for (int m = 0; m < products_at_once; ++m) sum[m] = T(real(0));
    for (int l = k * height; l < nodes && l < (k + 1) * height; ++l) {
        const long long p = o + i + (long long)j * sj + (long long)l * sk;
        for (int v = 0; v < conserved_variables; ++v) {
            const real weight = v < gas_variables ? real(1) : weights[v - gas_variables];
            const T value = weight * load<T>(x + v * sv + p);
            const real *other = basis + first * apart + v * sv + p;
            for (int m = 0; m < products_at_once; ++m)
                if (first + m < count) sum[m] = sum[m] + value * load<T>(other + m * apart);
        }
    }
    for (int m = 0; m < products_at_once; ++m)
        store(partial + m * (long long)columns + ((long long)k * rows + j) * width + i, sum[m]);
}

// x = x + the sum of the first `count` vectors of such a basis, times their weights.
VECTOR_KERNEL(add_basis, int i, int j, int k, int o, int sj, int sk, stride sv, long long apart, int count, const real *basis,
              const real *weights, field<conserved_variables> x) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    T sum[conserved_variables];
    for (int v = 0; v < conserved_variables; ++v) sum[v] = load<T>(x + v * sv + p);
    for (int m = 0; m < count; ++m)
        for (int v = 0; v < conserved_variables; ++v)
            sum[v] = sum[v] + weights[m] * load<T>(basis + m * apart + v * sv + p);
    for (int v = 0; v < conserved_variables; ++v) store(x + v * sv + p, sum[v]);
}
