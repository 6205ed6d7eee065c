// What sweeps without stored blocks read in FP16 (implicit.sweep_precision = "fp16"): the inverses of diagonal blocks and the
// area vectors of faces. On a CPU these numbers are rounded in the same way and kept in FP32.
#pragma once
#include "chunks.h"
#include "small_matrices.h"

union float_bits {
    float number;
    unsigned bits;
};
HD unsigned bits_of_single(float a) {
    float_bits x;
    x.number = a;
    return x.bits;
}
HD float single_of_bits(unsigned bits) {
    float_bits x;
    x.bits = bits;
    return x.number;
}
// The bits of an FP16 number at their places in FP32 are the number times 2^-112.
HD float number_of_half(unsigned bits) {
#if defined(__CUDA_ARCH__)
    float found;
    asm("cvt.f32.f16 %0, %1;" : "=f"(found) : "h"((unsigned short)bits));
    return found;
#else
    return single_of_bits(unsigned(int(short(bits))) << 13 & 0x8fffe000u) * 0x1p112f;
#endif
}

#if HX_HALF_SWEEPS && !defined(HX_CPU)
constexpr bool in_halves = true;
#else
constexpr bool in_halves = false;
#endif

// An inverse is kept in words of 32 bits, in the first places of its numbers in FP32 and, if these words do not fill chunks, in
// the last ones. A word has two entries, row by row. The last word has in its upper half that of a number in FP32: the power of
// two by which all entries are multiplied.
constexpr int half_words = block_entries / 2 + 1;
HD constexpr int half_place(int word) {
    constexpr int whole = half_words / 4 * 4;
    return word < whole ? word : block_entries - 1 - (word - whole);
}
HD float number_in_half(float word, int upper) { return number_of_half(bits_of_single(word) >> 16 * upper); }
HD float upper_half(float word) { return single_of_bits(bits_of_single(word) & 0xffff0000u); }
// product = (the inverse of the node at c) x
template <class T> HD void multiply_halves(const real *inverses, long long sv, long long c, const T *x, T *product) {
    constexpr int whole = half_words / of_chunk<real> * of_chunk<real>;
    real words[half_words];
    for (int w = 0; w < whole; w += of_chunk<real>) load_chunk_once(inverses + (w / of_chunk<real> * sv + c) * of_chunk<real>, words + w);
    for (int w = whole; w < half_words; ++w) words[w] = load_once(inverses + number_place<block_entries, real>(half_place(w), sv, c));
    for (int a = 0; a < block_variables; ++a) {
        T sum = T(real(0));
        for (int b = 0; b < block_variables; ++b) {
            const int e = a * block_variables + b;
            sum = sum + real(number_in_half(float(words[e / 2]), e % 2)) * x[b];
        }
        product[a] = real(upper_half(float(words[half_words - 1]))) * sum;
    }
}
