"""Isentropic vortex in a uniform flow, periodic."""

import numpy as np


def exact(x, y, z, t, *, strength, length, mean_u, mean_v, gamma):
    """Return rho, u, v, w and p of the vortex at the places x, y, z (arrays of one shape) and the time t, in the scales
    of the case. The vortex starts at the origin and moves with the mean velocity through a domain that is periodic with
    `length`.

    velocity = mean + strength / (2 pi) exp((1 - r^2) / 2) (-y, x),
    p / rho = 1 - (gamma - 1) strength^2 / (8 gamma pi^2) exp(1 - r^2), p = rho^gamma.
    """
    x = (x - mean_u * t + 0.5 * length) % length - 0.5 * length
    y = (y - mean_v * t + 0.5 * length) % length - 0.5 * length
    swirl = strength / (2 * np.pi) * np.exp(0.5 * (1 - x * x - y * y))
    rho = (1 - (gamma - 1) / (2 * gamma) * swirl**2) ** (1 / (gamma - 1))
    return rho, mean_u - swirl * y, mean_v + swirl * x, 0.0, rho**gamma


def initial(x, y, z, *, strength, length, mean_u, mean_v, gamma):
    """Return the result of `exact` at t = 0."""
    return exact(x, y, z, 0.0, strength=strength, length=length, mean_u=mean_u, mean_v=mean_v, gamma=gamma)
