"""Density wave in a uniform flow."""

import numpy as np


def exact(x, y, z, t, *, amplitude):
    """Return rho, u, v, w and p at the places x, y, z (arrays of one shape) and the time t, in the scales of the case.
    A sine wave of density with the given `amplitude` and the wavelength 1 moves along x with u = 1; the pressure is
    uniform."""
    return 1 + amplitude * np.sin(2 * np.pi * (x - t)), 1.0, 0.0, 0.0, 1.0


def initial(x, y, z, *, amplitude):
    """Return the result of `exact` at t = 0."""
    return exact(x, y, z, 0.0, amplitude=amplitude)
