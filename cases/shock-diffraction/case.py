"""Plane shock in a channel, ahead of the edge at which its floor drops."""

import numpy as np

from hiresx.exact import normal_shock


def initial(x, y, z, *, mach, shock_from, gamma):
    """Return rho, u, v, w and p at the start at the places x, y, z (arrays of one shape), in the scales of the case. A
    shock of Mach number `mach` lies at x = `shock_from`. Ahead of it the gas is at rest with rho = 1 and p = 1/gamma
    (sound speed 1)."""
    behind = normal_shock(mach, gamma)
    passed = x < shock_from
    return (
        np.where(passed, behind.density, 1.0),
        np.where(passed, mach * (1 - 1 / behind.density), 0.0),
        0.0,
        0.0,
        np.where(passed, behind.pressure, 1.0) / gamma,
    )
