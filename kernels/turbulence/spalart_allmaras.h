// Spalart-Allmaras, the standard model without trip; ft2 = 0 unless turbulence.ft2. Where interpolation makes s negative it
// counts as 0.
constexpr int eddy_fields = 1;
constexpr int transported_variables = 1;
constexpr bool transported_goes_negative = false;
constexpr real usual_constant[1] = {real(1 / 1)};
#include "../transported.h"
