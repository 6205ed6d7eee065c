"""The initial flow of the channel: mean profiles of velocity and temperature, streamwise rolls, and waves of random
phases."""

import numpy as np

# Number of places between the walls: enough for accurate means over the width.
ACROSS = np.linspace(-1, 1, 20001)


def _temperature(y, centre):
    """Return a temperature close to the profile of the DNS: 1 at the walls, flat between them."""
    return 1 + (centre - 1) * (1 - np.abs(y) ** 14)


def _velocity(y):
    return 1 - np.abs(y) ** 7


def initial(x, y, z, *, mach, centre_temperature, disturbance, gamma):
    """Return rho, u, v, w and p at the places x, y, z (arrays of one shape), in the scales of the case. The mean
    density is 1, and the mean momentum is `mach`. `centre_temperature`: temperature at the centre over that of the
    walls. `disturbance`: amplitude of rolls and waves over the bulk velocity; these disturbances vanish at the
    walls."""
    pressure = 1 / np.mean(1 / _temperature(ACROSS, centre_temperature))  # times gamma
    density = pressure / _temperature(y, centre_temperature)
    profile = _velocity(y) / np.mean(_velocity(ACROSS) * pressure / _temperature(ACROSS, centre_temperature))
    inside = 1 - y * y
    size = disturbance * mach
    # a stream function inside^2 cos(3 z / 2) of two rolls beside each other, one period of z
    k = 1.5
    v = -size * k * inside**2 * np.sin(k * z)
    w = size * 4 * y * inside * np.cos(k * z)
    rng = np.random.default_rng(1995)
    u = mach * profile
    for m in range(1, 5):
        for n in range(1, 4):
            phases, share = rng.uniform(0, 2 * np.pi, 3), size / 8
            along, across = m * x / 2, n * 1.5 * z
            u = u + share * inside * np.cos(along + phases[0]) * np.cos(across + phases[1])
            w = w + share * inside * np.cos(along + phases[1]) * np.cos(across + phases[2])
            v = v + share * inside**2 * np.cos(along + phases[2]) * np.cos(across + phases[0])
    return density, u, v, w, pressure / gamma
