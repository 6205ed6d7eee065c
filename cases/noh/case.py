"""The exact solution of Noh's problem. `directions`: 1 for flow towards a plane, 2 for flow towards an axis."""

import numpy as np


def exact(x, y, z, t, *, p_cold, directions, gamma):
    """Return rho, u, v, w and p of Noh's problem at the places x, y, z (arrays of one shape) and the time t, in the
    scales of the case. Gas of density 1 and pressure `p_cold` moves with velocity 1 towards the plane x = 0
    (`directions` = 1) or the axis x = y = 0 (`directions` = 2)."""
    r = np.sqrt(x * x + y * y) if directions == 2 else abs(x)
    r = np.maximum(r, 1e-300)
    inside = r < 0.5 * (gamma - 1) * t
    compressed = ((gamma + 1) / (gamma - 1)) ** directions
    rho = np.where(inside, compressed, (1 + t / r) ** (directions - 1))
    speed = np.where(inside, 0.0, -1.0)
    across = y / r if directions == 2 else 0.0
    return rho, speed * x / r, speed * across, 0.0, np.where(inside, 0.5 * (gamma - 1) * compressed, p_cold)


def initial(x, y, z, *, p_cold, directions, gamma):
    """Return the result of `exact` at t = 0."""
    return exact(x, y, z, 0.0, p_cold=p_cold, directions=directions, gamma=gamma)


def inflow(x, y, z, t, *, p_cold, directions, gamma):
    """Return the result of `exact` at the time t."""
    return exact(x, y, z, t, p_cold=p_cold, directions=directions, gamma=gamma)
