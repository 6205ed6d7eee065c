// Inverses of blocks for the sweeps, computed in FP64 and kept in the numbers of the sweeps.
#pragma once
#include "neighbours.h"

constexpr int inverse_reals = HX_INVERSE_REALS;

#if HX_SWEEP_BITS == 32
HD void keep_inverse(const real *inverse, stride sv, real *kept) {
    for (int n = 0; n < inverse_reals; ++n) {
        float_bits low, high;
        low.number = float(inverse[2 * n]);
        high.number = 2 * n + 1 < block_entries ? float(inverse[2 * n + 1]) : 0.0f;
        double_bits both;
        both.bits = (unsigned long long)high.bits << 32 | low.bits;
        kept[n * sv] = both.number;
    }
}

// An entry in the words of an inverse
HD real inverse_in(const unsigned long long *words, int row, int column) {
    const int e = row * block_variables + column;
    float_bits x;
    x.bits = unsigned(words[e / 2] >> (32 * (e % 2)));
    return real(x.number);
}
#else
HD void keep_inverse(const real *inverse, stride sv, real *kept) {
    for (int e = 0; e < block_entries; ++e) kept[e * sv] = inverse[e];
}
HD real inverse_in(const unsigned long long *words, int row, int column) {
    double_bits x;
    x.bits = words[row * block_variables + column];
    return x.number;
}
#endif

struct kept_inverse {
    unsigned long long words[inverse_reals];
    HD kept_inverse() = default;
    HD kept_inverse(const real *kept, stride sv) {
        for (int n = 0; n < inverse_reals; ++n) {
            double_bits both;
            both.number = load_once(kept + n * sv);
            words[n] = both.bits;
        }
    }
    template <class Number> HD void multiply(const Number *x, Number *product) const {
        for (int a = 0; a < block_variables; ++a) {
            Number sum = Number(0);
            for (int b = 0; b < block_variables; ++b) sum += Number(inverse_in(words, a, b)) * x[b];
            product[a] = sum;
        }
    }
};
