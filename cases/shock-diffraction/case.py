"""Plane shock in a channel, ahead of the edge at which its floor drops."""

import numpy as np

from hiresx.exact import normal_shock


def initial(x, y, z, *, mach, shock_from, gamma):
    """The shock at x = shock_from runs into rho = 1, p = 1/gamma (sound speed 1) at rest."""
    behind = normal_shock(mach, gamma)
    passed = x < shock_from
    return (
        np.where(passed, behind.density, 1.0),
        np.where(passed, mach * (1 - 1 / behind.density), 0.0),
        0.0,
        0.0,
        np.where(passed, behind.pressure, 1.0) / gamma,
    )
