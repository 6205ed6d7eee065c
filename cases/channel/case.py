"""The start of the channel: a full profile, rolls along it, and waves of random phases."""

import numpy as np


def initial(x, y, z, *, mach, disturbance, gamma):
    """rho, u, v, w, p with the mean density 1; the rolls and waves vanish at the walls."""
    profile = 8 / 7 * (1 - np.abs(y) ** 7)  # of mean 1 over the width
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
    return 1.0, u, v, w, 1 / gamma
