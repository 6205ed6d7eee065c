"""Uniform flow with a weak vortex behind the cylinder."""

import numpy as np


def initial(x, y, z, *, mach, kick, uneven, gamma):
    """Return rho, u, v, w and p at the start at the places x, y, z (arrays of one shape), in the scales of the case. A
    vortex of radius 1/2 around (1.5, 0) is added to the free stream of Mach number `mach`. Its velocity at this radius
    is `kick` times `mach`, and the pressure is uniform.

    Along the span, whose period is pi, the strength of the vortex varies by the fraction `uneven` in waves of two
    lengths."""
    strength = kick * (1 + uneven * (np.cos(4 * z) + np.cos(6 * z + 1)))
    swirl = strength * mach * np.exp(0.5 - 2 * ((x - 1.5) ** 2 + y**2))
    return 1.0, mach - 2 * swirl * y, 2 * swirl * (x - 1.5), 0.0, 1 / gamma
