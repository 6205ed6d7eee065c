// Numbers in FP16, and the inverses of diagonal blocks that sweeps in FP32 without stored blocks (implicit.storage = "none")
// read on a GPU, where the inverse in FP32 would be a third of what a sweep moves.
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

#if HX_MATRIX_FREE && HX_SWEEP_BITS == 32 && !HX_STORED_DIRECTIONS && !defined(HX_CPU)
constexpr bool inverses_in_halves = true;
#else
constexpr bool inverses_in_halves = false;
#endif

// An inverse in FP16 is kept in words of 32 bits, in the first places of its numbers in FP32 and, if these words do not fill
// chunks, in the last ones. A word has two entries, row by row, and the last word has in its upper half that of a number in
// FP32: the power of two by which all entries are multiplied.
constexpr int half_words = block_entries / 2 + 1;
HD constexpr int half_place(int word) {
    constexpr int whole = half_words / 4 * 4;
    return word < whole ? word : block_entries - 1 - (word - whole);
}
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
            sum = sum + real(number_of_half(bits_of_single(float(words[e / 2])) >> 16 * (e % 2))) * x[b];
        }
        product[a] = real(single_of_bits(bits_of_single(float(words[half_words - 1])) & 0xffff0000u)) * sum;
    }
}
