"""Decaying plane waves of small amplitude in a gas at rest."""

import numpy as np

from hiresx.errors import HiresxError

K = 2 * np.pi  # one wave on the interval (0, 1)


def exact(x, y, z, t, *, amplitude, mode, gamma, prandtl, reynolds):
    if mode == "shear":
        return 1.0, 0.0, amplitude * np.exp(-K * K * t / reynolds) * np.sin(K * x), 0.0, 1 / gamma
    if mode == "acoustic":
        rate = 0.5 * K * K / reynolds * (4 / 3 + (gamma - 1) / prandtl)
        wave = amplitude * np.exp(-rate * t) * np.sin(K * (x - t))
        return 1 + wave, wave, 0.0, 0.0, 1 / gamma + wave
    raise HiresxError(f'parameters.mode = "{mode}" is no wave of this case', 'it is "shear" or "acoustic"')


def initial(x, y, z, *, amplitude, mode, gamma, prandtl, reynolds):
    return exact(x, y, z, 0.0, amplitude=amplitude, mode=mode, gamma=gamma, prandtl=prandtl, reynolds=reynolds)
