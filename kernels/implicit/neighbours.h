// The stored blocks of the six neighbours of a node: in FP32, in FP16 or in 8 bits (HX_NEIGHBOUR_BITS; A. Walden and
// others, A Mixed Precision Multicolor Point-Implicit Solver for Unstructured Grids on GPUs). With less than 32 bits
// each row of a block has its own power of two, whose exponent is stored in a byte: an entry is the stored number times
// this power. So neither the unit of an equation nor the sizes of cells exceed the range of the numbers. FP16 is
// converted by its bits, so that compilers and processors without FP16 give the same numbers. Threads read and write
// words of 8 bytes, which have several entries each.
#pragma once
#include "chunks.h"
#include "coloured.h"
#include "halves.h"

// Number of words of one neighbour: its entries row by row and, with less than 32 bits, the exponents of the rows
// behind them. The diagonal block comes before the blocks of all neighbours.
constexpr int neighbour_words = HX_NEIGHBOUR_WORDS;
constexpr int block_reals = HX_BLOCK_REALS;
// The type of the update and of the inverses of diagonal blocks: FP64, or FP32, of which two take the place of one real
#if HX_SWEEP_BITS == 32
typedef float swept_real;
#else
typedef real swept_real;
#endif
constexpr int update_reals = HX_UPDATE_REALS;
HD swept_real *kept_update(real *update) { return reinterpret_cast<swept_real *>(update); }
HD const swept_real *kept_update(const real *update) { return reinterpret_cast<const swept_real *>(update); }
// The `count` numbers of the node at c
template <int count> HD node_numbers<count, swept_real> numbers_at(real *kept, long long sv, long long c) {
    return {kept_update(kept), sv, c};
}
template <int count> HD node_numbers<count, const swept_real> numbers_at(const real *kept, long long sv, long long c) {
    return {kept_update(kept), sv, c};
}

union double_bits {
    double number;
    unsigned long long bits;
};

// The bits of a real, or those of each number of a pack
HD unsigned long long bits_of(real a) {
    double_bits x;
    x.number = a;
    return x.bits;
}
HD real number_of_bits(unsigned long long bits) {
    double_bits x;
    x.bits = bits;
    return x.number;
}
// a rounded to FP32, and the bits of the result. The number is kept in memory, since GCC 12 otherwise makes vectors of
// two such numbers and leaves the rounding out.
HD real rounded(real a, unsigned long long &bits) {
    float_bits x;
#ifdef HX_CPU
    volatile float kept = float(a);
    x.number = kept;
#else
    x.number = float(a);
#endif
    bits = x.bits;
    return real(x.number);
}
HD unsigned long long select(bool mask, unsigned long long a, unsigned long long b) { return mask ? a : b; }
template <class T> struct words_of {
    typedef unsigned long long type;
};
#ifdef HX_CPU
typedef unsigned long long word_lanes __attribute__((vector_size(HX_REGISTER)));
typedef unsigned unsigned_lanes __attribute__((vector_size(HX_REGISTER / 2)));
typedef float half_lanes __attribute__((vector_size(HX_REGISTER / 2)));
template <> struct words_of<pack> {
    typedef word_lanes type;
};
HD word_lanes bits_of(pack a) { return (word_lanes)a.lanes; }
HD pack number_of_bits(word_lanes bits) { return pack((pack_lanes)bits); }
HD pack rounded(pack a, word_lanes &bits) {
    const half_lanes found = __builtin_convertvector(a.lanes, half_lanes);
    bits = __builtin_convertvector((unsigned_lanes)found, word_lanes);
    return pack(__builtin_convertvector(found, pack_lanes));
}
HD word_lanes select(pack_mask mask, word_lanes a, word_lanes b) { return mask.lanes ? a : b; }
#endif
template <class T> using word = typename words_of<T>::type;

// Load or store the number at p or, if T is a pack, also those of the next nodes of one colour, which are `apart` from
// each other.
template <class T> HD T load_nodes(const real *p, long long) { return T(load_once(p)); }
template <class T> HD word<T> load_word(const real *p) { return bits_of(load_once(p)); }
template <class T> HD void store_nodes(swept_real *p, long long, int, T value) { *p = swept_real(value); }
#if HX_SWEEP_BITS == 32
template <class T> HD T load_nodes(const float *p, long long) { return T(*p); }
#endif
#ifdef HX_CPU
template <class Number, class Lanes> HD pack lanes_at(const Number *p, long long apart) {
    Lanes found;
    if (apart == 1) __builtin_memcpy(&found, p, sizeof(found));
    else
        for (int lane = 0; lane < pack::size(); ++lane) found[lane] = p[lane * apart];
    return pack(__builtin_convertvector(found, pack_lanes));
}
template <> HD pack load_nodes<pack>(const real *p, long long apart) { return lanes_at<real, pack_lanes>(p, apart); }
#if HX_SWEEP_BITS == 32
template <> HD pack load_nodes<pack>(const float *p, long long apart) { return lanes_at<float, half_lanes>(p, apart); }
#endif
template <> HD word_lanes load_word<pack>(const real *p) { return bits_of(load<pack>(p)); }
// Stores only the first `count` lanes.
template <> HD void store_nodes<pack>(swept_real *p, long long apart, int count, pack value) {
    for (int lane = 0; lane < count; ++lane) p[lane * apart] = swept_real(value[lane]);
}
#endif
// The first number of a word of 8 bytes as FP32
template <class T> HD T float_of(word<T> bits) {
    float_bits x;
    x.bits = unsigned(bits);
    return T(x.number);
}
#ifdef HX_CPU
template <> HD pack float_of<pack>(word_lanes bits) {
    return pack(__builtin_convertvector((half_lanes)__builtin_convertvector(bits, unsigned_lanes), pack_lanes));
}
#endif

// a rounded to FP16, and the bits of the result
template <class T> HD T to_half(T a, word<T> &entry) {
    const word<T> sign = bits_of(a) >> 63 << 15, size = bits_of(a) << 1 >> 1;
    const T magnitude = number_of_bits(size), sum = magnitude * real(0x1p24) + real(0x1p52);  // integer in the low bits
    const word<T> rounded = (size + ((1ull << 41) - 1) + (size >> 42 & 1)) >> 42;  // to nearest, ties to even
    const auto small = magnitude < T(real(0x1p-14));
    entry = sign | (select(small, bits_of(sum), rounded - (1008u << 10)) & 0x7fffu);
    const T found = select(small, (sum - real(0x1p52)) * real(0x1p-24), number_of_bits(rounded << 42));
    return select(a < T(real(0)), -found, found);
}

// from_kept: the number of an entry, from the first bits of a word; to_kept: a rounded to the stored precision, and its
// bits
#if HX_NEIGHBOUR_BITS == 32
template <class T> HD T from_kept(word<T> a) { return float_of<T>(a); }
template <class T> HD T to_kept(T a, word<T> &entry) { return rounded(a, entry); }
#elif HX_NEIGHBOUR_BITS == 16
// The largest entry of a row is stored between 2^14 and 2^15, so that entries down to 2^-28 of it have 11 bits. The
// bits of an FP16 number, shifted to their positions in FP32, are the number times 2^-112; the power of the row
// corrects this.
constexpr int kept_top = 14, kept_shift = 112;
constexpr real kept_margin = real(1), kept_limit = real(65504);
template <class T> HD T from_kept(word<T> a) { return float_of<T>(unsigned(int(short(a))) << 13 & 0x8fffe000u); }
#ifdef HX_CPU
template <> HD pack from_kept<pack>(word_lanes a) { return float_of<pack>((a & 0x8000u) << 16 | (a & 0x7fffu) << 13); }
#endif
// For sums in FP32 the number is converted without the factor 2^-112: its products with the small updates of a
// converging run would underflow.
template <> HD float from_kept<float>(word<float> a) { return number_of_half(unsigned(a)); }
template <class T> HD T to_kept(T a, word<T> &entry) { return to_half(a, entry); }
#else
// The largest entry of a row is stored between 64 and 127. The margin avoids one that would be rounded to 128.
constexpr int kept_top = 6, kept_shift = 0;
constexpr real kept_margin = real(256.0 / 255.0), kept_limit = real(127);
template <class T> HD T from_kept(word<T> a) { return T(real(int((signed char)a))); }
#ifdef HX_CPU
template <> HD pack from_kept<pack>(word_lanes a) {
    return pack(number_of_bits((a & 0xffu) ^ 0x4330000000000080ull)) - (real(0x1p52) + real(128));  // 2^52 + 128 + a
}
#endif
template <class T> HD T to_kept(T a, word<T> &entry) {
    const T sum = a + real(0x1.8p52);  // integer in the low bits
    entry = bits_of(sum) & 0xffu;
    return sum - real(0x1.8p52);
}
#endif

#if HX_NEIGHBOUR_BITS == 32
HD real over_unit(int) { return real(1); }
template <class T> HD word<T> exponent_of(const T *) { return word<T>(); }
template <class T> HD T entry_of(T a, int, word<T>, word<T> &entry) { return to_kept(a, entry); }
#else
// A variable of a turbulence model may be some hundreds where others are 1, and the entries of its column are smaller
// by this factor. They are stored for the unit of the variable, for instance 1024.
HD real over_unit(int column) { return over_transported_unit(column); }
template <class T> HD word<T> exponent_of(const T *row) {
    constexpr unsigned long long shift = 1023 + kept_top - 127;
    T largest = T(real(0));
    for (int b = 0; b < block_variables; ++b) largest = larger(largest, absolute(row[b]) * (real(1) / over_unit(b)));
    const T least = number_of_bits((shift + 1) << 52), most = number_of_bits((shift + 254) << 52);
    return (bits_of(smaller(larger(largest * kept_margin, least), most)) >> 52) - shift;
}
template <class T> HD T entry_of(T a, int column, word<T> exponent, word<T> &entry) {
    const T over = number_of_bits((1023 + 127 - exponent) << 52), power = number_of_bits((1023 - 127 + exponent) << 52);
    const T scaled = smaller(larger(a * (real(1) / over_unit(column)) * over, T(-kept_limit)), T(kept_limit));
    return power * to_kept(scaled, entry) * over_unit(column);
}
#endif

// Entries and exponents in the words of a neighbour
template <class T> HD T number_in(const word<T> *words, int row, int column) {
    const int bit = (row * block_variables + column) * HX_NEIGHBOUR_BITS;
    return from_kept<T>(words[bit / 64] >> (bit % 64));
}
template <class T> HD word<T> exponent_in(const word<T> *words, int row) {
    const int bit = 8 * row + block_entries * HX_NEIGHBOUR_BITS;
    return words[bit / 64 % neighbour_words] >> (bit % 64) & 0xffu;
}
template <class T> HD T power_of_row(const word<T> *words, int row) {
#if HX_NEIGHBOUR_BITS == 32
    (void)words, (void)row;
    return T(real(1));
#else
    return T(number_of_bits((exponent_in<T>(words, row) + (1023 - 127 + kept_shift)) << 52));
#endif
}
#if HX_NEIGHBOUR_BITS == 16
template <> HD float power_of_row<float>(const word<float> *words, int row) {
    return float_of<float>(exponent_in<float>(words, row) << 23);
}
#endif

// The position of the blocks of the neighbours of a node: behind its own block, at the position c. Without stored
// blocks only nodes on faces with conditions have these blocks, in the array `of_faces`. numbers[p]: position in it, -1
// for other nodes.
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

// Stores a block in `words` and adds the rounding errors to `lost`, which is added to the diagonal block. The rounding
// then does not change the product of the matrix with an update that is equal at neighbouring nodes. In thin cells the
// blocks nearly cancel in such a product, and the error of each block would be larger than their sum. A number that is
// not finite makes `lost` not finite.
template <class T> HD void keep_block(const T *block, T *lost, word<T> *words) {
    constexpr int of_word = 64 / HX_NEIGHBOUR_BITS;
    word<T> exponents[block_variables];
    for (int a = 0; a < block_variables; ++a) exponents[a] = exponent_of(block + a * block_variables);
    for (int n = 0; n < neighbour_words; ++n) {
        words[n] = word<T>();
        for (int s = 0; s < of_word; ++s) {
            const int e = n * of_word + s;
            if (e >= block_entries) continue;
            word<T> entry;
            lost[e] += block[e] - entry_of(block[e], e % block_variables, exponents[e / block_variables], entry);
            words[n] |= entry << (s * HX_NEIGHBOUR_BITS);
        }
    }
    for (int a = 0; a < block_variables && HX_NEIGHBOUR_BITS < 32; ++a) {
        const int bit = 8 * a + block_entries * HX_NEIGHBOUR_BITS;
        words[bit / 64 % neighbour_words] |= exponents[a] << (bit % 64);
    }
}

// The number of the block of the neighbour on a side of direction d among the stored blocks of a node, which may be
// those of one direction only.
HD constexpr int stored_side(int d, int side) { return HX_STORED_DIRECTIONS == 1 ? side : 2 * d + side; }

// The block of the neighbour on one side (imin, imax, jmin, ...) of a node, or of the nodes in the lanes of a T
template <class T> struct neighbours_of {
    word<T> words[neighbour_words];
    HD neighbours_of() = default;
    // Of the node whose blocks lie at c, and of the nodes behind it if T is a pack
    HD neighbours_of(const real *blocks, stride sv, long long c, int side)
        : neighbours_of(blocks + (block_entries + side * neighbour_words) * sv + c, sv) {}
    HD neighbours_of(const neighbour_place &place, int side)
        : neighbours_of(place.first + side * neighbour_words * place.apart, place.apart) {}
    // The words begin at `first`.
    HD neighbours_of(const real *first, stride apart) {
        for (int n = 0; n < neighbour_words; ++n) words[n] = load_word<T>(first + n * apart);
    }
    HD void store(const neighbour_place &place, int side) const {
        for (int n = 0; n < neighbour_words; ++n)
            place.first[(side * neighbour_words + n) * place.apart] = number_of_bits(words[n]);
    }
    HD T operator()(int row, int column) const {
        return power_of_row<T>(words, row) * number_in<T>(words, row, column) * over_unit(column);
    }
    // rest = rest - B x
    template <class Numbers> HD void take(const Numbers &x, T *rest) const {
        T sum[block_variables] = {};
        for (int b = 0; b < block_variables; ++b) {
            const T value = T(x[b]) * over_unit(b);
            for (int a = 0; a < block_variables; ++a) sum[a] += number_in<T>(words, a, b) * value;
        }
        for (int a = 0; a < block_variables; ++a) rest[a] -= power_of_row<T>(words, a) * sum[a];
    }
    HD void keep(const T *block, T *lost) { keep_block(block, lost, words); }
};
typedef neighbours_of<real> neighbour_block;

// Loads the update of the node at c or, if T is a pack, of the nodes in its lanes, which are `apart` from each other.
template <class T> HD void load_update(const real *update, stride sv, long long c, long long apart, T *found) {
    for (int v = 0; v < block_variables; ++v) found[v] = load_nodes<T>(&numbers_at<block_variables>(update, sv, c)[v], apart);
}
// Stores the update of the first `count` of these nodes.
template <class T> HD void store_update(real *update, stride sv, long long c, long long apart, int count, const T *found) {
    for (int v = 0; v < block_variables; ++v) store_nodes<T>(&numbers_at<block_variables>(update, sv, c)[v], apart, count, found[v]);
}
// How many lanes of a T hold nodes of the row: the first is in `column`, the others in every second column behind it
template <class T> HD int of_colour(int column, int columns) {
    const int left = (columns - column + 1) / 2;
    return left < lanes_of<T> ? left : lanes_of<T>;
}
