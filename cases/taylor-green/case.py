"""Taylor-Green vortex, isothermal at the start."""

import numpy as np


def initial(x, y, z, *, mach, gamma):
    """Return rho, u, v, w and p of the Taylor-Green vortex at the places x, y, z (arrays of one shape), in the scales
    of the case. The temperature is uniform (T = 1). The pressure is that of the incompressible flow, with the mean
    1/gamma. `mach`: the largest velocity over the speed of sound."""
    cos_z = np.cos(z)
    u = mach * np.sin(x) * np.cos(y) * cos_z
    v = -mach * np.cos(x) * np.sin(y) * cos_z
    p = 1 / gamma + mach**2 / 16 * (np.cos(2 * x) + np.cos(2 * y)) * (np.cos(2 * z) + 2)
    return gamma * p, u, v, 0.0, p
