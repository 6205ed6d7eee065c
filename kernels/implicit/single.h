// A number of FP32 in kernels whose `real` is FP64, for the computations of a preconditioner. Point functions take this
// type as they take a pack: their constants become FP32, where a float would be converted to double. Quotients and
// roots are within two units of the last place, as those of `real`.
#pragma once

#if defined(__CUDA_ARCH__)
// Not by inline assembly, which compilers do not move out of loops.
HD float single_reciprocal(float a) { return __fdividef(1.0f, a); }
HD float single_reciprocal_root(float a) { return rsqrtf(a); }
HD float single_root(float a) { return a * rsqrtf(fmaxf(a, 1e-37f)); }
#else
HD float single_reciprocal(float a) { return 1.0f / a; }
HD float single_reciprocal_root(float a) { return 1.0f / sqrtf(a); }
HD float single_root(float a) { return sqrtf(a); }
#endif

struct single {
    float number;
    single() = default;
    HD single(real a) : number(float(a)) {}
    HD static single of(float a) {
        single found;
        found.number = a;
        return found;
    }
    HD single operator-() const { return of(-number); }
    HD single &operator+=(single b) { return *this = *this + b; }
    HD single &operator-=(single b) { return *this = *this - b; }
    friend HD single operator+(single a, single b) { return of(a.number + b.number); }
    friend HD single operator-(single a, single b) { return of(a.number - b.number); }
    friend HD single operator*(single a, single b) { return of(a.number * b.number); }
    friend HD single operator/(single a, single b) { return of(a.number * single_reciprocal(b.number)); }
    friend HD bool operator<(single a, single b) { return a.number < b.number; }
    friend HD bool operator>(single a, single b) { return a.number > b.number; }
    friend HD bool operator<=(single a, single b) { return a.number <= b.number; }
    friend HD bool operator>=(single a, single b) { return a.number >= b.number; }
    friend HD bool operator==(single a, single b) { return a.number == b.number; }
    friend HD bool operator!=(single a, single b) { return a.number != b.number; }
};
HD single select(bool mask, single a, single b) { return mask ? a : b; }
HD single absolute(single a) { return a.number < 0.0f ? -a : a; }
HD single larger(single a, single b) { return a.number > b.number ? a : b; }
HD single smaller(single a, single b) { return a.number < b.number ? a : b; }
HD single reciprocal(single a) { return single::of(single_reciprocal(a.number)); }
HD single reciprocal_root(single a) { return single::of(single_reciprocal_root(a.number)); }
HD single square_root(single a) { return single::of(single_root(a.number)); }
HD single positive_root(single a) { return a * reciprocal_root(a); }
HD single power(single a, real b) { return single::of(powf(a.number, float(b))); }
HD single exponential(single a) { return single::of(expf(a.number)); }
HD single logarithm(single a) { return single::of(logf(a.number)); }
HD single cosine(single a) { return single::of(cosf(a.number)); }
HD single sine(single a) { return single::of(sinf(a.number)); }
HD void set_lane(single &a, int, real value) { a = single(value); }
