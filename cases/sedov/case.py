"""Energy on a small square, or cube, in a cold gas."""

import numpy as np


def initial(x, y, z, *, energy, half_width, ratio, gamma):
    """Return rho, u, v, w and p at the start of Sedov's blast at the places x, y, z (arrays of one shape), in the
    scales of the case. The `energy` is distributed over a square of half-width `half_width` (with nodes along z: a
    cube). A node gets the fraction of the energy by which its cell overlaps the square. The sum is therefore equal to
    `energy` on any uniform grid around the square. `ratio`: the pressure in the square over the pressure outside."""
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
