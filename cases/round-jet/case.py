"""Round under-expanded jet: parameters, the state in the nozzle, disturbances of its boundary layer, an estimate of the
mean jet, and the initial flow."""

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
    """Return the parameters of the jet that follow from the one that is given: the fully expanded Mach number `Mj`, the
    nozzle pressure ratio `NPR`, and the pressure at the exit over the ambient one, `pressure_ratio`. Also return the
    velocity Uj (in a) and the diameter Dj (in D) of the fully expanded jet. The other arguments are those of
    `hiresx.exact.nozzle.walled_jet`. Raises ValueError, with the reason, if there is no such jet."""
    found, section = walled_jet(
        Mj=Mj, NPR=NPR, pressure_ratio=pressure_ratio, exit_mach=exit_mach, temperature_ratio=temperature_ratio,
        layer=layer, lip=lip, gamma=gamma, subsonic=bool(subsonic),
    )  # fmt: skip
    return {**found, "Dj": np.sqrt(section)}


def nozzle(x, y, z, t, *, pressure_ratio, exit_mach, temperature_ratio, layer, disturbance, disturbance_modes,
           disturbance_lowest, disturbance_frequency, seed, gamma):  # fmt: skip
    """Return rho, u, v, w and p of the inflow of the nozzle at the places x, y, z (arrays of one shape), in the scales
    of the case. The mean has uniform pressure and total temperature, and a Blasius layer of thickness `layer` on the
    wall. The velocity of `disturbances` in the layer is added as waves (`hiresx.Waves`). Its root mean square is
    `disturbance` times the velocity of the core. `disturbance_modes`, `disturbance_lowest` and `disturbance_frequency`:
    the highest azimuthal mode, and the lowest and highest frequency of the disturbances. The other arguments are
    parameters of the case."""
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
    """Return a velocity (u, v, w) of random waves near the wall of the nozzle, at the places x, y, z (arrays of one
    shape) and the time t. The waves move along x at `speed`. Their root mean square in time is 1 at the place where it
    is largest.

    The velocity is the curl of a vector potential with the components g(r) F along the azimuth and g(r) G along x. It
    is therefore free of divergence, and it vanishes at the wall. F and G are sums of waves cos(k x - 2 pi f t + m theta
    + phase) over the azimuthal modes |m| <= `modes` and over WAVES frequencies f. The interval (`lowest`, `highest`] is
    divided equally among the frequencies, and each has a random position in its part. Phases are random. All random
    numbers follow from `seed`. g is q^2 (1 - q)^4, where q is the distance from the wall divided by REACH times
    `layer`.
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
    """Return the waves of `disturbances` as amplitudes. The result has a mask of the places with disturbances (of the
    shape of x), the frequencies f (WAVES,), and an array (2 WAVES, 3, points) for these places. The array has the
    factors of u, v and w with cos(2 pi f t), then those with sin(2 pi f t). The arguments are those of `disturbances`.
    """
    f, phases, scale = _waves(modes, lowest, highest, seed, speed, layer)
    r = np.hypot(y, z)
    inside = (r < 0.5) & (r > 0.5 - REACH * layer)
    radius, place = r[inside], np.broadcast_to(x, r.shape)[inside]
    q = (0.5 - radius) / (REACH * layer)
    g, slope = q**2 * (1 - q) ** 4, -(2 * q * (1 - q) ** 4 - 4 * q**2 * (1 - q) ** 3) / (REACH * layer)
    turn = (np.broadcast_to(y, r.shape)[inside] + 1j * np.broadcast_to(z, r.shape)[inside]) / radius
    m = np.arange(-modes, modes + 1)
    # (WAVES, points): the values of F and G, and the derivative of G in theta, without the factor exp(-2 pi i f t).
    # Sums over m of a_m turn^m are computed by Horner's rule.
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
    # In the layer the derivatives in r are of the size 1/layer; those along x and theta are those of the waves. With
    # these factors F and G contribute equally to the velocity.
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


def developed_jet(x, y, z, *, pressure_ratio, exit_mach, temperature_ratio, gamma):
    """Return rho, u, v, w and p of an estimate of the mean jet at ambient pressure, at the places x > 0, y, z (arrays
    of one shape), in the scales of the case. The jet has a fully expanded core, whose radius decreases to zero. It is
    self-similar further downstream.

    The velocity outside the core decays as sech^2. The radius of the core, the width and the velocity on the axis keep
    the integral of u^2 over the section constant. The total temperature varies linearly with u from that of the ambient
    gas to that of the jet (Crocco and Busemann). `pressure_ratio`: pressure at the exit over the ambient one.
    `exit_mach`: Mach number of the exit. `temperature_ratio`: total temperature of the jet over the ambient
    temperature.
    """
    u_jet, section = fully_expanded(pressure_ratio, exit_mach, temperature_ratio, gamma)
    radius = 0.5 * np.sqrt(section)
    # Not thinner than at 0.5 diameters from the exit, where the grid still resolves it.
    width = SPREADING * np.maximum(x, 0.5) / np.arccosh(np.sqrt(2))
    core = np.sqrt(np.maximum(radius**2 - (2 * WING_MOMENT - WING**2) * width**2, 0.0)) - WING * width
    velocity = np.minimum(radius / (np.sqrt(2 * WING_MOMENT) * width), 1.0)
    # Beyond 40 widths the velocity is negligible, and cosh would overflow.
    r = np.hypot(y, z)
    wing = 1 / np.cosh(np.minimum(np.maximum(r - np.maximum(core, 0.0), 0.0) / width, 40.0)) ** 2
    u = u_jet * velocity * wing
    return _state(u, 1 / gamma, 1 + (temperature_ratio - 1) * u / u_jet, gamma)


def initial(x, y, z, *, pressure_ratio, exit_mach, temperature_ratio, layer, kick, roughness, seed, gamma):
    """Return rho, u, v, w and p at the start at the places x, y, z (arrays of one shape), in the scales of the case.
    The nozzle contains its exit state, and the developed jet lies behind it. The gas outside the nozzle is at rest. A
    sideways velocity `kick` and, in the layer behind the lip, `disturbances` of all azimuthal modes up to ROUGH remove
    all symmetries. `roughness`: the size of these disturbances, in a."""
    exit_state = {"pressure_ratio": pressure_ratio, "exit_mach": exit_mach, "temperature_ratio": temperature_ratio}
    inside = _entering(y, z, layer=layer, gamma=gamma, **exit_state)
    behind = developed_jet(x, y, z, gamma=gamma, **exit_state)
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
    """Return the state of a gas of this total temperature: T = T0 - (gamma - 1) / 2 u^2."""
    return gamma * p / (total_temperature - 0.5 * (gamma - 1) * u**2), u, 0.0, 0.0, p
