"""Compressible Couette flow, steady, with constant viscosity or Sutherland's law."""

import numpy as np

from hiresx.exact import couette


def exact(x, y, z, t, *, wall_speed, T_lower, T_upper, gamma, prandtl, sutherland_temperature):
    """Return rho, u, v, w and p of steady Couette flow at the places x, y, z (arrays of one shape), in the scales of
    the case. It is the solution for t -> infinity. The pressure is uniform, with the value at which the mean density
    between the walls is 1. `wall_speed`, `T_lower` and `T_upper`: as for `hiresx.exact.couette`.
    `sutherland_temperature`: that of Sutherland's law over the reference temperature; 0 for a constant viscosity."""

    def viscosity(T):
        s = sutherland_temperature
        return np.ones_like(T) if s == 0 else T**1.5 * (1 + s) / (T + s)

    u, T, mean = couette(y, wall_speed, T_lower, T_upper, gamma, prandtl, viscosity)
    p = 1 / (gamma * mean)
    return gamma * p / T, u, 0.0, 0.0, p
