// Spalart-Allmaras in its negative form, which continues smoothly to s < 0 (Allmaras, Johnson & Spalart 2012); with ft2
// unless turbulence.ft2 is false.
constexpr int eddy_fields = 1;
constexpr int transported_variables = 1;
enum transported_names { nu_tilde };
constexpr real transported_schmidt[1] = {real(2.0 / 3)};
constexpr real transported_sizes[1] = {real(1000 / 1)};
constexpr bool transported_has_length = true;
constexpr bool transported_is_damped = false;
constexpr bool transported_is_limited = false;
constexpr bool transported_first_order = false;
constexpr bool transported_goes_negative = true;
constexpr real usual_constant[1] = {real(1 / 1)};
#include "../spalart_allmaras.h"
