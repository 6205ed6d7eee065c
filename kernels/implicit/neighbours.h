// The blocks of the six neighbours of a node as they are kept: in FP32, in FP16 or in 8 bits (HX_NEIGHBOUR_BITS; A. Walden
// and others, A Mixed Precision Multicolor Point-Implicit Solver for Unstructured Grids on GPUs). In less than 32 bits each
// row of a block has a power of two of its own, of which a byte keeps the exponent: an entry is what is kept times this
// power. So neither the unit of an equation nor the sizes of cells lead beyond what the numbers can hold. FP16 is converted
// by its bits: compilers and processors without it make the same numbers.
#pragma once
#include "small_matrices.h"

// A diagonal block, and behind it those of the neighbours
constexpr int block_reals = block_entries + HX_NEIGHBOUR_REALS;

union double_bits {
    double number;
    unsigned long long bits;
};

#if HX_NEIGHBOUR_BITS == 32
typedef float kept_entry;
HD real from_kept(kept_entry a) { return real(a); }
HD kept_entry to_kept(real a) { return float(a); }
#elif HX_NEIGHBOUR_BITS == 16
// The largest entry of a row is kept between 2^14 and 2^15, so that entries down to 2^-28 of it have 11 bits. The bits of an
// FP16 number at their places in FP32 are the number times 2^-112, which the power of the row makes good.
typedef unsigned short kept_entry;
constexpr int kept_top = 14, kept_shift = 112;
constexpr real kept_margin = real(1), kept_limit = real(65504);
union float_bits {
    float number;
    unsigned bits;
};
HD real from_kept(kept_entry a) {
    float_bits x;
    x.bits = unsigned(int(short(a))) << 13 & 0x8fffe000u;
    return real(x.number);
}
HD kept_entry to_kept(real a) {
    double_bits x;
    x.number = a;
    const unsigned sign = unsigned(x.bits >> 48) & 0x8000u;
    x.bits &= ~0ull >> 1;
    if (x.number < 0x1p-14) return kept_entry(sign | unsigned(rint(x.number * 0x1p24)));
    x.bits += (1ull << 41) - 1 + (x.bits >> 42 & 1);  // to nearest, ties to even
    return kept_entry(sign | (unsigned(x.bits >> 42) - (1008u << 10)));
}
#else
// The largest entry of a row is kept between 64 and 127; the margin is for one that would be rounded to 128.
typedef signed char kept_entry;
constexpr int kept_top = 6, kept_shift = 0;
constexpr real kept_margin = real(256.0 / 255.0), kept_limit = real(127);
HD real from_kept(kept_entry a) { return real(int(a)); }
HD kept_entry to_kept(real a) { return kept_entry(int(rint(a))); }
#endif

#if HX_NEIGHBOUR_BITS == 32
HD real over_unit(int) { return real(1); }
HD real power_of_row(unsigned char) { return real(1); }
HD void keep_row(const real *row, stride sv, kept_entry *entries, unsigned char *) {
    for (int b = 0; b < block_variables; ++b) entries[b * sv] = to_kept(row[b]);
}
#else
// The variable of a model of turbulence is some hundreds where others are 1, and the entries of its column are so much
// smaller: they are kept for a unit of 1024 of it.
HD real over_unit(int column) { return over_transported_unit(column); }
HD real power_of_row(unsigned char exponent) {
    double_bits x;
    x.bits = (unsigned long long)(exponent + 1023 - 127 + kept_shift) << 52;
    return x.number;
}
HD void keep_row(const real *row, stride sv, kept_entry *entries, unsigned char *exponent) {
    real largest = real(0);
    for (int b = 0; b < block_variables; ++b) largest = larger(largest, absolute(row[b]) / over_unit(b));
    double_bits x;
    x.number = largest * kept_margin;
    const int wanted = int(x.bits >> 52) - 1023 - kept_top + 127;
    *exponent = (unsigned char)(wanted < 1 ? 1 : wanted > 254 ? 254 : wanted);
    x.bits = (unsigned long long)(1023 + 127 - *exponent) << 52;
    for (int b = 0; b < block_variables; ++b)
        entries[b * sv] = to_kept(smaller(larger(row[b] / over_unit(b) * x.number, -kept_limit), kept_limit));
}
#endif

// The block of the neighbour on one side of node p: imin, imax, jmin, ...
struct neighbour_block {
    kept_entry *entries;
    unsigned char *exponents;
    stride sv;
    HD neighbour_block(const real *blocks, stride sv, long long p, int side) : sv(sv) {
        entries = reinterpret_cast<kept_entry *>(const_cast<real *>(blocks) + block_entries * sv);
        exponents = reinterpret_cast<unsigned char *>(entries + 6 * block_entries * sv) + side * block_variables * sv + p;
        entries += side * block_entries * sv + p;
    }
    HD real number(int row, int column) const { return from_kept(entries[(row * block_variables + column) * sv]); }
    HD real power(int row) const { return HX_NEIGHBOUR_BITS == 32 ? real(1) : power_of_row(exponents[row * sv]); }
    HD real operator()(int row, int column) const { return power(row) * number(row, column) * over_unit(column); }
    // rest = rest - B x
    HD void take(const real *x, real *rest) const {
        real sum[block_variables] = {};
        for (int b = 0; b < block_variables; ++b) {
            const real value = x[b * sv] * over_unit(b);
            for (int a = 0; a < block_variables; ++a) sum[a] += number(a, b) * value;
        }
        for (int a = 0; a < block_variables; ++a) rest[a] -= power(a) * sum[a];
    }
    // Keeps a block. `lost` grows by what is lost by rounding, which is for the diagonal block: an update that is the same at
    // neighbouring nodes has the same product with the matrix then. In thin cells the blocks nearly cancel in such a product,
    // and the error of each would be larger than their sum. What is not finite makes `lost` so.
    HD void keep(const real *block, real *lost) {
        for (int a = 0; a < block_variables; ++a) {
            keep_row(block + a * block_variables, sv, entries + a * block_variables * sv, exponents + a * sv);
            for (int b = 0; b < block_variables; ++b)
                lost[a * block_variables + b] += block[a * block_variables + b] - (*this)(a, b);
        }
    }
};
