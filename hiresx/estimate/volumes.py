"""Cell volumes that the arithmetic of a case cannot hold."""

from collections.abc import Sequence

import numpy as np

from hiresx.case import Case
from hiresx.equations.storage import STORAGE
from hiresx.errors import HiresxError


def refuse_underflow(case: Case, block: str, volume: float, node: Sequence[int]) -> None:
    """Raises HiresxError for a positive cell `volume` of a `block` (its name) at `node` (i, j, k) that is below the
    smallest normal number of the metrics' precision: the kernels take it for 0."""
    kind = STORAGE[case.scheme.precision].work
    least = float(np.finfo(kind).tiny)
    if 0 < volume < least:
        i, j, k = node
        raise HiresxError(
            f"block '{block}': cell volume {volume:.3g} at node (i, j, k) = ({i}, {j}, {k}) is below {least:.2g}, the "
            f"smallest number of {kind}",
            "choose a smaller reference length L, in which the grid is larger",
        )
