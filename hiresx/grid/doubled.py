"""Duplicate grid lines: lines of nodes that a grid contains twice, side by side. They are an error in files that were
joined from parts."""

from dataclasses import dataclass
from functools import reduce

import numpy as np

from hiresx.errors import HiresxError
from hiresx.grid.blocks import AXES, Block
from hiresx.grid.connections import Grid
from hiresx.grid.stored_coordinates import slabs

# Distance, as a fraction of the block's extent, up to which two nodes count as coincident.
SAME = 1e-12


@dataclass(frozen=True)
class DoubledLine:
    """Two neighbouring grid lines (planes in three dimensions) whose nodes coincide at `count` of their `of` places.
    `d`: the direction in which one follows the other. `first`: the index of the first; the other is `first` + 1."""

    d: int
    first: int
    count: int
    of: int

    def describe(self) -> str:
        """Return a description for messages, such as "i = 3 and i = 4 coincide at 20 of 25 places"."""
        pair = f"{AXES[self.d]} = {self.first} and {AXES[self.d]} = {self.first + 1}"
        return f"{pair} coincide" if self.count == self.of else f"{pair} coincide at {self.count} of {self.of} places"


def doubled_line(block: Block) -> DoubledLine | None:
    """Return the pair of neighbouring grid lines (planes in three dimensions) of a block that coincide at the largest
    fraction of their nodes; None if no two have coincident nodes. The first and the last nodes of the lines (the nodes
    at the edges of the planes) are not considered, since they lie on faces of the block that may be collapsed."""
    found: list[DoubledLine] = []
    thick = [d for d in block.active if block.size[d] > 2]  # a block of two equal planes is a plane grid
    for d in thick:
        others = [2 - e for e in thick if e != d]
        bound, coincident = (SAME * max(block.extents)) ** 2, np.zeros(max(block.size[d] - 1, 0), dtype=int)
        plane = 0
        for nodes in slabs(block.x, block.y, block.z, overlap=int(block.size[2] > 1)):
            depth = nodes[0].shape[0]
            last = plane + depth == block.size[2]
            squares = (np.square(np.diff(c, axis=2 - d)) for c in nodes)
            same = reduce(np.add, squares) <= bound
            inner = [slice(1, -1) if axis in others else slice(None) for axis in range(3)]
            if d != 2:  # the last plane of a slab is the first of the next slab
                inner[0] = slice(1 if plane == 0 and 0 in others else 0, None if last and 0 not in others else -1)
            counts = same[tuple(inner)].sum(axis=tuple(axis for axis in range(3) if axis != 2 - d))
            if d == 2:
                coincident[plane : plane + len(counts)] += counts
            else:
                coincident += counts
            plane += depth - 1
        if coincident.any():
            first = int(np.argmax(coincident))
            of = int(np.prod([block.size[2 - axis] - 2 for axis in others]))
            found.append(DoubledLine(d, first, int(coincident[first]), of))
    return max(found, key=lambda line: line.count / line.of, default=None)


def refuse_doubled(grid: Grid) -> None:
    """Raise HiresxError for the first block in which two neighbouring grid lines (planes in three dimensions) have
    coincident nodes, since the cells between these lines have no volume. The message names both lines."""
    for block in grid.blocks:
        line = doubled_line(block)
        if line is not None:
            raise HiresxError(
                f"block '{block.name}': the nodes {line.describe()}: cells without volume lie between them",
                "leave one of the two out, in each file where parts were joined: what two parts share is written once",
            )
