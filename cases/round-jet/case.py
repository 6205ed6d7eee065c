"""Round under-expanded jet: its parameters, the state in the nozzle, disturbances of its boundary layer, an estimate of
the mean jet, the start."""

from functools import cache

import numpy as np

from hiresx import Waves
from hiresx.exact import blasius_layer
from hiresx.exact.nozzle import fully_expanded, walled_jet

SPREADING = 0.094  # half-width of a developed round jet over the distance (Pope, Turbulent Flows, 2000, section 5.1)
# Integrals over s > 0 of sech^4 s and of s sech^4 s: the momentum of the wings.
WING, WING_MOMENT = 2 / 3, 2 / 3 * np.log(2) - 1 / 6
CONVECTION = 0.7  # velocity that carries disturbances in the layer, over that of the core
WAVES = 8  # frequencies of disturbances
REACH = 3.0  # distance from the wall to which disturbances reach, in thicknesses of the layer
ROUGH, ROUGH_LAYER = 8, 0.1  # of those at the start: highest azimuthal mode, thickness of their layer


def derived(*, Mj=None, NPR=None, pressure_ratio=None, exit_mach, temperature_ratio, subsonic, layer, lip,
            gamma):  # fmt: skip
    """Mach number of the jet expanded to ambient pressure without losses, nozzle pressure ratio, and exit over ambient
    pressure, of the one that is given; velocity Uj (in a) and diameter Dj (in D) of the expanded jet. A ValueError says
    why there is no such jet."""
    found, section = walled_jet(
        Mj=Mj, NPR=NPR, pressure_ratio=pressure_ratio, exit_mach=exit_mach, temperature_ratio=temperature_ratio,
        layer=layer, lip=lip, gamma=gamma, subsonic=bool(subsonic),
    )  # fmt: skip
    return {**found, "Dj": np.sqrt(section)}


def nozzle(x, y, z, t, *, pressure_ratio, exit_mach, temperature_ratio, layer, disturbance, disturbance_modes,
           disturbance_lowest, disturbance_frequency, seed, gamma):  # fmt: skip
    """What enters the nozzle: the state `_entering`, in its layer with the velocity of `disturbances`, as waves."""
    rho, u, v, w, p = _entering(
        y, z, pressure_ratio=pressure_ratio, exit_mach=exit_mach, temperature_ratio=temperature_ratio, layer=layer,
        gamma=gamma,
    )  # fmt: skip
    if not disturbance > 0:
        return rho, Waves(u, frequency=[]), v, w, p
    core = _core(exit_mach, temperature_ratio, gamma)
    inside, f, parts = amplitudes(
        x, y, z, speed=CONVECTION * core, layer=layer, modes=disturbance_modes, lowest=disturbance_lowest,
        highest=disturbance_frequency, seed=seed,
    )  # fmt: skip
    cos, sin = np.zeros((2, f.size, 3, *np.shape(u)))
    cos[..., inside], sin[..., inside] = np.split(disturbance * core * parts, 2)
    return rho, *(Waves(mean, f, cos[:, n], sin[:, n]) for n, mean in enumerate((u, v, w))), p


def _entering(y, z, *, pressure_ratio, exit_mach, temperature_ratio, layer, gamma):
    """Mean profile at the nozzle's inflow: uniform pressure and total temperature, a Blasius layer on the wall.

    The total temperature is uniform through the layer as well: Crocco and Busemann's relation at an adiabatic wall.
    """
    u = _core(exit_mach, temperature_ratio, gamma) * blasius_layer(np.maximum(0.5 - np.hypot(y, z), 0.0), layer)
    return _state(u, pressure_ratio / gamma, temperature_ratio, gamma)


def _core(exit_mach, temperature_ratio, gamma):
    """Velocity of the core at the exit, in a."""
    return exit_mach * np.sqrt(temperature_ratio) / np.sqrt(1 + 0.5 * (gamma - 1) * exit_mach**2)


def disturbances(x, y, z, t, *, speed, layer, modes, highest, seed, lowest):
    """Velocity (u, v, w), of root mean square 1 in time where that is largest, that is carried along x at `speed`.

    It is the curl of the vector potential with the components g(r) F along the azimuth and g(r) G along x, F and G sums
    over azimuthal modes |m| <= `modes` and WAVES frequencies of waves cos(k x - 2 pi f t + m theta + phase): free of
    divergence, nothing at the wall. Each frequency lies at random in its share of (`lowest`, `highest`], phases are
    random; all of them follow from `seed`. g is q^2 (1 - q)^4 with the distance q from the wall over REACH layers.
    """
    y, z, x = np.broadcast_arrays(*(np.asarray(c, float) for c in (y, z, x)))
    inside, f, parts = amplitudes(x, y, z, speed=speed, layer=layer, modes=modes, lowest=lowest, highest=highest,
                                  seed=seed)  # fmt: skip
    found = np.zeros((3, *x.shape))
    cos, sin = np.split(parts, 2)
    for n in range(3):
        found[n, inside] = Waves(0.0, f, cos[:, n], sin[:, n]).at(t)
    return found


def amplitudes(x, y, z, *, speed, layer, modes, lowest, highest, seed):
    """Of `disturbances`: which places (shape of x) have any, the frequencies f (WAVES,), and there the parts
    (2 WAVES, 3, points) of u, v, w with cos(2 pi f t) and those with sin(2 pi f t)."""
    f, phases, scale = _waves(modes, lowest, highest, seed, speed, layer)
    r = np.hypot(y, z)
    inside = (r < 0.5) & (r > 0.5 - REACH * layer)
    radius, place = r[inside], np.broadcast_to(x, r.shape)[inside]
    q = (0.5 - radius) / (REACH * layer)
    g, slope = q**2 * (1 - q) ** 4, -(2 * q * (1 - q) ** 4 - 4 * q**2 * (1 - q) ** 3) / (REACH * layer)
    turn = (np.broadcast_to(y, r.shape)[inside] + 1j * np.broadcast_to(z, r.shape)[inside]) / radius
    m = np.arange(-modes, modes + 1)
    # (WAVES, points): of F and G the values, of G the derivative in theta, with exp(-2 pi i f t) left out. Sums over m
    # of a_m turn^m, by Horner's rule.
    waves = np.exp(2j * np.pi * np.multiply.outer(f, place / speed)) / turn**modes
    sums = np.zeros((3, f.size, radius.size), complex)
    for n in range(m.size - 1, -1, -1):
        for total, coefficient in zip(sums, (phases[0], phases[1], 1j * m * phases[1]), strict=True):
            total *= turn
            total += coefficient[:, n, None]
    F, G, G_theta = sums * waves
    radial = g * (G_theta / radius - (2j * np.pi * f / speed)[:, None] * F)
    swirl = -slope * G
    velocity = scale * np.stack(
        [(slope + g / radius) * F, radial * turn.real - swirl * turn.imag, radial * turn.imag + swirl * turn.real],
        axis=1,
    )
    return inside, f, np.concatenate([velocity.real, velocity.imag])


@cache
def _waves(modes, lowest, highest, seed, speed, layer):
    """(frequencies (WAVES,), complex amplitudes of F and G (2, WAVES, 2 modes + 1), factor that makes the largest root
    mean square 1)."""
    random = np.random.default_rng(seed)
    f = lowest + (highest - lowest) * (np.arange(WAVES) + random.uniform(size=WAVES)) / WAVES
    phases = np.exp(2j * np.pi * random.uniform(size=(2, WAVES, 2 * modes + 1)))
    # In the layer slopes in r are 1/layer and those along x and theta the waves': equal shares of velocity of F and G.
    q = np.linspace(0.0, 1.0, 1001)[:-1]
    radius = 0.5 - q * REACH * layer
    g, slope = q**2 * (1 - q) ** 4, -(2 * q * (1 - q) ** 4 - 4 * q**2 * (1 - q) ** 3) / (REACH * layer)
    m = np.arange(-modes, modes + 1)
    k = 2 * np.pi * f / speed
    count, half = f.size * m.size, 0.5  # the mean of cos^2
    square = half * (
        count * ((slope + g / radius) ** 2 + slope**2)
        + g**2 * (m.size * np.sum(k**2) + f.size * np.sum(m**2) / radius**2)
    )
    return f, phases, 1 / np.sqrt(square.max())


def developed(x, y, z, *, pressure_ratio, exit_mach, temperature_ratio, gamma):
    """Estimate of the mean jet at ambient pressure, x > 0: fully expanded core, eaten away, then self-similar.

    The wings are sech^2; core, width and velocity on the axis keep the integral of u^2 over the section. The total
    temperature goes with u from that of the ambient to that of the jet (Crocco and Busemann).
    """
    u_jet, section = fully_expanded(pressure_ratio, exit_mach, temperature_ratio, gamma)
    radius = 0.5 * np.sqrt(section)
    # Not thinner than at 0.5 diameters from the exit, where the grid still resolves it.
    width = SPREADING * np.maximum(x, 0.5) / np.arccosh(np.sqrt(2))
    core = np.sqrt(np.maximum(radius**2 - (2 * WING_MOMENT - WING**2) * width**2, 0.0)) - WING * width
    velocity = np.minimum(radius / (np.sqrt(2 * WING_MOMENT) * width), 1.0)
    # Beyond 40 widths the wing is nothing; cosh would overflow.
    r = np.hypot(y, z)
    wing = 1 / np.cosh(np.minimum(np.maximum(r - np.maximum(core, 0.0), 0.0) / width, 40.0)) ** 2
    u = u_jet * velocity * wing
    return _state(u, 1 / gamma, 1 + (temperature_ratio - 1) * u / u_jet, gamma)


def initial(x, y, z, *, pressure_ratio, exit_mach, temperature_ratio, layer, kick, roughness, seed, gamma):
    """The exit state in the nozzle, the developed jet behind it, rest outside the nozzle, and a kick to one side;
    `disturbances` of all azimuthal modes up to ROUGH in the layer behind the lip, `roughness` their size in a: nothing
    that comes of them is its own mirror image."""
    exit_state = {"pressure_ratio": pressure_ratio, "exit_mach": exit_mach, "temperature_ratio": temperature_ratio}
    inside = _entering(y, z, layer=layer, gamma=gamma, **exit_state)
    behind = developed(x, y, z, gamma=gamma, **exit_state)
    rest = (1.0, 0.0, 0.0, 0.0, 1 / gamma)
    r = np.hypot(y, z)
    rho, u, v, w, p = (
        np.where(x >= 0, b, np.where(r <= 0.5, i, q)) for b, i, q in zip(behind, inside, rest, strict=True)
    )
    v = v + kick * np.exp(-((x - 2) ** 2) - r**2)
    if roughness > 0:
        rough = disturbances(
            x, y, z, 0.0, speed=CONVECTION, layer=max(layer, ROUGH_LAYER), modes=ROUGH, lowest=0.0, highest=1.0,
            seed=seed,
        )  # fmt: skip
        u, v, w = (mean + roughness * np.where(x >= 0, part, 0.0) for mean, part in zip((u, v, w), rough, strict=True))
    return rho, u, v, w, p


def _state(u, p, total_temperature, gamma):
    """State of a gas of this total temperature: T = T0 - (gamma - 1) / 2 u^2."""
    return gamma * p / (total_temperature - 0.5 * (gamma - 1) * u**2), u, 0.0, 0.0, p
