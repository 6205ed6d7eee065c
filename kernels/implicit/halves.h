// FP16 numbers that sweeps without stored blocks read (implicit.sweep_precision = "fp16"): the area vectors of faces and,
// with a split Jacobian, velocities and sound speeds.
// On a CPU they are rounded in the same way and stored in FP32.
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
// The bits of an FP16 number, shifted to their positions in FP32, are the number times 2^-112.
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

// One of the two numbers in a word of 32 bits
HD float number_in_half(float word, int upper) { return number_of_half(bits_of_single(word) >> 16 * upper); }
// The numbers in two words of four
template <class T> HD void numbers_of_halves(const real *words, T *found) {
    for (int n = 0; n < 4; ++n) found[n] = real(number_in_half(float(words[n / 2]), n % 2));
}
// Those in two words of three numbers and the upper half of a number in FP32: a Jacobian, which has the range of volumes
template <class T> HD void numbers_of_area(const real *words, T *face) {
    for (int n = 0; n < 3; ++n) face[n] = real(number_in_half(float(words[n / 2]), n % 2));
    face[3] = real(single_of_bits(bits_of_single(float(words[1])) & 0xffff0000u));
}
