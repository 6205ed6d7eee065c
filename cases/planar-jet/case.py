"""Planar under-expanded jet: parameters, the state in the nozzle, an estimate of the mean jet, and the initial flow."""

import numpy as np

from hiresx.exact import blasius_layer
from hiresx.exact.nozzle import fully_expanded, walled_jet

SPREADING = 0.1  # half-width of a developed planar jet over the distance (Pope, Turbulent Flows, 2000, section 5.4)


def derived(*, Mj=None, NPR=None, pressure_ratio=None, exit_mach, temperature_ratio, layer, lip, gamma):
    """Return the parameters of the jet that follow from the one that is given: the fully expanded Mach number `Mj`, the
    nozzle pressure ratio `NPR`, and the pressure at the exit over the ambient one, `pressure_ratio`. Also return the
    velocity Uj (in a) and the height hj (in h) of the fully expanded jet. The other arguments are those of
    `hiresx.exact.nozzle.walled_jet`. Raises ValueError, with the reason, if there is no such jet."""
    found, height = walled_jet(
        Mj=Mj, NPR=NPR, pressure_ratio=pressure_ratio, exit_mach=exit_mach, temperature_ratio=temperature_ratio,
        layer=layer, lip=lip, gamma=gamma,
    )  # fmt: skip
    return {**found, "hj": height}


def nozzle(x, y, z, t, *, pressure_ratio, exit_mach, temperature_ratio, layer, gamma):
    """Return rho, u, v, w and p of the inflow of the nozzle at the places x, y, z (arrays of one shape), in the scales
    of the case. The pressure is uniform, and a Blasius boundary layer lies on each of the walls y = -0.5 and 0.5.

    The total temperature is uniform, also through the layers (relation of Crocco and Busemann at an adiabatic wall).
    `pressure_ratio`: pressure at the exit over the ambient one. `exit_mach`: Mach number of the core.
    `temperature_ratio`: total temperature over the ambient temperature. `layer`: thickness of the boundary layers, in
    L.
    """
    core = exit_mach * np.sqrt(temperature_ratio / (1 + 0.5 * (gamma - 1) * exit_mach**2))
    u = core * blasius_layer(np.maximum(0.5 - np.abs(y), 0.0), layer)
    return _state(u, pressure_ratio / gamma, temperature_ratio, gamma)


def developed_jet(x, y, z, *, pressure_ratio, exit_mach, temperature_ratio, gamma):
    """Return rho, u, v, w and p of an estimate of the mean jet at ambient pressure, at the places x > 0, y, z (arrays
    of one shape), in the scales of the case. The jet has a fully expanded core, whose height decreases linearly to
    zero. It is self-similar further downstream.

    The velocity outside the core decays as sech^2. The width and the decay of the velocity on the axis keep the
    integral of u^2 over y constant. The total temperature varies linearly with u from that of the ambient gas to that
    of the jet (Crocco and Busemann). `pressure_ratio`: pressure at the exit over the ambient one. `exit_mach`: Mach
    number of the exit. `temperature_ratio`: total temperature of the jet over the ambient temperature.
    """
    u_jet, height = fully_expanded(pressure_ratio, exit_mach, temperature_ratio, gamma)
    # Half-width of sech^2(k y) is acosh(sqrt(2)) / k, and 4 / (3 k) its integral of the square.
    core_length = np.arccosh(np.sqrt(2)) * 0.75 * height / SPREADING
    # Not thinner than at 0.3 heights from the exit, where the grid still resolves it.
    distance = np.maximum(x, 0.3)
    core = 0.5 * height * np.maximum(1 - distance / core_length, 0.0)
    k = 4 / (3 * height) * core_length / distance
    # Beyond 40 widths the velocity is negligible, and cosh would overflow.
    wing = 1 / np.cosh(np.minimum(k * np.maximum(np.abs(y) - core, 0.0), 40.0)) ** 2
    u = u_jet * np.minimum(np.sqrt(core_length / distance), 1.0) * wing
    return _state(u, 1 / gamma, 1 + (temperature_ratio - 1) * u / u_jet, gamma)


def initial(x, y, z, *, pressure_ratio, exit_mach, temperature_ratio, layer, kick, span, gamma):
    """Return rho, u, v, w and p at the start at the places x, y, z (arrays of one shape), in the scales of the case.
    The nozzle contains its exit state, and the developed jet lies behind it. The gas outside the nozzle is at rest. A
    sideways velocity `kick` removes the symmetry. `span`: the period along z, in h."""
    exit_state = {"pressure_ratio": pressure_ratio, "exit_mach": exit_mach, "temperature_ratio": temperature_ratio}
    inside = nozzle(x, y, z, 0.0, layer=layer, gamma=gamma, **exit_state)
    behind = developed_jet(x, y, z, gamma=gamma, **exit_state)
    rest = (1.0, 0.0, 0.0, 0.0, 1 / gamma)
    rho, u, v, w, p = (
        np.where(x >= 0, b, np.where(np.abs(y) <= 0.5, i, r)) for b, i, r in zip(behind, inside, rest, strict=True)
    )
    # Four waves along z, out of phase, so that a three-dimensional jet does not stay two-dimensional.
    waves = sum(np.cos(2 * np.pi * m * z / span + m * m) for m in range(1, 5))
    v = v + kick * np.exp(-((x - 2) ** 2) - y**2) * (1 + 0.25 * waves)
    return rho, u, v, w, p


def _state(u, p, total_temperature, gamma):
    """Return the state of a gas of this total temperature: T = T0 - (gamma - 1) / 2 u^2."""
    return gamma * p / (total_temperature - 0.5 * (gamma - 1) * u**2), u, 0.0, 0.0, p
