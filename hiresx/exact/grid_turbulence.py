"""Spectra of decaying turbulence behind a grid of 2 inch mesh, as measured by Comte-Bellot & Corrsin (Journal of Fluid
Mechanics 48 (1971) 273): their table 3, which follows from one-dimensional spectra under the assumption of isotropy.

Units are cm and s. The mean velocity is 1000 cm/s, the mesh 5.08 cm, and times are t U / M at which a frame that moves
with the mean flow is 42, 98 and 171 meshes behind the grid.
"""

import numpy as np

from hiresx.base.arrays import Reals

TIMES = (42, 98, 171)
MESH, MEAN_VELOCITY = 5.08, 1000.0
# Root mean square of the velocity along the flow at each time, in cm/s (table 4).
FLUCTUATION = (22.2, 12.8, 8.95)
# Kinematic viscosity in cm^2/s, from the Reynolds numbers of table 4: u' = 22.2 and lambda = 0.484 have Re_lambda =
# 71.6.
VISCOSITY = 0.150
# Wave number in 1/cm, and E in cm^3/s^2 at the three times; 0 if the table has no value.
SPECTRA = np.array(
    [
        (0.15, 0.0, 0.0, 49.7),
        (0.20, 129.0, 106.0, 92.0),
        (0.25, 230.0, 196.0, 120.0),
        (0.30, 322.0, 195.0, 125.0),
        (0.40, 435.0, 202.0, 98.0),
        (0.50, 457.0, 168.0, 81.5),
        (0.70, 380.0, 127.0, 60.2),
        (1.00, 270.0, 79.2, 39.4),
        (1.50, 168.0, 47.8, 24.1),
        (2.00, 120.0, 34.6, 16.5),
        (2.50, 89.0, 28.6, 12.5),
        (3.00, 70.3, 23.1, 9.12),
        (4.00, 47.0, 14.3, 5.62),
        (6.00, 24.7, 5.95, 1.69),
        (8.00, 12.6, 2.23, 0.520),
        (10.00, 7.42, 0.900, 0.161),
        (12.50, 3.96, 0.363, 0.0520),
        (15.00, 2.33, 0.162, 0.0141),
        (17.50, 1.34, 0.0660, 0.0),
        (20.00, 0.800, 0.0330, 0.0),
    ]
)


def spectrum(k: Reals, time: int = TIMES[0]) -> np.ndarray:
    """Return the three-dimensional energy spectrum E(k) in cm^3/s^2 that Comte-Bellot & Corrsin (J. Fluid Mech. 48
    (1971) 273, table 3) measured in decaying turbulence behind a grid, at the wave numbers `k` in 1/cm, an array of any
    shape, which the result has, too. `time`: 42, 98 or 171, the distance behind the grid in mesh widths. The logarithm
    of E is interpolated linearly in the logarithm of k between the points of the table, and extrapolated linearly
    beyond its ends. Raises ValueError for another `time`."""
    measured = SPECTRA[:, 1 + TIMES.index(time)]
    x, y = (np.log(column[measured > 0]) for column in (SPECTRA[:, 0], measured))
    at = np.log(np.asarray(k, float))
    n = np.clip(np.searchsorted(x, at) - 1, 0, x.size - 2)
    found: np.ndarray = np.exp(y[n] + (y[n + 1] - y[n]) * (at - x[n]) / (x[n + 1] - x[n]))
    return found


def elapsed_seconds(time: int) -> float:
    """Return the time in seconds in which the mean flow of Comte-Bellot & Corrsin's experiment moves from 42 mesh
    widths behind the grid to `time` mesh widths behind it."""
    return (time - TIMES[0]) * MESH / MEAN_VELOCITY
