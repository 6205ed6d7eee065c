// A method for strong shocks that does not change a uniform flow: inadmissible interpolated states are replaced by the
// state of the node (admissible.h), and the correction of the fluxes is scaled down at jumps (jump_sensor.h).
#include "admissible.h"

constexpr bool limits_flux = false;
constexpr bool scales_correction = true;
