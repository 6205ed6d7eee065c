"""Compressible Couette flow, steady, with constant viscosity or Sutherland's law."""

import numpy as np

from hiresx.exact import couette


def exact(x, y, z, t, *, wall_speed, T_lower, T_upper, gamma, prandtl, sutherland_temperature):
    """Holds for t -> infinity. The uniform pressure is that of a mean density of 1 between the walls."""

    def viscosity(T):
        s = sutherland_temperature
        return np.ones_like(T) if s == 0 else T**1.5 * (1 + s) / (T + s)

    u, T, mean = couette(y, wall_speed, T_lower, T_upper, gamma, prandtl, viscosity)
    p = 1 / (gamma * mean)
    return gamma * p / T, u, 0.0, 0.0, p
