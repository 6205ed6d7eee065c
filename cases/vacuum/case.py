"""Two rarefactions with a vacuum between them."""

import numpy as np

NOTHING = 1e-12  # density and pressure of the vacuum


def exact(x, y, z, t, *, rho, speed, p, gamma):
    """Return rho, u, v, w and p at the places x, y, z (arrays of one shape) and the time t, in the scales of the case.
    At t = 0 gas of density `rho` and pressure `p` moves away from x = 0.5 on both sides with the velocity `speed`. Two
    rarefactions follow, with a vacuum between them, where density and pressure are NOTHING."""
    side = np.where(x < 0.5, -1.0, 1.0)
    c = np.sqrt(gamma * p / rho)
    if t == 0:
        return rho, side * speed, 0.0, 0.0, p
    # seen from the right: fan speed + c >= xi >= speed - 2 c/(gamma - 1)
    xi = np.minimum(abs(x - 0.5) / t, speed + c)
    sound = np.clip((gamma - 1) / (gamma + 1) * (xi - speed) + 2 / (gamma + 1) * c, 0.0, c)
    share = sound / c
    u = np.where(sound > 0, xi - sound, xi)
    density, pressure = rho * share ** (2 / (gamma - 1)), p * share ** (2 * gamma / (gamma - 1))
    return np.maximum(density, NOTHING), side * u, 0.0, 0.0, np.maximum(pressure, NOTHING)


def initial(x, y, z, *, rho, speed, p, gamma):
    """Return the result of `exact` at t = 0."""
    return exact(x, y, z, 0.0, rho=rho, speed=speed, p=p, gamma=gamma)
