// Inverses of blocks for the sweeps, computed in FP64 and stored in the precision of the sweeps.
#pragma once
#include "neighbours.h"

constexpr int inverse_reals = HX_INVERSE_REALS;

// The entries of a block in FP32, two in a word of 8 bytes
HD void keep_pairs(const real *block, stride sv, real *kept) {
    for (int n = 0; 2 * n < block_entries; ++n) {
        float_bits low, high;
        low.number = float(block[2 * n]);
        high.number = 2 * n + 1 < block_entries ? float(block[2 * n + 1]) : 0.0f;
        double_bits both;
        both.bits = (unsigned long long)high.bits << 32 | low.bits;
        kept[n * sv] = both.number;
    }
}
template <class T> HD T pair_entry(const word<T> *words, int row, int column) {
    const int e = row * block_variables + column;
    return float_of<T>(words[e / 2] >> (32 * (e % 2)));
}

// Stores an inverse, and reads an entry from its words.
#if HX_SWEEP_BITS == 32
HD void keep_inverse(const real *inverse, stride sv, real *kept) { keep_pairs(inverse, sv, kept); }
template <class T> HD T inverse_in(const word<T> *words, int row, int column) { return pair_entry<T>(words, row, column); }
#else
HD void keep_inverse(const real *inverse, stride sv, real *kept) {
    for (int e = 0; e < block_entries; ++e) kept[e * sv] = inverse[e];
}
template <class T> HD T inverse_in(const word<T> *words, int row, int column) {
    return number_of_bits(words[row * block_variables + column]);
}
#endif

// The inverse of a node, or those of the nodes in the lanes of a T, which lie side by side in memory
template <class T> struct kept_inverse {
    word<T> words[inverse_reals];
    HD kept_inverse() = default;
    HD kept_inverse(const real *kept, stride sv) {
        for (int n = 0; n < inverse_reals; ++n) words[n] = load_word<T>(kept + n * sv);
    }
    HD void multiply(const T *x, T *product) const {
        for (int a = 0; a < block_variables; ++a) {
            T sum = T(real(0));
            for (int b = 0; b < block_variables; ++b) sum += inverse_in<T>(words, a, b) * x[b];
            product[a] = sum;
        }
    }
};
