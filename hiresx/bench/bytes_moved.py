"""How much a kernel must move between memory and processor: every value it reads once and every value it writes once.

What the stencils read again is found in a cache, and a line of memory that a CPU reads only to overwrite it is not
counted, so that the time a machine's bandwidth needs for this is a lower bound of the kernel's.
"""

import math
from collections.abc import Mapping
from typing import Any

# Reals read and written per visited point, by array of the kernel's signature (smooth flow, one dt for all).
_READ_WRITTEN = {
    "inviscid_sweep": (8, 5),  # q, m; r
    "sweep_along": (8, 5),
    "sweep_across": (8, 5),
    "interpolate": (8, 10),  # q, m; minus, plus
    "physical_flux": (8, 6),  # q, m; f, pressure
    "numerical_flux": (19, 5),  # m, minus, plus, f, pressure; minus
    "flux_difference": (5, 5),  # flux; r
    "viscous_primitives": (5, 4),  # q; w
    "viscous_flux": (14, 12),  # w, m, jacobian; flux
    "viscous_difference": (16, 4),  # flux, r; r
    "update": (11, 10),  # q, r, jacobian; q0, q in the first stage, as many in the others
    "viscous_update": (23, 10),  # the update's, and the flux: where all three directions are its own
    "accumulate": (16, 10),  # d, q, r, jacobian; d, q
    "column_radii": (15, 0),  # q, m, jacobian; a value per column
    "column_norms": (11, 0),  # q, r, jacobian; values per column
}
# These add to r, and so read it, unless they are the first to write it.
_ADDS = {"inviscid_sweep": 5, "sweep_along": 5, "sweep_across": 5, "flux_difference": 5}
# The viscous fluxes that a fused sweep takes the differences of.
_CARRIED = 4


def reals(kernel: str, arguments: Mapping[str, Any]) -> float:
    """Reals that `kernel` moves per point it visits, given its arguments by name. NaN for a kernel whose time is not a
    matter of bandwidth: one that visits faces, or follows lists."""
    if kernel not in _READ_WRITTEN:
        return math.nan
    added = 0 if arguments.get("first", 1) else _ADDS.get(kernel, 0)
    return sum(_READ_WRITTEN[kernel]) + added + (_CARRIED if arguments.get("viscous") else 0)
