// Keeps strong shocks alive and leaves a uniform flow untouched: interpolated states fall back to the node (admissible.h)
// and the correction of the fluxes is scaled down at jumps (jump_sensor.h).
#include "admissible.h"

constexpr bool limits_flux = false;
constexpr bool scales_correction = true;
