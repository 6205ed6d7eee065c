// Matrices of 5 x 5 (one row and column more for each scalar and each variable of a turbulence model), row by row.
#pragma once

// The variables of the gas, and behind them the passive scalars and the transported variables of a turbulence model
constexpr int block_variables = conserved_variables;
constexpr int block_entries = block_variables * block_variables;

// 1 over the unit of a variable, a power of two. The units of the variables of a turbulence model are their typical
// values in turbulent layers.
HD real over_transported_unit(int variable) {
#if HX_TRANSPORTED
    constexpr real over[] = {HX_OVER_TRANSPORTED_UNITS};
    constexpr int first = block_variables - HX_TRANSPORTED;
    return variable < first ? real(1) : over[variable - first];
#else
    (void)variable;
    return real(1);
#endif
}

HD void multiply_blocks(const real *a, const real *b, real factor, real *product) {
    for (int r = 0; r < block_variables; ++r)
        for (int c = 0; c < block_variables; ++c) {
            real sum = real(0);
            for (int l = 0; l < block_variables; ++l) sum += a[r * block_variables + l] * b[l * block_variables + c];
            product[r * block_variables + c] = factor * sum;
        }
}

HD void exchange_where(bool mask, real &a, real &b) {
    const real first = a;
    a = mask ? b : a, b = mask ? first : b;
}

// Replaces a by its inverse, by Gauss-Jordan elimination with pivots within a column; NaN where a pivot is 0. Rows and
// columns are exchanged by selects: a GPU keeps an array in registers only if all its indices are known at compile
// time.
HD void invert_block(real *a) {
    constexpr int n = block_variables;
    int pivots[n];
    UNROLLED
    for (int c = 0; c < n; ++c) {
        real largest = absolute(a[c * n + c]);
        pivots[c] = c;
        UNROLLED
        for (int r = c + 1; r < n; ++r) {
            const bool more = absolute(a[r * n + c]) > largest;
            largest = more ? absolute(a[r * n + c]) : largest, pivots[c] = more ? r : pivots[c];
        }
        UNROLLED
        for (int r = c + 1; r < n; ++r)
            UNROLLED
            for (int l = 0; l < n; ++l) exchange_where(pivots[c] == r, a[c * n + l], a[r * n + l]);
        const real over = real(1) / a[c * n + c];
        a[c * n + c] = real(1);
        UNROLLED
        for (int l = 0; l < n; ++l) a[c * n + l] *= over;
        UNROLLED
        for (int r = 0; r < n; ++r) {
            if (r == c) continue;
            const real share = a[r * n + c];
            a[r * n + c] = real(0);
            UNROLLED
            for (int l = 0; l < n; ++l) a[r * n + l] -= share * a[c * n + l];
        }
    }
    UNROLLED
    for (int c = n - 1; c >= 0; --c)
        UNROLLED
        for (int r = c + 1; r < n; ++r)
            UNROLLED
            for (int l = 0; l < n; ++l) exchange_where(pivots[c] == r, a[l * n + c], a[l * n + r]);
}
