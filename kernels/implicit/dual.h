// Dual numbers: a value and its derivatives by n variables, as arithmetic type T of point functions (A. Griewank & A.
// Walther, Evaluating Derivatives, 2nd edition, SIAM 2008, chapter 3). Value and derivatives are of type R, a real or a
// pack. Comparisons compare the values. A choice takes the derivatives of the chosen number, so that at a kink they are
// those of one side.
#pragma once

// A derivative that may be known at compile time to be 0, as that of a constant. Sums and products with such a
// derivative are then left out. Compilers do not do so on their own, since 0 times infinity is not 0.
template <class R> struct slope_number {
    R number;
    bool none;
    slope_number() = default;
    HD slope_number(const R &number) : number(number), none(false) {}
    HD static slope_number of_constant() {
        slope_number found(R(real(0)));
        found.none = true;
        return found;
    }
    HD operator R() const { return number; }
    friend HD slope_number operator-(const slope_number &a) { return a.none ? a : slope_number(-a.number); }
    friend HD slope_number operator+(const slope_number &a, const slope_number &b) {
        return a.none ? b : b.none ? a : slope_number(a.number + b.number);
    }
    friend HD slope_number operator-(const slope_number &a, const slope_number &b) {
        return b.none ? a : a.none ? slope_number(-b.number) : slope_number(a.number - b.number);
    }
    friend HD slope_number operator*(const R &a, const slope_number &b) { return b.none ? b : slope_number(a * b.number); }
    friend HD slope_number operator*(const slope_number &a, const R &b) { return a.none ? a : slope_number(a.number * b); }
};
template <class Mask, class R> HD slope_number<R> select(Mask mask, const slope_number<R> &a, const slope_number<R> &b) {
    return a.none && b.none ? a : slope_number<R>(select(mask, a.number, b.number));
}

template <int n, class R = real> struct dual {
    R value;
    slope_number<R> slope[n];
    dual() = default;
    HD dual(real constant) : value(constant) {
        for (int d = 0; d < n; ++d) slope[d] = slope_number<R>::of_constant();
    }
    template <class A> HD explicit dual(const A &constant) : value(constant) {
        for (int d = 0; d < n; ++d) slope[d] = slope_number<R>::of_constant();
    }
    // function = f(a), rate = f'(a)
    HD static dual chain(R function, R rate, const dual &a) {
        dual found;
        found.value = function;
        for (int d = 0; d < n; ++d) found.slope[d] = rate * a.slope[d];
        return found;
    }
    friend HD dual operator-(const dual &a) { return chain(-a.value, R(real(-1)), a); }
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
        const R over = reciprocal(b.value);
        found.value = a.value * over;
        for (int d = 0; d < n; ++d) found.slope[d] = (a.slope[d] - found.value * b.slope[d]) * over;
        return found;
    }
    // A: real or R
    template <class A> friend HD dual operator*(A a, const dual &b) { return chain(a * b.value, R(a), b); }
    template <class A> friend HD dual operator*(const dual &a, A b) { return chain(a.value * b, R(b), a); }
    friend HD dual &operator+=(dual &a, const dual &b) { return a = a + b; }
    friend HD dual &operator-=(dual &a, const dual &b) { return a = a - b; }
    friend HD auto operator<(const dual &a, const dual &b) { return a.value < b.value; }
    friend HD auto operator>(const dual &a, const dual &b) { return a.value > b.value; }
    friend HD auto operator<=(const dual &a, const dual &b) { return a.value <= b.value; }
    friend HD auto operator>=(const dual &a, const dual &b) { return a.value >= b.value; }
    friend HD auto operator==(const dual &a, const dual &b) { return a.value == b.value; }
    friend HD auto operator!=(const dual &a, const dual &b) { return a.value != b.value; }
};

template <class Mask, int n, class R> HD dual<n, R> select(Mask mask, const dual<n, R> &a, const dual<n, R> &b) {
    dual<n, R> found;
    found.value = select(mask, a.value, b.value);
    for (int d = 0; d < n; ++d) found.slope[d] = select(mask, a.slope[d], b.slope[d]);
    return found;
}
template <class Mask, int n, class R> HD dual<n, R> select(Mask mask, const dual<n, R> &a, real b) {
    return select(mask, a, dual<n, R>(b));
}
template <class Mask, int n, class R> HD dual<n, R> select(Mask mask, real a, const dual<n, R> &b) {
    return select(mask, dual<n, R>(a), b);
}
template <int n, class R> HD dual<n, R> square_root(const dual<n, R> &a) {
    const R root = square_root(a.value);
    return dual<n, R>::chain(root, real(0.5) / root, a);
}
template <int n, class R> HD dual<n, R> positive_root(const dual<n, R> &a) {
    const R over = reciprocal_root(a.value);
    return dual<n, R>::chain(a.value * over, real(0.5) * over, a);
}
template <int n, class R> HD dual<n, R> reciprocal(const dual<n, R> &a) {
    const R over = reciprocal(a.value);
    return dual<n, R>::chain(over, -over * over, a);
}
template <int n, class R> HD dual<n, R> reciprocal_root(const dual<n, R> &a) {
    const R over = reciprocal_root(a.value);
    return dual<n, R>::chain(over, real(-0.5) * over * over * over, a);
}
template <int n, class R> HD dual<n, R> power(const dual<n, R> &a, real b) {
    return dual<n, R>::chain(power(a.value, b), b * power(a.value, b - real(1)), a);
}
template <int n, class R> HD dual<n, R> exponential(const dual<n, R> &a) {
    const R e = exponential(a.value);
    return dual<n, R>::chain(e, e, a);
}
template <int n, class R> HD dual<n, R> logarithm(const dual<n, R> &a) {
    return dual<n, R>::chain(logarithm(a.value), real(1) / a.value, a);
}
template <int n, class R> HD dual<n, R> cosine(const dual<n, R> &a) {
    return dual<n, R>::chain(cosine(a.value), -sine(a.value), a);
}
template <int n, class R> HD dual<n, R> sine(const dual<n, R> &a) {
    return dual<n, R>::chain(sine(a.value), cosine(a.value), a);
}
template <int n, class R> HD dual<n, R> absolute(const dual<n, R> &a) { return select(a.value < R(real(0)), -a, a); }
template <int n, class R> HD dual<n, R> larger(const dual<n, R> &a, const dual<n, R> &b) {
    return select(a.value > b.value, a, b);
}
template <int n, class R> HD dual<n, R> smaller(const dual<n, R> &a, const dual<n, R> &b) {
    return select(a.value < b.value, a, b);
}
template <int n, class R> HD dual<n, R> larger(const dual<n, R> &a, real b) { return larger(a, dual<n, R>(b)); }
template <int n, class R> HD dual<n, R> larger(real a, const dual<n, R> &b) { return larger(dual<n, R>(a), b); }
template <int n, class R> HD dual<n, R> smaller(const dual<n, R> &a, real b) { return smaller(a, dual<n, R>(b)); }
template <int n, class R> HD dual<n, R> smaller(real a, const dual<n, R> &b) { return smaller(dual<n, R>(a), b); }
