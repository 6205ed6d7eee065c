"""A plane vorticity wave ahead of a shock at x = 0, and the flow behind that."""

import numpy as np

from hiresx.case.waves import Waves
from hiresx.errors import HiresxError
from hiresx.exact import normal_shock


def _wave(x, y, mach, angle, amplitude):
    """The phase at the time 0, the frequency and the amplitudes of u and v of a wave with one period along y."""
    if not 0 < angle < 90:
        raise HiresxError(
            f"parameters.angle = {angle:g}: the wave's normal makes no such angle with the shock's",
            "give an angle in degrees between 0 and 90, both excluded, for instance 45",
        )
    psi = np.radians(angle)
    along = 1 / np.tan(psi)
    return along * x + y, along * mach / (2 * np.pi), amplitude * mach * np.sin(psi), -amplitude * mach * np.cos(psi)


def behind(x, y, z, *, mach, gamma):
    shock = normal_shock(mach, gamma)
    return shock.density, mach / shock.density, 0.0, 0.0, shock.pressure / gamma


def initial(x, y, z, *, mach, angle, amplitude, gamma):
    phase, _, u, v = _wave(x, y, mach, angle, amplitude)
    ahead = (x < 0) * np.cos(phase)
    rho2, u2, _, _, p2 = behind(x, y, z, mach=mach, gamma=gamma)
    rho, speed, p = (np.where(x < 0, a, b) for a, b in ((1.0, rho2), (mach, u2), (1 / gamma, p2)))
    return rho, speed + u * ahead, v * ahead, 0.0, p


def inflow(x, y, z, t, *, mach, angle, amplitude, gamma):
    phase, frequency, u, v = _wave(x, y, mach, angle, amplitude)
    along, across = (
        Waves(mean, [frequency], [size * np.cos(phase)], [size * np.sin(phase)]) for mean, size in ((mach, u), (0.0, v))
    )
    return 1.0, along, across, 0.0, 1 / gamma
