// A number that counts what is done with it: `real` of the emulated kernels where HX_COUNTED is defined, to know the
// arithmetic of each kernel. A sum, a difference, a product, a quotient, a root and a power are one operation each.
#include <cmath>
#include <type_traits>

static thread_local long long hx_operations;

struct counted {
    double value;
    counted() = default;
    template <class Number, class = std::enable_if_t<std::is_arithmetic_v<Number>>>
    constexpr counted(Number from) : value(double(from)) {}
    constexpr operator double() const { return value; }
};

#define HX_OPERATION(symbol, count, result) \
    constexpr result operator symbol(counted a, counted b) { \
        if (!__builtin_is_constant_evaluated()) hx_operations += count; \
        return a.value symbol b.value; \
    } \
    template <class Number, class = std::enable_if_t<std::is_arithmetic_v<Number>>> \
    constexpr result operator symbol(counted a, Number b) { return a symbol counted(b); } \
    template <class Number, class = std::enable_if_t<std::is_arithmetic_v<Number>>> \
    constexpr result operator symbol(Number a, counted b) { return counted(a) symbol b; }
HX_OPERATION(+, 1, counted)
HX_OPERATION(-, 1, counted)
HX_OPERATION(*, 1, counted)
HX_OPERATION(/, 1, counted)
HX_OPERATION(<, 0, bool)
HX_OPERATION(>, 0, bool)
HX_OPERATION(<=, 0, bool)
HX_OPERATION(>=, 0, bool)
HX_OPERATION(==, 0, bool)
HX_OPERATION(!=, 0, bool)
#undef HX_OPERATION
constexpr counted operator-(counted a) { return -a.value; }
inline counted &operator+=(counted &a, counted b) { return a = a + b; }
inline counted &operator-=(counted &a, counted b) { return a = a - b; }
inline counted &operator*=(counted &a, counted b) { return a = a * b; }
inline counted &operator/=(counted &a, counted b) { return a = a / b; }

#define HX_FUNCTION(name) \
    inline counted name(counted a) { return ++hx_operations, std::name(a.value); }
HX_FUNCTION(sqrt)
HX_FUNCTION(exp)
HX_FUNCTION(log)
HX_FUNCTION(acos)
HX_FUNCTION(cos)
HX_FUNCTION(sin)
#undef HX_FUNCTION
inline counted pow(counted a, counted b) { return ++hx_operations, std::pow(a.value, b.value); }

extern "C" long long hx_counted() { return hx_operations; }
