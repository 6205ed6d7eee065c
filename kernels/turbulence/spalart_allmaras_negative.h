// Spalart-Allmaras in its negative form, which goes on smoothly where s < 0 (Allmaras, Johnson & Spalart 2012); with ft2
// unless turbulence.ft2 is false.
constexpr int eddy_fields = 1;
constexpr int transported_variables = 1;
constexpr bool transported_goes_negative = true;
constexpr real usual_constant[1] = {real(1 / 1)};
#include "../transported.h"
