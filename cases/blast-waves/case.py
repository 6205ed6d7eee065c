"""Three layers of gas at rest with the same density and very different pressures."""

import numpy as np

from hiresx.exact import jump


def initial(x, y, z, *, p_left, p_middle, p_right, gamma):
    """Return rho, u, v, w and p at the start at the places x, y, z (arrays of one shape), in the scales of the case:
    gas at rest with rho = 1. The pressure is `p_left` for x < 0.1, `p_right` for x > 0.9, and `p_middle` between
    (Woodward & Colella 1984)."""
    left = jump(x, 0.1, (1.0, 0.0, p_left), (1.0, 0.0, p_middle), gamma)[2]
    right = jump(x, 0.9, (1.0, 0.0, p_middle), (1.0, 0.0, p_right), gamma)[2]
    return 1.0, 0.0, 0.0, 0.0, np.where(x < 0.5, left, right)
