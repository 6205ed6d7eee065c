// Matrices of 5 x 5 (larger by one for each variable of a model of turbulence), row by row.
#pragma once

// The gas, and behind it what a model of turbulence transports
constexpr int block_variables = conserved_variables;
constexpr int block_entries = block_variables * block_variables;

// One over the power of two that is the unit of a variable: of those of a model of turbulence the sizes that they have in
// turbulent layers
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

// The inverse by Gauss and Jordan's elimination with pivots of a column; NaN where a pivot is 0
HD void invert_block(real *a, real *inverse) {
    for (int e = 0; e < block_entries; ++e) inverse[e] = real(e % (block_variables + 1) == 0);
    for (int c = 0; c < block_variables; ++c) {
        int pivot = c;
        for (int r = c + 1; r < block_variables; ++r)
            if (absolute(a[r * block_variables + c]) > absolute(a[pivot * block_variables + c])) pivot = r;
        const real over = real(1) / a[pivot * block_variables + c];
        for (int l = 0; l < block_variables; ++l) {
            const real x = a[pivot * block_variables + l], y = inverse[pivot * block_variables + l];
            a[pivot * block_variables + l] = a[c * block_variables + l];
            inverse[pivot * block_variables + l] = inverse[c * block_variables + l];
            a[c * block_variables + l] = x * over, inverse[c * block_variables + l] = y * over;
        }
        for (int r = 0; r < block_variables; ++r) {
            if (r == c) continue;
            const real share = a[r * block_variables + c];
            for (int l = 0; l < block_variables; ++l) {
                a[r * block_variables + l] -= share * a[c * block_variables + l];
                inverse[r * block_variables + l] -= share * inverse[c * block_variables + l];
            }
        }
    }
}
