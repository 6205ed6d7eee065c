"""Shock of Mach 1.3 and short density waves ahead of it."""

from math import sqrt

import numpy as np

from hiresx.exact import jump, normal_shock


def initial(x, y, z, *, jump_at, amplitude, wave_number, gamma):
    shock = normal_shock(1.3, gamma)
    # The gas ahead (rho = p = 1) is at rest: behind, the velocity is what the shock leaves behind it.
    behind = 1.3 * sqrt(gamma) * (1 - 1 / shock.density)
    ahead = 1 + amplitude * np.sin(wave_number * np.pi * x)
    rho, u, p = jump(x, jump_at, (shock.density, behind, shock.pressure), (ahead, 0.0, 1.0), gamma)
    return rho, u, 0.0, 0.0, p
