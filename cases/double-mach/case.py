"""A plane shock of Mach 10 at 60 degrees to the wall, as it is without the wall."""

from math import cos, pi, sin, tan

import numpy as np

from hiresx.exact import normal_shock

MACH = 10.0
ANGLE = pi / 3


def shock(x, y, z, t, *, wall_from, gamma):
    """Return rho, u, v, w and p at the places x, y, z (arrays of one shape) and the time t, in the scales of the case.
    An oblique shock starts at x = `wall_from` on the wall y = 0. It moves into gas at rest with rho = gamma and p = 1
    (sound speed 1)."""
    behind = normal_shock(MACH, gamma)
    speed = MACH * (1 - 1 / behind.density)
    passed = x < wall_from + y / tan(ANGLE) + MACH * t / sin(ANGLE)
    return (
        np.where(passed, gamma * behind.density, gamma),
        np.where(passed, speed * sin(ANGLE), 0.0),
        np.where(passed, -speed * cos(ANGLE), 0.0),
        0.0,
        np.where(passed, behind.pressure, 1.0),
    )


def initial(x, y, z, *, wall_from, gamma):
    """Return the result of `shock` at t = 0."""
    return shock(x, y, z, 0.0, wall_from=wall_from, gamma=gamma)
