"""Checks that the floating-point arithmetic of a case can represent its cell volumes."""

from collections.abc import Sequence

import numpy as np

from hiresx.case import Case
from hiresx.equations.storage import STORAGE
from hiresx.errors import HiresxError
from hiresx.grid import Block


def refuse_underflow(case: Case, block: str, volume: float, node: Sequence[int]) -> None:
    """Raise HiresxError if a positive cell `volume` is below the smallest normal number in the precision in which
    `case` computes metrics, since kernels treat it as 0. `block`: the name of the block. `node`: the indexes (i, j, k)
    of the node."""
    kind = STORAGE[case.scheme.precision].work
    least = float(np.finfo(kind).tiny)
    if 0 < volume < least:
        i, j, k = node
        raise HiresxError(
            f"block '{block}': cell volume {volume:.3g} at node (i, j, k) = ({i}, {j}, {k}) is below {least:.2g}, the "
            f"smallest number of {kind}",
            "choose a smaller reference length L, in which the grid is larger",
        )


def is_tiny(case: Case, block: Block) -> bool:
    """Return whether `block` may have cells so small that `refuse_underflow` rejects them, so that every cell must be
    checked. This is so if the mean volume of a cell, estimated from the extents of the block, is below 1e10 times the
    smallest normal number in the precision of the metrics."""
    extents = sorted(block.extents)[-len(block.active) :]
    logarithm = sum(np.log10(e) for e in extents if e > 0) - np.log10(block.points)
    return bool(logarithm < np.log10(np.finfo(STORAGE[case.scheme.precision].work).tiny) + 10)
