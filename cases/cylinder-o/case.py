"""Uniform flow with a weak vortex behind the cylinder."""

import numpy as np


def initial(x, y, z, *, mach, kick, uneven, gamma):
    """A vortex around (1.5, 0) of radius 1/2 with the velocity kick * mach at its rim, at uniform pressure.

    Along the span, whose period is pi, its strength differs by the share `uneven` in waves of two lengths."""
    strength = kick * (1 + uneven * (np.cos(4 * z) + np.cos(6 * z + 1)))
    swirl = strength * mach * np.exp(0.5 - 2 * ((x - 1.5) ** 2 + y**2))
    return 1.0, mach - 2 * swirl * y, 2 * swirl * (x - 1.5), 0.0, 1 / gamma
