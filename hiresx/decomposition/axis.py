"""Whether a grid can be turned about the x axis."""

from collections.abc import Sequence

import numpy as np

from hiresx.errors import HiresxError
from hiresx.grid import Block
from hiresx.grid.blocks import slices

# Radii below this share of the grid's extent are none.
ON_AXIS = 1e-12


def check_axis(blocks: Sequence[Block], patches: Sequence) -> None:
    """Raises HiresxError, naming the node, for a block that is not of two dimensions, a node below the axis y = 0, one
    on it without the condition `axis`, and one with this condition that is not on it. `patches`: those of the whole
    blocks."""
    extent = max(float(np.ptp(c)) for block in blocks for c in (block.x, block.y))
    for b, block in enumerate(blocks):
        if block.active != (0, 1):
            raise HiresxError(
                f"block '{block.name}': axisymmetric = true wants a grid of two dimensions, this one has "
                f"{len(block.active)}",
                "give a plane grid, nk = 1, with y the distance from the axis",
            )
        held = np.zeros(block.y.shape, dtype=bool)
        for patch in patches:
            if patch.block == b and patch.condition.type == "axis":
                held[slices(patch.range)] = True
        on = np.abs(block.y) <= ON_AXIS * extent
        if held.any() and not (held & on).any():
            raise HiresxError(
                f"axisymmetric: block '{block.name}' has the condition \"axis\" where no node lies on y = 0",
                "the axis is y = 0, x runs along it: turn a grid about another line with `rotate` of [grid]",
            )
        for wrong, what, mend in (
            (~on & (block.y < 0), "lies below the axis y = 0", "y is the distance from the axis: give the upper half"),
            (
                on & ~held,
                'lies on the axis y = 0 without the condition "axis"',
                'give the face with y = 0 a [[boundary]] with type = "axis"',
            ),
            (
                held & ~on,
                'has the condition "axis" but does not lie on y = 0',
                "move the node, or the condition's range",
            ),
        ):
            if wrong.any():
                k, j, i = (int(n) for n in np.argwhere(wrong)[0])
                x, y, _ = block.node(i, j, k)
                raise HiresxError(
                    f"axisymmetric: block '{block.name}', node (i, j, k) = ({i}, {j}, {k}), (x, y) = "
                    f"({x:.6g}, {y:.6g}) {what}",
                    mend,
                )
