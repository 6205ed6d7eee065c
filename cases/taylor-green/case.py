"""Taylor-Green vortex, isothermal at the start."""

import numpy as np


def initial(x, y, z, *, mach, gamma):
    """T = 1; the pressure is that of the incompressible flow, 1/gamma in the mean."""
    cos_z = np.cos(z)
    u = mach * np.sin(x) * np.cos(y) * cos_z
    v = -mach * np.cos(x) * np.sin(y) * cos_z
    p = 1 / gamma + mach**2 / 16 * (np.cos(2 * x) + np.cos(2 * y)) * (np.cos(2 * z) + 2)
    return gamma * p, u, v, 0.0, p
