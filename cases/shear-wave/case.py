"""Decaying plane waves of small amplitude in a gas at rest."""

import numpy as np

from hiresx.errors import HiresxError

K = 2 * np.pi  # one wave on the interval (0, 1)


def exact(x, y, z, t, *, amplitude, mode, gamma, prandtl, reynolds):
    """Return rho, u, v, w and p of a decaying plane wave of small amplitude at the places x, y, z (arrays of one shape)
    and the time t, in the scales of the case. `mode`: "shear" for a wave of v, "acoustic" for a sound wave along x,
    both with the wavelength 1. `amplitude`: that of the velocity at t = 0. Raises HiresxError for another mode."""
    if mode == "shear":
        return 1.0, 0.0, amplitude * np.exp(-K * K * t / reynolds) * np.sin(K * x), 0.0, 1 / gamma
    if mode == "acoustic":
        rate = 0.5 * K * K / reynolds * (4 / 3 + (gamma - 1) / prandtl)
        wave = amplitude * np.exp(-rate * t) * np.sin(K * (x - t))
        return 1 + wave, wave, 0.0, 0.0, 1 / gamma + wave
    raise HiresxError(f'parameters.mode = "{mode}" is no wave of this case', 'it is "shear" or "acoustic"')


def initial(x, y, z, *, amplitude, mode, gamma, prandtl, reynolds):
    """Return the result of `exact` at t = 0."""
    return exact(x, y, z, 0.0, amplitude=amplitude, mode=mode, gamma=gamma, prandtl=prandtl, reynolds=reynolds)
