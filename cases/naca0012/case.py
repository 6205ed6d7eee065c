"""The free stream of the airfoil."""

import numpy as np


def derived(*, mach, incidence):
    """Velocity of the free stream divided by its speed of sound, inclined by `incidence` degrees."""
    angle = np.deg2rad(incidence)
    return {"u": float(mach * np.cos(angle)), "v": float(mach * np.sin(angle))}
