"""Shock of Mach 3 and density waves ahead of it."""

from math import sqrt

import numpy as np

from hiresx.exact import jump, normal_shock


def initial(x, y, z, *, jump_at, amplitude, wave_number, gamma):
    """Return rho, u, v, w and p at the start at the places x, y, z (arrays of one shape), in the scales of the case. A
    shock of Mach number 3 lies at x = `jump_at`. The gas ahead of it is at rest with p = 1 and the density 1 +
    `amplitude` sin(`wave_number` x). Source: Shu & Osher, Journal of Computational Physics 83 (1989) 32."""
    shock = normal_shock(3.0, gamma)
    # The gas ahead (rho = p = 1) is at rest, so the velocity behind the shock is the velocity change across it.
    behind = 3.0 * sqrt(gamma) * (1 - 1 / shock.density)
    ahead = 1 + amplitude * np.sin(wave_number * x)
    rho, u, p = jump(x, jump_at, (shock.density, behind, shock.pressure), (ahead, 0.0, 1.0), gamma)
    return rho, u, 0.0, 0.0, p
