// The negative part S- = (S - |S|)/2 of a symmetric 3 x 3 matrix S: the part of its negative eigenvalues. The error is
// of the order of the round-off of |S|, also where eigenvalues coincide or vanish. Entries of a matrix: xx, yy, zz, xy,
// xz, yz.
constexpr int tensor_entries = 6;

HD int tensor_entry(int a, int b) { return a == b ? a : a + b + 2; }

// f = S m
template <class T, class A> HD void tensor_times(const T *s, const A *m, T *f) {
    for (int a = 0; a < 3; ++a)
        f[a] = s[tensor_entry(a, 0)] * m[0] + s[tensor_entry(a, 1)] * m[1] + s[tensor_entry(a, 2)] * m[2];
}

// Let S = q + p B with tr B = 0 and tr B^2 = 6. Of +B or -B, one eigenvalue is at least sqrt(3) apart from both others:
// the root x of x^3 - 3 x = 2 h = |det B| between sqrt(3) and 2. Its projector is the adjugate of +-B - x over its
// trace. On the plane of the other two S is mu plus a matrix N without trace, whose square is nu^2. part: S-. Returns
// the least eigenvalue of S.
template <class T> HD T compressive_part(const T *s, T *part) {
    const T zero = T(real(0)), one = T(real(1)), trace = s[0] + s[1] + s[2], mean = real(1.0 / 3) * trace;
    T b[tensor_entries], square = zero;
    for (int n = 0; n < tensor_entries; ++n) {
        b[n] = n < 3 ? s[n] - mean : s[n];
        square = square + (n < 3 ? real(1.0 / 6) : real(1.0 / 3)) * b[n] * b[n];
    }
    const T over = reciprocal(square_root(larger(square, T(real(1e-30)))));
    for (int n = 0; n < tensor_entries; ++n) b[n] = b[n] * over;
    const T third = b[0] * (b[1] * b[2] - b[5] * b[5]) - b[3] * (b[3] * b[2] - b[5] * b[4]) + b[4] * (b[3] * b[5] - b[1] * b[4]);
    const T sign = select(third < zero, -one, one), h = smaller(real(0.5) * absolute(third), one);
    T x = real(1.7320508075688772) + h * (real(1.0 / 3) - real(0.0653841409022105) * h);
    for (int n = 0; n < 3; ++n)  // Newton's method, from an error of less than 0.01
        x = x - (x * (x * x - real(3)) - real(2) * h) * reciprocal(real(3) * (x * x - one));
    for (int n = 0; n < tensor_entries; ++n) b[n] = n < 3 ? sign * b[n] - x : sign * b[n];
    T apart[tensor_entries];
    for (int i = 0; i < 3; ++i)
        for (int j = i; j < 3; ++j) {
            const int k = (i + 1) % 3, l = (i + 2) % 3, m = (j + 1) % 3, n = (j + 2) % 3;
            apart[tensor_entry(i, j)] =
                b[tensor_entry(k, m)] * b[tensor_entry(l, n)] - b[tensor_entry(k, n)] * b[tensor_entry(l, m)];
        }
    const T share = reciprocal(apart[0] + apart[1] + apart[2]);
    const T first = mean + sign * square * over * x, mu = real(0.5) * (trace - first);
    T rest[tensor_entries], other[tensor_entries], half = zero;
    for (int n = 0; n < tensor_entries; ++n) {
        apart[n] = apart[n] * share;
        other[n] = n < 3 ? one - apart[n] : -apart[n];
        rest[n] = s[n] - first * apart[n] - mu * other[n];
        half = half + (n < 3 ? real(0.5) : one) * rest[n] * rest[n];
    }
    const T nu = square_root(half), low = smaller(mu - nu, zero), high = smaller(mu + nu, zero);
    const T kept = smaller(first, zero), middle = real(0.5) * (low + high);
    const T slope = (high - low) * reciprocal(larger(real(2) * nu, T(real(1e-30))));
    for (int n = 0; n < tensor_entries; ++n) part[n] = kept * apart[n] + middle * other[n] + slope * rest[n];
    return smaller(first, mu - nu);
}
