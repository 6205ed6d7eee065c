// This header adapts the kernels to the device: macros, number types and elementary functions.
//
// Point functions are templates over the arithmetic type T: `real` in a CUDA thread (and in the emulated form of
// the CUDA kernels), `real` or `pack` (a vector register of reals) on the CPU. They are branch-free: a choice between
// values is `select(mask, a, b)`.
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define HD __device__ __forceinline__
#elif defined(HX_EMULATED)
#define HD inline
#else
#define HD inline __attribute__((always_inline))
#ifndef HX_POINTS  // every kernel of this program visits single points
#define HX_CPU
#endif
#endif
// Attribute of a long point function that is called from several places. On a CPU it is not inlined, since its copies
// would take most of the compilation time.
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define HD_APART HD
#else
#define HD_APART static __attribute__((noinline))
#endif
#if !defined(__CUDACC__) && !defined(__CUDACC_RTC__)
// The C functions that kernels call are declared here. A compiler takes as long to parse <cmath> as to compile a small
// part of the solver.
#include <stddef.h>
extern "C" {
double sqrt(double) noexcept, pow(double, double) noexcept, exp(double) noexcept, log(double) noexcept;
double sin(double) noexcept, cos(double) noexcept, acos(double) noexcept, fma(double, double, double) noexcept;
double floor(double) noexcept, rint(double) noexcept, fabs(double) noexcept;
float sqrtf(float) noexcept, powf(float, float) noexcept, expf(float) noexcept, logf(float) noexcept;
float sinf(float) noexcept, cosf(float) noexcept, acosf(float) noexcept, fabsf(float) noexcept;
long double sqrtl(long double) noexcept, powl(long double, long double) noexcept, expl(long double) noexcept;
long double logl(long double) noexcept, sinl(long double) noexcept, cosl(long double) noexcept;
long double acosl(long double) noexcept, fabsl(long double) noexcept;
void *aligned_alloc(size_t, size_t) noexcept;
void free(void *) noexcept;
}
#endif

// Declares the work at one point (i, j, k) of a range. The code that visits the range is generated: a thread per point
// on CUDA, loops on the CPU.
#define KERNEL(name, ...) template <class T = real> HD void name##_point(__VA_ARGS__)
// The same for work that accesses memory only by load<T> and store and is contiguous in i, so that the CPU may visit
// packs.
#define VECTOR_KERNEL(name, ...) template <class T = real> HD void name##_point(__VA_ARGS__)
// Declares the work of a warp, for GPUs only. Every lane executes LANES { ... }, after which the lanes synchronise;
// only these blocks may differ between lanes. The lanes share variables declared SHARED, and BLOCK_MEMORY as in a tile
// kernel.
#define ROW_KERNEL(name, ...) HD void name##_row(__VA_ARGS__)
// Declares the work of a block of HX_TILE_THREADS threads, for GPUs only, on a tile of HX_TILE_I by HX_TILE_J of ni by
// nj nodes (HX_WIDE_I by HX_WIDE_J for the kernels that wrappers.py calls wide). (i, j) is the first node of the tile, k
// the number of a chunk of the nodes along k. The threads synchronise after every THREADS { ... }. They share the array
// BLOCK_MEMORY(name, <kernel>_own) of <kernel>_own reals. Each thread keeps MINE(name)[0], MINE(name)[1], ..., declared
// by PRIVATE(type, name, count), in registers. A constant <kernel>_blocks is the number of blocks that a multiprocessor
// should hold.
#define TILE_KERNEL(name, ...) HD void name##_tile(int ni, int nj, __VA_ARGS__)
// Declares a point kernel for GPUs whose point is a grid line or a part of one. It uses many registers. For further
// data OWN_MEMORY(type, name, count) gives each thread `count` numbers on the chip: OWN(name, 0), OWN(name, 1), .... If
// they exceed the usual 48 KiB of a block, the launch provides the memory. This works for one name per kernel, whose
// `count` is then a constant <kernel>_own of reals, declared before the kernel.
#define LINE_KERNEL(name, ...) template <class T = real> HD void name##_point(__VA_ARGS__)
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define SHARED __shared__
#define OWN_MEMORY(type, name, count) \
    constexpr bool name##_fits = (count) * HX_LINE_THREADS * sizeof(type) <= 48 * 1024; \
    __shared__ type name##_fixed[name##_fits ? (count) * HX_LINE_THREADS : 1]; \
    extern __shared__ double hx_given_memory[]; \
    type *const name = name##_fits ? name##_fixed : reinterpret_cast<type *>(hx_given_memory); \
    const int name##_own = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)
#define OWN(name, at) name[(at) * HX_LINE_THREADS + name##_own]
#define LANES for (int lane = threadIdx.x, hx_once = 1; hx_once; hx_once = 0, __syncwarp())
// The number of the thread. It is read again at every use, so that the compiler computes values that depend on it again
// instead of keeping them in registers.
HD int own_thread() {
    int thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    return thread;
}
#define THREADS for (int thread = own_thread(), hx_once = 1; hx_once; hx_once = 0, __syncthreads())
#define BLOCK_MEMORY(name, count) \
    extern __shared__ double hx_given_memory[]; \
    real *const name = reinterpret_cast<real *>(hx_given_memory)
#define PRIVATE(type, name, count) type name[count]
#define MINE(name) name
// FETCH(to, from) starts the asynchronous copy of a number, without conversion, into SHARED or OWN_MEMORY; FETCHED
// waits for all copies. FETCH_ENDS closes a group of the copies before it; FETCHED_BUT(count) waits for all groups but
// the last `count`.
// The copies have no cache hints: the assembler of CUDA 13.0 makes an illegal instruction of some copies with a hint
// (LDGSTS of a shared address in a uniform register).
#if __CUDA_ARCH__ >= 800
#define FETCH(to, from) \
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"((unsigned)__cvta_generic_to_shared(&(to))), \
                 "l"(from), "n"(sizeof(*(from))) : "memory")
#define FETCHED asm volatile("cp.async.wait_all;" ::: "memory")
#define FETCH_ENDS asm volatile("cp.async.commit_group;" ::: "memory")
#define FETCHED_BUT(count) asm volatile("cp.async.wait_group %0;" ::"n"(count) : "memory")
#else
#define FETCH(to, from) to = *(from)
#define FETCHED
#define FETCH_ENDS
#define FETCHED_BUT(count)
#endif
#elif (defined(HX_EMULATED) && !defined(HX_CHECKED)) || defined(HX_POINTS)
#define SHARED
#define LANES for (int lane = 0; lane < 32; ++lane)
#define THREADS for (int thread = 0; thread < HX_TILE_THREADS; ++thread)
#define BLOCK_MEMORY(name, count) real name[count]
#define PRIVATE(type, name, count) type name[HX_TILE_THREADS][count]
#define MINE(name) name[thread]
#define OWN_MEMORY(type, name, count) type name[count]
#define OWN(name, at) name[at]
#define FETCH(to, from) to = *(from)
#define FETCHED
#define FETCH_ENDS
#define FETCHED_BUT(count)
#endif
// A visitor written for the CPU only (kernels/__init__.py describes visitors whose work threads share).
#define CPU_KERNEL(name, ...) extern "C" void name(__VA_ARGS__)

#if defined(HX_COUNTED)  // a header that defines numbers that count operations
#include HX_COUNTED
typedef counted real;
#elif defined(HX_FP32)
typedef float real;
#elif defined(HX_EXTENDED)
typedef long double real;
#else
typedef double real;
#endif

// Precedes a loop that a GPU should not unroll, since it would then take more registers.
#if defined(__CUDA_ARCH__)
#define ROLLED _Pragma("unroll 1")
#else
#define ROLLED
#endif
// Precedes a loop over array elements that should be in registers.
#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define UNROLLED _Pragma("unroll")
#else
#define UNROLLED
#endif

// Types of kernel arguments with `variables` values at every node (kernels/__init__.py). They are pointers to the
// compiler; the number of variables is checked where a launch is built.
template <int variables> using field = real *;
template <int variables> using const_field = const real *;
// A pointer that may be null.
template <class Pointer> using optional = Pointer;

// The C function `name` for the type `real`: sqrt, sqrtf or sqrtl
#if defined(HX_FP32)
#define OF_REAL(name) name##f
#elif defined(HX_EXTENDED)
#define OF_REAL(name) name##l
#else
#define OF_REAL(name) name
#endif
HD real square_root(real a) { return OF_REAL(sqrt)(a); }
HD real power(real a, real b) { return OF_REAL(pow)(a, b); }
HD real exponential(real a) { return OF_REAL(exp)(a); }
HD real logarithm(real a) { return OF_REAL(log)(a); }
HD real arc_cosine(real a) { return OF_REAL(acos)(a); }  // |a| <= 1

// 1/a, 1/sqrt(a) and sqrt(a) of a normal number a > 0, exact but for the last bit or two. NVIDIA's processors
// approximate a quotient to 20 bits, and one cubic iteration completes it. Rounding as IEEE 754 requires would cost
// twice as much. For a = 0 the result may be NaN.
HD real reciprocal(real a) {
#if !defined(__CUDA_ARCH__)
    return real(1) / a;
#elif defined(HX_FP32)
    real x;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(x) : "f"(a));
    return x;
#else
    real x;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(x) : "d"(a));
    const real e = fma(-a, x, 1.0);
    return fma(x, fma(e, e, e), x);
#endif
}
HD real reciprocal_root(real a) {
#if !defined(__CUDA_ARCH__)
    return real(1) / square_root(a);
#elif defined(HX_FP32)
    real x;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(x) : "f"(a));
    return x;
#else
    real x;
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(x) : "d"(a));
    const real e = fma(-a * x, x, 1.0);
    return fma(x, e * fma(e, 0.375, 0.5), x);
#endif
}
HD real positive_root(real a) {
#if defined(__CUDA_ARCH__)
    return a * reciprocal_root(a);
#else
    return square_root(a);
#endif
}
// cos(2 pi a) and sin(2 pi a) for |a| <= 1/2, then cos(a) and sin(a). CUDA's own cos and sin reserve a stack for large
// angles.
#if defined(__CUDA_ARCH__)
HD double cosine_of_turns(double a) { return cospi(2.0 * a); }
HD double sine_of_turns(double a) { return sinpi(2.0 * a); }
HD real cosine(real a) { return OF_REAL(cospi)(real(0.3183098861837907) * a); }
HD real sine(real a) { return OF_REAL(sinpi)(real(0.3183098861837907) * a); }
#else
HD double cosine_of_turns(double a) { return cos(6.283185307179586 * a); }
HD double sine_of_turns(double a) { return sin(6.283185307179586 * a); }
HD real cosine(real a) { return OF_REAL(cos)(a); }
HD real sine(real a) { return OF_REAL(sin)(a); }
#endif
HD real absolute(real a) { return a < real(0) ? -a : a; }
HD real larger(real a, real b) { return a > b ? a : b; }
HD real smaller(real a, real b) { return a < b ? a : b; }
HD real select(bool mask, real a, real b) { return mask ? a : b; }
HD bool both(bool a, bool b) { return a && b; }
HD bool either(bool a, bool b) { return a || b; }
HD bool anywhere(bool a) { return a; }

// A mask in memory: 0 where it is false.
typedef signed char mark;
template <class T> HD auto load_mask(const mark *p) -> decltype(T() < T());
template <> HD bool load_mask<real>(const mark *p) { return *p != 0; }
HD void store(mark *p, bool a) { *p = mark(a); }
template <int variables> using mark_field = mark *;
template <int variables> using const_mark_field = const mark *;

// The number of lanes of T, and access to one lane
template <class T> constexpr int lanes_of = 1;
HD real lane_of(real a, int) { return a; }
HD void set_lane(real &a, int, real value) { a = value; }

template <class T> HD T load(const real *p) { return T(*p); }
HD void store(real *p, real a) { *p = a; }
HD void store_where(bool mask, real *p, real a) {
    if (mask) *p = a;
}
// Element `at` of an array with one value per point (stride 1), or the one value for all points (stride 0)
template <class T> HD T load_or_common(const real *p, long long at, int stride) {
    return stride ? load<T>(p + at) : T(p[0]);
}

// expect_read and expect_write prefetch memory for packs; they do nothing for single points.
template <class T> HD void expect_read(const real *) {}
// Loads a number that is not read again soon, so that it does not displace others from the cache of a GPU
HD real load_once(const real *p) {
#if defined(__CUDA_ARCH__)
    return __ldcs(p);
#else
    return *p;
#endif
}
template <class T> HD void expect_write(const real *) {}

#ifdef HX_CPU
#include "packs.h"
#endif
// A program that is to compile soon is asked for by HX_FEW_COPIES. It leaves it to the compiler which functions of the
// headers that follow are inlined.
#ifdef HX_FEW_COPIES
#undef HD
#define HD inline
#endif
