"""Uniform flow with a weak vortex behind the cylinder."""

import numpy as np


def initial(x, y, z, *, mach, kick, gamma):
    """A vortex around (1.5, 0) of radius 1/2 with the velocity kick * mach at its rim, at uniform pressure."""
    swirl = kick * mach * np.exp(0.5 - 2 * ((x - 1.5) ** 2 + y**2))
    return 1.0, mach - 2 * swirl * y, 2 * swirl * (x - 1.5), 0.0, 1 / gamma
