"""Energy on a small square, or cube, in a cold gas."""

import numpy as np


def initial(x, y, z, *, energy, half_width, ratio, gamma):
    """A node has the share of the energy with which its cell lies in the square (with nodes along z: in the cube): all
    of it is there on any uniform grid around it."""
    share = _covered(x, half_width) * _covered(y.swapaxes(1, 2), half_width).swapaxes(1, 2)
    solid = z.shape[0] > 1
    if solid:
        share = share * _covered(z.swapaxes(0, 2), half_width).swapaxes(0, 2)
    p = (gamma - 1) * energy / (2 * half_width) ** (3 if solid else 2)
    return 1.0, 0.0, 0.0, 0.0, p / ratio + p * (1 - 1 / ratio) * share


def _covered(x, half_width):
    """The part of every node's cell, along the last index of x, that lies within `half_width` of 0."""
    spacings = np.diff(x)
    if not spacings.size:
        return (abs(x) < half_width).astype(float)
    h = spacings.mean()
    if abs(spacings - h).max() > 1e-9 * h:
        raise ValueError("the energy of the blast is shared out among nodes of one spacing: leave grid.stretch away")
    inside = np.minimum(x + h / 2, half_width) - np.maximum(x - h / 2, -half_width)
    return np.round(np.clip(inside / h, 0, 1), 12)
