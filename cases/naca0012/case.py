"""The free stream of the airfoil."""

import numpy as np


def derived(*, mach, incidence):
    """Return "u" and "v", the velocity of the free stream divided by its speed of sound. `mach`: its Mach number.
    `incidence`: its angle, in degrees."""
    angle = np.deg2rad(incidence)
    return {"u": float(mach * np.cos(angle)), "v": float(mach * np.sin(angle))}
