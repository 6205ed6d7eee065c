"""A disc of high pressure in a gas at rest."""

import numpy as np


def initial(x, y, z, *, radius, p_inside, p_outside):
    """Return rho, u, v, w and p at the start at the places x, y, z (arrays of one shape), in the scales of the case:
    gas at rest with rho = 1. The pressure is `p_inside` within `radius` of the origin, and `p_outside` elsewhere."""
    # The coordinates of mirrored nodes differ in their last bits. A node on the rim must be on the same side as its
    # image.
    inside = x * x + y * y < radius**2 * (1 + 1e-9)
    return 1.0, 0.0, 0.0, 0.0, np.where(inside, p_inside, p_outside)
