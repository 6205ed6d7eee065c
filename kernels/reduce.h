// Reductions in a fixed order: columns along k first, then entries of a flat array with a fixed stride; the host
// reduces the last few numbers.

// For each column: sums of (J r_v)^2 (residual, 5 values), then least density and least pressure.
VECTOR_KERNEL(column_norms, int i, int j, int k, int o, int sj, int sk, int columns, int height, stride sv,
              const_state_field<gas_variables> q, const_rate_field<gas_variables> r, const_work_field<1> jacobian,
              int width,
              real *partial) {
    T sum[gas_variables];
    for (int v = 0; v < gas_variables; ++v) sum[v] = T(real(0));
    T least[2] = {T(real(1e30)), T(real(1e30))};
    for (int l = 0; l < height; ++l) {
        const long long p = o + i + (long long)j * sj + (long long)l * sk;
        T state[gas_variables];
        for (int v = 0; v < gas_variables; ++v) {
            state[v] = load<T>(q + v * sv + p);
            const T rate = load<T>(r + v * sv + p) * load<T>(jacobian + p);
            sum[v] = sum[v] + rate * rate;
        }
        const T pressure = primitive(state).p;
        least[0] = select(either(state[0] < least[0], state[0] != state[0]), state[0], least[0]);
        least[1] = select(either(pressure < least[1], pressure != pressure), pressure, least[1]);
    }
    const long long at = (long long)j * width + i;
    for (int v = 0; v < gas_variables; ++v) store(partial + (long long)v * columns + at, sum[v]);
    for (int v = 0; v < 2; ++v) store(partial + (long long)(gas_variables + v) * columns + at, least[v]);
}

// The sum (how = 0), the larger (1) or the lesser (2) of two values; NaN if one of them is NaN.
template <class T> HD T combined(T all, T value, int how) {
    const auto none = value != value;
    if (how == 0) return all + value;
    return how == 1 ? select(either(value > all, none), value, all) : select(either(value < all, none), value, all);
}

// Combines `all` with the `count` values from `next` on, with stride `apart`, in this order. They are loaded before the
// first of them is combined, so that a GPU waits for memory once for all of them.
template <int count, class T> HD T combined_with(T all, const real *next, long long apart, int how) {
    T values[count];
    for (int n = 0; n < count; ++n) values[n] = load<T>(next + n * apart);
    for (int n = 0; n < count; ++n) all = combined(all, values[n], how);
    return all;
}

// result[j][i] = sum, largest or least of values[j][i], values[j][i + threads], ..., combined in this order.
VECTOR_KERNEL(reduce, int i, int j, int k, int count, int threads, int how, const real *values, real *result) {
    constexpr int lanes = sizeof(T) / sizeof(real);
    const real *row = values + (long long)j * count;
    real *found = result + (long long)j * threads + i;
    T all = load<T>(row + i);
    long long l = i + threads;
    const long long apart = threads;
    for (; l + 15 * apart + lanes <= count; l += 16 * apart) all = combined_with<16>(all, row + l, apart, how);
    for (; l + 3 * apart + lanes <= count; l += 4 * apart) all = combined_with<4>(all, row + l, apart, how);
    for (; l + lanes <= count; l += apart) all = combined(all, load<T>(row + l), how);
    store(found, all);
    for (; l < count; ++l, ++found) *found = combined(*found, row[l], how);  // the rest of a row, less than a pack
}

// result[j][i] = values[j][i] + values[j][i + threads] + ..., for rows of `count` doubles or reals.
template <class Value>
HD void sum_apart(int i, int j, int count, int threads, const Value *values, double *result) {
    double sum = 0.0;
    for (int l = i; l < count; l += threads) sum += values[(long long)j * count + l];
    result[(long long)j * threads + i] = sum;
}

KERNEL(sum_columns, int i, int j, int k, int count, int threads, const double *values, double *result) {
    sum_apart(i, j, count, threads, values, result);
}

KERNEL(sum_reals, int i, int j, int k, int count, int threads, const real *values, double *result) {
    sum_apart(i, j, count, threads, values, result);
}
