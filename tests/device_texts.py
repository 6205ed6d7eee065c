"""Small kernels and their shim, for the tests of the package device."""

ARITHMETIC = """
#pragma once
#ifdef HX_FP32
typedef float real;
#else
typedef double real;
#endif
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define HD __device__ __forceinline__
#elif defined(HX_EMULATED)
#define HD inline
#else
#define HX_CPU
#define HD inline
#include <cstring>
struct pack {
    typedef real neighbours __attribute__((vector_size(32)));
    neighbours lanes;
    static constexpr size_t size() { return sizeof(neighbours) / sizeof(real); }
    friend pack operator*(real a, pack b) { return {a * b.lanes}; }
};
template <class T> HD T load(const real *p) {
    T a;
    std::memcpy(&a, p, sizeof(a));
    return a;
}
template <> HD real load<real>(const real *p) { return *p; }
HD void store(real *p, pack a) { std::memcpy(p, &a, sizeof(a)); }
#endif
#ifndef HX_CPU
template <class T> HD T load(const real *p) { return *p; }
#endif
HD void store(real *p, real a) { *p = a; }
template <int variables> using field = real *;
template <int variables> using const_field = const real *;
template <class Pointer> using optional = Pointer;
#define KERNEL(name, ...) template <class T = real> HD void name##_point(__VA_ARGS__)
#define VECTOR_KERNEL(name, ...) template <class T = real> HD void name##_point(__VA_ARGS__)
#define CPU_KERNEL(name, ...) extern "C" void name(__VA_ARGS__)
"""
SOLVER = """
#include "arithmetic.h"
#include "deep/update.h"
// KERNEL(in_a_comment, int i, int j, int k) {}
/* and
KERNEL(in_another, int i, int j, int k) {}
*/
KERNEL(every_type, int i, int j, int k, int a, long long b, real c, double d, const int *e, int *f, const double *g,
       double *h) {
    f[i] = a + int(b >> 32) + e[i];  // a brace { in a comment
    h[i] = c + d + g[i];
}
VECTOR_KERNEL(twice, int i, int j, int k, int sj, int sk, const real *a, real *b) {
    const long long p = i + (long long)j * sj + (long long)k * sk;
    store(b + p, real(2) * load<T>(a + p));
}
KERNEL(set, int i, int j, int k, int sj, int sk, real *a) { a[i + j * sj + k * sk] = 1; }
KERNEL(shift, int i, int j, int k, int o, int sj, int sk, optional<const_field<1>> by, field<1> a) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    a[p] += by ? by[p] : real(1);
}
#if !HX_LIMITER
KERNEL(unlimited_only, int i, int j, int k, real *a) { a[i] = 1; }
#endif
#ifdef HX_CPU
CPU_KERNEL(total, const real *a, long long n, real *sum) {
    *sum = 0;
    for (long long i = 0; i < n; ++i) *sum += a[i];
}
static hx_shape squares_parts(const real *a, int n, real *b) { return {n, 1000}; }
CPU_KERNEL(squares, long long begin, long long end, const real *a, int n, real *b) {
    for (long long i = begin; i < end; ++i) b[i] += a[i] * a[i];
}
#endif
"""
UPDATE = """
#include "../arithmetic.h"
#include "constant.h"
KERNEL(update, int i, int j, int k, int o, int sj, int sk,
       const real *__restrict__ q0, real *q, real a) {
    const long long p = o + i + (long long)j * sj + (long long)k * sk;
    if (true) {
        q[p] = CONSTANT * q0[p] + a * q[p];
    }
}
"""
