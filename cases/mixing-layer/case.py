"""The tanh layer and its growing mode."""

import numpy as np

from hiresx.exact.shear_layer import growing_mode


def initial(x, y, z, *, mach, wavenumber, half_height, amplitude, gamma):
    mode = growing_mode(mach, wavenumber, half_height, gamma)
    wave = amplitude * mach * np.exp(1j * wavenumber * x)
    rho, u, v, p = ((wave * part).real for part in mode(y))
    return 1 + rho, mach * np.tanh(y) + u, v, 0.0, 1 / gamma + p
