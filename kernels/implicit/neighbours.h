// The blocks of the six neighbours of a node as they are kept: in FP32, in FP16 or in 8 bits (HX_NEIGHBOUR_BITS; A. Walden
// and others, A Mixed Precision Multicolor Point-Implicit Solver for Unstructured Grids on GPUs). In less than 32 bits each
// row of a block has a power of two of its own, of which a byte keeps the exponent: an entry is what is kept times this
// power. So neither the unit of an equation nor the sizes of cells lead beyond what the numbers can hold. FP16 is converted
// by its bits: compilers and processors without it make the same numbers. Threads read and write words of 8 bytes, which
// have several entries each.
#pragma once
#include "coloured.h"
#include "small_matrices.h"

// The words of one neighbour: its entries row by row and, of less than 32 bits, behind them the exponents of the rows. The
// diagonal block stands ahead of those of all neighbours.
constexpr int neighbour_words = HX_NEIGHBOUR_WORDS;
constexpr int block_reals = HX_BLOCK_REALS;
// The numbers that keep the update and the inverses of diagonal blocks: FP64, or FP32, two in the place of one real
#if HX_SWEEP_BITS == 32
typedef float swept_real;
#else
typedef real swept_real;
#endif
constexpr int update_reals = HX_UPDATE_REALS;
HD swept_real *kept_update(real *update) { return reinterpret_cast<swept_real *>(update); }
HD const swept_real *kept_update(const real *update) { return reinterpret_cast<const swept_real *>(update); }

union double_bits {
    double number;
    unsigned long long bits;
};
union float_bits {
    float number;
    unsigned bits;
};

#if HX_NEIGHBOUR_BITS == 32
typedef unsigned kept_entry;
HD real from_kept(kept_entry a) {
    float_bits x;
    x.bits = a;
    return real(x.number);
}
HD kept_entry to_kept(real a) {
    float_bits x;
    x.number = float(a);
    return x.bits;
}
#elif HX_NEIGHBOUR_BITS == 16
// The largest entry of a row is kept between 2^14 and 2^15, so that entries down to 2^-28 of it have 11 bits. The bits of an
// FP16 number at their places in FP32 are the number times 2^-112, which the power of the row makes good.
typedef unsigned short kept_entry;
constexpr int kept_top = 14, kept_shift = 112;
constexpr real kept_margin = real(1), kept_limit = real(65504);
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
typedef unsigned char kept_entry;
constexpr int kept_top = 6, kept_shift = 0;
constexpr real kept_margin = real(256.0 / 255.0), kept_limit = real(127);
HD real from_kept(kept_entry a) { return real(int((signed char)a)); }
HD kept_entry to_kept(real a) { return kept_entry(int(rint(a))); }
#endif

#if HX_NEIGHBOUR_BITS == 32
HD real over_unit(int) { return real(1); }
HD real power_of_row(unsigned char) { return real(1); }
HD unsigned char exponent_of(const real *) { return 0; }
HD kept_entry entry_of(real a, int, unsigned char) { return to_kept(a); }
#else
// A variable of a model of turbulence may be some hundreds where others are 1, and the entries of its column are so much
// smaller: they are kept for its unit, as 1024.
HD real over_unit(int column) { return over_transported_unit(column); }
HD real power_of_row(unsigned char exponent) {
    double_bits x;
    x.bits = (unsigned long long)(exponent + 1023 - 127 + kept_shift) << 52;
    return x.number;
}
HD unsigned char exponent_of(const real *row) {
    real largest = real(0);
    for (int b = 0; b < block_variables; ++b) largest = larger(largest, absolute(row[b]) / over_unit(b));
    double_bits x;
    x.number = largest * kept_margin;
    const int wanted = int(x.bits >> 52) - 1023 - kept_top + 127;
    return (unsigned char)(wanted < 1 ? 1 : wanted > 254 ? 254 : wanted);
}
HD kept_entry entry_of(real a, int column, unsigned char exponent) {
    double_bits x;
    x.bits = (unsigned long long)(1023 + 127 - exponent) << 52;
    return to_kept(smaller(larger(a / over_unit(column) * x.number, -kept_limit), kept_limit));
}
#endif

// Entries and exponents in the words of a neighbour
HD real number_in(const unsigned long long *words, int row, int column) {
    const int bit = (row * block_variables + column) * HX_NEIGHBOUR_BITS;
    return from_kept(kept_entry(words[bit / 64] >> (bit % 64)));
}
HD unsigned char exponent_in(const unsigned long long *words, int row) {
    const int bit = 8 * row + block_entries * HX_NEIGHBOUR_BITS;
    return HX_NEIGHBOUR_BITS == 32 ? 0 : (unsigned char)(words[bit / 64 % neighbour_words] >> (bit % 64));
}

// Where the blocks of the neighbours of a node lie: behind its own one, at the place c. Without stored blocks nodes on faces
// with conditions alone have them, in an array `of_faces` of these, where `numbers` has their places, and -1 for all others.
struct neighbour_place {
    real *first;
    stride apart;
    HD neighbour_place(real *first, stride apart) : first(first), apart(apart) {}
    HD neighbour_place(real *blocks, stride sv, long long c, const int *numbers, real *of_faces, int faces, long long p)
        : first(blocks + block_entries * sv + c), apart(sv) {
        if (numbers) first = numbers[p] < 0 ? nullptr : of_faces + numbers[p], apart = faces;
    }
    HD bool there() const { return first != nullptr; }
};

// The block of the neighbour on one side (imin, imax, jmin, ...) of a node
struct neighbour_block {
    unsigned long long words[neighbour_words];
    HD neighbour_block() = default;
    // of the node whose blocks lie at c
    HD neighbour_block(const real *blocks, stride sv, long long c, int side)
        : neighbour_block(blocks + block_entries * sv + c, sv, side) {}
    HD neighbour_block(const neighbour_place &place, int side) : neighbour_block(place.first, place.apart, side) {}
    HD void store(const neighbour_place &place, int side) const {
        for (int n = 0; n < neighbour_words; ++n) {
            double_bits x;
            x.bits = words[n];
            place.first[(side * neighbour_words + n) * place.apart] = x.number;
        }
    }
    HD real operator()(int row, int column) const {
        return power_of_row(exponent_in(words, row)) * number_in(words, row, column) * over_unit(column);
    }
    // rest = rest - B x
    template <class Number> HD void take(const Number *x, stride sv, real *rest) const {
        real sum[block_variables] = {};
        for (int b = 0; b < block_variables; ++b) {
            const real value = real(x[b * sv]) * over_unit(b);
            for (int a = 0; a < block_variables; ++a) sum[a] += number_in(words, a, b) * value;
        }
        for (int a = 0; a < block_variables; ++a) rest[a] -= power_of_row(exponent_in(words, a)) * sum[a];
    }
    // What is kept of a block. `lost` grows by what is lost by rounding, which is for the diagonal block: an update that is the
    // same at neighbouring nodes has the same product with the matrix then. In thin cells the blocks nearly cancel in such a
    // product, and the error of each would be larger than their sum. What is not finite makes `lost` so.
    HD void keep(const real *block, real *lost) {
        for (int n = 0; n < neighbour_words; ++n) words[n] = 0;
        for (int a = 0; a < block_variables; ++a) {
            const real *row = block + a * block_variables;
            const unsigned char exponent = exponent_of(row);
            for (int b = 0; b < block_variables; ++b) {
                const int bit = (a * block_variables + b) * HX_NEIGHBOUR_BITS;
                words[bit / 64] |= (unsigned long long)entry_of(row[b], b, exponent) << (bit % 64);
            }
            const int bit = 8 * a + block_entries * HX_NEIGHBOUR_BITS;
            if (HX_NEIGHBOUR_BITS < 32) words[bit / 64 % neighbour_words] |= (unsigned long long)exponent << (bit % 64);
        }
        for (int a = 0; a < block_variables; ++a)
            for (int b = 0; b < block_variables; ++b)
                lost[a * block_variables + b] += block[a * block_variables + b] - (*this)(a, b);
    }

  private:
    HD neighbour_block(const real *first, stride apart, int side) {
        for (int n = 0; n < neighbour_words; ++n) {
            double_bits x;
            x.number = load_once(first + (side * neighbour_words + n) * apart);
            words[n] = x.bits;
        }
    }
};
