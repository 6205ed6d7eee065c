"""Planar under-expanded jet: the state in the nozzle, an estimate of the mean jet, the start."""

import numpy as np

from hiresx.verify.exact import blasius_layer

SPREADING = 0.1  # half-width of a developed planar jet over the distance (Pope, Turbulent Flows, 2000, section 5.4)


def nozzle(x, y, z, t, *, pressure_ratio, exit_mach, layer, gamma):
    """Profile at the nozzle's inflow: uniform pressure, ambient total temperature, a Blasius layer on both walls.

    The total temperature is uniform through the layer as well: Crocco and Busemann's relation at an adiabatic wall.
    """
    core = exit_mach / np.sqrt(1 + 0.5 * (gamma - 1) * exit_mach**2)
    u = core * blasius_layer(np.maximum(0.5 - np.abs(y), 0.0), layer)
    return _unheated(u, pressure_ratio / gamma, gamma)


def developed(x, y, z, *, pressure_ratio, exit_mach, gamma):
    """Estimate of the mean jet at ambient pressure, x > 0: fully expanded core, eaten away linearly, then self-similar.

    The wings are sech^2; their width and the decay of the axis velocity keep the integral of u^2 over y.
    """
    u_jet, height = _fully_expanded(pressure_ratio, exit_mach, gamma)
    # Half-width of sech^2(k y) is acosh(sqrt(2)) / k, and 4 / (3 k) its integral of the square.
    core_length = np.arccosh(np.sqrt(2)) * 0.75 * height / SPREADING
    # Not thinner than at 0.3 heights from the exit, where the grid still resolves it.
    distance = np.maximum(x, 0.3)
    core = 0.5 * height * np.maximum(1 - distance / core_length, 0.0)
    k = 4 / (3 * height) * core_length / distance
    # Beyond 40 widths the wing is nothing; cosh would overflow.
    wing = 1 / np.cosh(np.minimum(k * np.maximum(np.abs(y) - core, 0.0), 40.0)) ** 2
    return _unheated(u_jet * np.minimum(np.sqrt(core_length / distance), 1.0) * wing, 1 / gamma, gamma)


def initial(x, y, z, *, pressure_ratio, exit_mach, layer, kick, span, gamma):
    """The exit state in the nozzle, the developed jet behind it, rest outside the nozzle, and a kick to one side."""
    inside = nozzle(x, y, z, 0.0, pressure_ratio=pressure_ratio, exit_mach=exit_mach, layer=layer, gamma=gamma)
    behind = developed(x, y, z, pressure_ratio=pressure_ratio, exit_mach=exit_mach, gamma=gamma)
    rest = (1.0, 0.0, 0.0, 0.0, 1 / gamma)
    rho, u, v, w, p = (
        np.where(x >= 0, b, np.where(np.abs(y) <= 0.5, i, r)) for b, i, r in zip(behind, inside, rest, strict=True)
    )
    # Four waves along z, out of phase, so that a three-dimensional jet does not stay two-dimensional.
    waves = sum(np.cos(2 * np.pi * m * z / span + m * m) for m in range(1, 5))
    v = v + kick * np.exp(-((x - 2) ** 2) - y**2) * (1 + 0.25 * waves)
    return rho, u, v, w, p


def _unheated(u, p, gamma):
    """State of a gas that came from rest at the ambient temperature: T = 1 - (gamma - 1) / 2 u^2."""
    return gamma * p / (1 - 0.5 * (gamma - 1) * u**2), u, 0.0, 0.0, p


def _fully_expanded(pressure_ratio, exit_mach, gamma):
    """Velocity and height of the jet expanded to ambient pressure without losses, the mass flux kept."""
    g = 0.5 * (gamma - 1)
    T_exit = 1 / (1 + g * exit_mach**2)
    T = T_exit * pressure_ratio ** (-(gamma - 1) / gamma)
    u = np.sqrt((1 - T) / g)
    return u, pressure_ratio / T_exit * exit_mach * np.sqrt(T_exit) * T / u
