"""The least that a kernel moves between memory and processor: every value that it reads once, and every value that it
writes once.

Repeated reads of a stencil are taken to hit a cache, and lines of memory that a CPU reads only to overwrite them are
not counted. The time that the bandwidth needs for these bytes is therefore a lower bound of the kernel's time.
"""

import math
from collections.abc import Mapping
from typing import Any

# Reals read and written per visited point, by array of the kernel's signature (smooth flow, one dt for all), without
# passive scalars.
_READ_WRITTEN = {
    "inviscid_sweep": (8, 5),  # q, m; r
    "sweep_along": (8, 5),
    "sweep_across": (8, 5),
    "split_march": (14, 5),
    "interpolate": (8, 10),  # q, m; minus, plus
    "physical_flux": (8, 6),  # q, m; f, pressure
    "numerical_flux": (19, 5),  # m, minus, plus, f, pressure; minus
    "flux_difference": (5, 5),  # flux; r
    "viscous_primitives": (5, 4),  # q; w
    "viscous_flux": (14, 12),  # w, m, jacobian; flux
    "viscous_march": (15, 12),  # q, m, jacobian; flux
    "viscous_difference": (16, 4),  # flux, r; r
    "update": (11, 10),  # q, r, jacobian; q0, q in the first stage, as many in the others
    "viscous_update": (23, 10),  # the update's, and the flux: where all three directions are its own
    "accumulate": (16, 10),  # d, q, r, jacobian; d, q
    "column_radii": (15, 0),  # q, m, jacobian; a value per column
    "column_norms": (11, 0),  # q, r, jacobian; values per column
    "scalar_flux": (4, 0),  # density, mass, f, pressure
    "scalar_difference": (0, 0),
}
# What each passive scalar adds, and the array, with how many variables of the gas, that says how many there are.
_OF_SCALAR = {
    "inviscid_sweep": (1, 1, "q", 5),
    "sweep_along": (1, 1, "q", 5),
    "sweep_across": (1, 1, "q", 5),
    "viscous_primitives": (1, 1, "q", 5),
    "viscous_flux": (1, 3, "w", 4),
    "viscous_march": (1, 3, "q", 5),
    "viscous_difference": (4, 1, "r", 5),
    "update": (2, 2, "q", 5),
    "viscous_update": (5, 2, "q", 5),
    "accumulate": (3, 2, "q", 5),
    "scalar_flux": (1, 1, "flux", 0),
    "scalar_difference": (1, 1, "flux", 0),
}
# These add to r, of so many variables of the gas, and so read it, unless they are the first to write it.
_ADDS = {"inviscid_sweep": 5, "sweep_along": 5, "sweep_across": 5, "split_march": 5, "flux_difference": 5}
_ADDS |= {"scalar_difference": 0}
# The viscous fluxes of the gas that a fused sweep takes the differences of.
_CARRIED = 4


def reals(kernel: str, arguments: Mapping[str, Any]) -> float:
    """Reals that `kernel` moves per point it visits, given its arguments by name. NaN for a kernel whose time is not a
    matter of bandwidth: one that visits faces, follows lists, or passes over nodes that a sensor does not mark."""
    if kernel not in _READ_WRITTEN or "sensor" in arguments:
        return math.nan
    of_scalar, scalars = 0, 0
    if kernel in _OF_SCALAR:
        read, written, array, of_gas = _OF_SCALAR[kernel]
        of_scalar, scalars = read + written, len(arguments[array]) - of_gas
    added = 0 if arguments.get("first", 1) or kernel not in _ADDS else _ADDS[kernel] + scalars
    carried = _CARRIED + scalars if arguments.get("viscous_flux") is not None else 0
    mark = 1 / 8 if "rough" in arguments else 0.0  # a byte
    return mark + sum(_READ_WRITTEN[kernel]) + scalars * of_scalar + added + carried
