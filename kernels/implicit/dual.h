// Dual numbers: a value and its derivatives by n variables, for the arithmetic type T of point functions (A. Griewank & A.
// Walther, Evaluating Derivatives, 2nd edition, SIAM 2008, chapter 3). Comparisons are those of the values, and a choice
// takes the derivatives of what is chosen: at a kink they are those of one side.
#pragma once

template <int n> struct dual {
    real value, slope[n];
    dual() = default;
    HD dual(real constant) : value(constant) {
        for (int d = 0; d < n; ++d) slope[d] = real(0);
    }
    // f(a) with the derivative f'(a) = rate
    HD static dual chain(real function, real rate, const dual &a) {
        dual found;
        found.value = function;
        for (int d = 0; d < n; ++d) found.slope[d] = rate * a.slope[d];
        return found;
    }
    friend HD dual operator-(const dual &a) { return chain(-a.value, real(-1), a); }
    friend HD dual operator+(const dual &a, const dual &b) {
        dual found;
        found.value = a.value + b.value;
        for (int d = 0; d < n; ++d) found.slope[d] = a.slope[d] + b.slope[d];
        return found;
    }
    friend HD dual operator-(const dual &a, const dual &b) {
        dual found;
        found.value = a.value - b.value;
        for (int d = 0; d < n; ++d) found.slope[d] = a.slope[d] - b.slope[d];
        return found;
    }
    friend HD dual operator*(const dual &a, const dual &b) {
        dual found;
        found.value = a.value * b.value;
        for (int d = 0; d < n; ++d) found.slope[d] = a.slope[d] * b.value + a.value * b.slope[d];
        return found;
    }
    friend HD dual operator/(const dual &a, const dual &b) {
        dual found;
        const real over = real(1) / b.value;
        found.value = a.value * over;
        for (int d = 0; d < n; ++d) found.slope[d] = (a.slope[d] - found.value * b.slope[d]) * over;
        return found;
    }
    friend HD dual operator*(real a, const dual &b) { return chain(a * b.value, a, b); }
    friend HD dual operator*(const dual &a, real b) { return chain(a.value * b, b, a); }
    friend HD dual &operator+=(dual &a, const dual &b) { return a = a + b; }
    friend HD dual &operator-=(dual &a, const dual &b) { return a = a - b; }
    friend HD bool operator<(const dual &a, const dual &b) { return a.value < b.value; }
    friend HD bool operator>(const dual &a, const dual &b) { return a.value > b.value; }
    friend HD bool operator<=(const dual &a, const dual &b) { return a.value <= b.value; }
    friend HD bool operator>=(const dual &a, const dual &b) { return a.value >= b.value; }
    friend HD bool operator==(const dual &a, const dual &b) { return a.value == b.value; }
    friend HD bool operator!=(const dual &a, const dual &b) { return a.value != b.value; }
};

template <int n> HD dual<n> square_root(const dual<n> &a) {
    const real root = square_root(a.value);
    return dual<n>::chain(root, real(0.5) / root, a);
}
template <int n> HD dual<n> positive_root(const dual<n> &a) { return square_root(a); }
template <int n> HD dual<n> reciprocal(const dual<n> &a) {
    const real over = real(1) / a.value;
    return dual<n>::chain(over, -over * over, a);
}
template <int n> HD dual<n> reciprocal_root(const dual<n> &a) { return reciprocal(square_root(a)); }
template <int n> HD dual<n> power(const dual<n> &a, real b) {
    return dual<n>::chain(power(a.value, b), b * power(a.value, b - real(1)), a);
}
template <int n> HD dual<n> exponential(const dual<n> &a) {
    const real e = exponential(a.value);
    return dual<n>::chain(e, e, a);
}
template <int n> HD dual<n> logarithm(const dual<n> &a) {
    return dual<n>::chain(logarithm(a.value), real(1) / a.value, a);
}
template <int n> HD dual<n> cosine(const dual<n> &a) { return dual<n>::chain(cosine(a.value), -sine(a.value), a); }
template <int n> HD dual<n> sine(const dual<n> &a) { return dual<n>::chain(sine(a.value), cosine(a.value), a); }
template <int n> HD dual<n> absolute(const dual<n> &a) { return a.value < real(0) ? -a : a; }
template <int n> HD dual<n> larger(const dual<n> &a, const dual<n> &b) { return a.value > b.value ? a : b; }
template <int n> HD dual<n> smaller(const dual<n> &a, const dual<n> &b) { return a.value < b.value ? a : b; }
template <int n> HD dual<n> larger(const dual<n> &a, real b) { return a.value > b ? a : dual<n>(b); }
template <int n> HD dual<n> larger(real a, const dual<n> &b) { return a > b.value ? dual<n>(a) : b; }
template <int n> HD dual<n> smaller(const dual<n> &a, real b) { return a.value < b ? a : dual<n>(b); }
template <int n> HD dual<n> smaller(real a, const dual<n> &b) { return a < b.value ? dual<n>(a) : b; }
template <int n> HD dual<n> select(bool mask, const dual<n> &a, const dual<n> &b) { return mask ? a : b; }
template <int n> HD dual<n> select(bool mask, const dual<n> &a, real b) { return mask ? a : dual<n>(b); }
template <int n> HD dual<n> select(bool mask, real a, const dual<n> &b) { return mask ? dual<n>(a) : b; }
