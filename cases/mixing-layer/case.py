"""The tanh mixing layer and its growing mode."""

import numpy as np

from hiresx.exact.shear_layer import growing_mode


def initial(x, y, z, *, mach, wavenumber, half_height, amplitude, gamma):
    """Return rho, u, v, w and p at the start at the places x, y, z (arrays of one shape), in the scales of the case:
    the layer u = `mach` tanh(y) and its fastest growing mode at `wavenumber`. `amplitude`: that of v, divided by
    `mach`. `half_height`: half the height of the domain. See `hiresx.exact.shear_layer.growing_mode`."""
    mode = growing_mode(mach, wavenumber, half_height, gamma)
    wave = amplitude * mach * np.exp(1j * wavenumber * x)
    rho, u, v, p = ((wave * part).real for part in mode(y))
    return 1 + rho, mach * np.tanh(y) + u, v, 0.0, 1 / gamma + p
