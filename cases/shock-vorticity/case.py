"""A plane vorticity wave upstream of a shock at x = 0, and the flow downstream of it."""

import numpy as np

from hiresx.case.wave_sums import Waves
from hiresx.errors import HiresxError
from hiresx.exact import normal_shock


def _wave(x, y, mach, angle, amplitude):
    """Return the phase at the time 0, the frequency, and the amplitudes of u and v of a wave with one period along
    y."""
    if not 0 < angle < 90:
        raise HiresxError(
            f"parameters.angle = {angle:g}: the wave's normal makes no such angle with the shock's",
            "give an angle in degrees between 0 and 90, both excluded, for instance 45",
        )
    psi = np.radians(angle)
    along = 1 / np.tan(psi)
    return along * x + y, along * mach / (2 * np.pi), amplitude * mach * np.sin(psi), -amplitude * mach * np.cos(psi)


def behind(x, y, z, *, mach, gamma):
    """Return rho, u, v, w and p downstream of the normal shock at Mach number `mach`, in the scales of the case. They
    do not depend on x, y, z."""
    shock = normal_shock(mach, gamma)
    return shock.density, mach / shock.density, 0.0, 0.0, shock.pressure / gamma


def initial(x, y, z, *, mach, angle, amplitude, gamma):
    """Return rho, u, v, w and p at the start at the places x, y, z (arrays of one shape), in the scales of the case: a
    normal shock at x = 0, and a plane vorticity wave upstream of it. `angle`: the angle between the wave vector and the
    x axis, in degrees. `amplitude`: that of the velocity, divided by the upstream velocity."""
    phase, _, u, v = _wave(x, y, mach, angle, amplitude)
    ahead = (x < 0) * np.cos(phase)
    rho2, u2, _, _, p2 = behind(x, y, z, mach=mach, gamma=gamma)
    rho, speed, p = (np.where(x < 0, a, b) for a, b in ((1.0, rho2), (mach, u2), (1 / gamma, p2)))
    return rho, speed + u * ahead, v * ahead, 0.0, p


def inflow(x, y, z, t, *, mach, angle, amplitude, gamma):
    """Return rho, u, v, w and p at the inflow at the places x, y, z (arrays of one shape), as waves in time
    (`hiresx.Waves`): the vorticity wave, which moves along x with the mean velocity. The arguments are those of
    `initial`."""
    phase, frequency, u, v = _wave(x, y, mach, angle, amplitude)
    along, across = (
        Waves(mean, [frequency], [size * np.cos(phase)], [size * np.sin(phase)]) for mean, size in ((mach, u), (0.0, v))
    )
    return 1.0, along, across, 0.0, 1 / gamma
