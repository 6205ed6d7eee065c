"""A simple wave: sound of finite amplitude in a gas at rest."""

import numpy as np

K = 2 * np.pi  # the wave length is the length


def exact(x, y, z, t, *, amplitude, gamma):
    """Return rho, u, v, w and p of a simple sound wave of finite amplitude at the places x, y, z (arrays of one shape)
    and the time t, in the scales of the case. Each value of u moves at u + c = 1 + (gamma + 1)/2 u. The entropy is
    uniform. `amplitude`: that of u."""
    u = amplitude * np.sin(K * (x - t))
    for _ in range(60):
        u = amplitude * np.sin(K * (x - (1 + 0.5 * (gamma + 1) * u) * t))
    c = 1 + 0.5 * (gamma - 1) * u
    rho = c ** (2 / (gamma - 1))
    return rho, u, 0.0, 0.0, rho * c * c / gamma


def initial(x, y, z, *, amplitude, gamma):
    """Return the result of `exact` at t = 0."""
    return exact(x, y, z, 0.0, amplitude=amplitude, gamma=gamma)
