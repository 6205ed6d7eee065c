// A pack on a CPU holds as many reals as a vector register, by the vector extensions that GCC and Clang share.
// Operators and functions act lane by lane; a comparison gives a mask, whose lanes have all bits set where it is true.
#if defined(__AVX512F__)
#define HX_REGISTER 64
#elif defined(__AVX__)
#define HX_REGISTER 32
#else
#define HX_REGISTER 16
#endif
typedef real pack_lanes __attribute__((vector_size(HX_REGISTER)));
typedef decltype(pack_lanes() < pack_lanes()) mask_lanes;

struct pack_mask {
    mask_lanes lanes;
};

struct pack {
    pack_lanes lanes;
    static constexpr int size() { return int(HX_REGISTER / sizeof(real)); }
    pack() = default;
    HD pack(real a) : lanes(a - pack_lanes()) {}
    HD explicit pack(pack_lanes a) : lanes(a) {}
    HD real operator[](int lane) const { return lanes[lane]; }
    HD pack operator-() const { return pack(-lanes); }
    HD pack &operator+=(pack a) { return lanes += a.lanes, *this; }
    HD pack &operator-=(pack a) { return lanes -= a.lanes, *this; }
    HD pack &operator*=(pack a) { return lanes *= a.lanes, *this; }
    HD pack &operator/=(pack a) { return lanes /= a.lanes, *this; }
    friend HD pack operator+(pack a, pack b) { return pack(a.lanes + b.lanes); }
    friend HD pack operator-(pack a, pack b) { return pack(a.lanes - b.lanes); }
    friend HD pack operator*(pack a, pack b) { return pack(a.lanes * b.lanes); }
    friend HD pack operator/(pack a, pack b) { return pack(a.lanes / b.lanes); }
    friend HD pack_mask operator<(pack a, pack b) { return {a.lanes < b.lanes}; }
    friend HD pack_mask operator>(pack a, pack b) { return {a.lanes > b.lanes}; }
    friend HD pack_mask operator<=(pack a, pack b) { return {a.lanes <= b.lanes}; }
    friend HD pack_mask operator>=(pack a, pack b) { return {a.lanes >= b.lanes}; }
    friend HD pack_mask operator==(pack a, pack b) { return {a.lanes == b.lanes}; }
    friend HD pack_mask operator!=(pack a, pack b) { return {a.lanes != b.lanes}; }
};

template <class Function> HD pack by_lane(pack a, Function function) {
    for (int lane = 0; lane < pack::size(); ++lane) a.lanes[lane] = function(a.lanes[lane]);
    return a;
}

// Uses the processor's own instruction. From single lanes GCC would use registers of half the width on some processors.
HD pack square_root(pack a) {
#if defined(__clang__) || !defined(__AVX__)
    return by_lane(a, [](real one) { return square_root(one); });
#elif defined(__AVX512F__) && defined(HX_FP32)
    return pack(__builtin_ia32_sqrtps512_mask(a.lanes, a.lanes, short(-1), 4));  // all lanes, rounded as set
#elif defined(__AVX512F__)
    return pack(__builtin_ia32_sqrtpd512_mask(a.lanes, a.lanes, char(-1), 4));
#elif defined(HX_FP32)
    return pack(__builtin_ia32_sqrtps256(a.lanes));
#else
    return pack(__builtin_ia32_sqrtpd256(a.lanes));
#endif
}
HD pack reciprocal(pack a) { return real(1) / a; }
HD pack reciprocal_root(pack a) { return real(1) / square_root(a); }
HD pack positive_root(pack a) { return square_root(a); }
HD pack power(pack a, real b) {
    return by_lane(a, [b](real one) { return power(one, b); });
}
#define BY_LANE(name) HD pack name(pack a) { return by_lane(a, [](real one) { return name(one); }); }
BY_LANE(exponential)
BY_LANE(logarithm)
BY_LANE(arc_cosine)
BY_LANE(cosine)
BY_LANE(sine)
#undef BY_LANE
HD pack absolute(pack a) { return pack((pack_lanes)((mask_lanes)a.lanes & ~(mask_lanes)pack(real(-0.0)).lanes)); }
HD pack larger(pack a, pack b) { return pack(a.lanes > b.lanes ? a.lanes : b.lanes); }
HD pack smaller(pack a, pack b) { return pack(a.lanes < b.lanes ? a.lanes : b.lanes); }
HD pack select(pack_mask mask, pack a, pack b) { return pack(mask.lanes ? a.lanes : b.lanes); }
HD pack_mask both(pack_mask a, pack_mask b) { return {a.lanes & b.lanes}; }
HD pack_mask either(pack_mask a, pack_mask b) { return {a.lanes | b.lanes}; }
HD bool anywhere(pack_mask a) {
#ifdef __AVX__
    typedef long long bits __attribute__((vector_size(32)));
    bits parts[sizeof(a.lanes) / sizeof(bits)];
    __builtin_memcpy(parts, &a.lanes, sizeof(a.lanes));
    for (size_t n = 1; n < sizeof(parts) / sizeof(bits); ++n) parts[0] |= parts[n];
    return !__builtin_ia32_ptestz256(parts[0], parts[0]);
#else
    auto found = a.lanes[0];
    for (int lane = 1; lane < pack::size(); ++lane) found |= a.lanes[lane];
    return found;
#endif
}
HD real sum_of_lanes(pack a) {
    real sum = a[0];
    for (int lane = 1; lane < pack::size(); ++lane) sum += a[lane];
    return sum;
}

// A mask in memory has a byte for each lane, 1 or 0, as on other devices.
typedef signed char mark_lanes __attribute__((vector_size(HX_REGISTER / sizeof(real))));
template <> HD pack_mask load_mask<pack>(const mark *p) {
    mark_lanes bytes;
    __builtin_memcpy(&bytes, p, sizeof(bytes));
    return {__builtin_convertvector(bytes, mask_lanes) != 0};
}
HD void store(mark *p, pack_mask a) {
    const mark_lanes bytes = __builtin_convertvector(a.lanes, mark_lanes) & 1;
    __builtin_memcpy(p, &bytes, sizeof(bytes));
}

template <> constexpr int lanes_of<pack> = pack::size();
HD real lane_of(pack a, int lane) { return a.lanes[lane]; }
HD void set_lane(pack &a, int lane, real value) { a.lanes[lane] = value; }

// Loads and stores of neighbours in memory, at any address
template <> HD pack load<pack>(const real *p) {
    pack a;
    __builtin_memcpy(&a.lanes, p, sizeof(a.lanes));
    return a;
}
HD void store(real *p, pack a) { __builtin_memcpy(p, &a.lanes, sizeof(a.lanes)); }
HD void store_where(pack_mask mask, real *p, pack a) { store(p, select(mask, a, load<pack>(p))); }
template <> HD void expect_read<pack>(const real *p) { __builtin_prefetch(p, 0, 2); }
template <> HD void expect_write<pack>(const real *p) { __builtin_prefetch(p, 1, 2); }
