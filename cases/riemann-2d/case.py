"""Four uniform states in the quadrants of the unit square."""

import numpy as np

from hiresx.errors import HiresxError

# (rho, u, v, p) in the quadrants upper right, upper left, lower left, lower right (Lax & Liu 1998).
STATES = {
    3: ((1.5, 0.0, 0.0, 1.5), (0.5323, 1.206, 0.0, 0.3), (0.138, 1.206, 1.206, 0.029), (0.5323, 0.0, 1.206, 0.3)),
    4: ((1.1, 0.0, 0.0, 1.1), (0.5065, 0.8939, 0.0, 0.35), (1.1, 0.8939, 0.8939, 1.1), (0.5065, 0.0, 0.8939, 0.35)),
    12: ((0.5313, 0.0, 0.0, 0.4), (1.0, 0.7276, 0.0, 1.0), (0.8, 0.0, 0.0, 1.0), (1.0, 0.0, 0.7276, 1.0)),
}


def initial(x, y, z, *, configuration):
    """Return rho, u, v, w and p at the start at the places x, y, z (arrays of one shape), in the scales of the case:
    four uniform states in the quadrants around (0.5, 0.5). `configuration`: its number in Lax & Liu (1998). Raises
    HiresxError for a number that is not in STATES."""
    if configuration not in STATES:
        raise HiresxError(f"parameters.configuration = {configuration} is not bundled", f"choose one of {list(STATES)}")
    right, upper = x > 0.5, y > 0.5
    quadrants = [right & upper, ~right & upper, ~right & ~upper, right & ~upper]
    rho, u, v, p = (np.select(quadrants, values) for values in zip(*STATES[configuration], strict=True))
    return rho, u, v, 0.0, p
