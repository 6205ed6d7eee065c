// The number types in memory, which may be less accurate than those of the arithmetic (docs/precision.md):
//   stored_real  the state; with HX_DIFFERENCES as its differences from HX_REFERENCE
//  work_real    metrics, Jacobian, and fields that kernels of one right-hand side pass to each other
//  rate_real    r, the right-hand side
// Loads convert to `real`, stores round. Where all types are `real`, the names below are pointers to it.
#ifdef HX_STORED_FP32
typedef float stored_real;
#else
typedef real stored_real;
#endif
#ifdef HX_WORK_FP32
typedef float work_real;
#else
typedef real work_real;
#endif
#ifdef HX_RATE_FP32
typedef float rate_real;
#else
typedef real rate_real;
#endif
// wide: the type of sums whose terms cancel, at least double
#ifdef HX_EXTENDED
typedef real wide;
#else
typedef double wide;
#endif

// As field and const_field, for these types
template <int variables> using work_field = work_real *;
template <int variables> using const_work_field = const work_real *;
template <int variables> using rate_field = rate_real *;
template <int variables> using const_rate_field = const rate_real *;
template <int variables> using stored_field = stored_real *;
template <int variables> using const_stored_field = const stored_real *;

#ifdef HX_WORK_FP32
template <class T> HD T load(const float *p) { return T(real(*p)); }
HD void store(float *p, real a) { *p = float(a); }
template <class T> HD void expect_read(const float *) {}
template <class T> HD void expect_write(const float *) {}
#ifdef HX_CPU
typedef float float_lanes __attribute__((vector_size(HX_REGISTER / sizeof(real) * sizeof(float))));
template <> HD void expect_read<pack>(const float *p) { __builtin_prefetch(p, 0, 2); }
template <> HD void expect_write<pack>(const float *p) { __builtin_prefetch(p, 1, 2); }
template <> HD pack load<pack>(const float *p) {
    float_lanes a;
    __builtin_memcpy(&a, p, sizeof(a));
    return pack(__builtin_convertvector(a, pack_lanes));
}
HD void store(float *p, pack a) {
    const float_lanes rounded = __builtin_convertvector(a.lanes, float_lanes);
    __builtin_memcpy(p, &rounded, sizeof(rounded));
}
#endif
#endif

// The address of a number of any of these types, without conversion.
template <class Number> HD const Number *address(const Number *p) { return p; }

#ifndef HX_DIFFERENCES
typedef long long stride;
typedef real *state_pointer;
typedef const real *const_state_pointer;
template <int variables> using state_field = stored_real *;
template <int variables> using const_state_field = const stored_real *;
#else
// The reference differs between variables, so that an index into the state has to know its variable. `stride` makes v
// sv + p a state_place, from which the compiler keeps the variable v apart from the index, and a pointer to the state
// plus such a place is a state_row, which knows v.
HD constexpr real reference(int variable) {
    constexpr real of[] = {HX_REFERENCE};
    return variable == 0 ? of[0] : variable == 1 ? of[1] : variable == 2 ? of[2] : variable == 3 ? of[3] : of[4];
}

struct state_place {
    long long at;
    int variable;
    HD operator long long() const { return at; }
    template <class I> friend HD state_place operator+(state_place a, I at) {
        return {a.at + (long long)at, a.variable};
    }
    template <class I> friend HD state_place operator-(state_place a, I at) {
        return {a.at - (long long)at, a.variable};
    }
};
struct stride {
    long long apart;
    stride() = default;
    HD constexpr stride(long long apart) : apart(apart) {}
    HD operator long long() const { return apart; }
    friend HD state_place operator*(int variable, stride s) { return {variable * s.apart, variable}; }
    template <class I> friend HD state_place operator+(stride s, I at) { return {s.apart + (long long)at, 1}; }
};

// One number of the state.
struct state_value {
    float &kept;
    int variable;
    HD operator real() const { return reference(variable) + real(kept); }
    HD state_value &operator=(real a) {
        kept = float(a - reference(variable));
        return *this;
    }
    HD state_value &operator=(const state_value &a) { return *this = real(a); }
    HD state_value &operator+=(real a) { return *this = real(*this) + a; }
    HD state_value &operator-=(real a) { return *this = real(*this) - a; }
};
HD real state_number(const float &kept, int variable) { return reference(variable) + real(kept); }
HD state_value state_number(float &kept, int variable) { return {kept, variable}; }

// A pointer to a number of variable `variable`
template <class Number> struct state_row {
    Number *p;
    int variable;
    template <class I> HD state_row operator+(I at) const { return {p + (long long)at, variable}; }
    HD state_row operator+(state_place a) const { return {p + a.at, variable + a.variable}; }
    HD state_row operator+(stride s) const { return {p + s.apart, variable + 1}; }
    HD state_row &operator+=(long long at) { return p += at, *this; }
    HD state_row &operator-=(long long at) { return p -= at, *this; }
    template <class I> HD auto operator[](I at) const { return state_number(p[(long long)at], variable); }
    HD auto operator[](state_place a) const { return state_number(p[a.at], variable + a.variable); }
    HD auto operator[](stride s) const { return state_number(p[s.apart], variable + 1); }
};

// The state as a kernel's argument, which is only an address
template <class Number> struct state_base {
    Number *p;
    state_base() = default;
    HD state_base(Number *p) : p(p) {}
    template <class Other> HD state_base(state_base<Other> other) : p(other.p) {}
    HD state_row<Number> first() const { return {p, 0}; }
    template <class I> HD auto operator+(I at) const { return first() + at; }
    template <class I> HD auto operator[](I at) const { return first()[at]; }
};
typedef state_base<float> state_pointer;
typedef state_base<const float> const_state_pointer;
template <int variables> using state_field = state_pointer;
template <int variables> using const_state_field = const_state_pointer;

template <class T, class Number> HD T load(state_row<Number> a) { return load<T>(a.p) + reference(a.variable); }
template <class Number, class T> HD void store(state_row<Number> to, T a) { store(to.p, a - reference(to.variable)); }
template <class Number> HD const float *address(state_row<Number> a) { return a.p; }
#endif

// load and store of numbers that a kernel reads or writes once. They leave the caches of a GPU first, so that the
// numbers that other points read again stay there.
template <class T, class Place> HD T load_once(Place p) { return load<T>(p); }
template <class Place, class T> HD void store_once(Place p, T a) { store(p, a); }
#if defined(__CUDA_ARCH__)
template <class T, class Number> HD T load_once(Number *p) { return T(__ldcs(p)); }
template <class Number> HD void store_once(Number *p, real a) { __stcs(p, Number(a)); }
#endif
