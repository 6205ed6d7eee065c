"""Density wave in a uniform flow."""

import numpy as np


def exact(x, y, z, t, *, amplitude):
    return 1 + amplitude * np.sin(2 * np.pi * (x - t)), 1.0, 0.0, 0.0, 1.0


def initial(x, y, z, *, amplitude):
    return exact(x, y, z, 0.0, amplitude=amplitude)
