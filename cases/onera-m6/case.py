"""The free stream of the wing, and the numbers of cells of its grid."""

import numpy as np


def derived(*, mach, incidence, resolution, tip_cells):
    """Return the derived parameters by name. "u" and "v" are the velocity of the free stream divided by its speed of
    sound, inclined by `incidence` degrees. The numbers of nodes and the spacings of the grid follow from `resolution`;
    with 1 the wing has `tip_cells` cells over its tip."""
    angle = np.deg2rad(incidence)
    if not 0.5 <= resolution <= 10:
        raise ValueError(f"resolution = {resolution:g} is not between 0.5 and 10")
    return {
        "u": float(mach * np.cos(angle)),
        "v": float(mach * np.sin(angle)),
        "n_airfoil": 2 * round(32 * resolution),
        "n_wake": round(16 * resolution),
        "n_normal": 1 + round(24 * resolution),
        "on_wing": round(22 * resolution),
        "on_tip": round(tip_cells * resolution),
        "beyond": round(12 * resolution),
        "stretching": 1.3 ** (1 / resolution),
        "first": 0.012 / resolution,
        "edge": 0.02 / resolution,
    }
