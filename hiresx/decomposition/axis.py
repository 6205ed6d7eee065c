"""The check that a plane grid can be used for axisymmetric flow about the x axis."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hiresx.errors import HiresxError
from hiresx.grid import Block, Connection
from hiresx.grid.blocks import slices

if TYPE_CHECKING:
    from hiresx.decomposition.patches import Patch

# Radii below this fraction of the extent of the grid count as zero.
ON_AXIS = 1e-12
# Nodes do not resolve terms with 1/y if their distance from the axis is below this fraction of the distance to their
# neighbours along y.
UNRESOLVED = 1e-2


def check_axis(blocks: Sequence[Block], patches: "Sequence[Patch]", connections: Sequence[Connection]) -> None:
    """Check that the blocks of an axisymmetric case can be rotated about the x axis, and that the condition `axis` is
    set where they touch this axis. `patches`, `connections`: the boundary conditions and block connections of the whole
    blocks. Raises HiresxError
    - for a block that is not two-dimensional;
    - for a connection to another radius, naming the face;
    - for a node below the axis y = 0, naming the node;
    - for a node on the axis without the condition `axis`, and for a node with this condition that is not on the axis;
    - for a node so close to the axis that the spacing to its neighbours cannot resolve the flow there."""
    extent = max(float(np.ptp(c)) for block in blocks for c in (block.x, block.y))
    for c in connections:
        # only a shift along the axis changes neither radii nor the directions of y and z
        if c.rotation is not None or any(abs(t) > ON_AXIS * extent for t in c.translation[1:]):
            raise HiresxError(
                f"axisymmetric: {c.face} of block '{blocks[c.block].name}' is joined to nodes at other radii",
                "axisymmetric flow can be periodic along x only: end the grid at walls or open boundaries",
            )
    for b, block in enumerate(blocks):
        y = np.asarray(block.y)
        if block.active != (0, 1):
            raise HiresxError(
                f"block '{block.name}': axisymmetric = true needs a two-dimensional grid, this one has "
                f"{len(block.active)}",
                "give a plane grid, nk = 1, with y the distance from the axis",
            )
        held = np.zeros(block.y.shape, dtype=bool)
        for patch in patches:
            if patch.block == b and patch.condition.type == "axis":
                held[slices(patch.range)] = True
        on = np.abs(y) <= ON_AXIS * extent
        near = ~on & (y < UNRESOLVED * _distance(y))
        if held.any() and not (held & on).any():
            raise HiresxError(
                f"axisymmetric: block '{block.name}' has the condition \"axis\" where no node lies on y = 0",
                "the axis is y = 0, x runs along it: turn a grid about another line with `rotate` of [grid]",
            )
        for wrong, what, hint in (
            (~on & (y < 0), "lies below the axis y = 0", "y is the distance from the axis: give the upper half"),
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
            (
                near,
                f"lies off the axis y = 0, but closer to it than {UNRESOLVED:g} of the distance to its neighbours",
                'put the nodes there on y = 0 and give the face a [[boundary]] with type = "axis", or refine the grid '
                "towards it",
            ),
        ):
            if wrong.any():
                k, j, i = (int(n) for n in np.argwhere(wrong)[0])
                x, y, _ = block.node(i, j, k)
                raise HiresxError(
                    f"axisymmetric: block '{block.name}', node (i, j, k) = ({i}, {j}, {k}), (x, y) = "
                    f"({x:.6g}, {y:.6g}) {what}",
                    hint,
                )


def _distance(y: np.ndarray) -> np.ndarray:
    """Return the distance along y of each node from its farthest neighbour, an array of the shape of y."""
    farthest = np.zeros_like(y)
    for axis in (1, 2):
        step = np.abs(np.diff(y, axis=axis))
        for beside in (slice(None, -1), slice(1, None)):
            at = (slice(None),) * axis + (beside,)
            farthest[at] = np.maximum(farthest[at], step)
    return farthest
