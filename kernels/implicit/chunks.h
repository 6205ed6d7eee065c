// The memory layout of the numbers that sweeps without stored blocks read of each node and its neighbours. On a GPU the
// numbers of a node that fill 16 bytes lie side by side, followed by those of the next node, so that a thread reads
// such a chunk at once. The remaining numbers, which fill no chunk, lie in rows: one number of all nodes after the
// other. On a CPU all numbers lie in rows, since packs read neighbouring nodes.
#pragma once

// As field and const_field (arithmetic.h); a launch refuses arrays that do not begin at a multiple of 16 bytes.
template <int variables> using chunked_field = real *;
template <int variables> using const_chunked_field = const real *;

// How many numbers a chunk has; 1 where there are only rows
#if HX_MATRIX_FREE && !defined(HX_CPU)
template <class Number> constexpr int of_chunk = int(16 / sizeof(Number));
#else
template <class Number> constexpr int of_chunk = 1;
#endif

// The position of number n, of `count` numbers, of the node at c in arrays of sv nodes
template <int count, class Number> HD long long number_place(int n, long long sv, long long c) {
    constexpr int size = of_chunk<Number>;
    return n < count / size * size ? (n / size * sv + c) * size + n % size : n * sv + c;
}

// The numbers of the node at c
template <int count, class Number> struct node_numbers {
    Number *first;
    long long sv, c;
    HD Number &operator[](int n) const { return first[number_place<count, Number>(n, sv, c)]; }
};

// Loads and stores a whole chunk at p.
#if HX_MATRIX_FREE && !defined(HX_CPU)
struct alignas(16) real_chunk {
    real numbers[of_chunk<real>];
};
HD void check_chunk(const real *p) {
#ifdef HX_EMULATED
    if ((unsigned long long)p % sizeof(real_chunk)) __builtin_abort();  // as a GPU would
#else
    (void)p;
#endif
}
template <class T> HD void load_chunk(const real *p, T *found) {
    check_chunk(p);
    const real_chunk chunk = *reinterpret_cast<const real_chunk *>(p);
    for (int n = 0; n < of_chunk<real>; ++n) found[n] = chunk.numbers[n];
}
// Loads two FP32 numbers that lie side by side.
HD void load_pair(const real *p, real *found) {
    struct alignas(2 * sizeof(real)) pair {
        real numbers[2];
    };
    const pair both = *reinterpret_cast<const pair *>(p);
    found[0] = both.numbers[0], found[1] = both.numbers[1];
}
template <class T> HD void store_chunk_where(bool mask, real *p, const T *given) {
    check_chunk(p);
    real_chunk chunk;
    for (int n = 0; n < of_chunk<real>; ++n) chunk.numbers[n] = given[n];
    if (mask) *reinterpret_cast<real_chunk *>(p) = chunk;
}
#else
template <class T> HD void load_chunk(const real *p, T *found) { *found = load<T>(p); }
HD void load_pair(const real *, real *) {}
template <class Mask, class T> HD void store_chunk_where(Mask mask, real *p, const T *given) { store_where(mask, p, *given); }
#endif

// Loads a number of a right-hand side, which is not read again soon.
#if defined(HX_CPU)
template <class T> HD T load_right(const real *p) { return load<T>(p); }
#else
template <class T> HD T load_right(const real *p) { return load_once(p); }
#endif

// Calls use(n, number first + n) for `count` numbers of the node at c, in order. first, count: multiples of the size of
// a chunk, or 0 and all numbers of the node.
template <int count, class T, class Use>
HD void each_number(const real *numbers, long long sv, long long c, int first, const Use &use) {
    constexpr int size = of_chunk<real>, whole = count / size * size;
    for (int n = 0; n < whole; n += size) {
        T chunk[size];
        load_chunk(numbers + (first + n) / size * sv * size + c * size, chunk);
        for (int a = 0; a < size; ++a) use(n + a, chunk[a]);
    }
    for (int n = whole; n < count; ++n) use(n, load<T>(numbers + (first + n) * sv + c));
}
template <int count, class T> HD void load_numbers(const real *numbers, long long sv, long long c, int first, T *found) {
    each_number<count, T>(numbers, sv, c, first, [&](int n, const T &number) { found[n] = number; });
}
// Stores all numbers of the node at c where `mask` is true.
template <int count, class Mask, class T>
HD void store_numbers_where(Mask mask, real *numbers, long long sv, long long c, const T *given) {
    constexpr int size = of_chunk<real>, whole = count / size * size;
    for (int n = 0; n < whole; n += size) store_chunk_where(mask, numbers + n / size * sv * size + c * size, given + n);
    for (int n = whole; n < count; ++n) store_where(mask, numbers + n * sv + c, given[n]);
}
