"""Kinks of grid lines. The grid lines along a wall turn at an edge of the wall, and so do the lines near it.
Coordinates of a finer level are not interpolated across a kink, so that an edge keeps its position and remains sharp.
"""

from typing import TYPE_CHECKING

import numpy as np

from hiresx.decomposition.wall_edges import BEYOND, edges, nodes_beyond
from hiresx.grid.blocks import direction, layer, side

if TYPE_CHECKING:
    from hiresx.decomposition.patches import Decomposition
    from hiresx.grid import Connection

# A node of all grid lines of a block (block, direction, number).
Kink = tuple[int, int, int]


def find_kinks(whole: "Decomposition") -> set[Kink]:
    """Return the kinks of the grid, where the slope of grid lines along an index direction is discontinuous because a
    boundary of the grid has an edge there. A kink is a tuple (block, direction, node). It applies to all grid lines of
    the block in this direction, and is continued across connections into other blocks. Kinks one spacing beyond the end
    of a block are included. `whole`: the blocks, not divided among ranks."""
    found: set[Kink] = set()
    for patch in whole.patches:
        d = direction(patch.face)
        for e in whole.blocks[patch.block].active:
            if e != d:
                turned = edges(nodes_beyond(whole, patch.block, patch.range, e, BEYOND))
                first = patch.range[e][0] - BEYOND + 1
                own = np.flatnonzero(turned.reshape(-1, turned.shape[-1]).any(axis=0)) + first
                lo, hi = patch.range[e]
                found |= {(patch.block, e, int(m)) for m in own if lo <= m < hi}
    of_block: dict[int, list[Connection]] = {}
    for c in whole.connections if found else ():
        if not c.over_a_pole:
            of_block.setdefault(c.block, []).append(c)
    left = [*found]
    while left:
        b, e, m = left.pop()
        for c in of_block.get(b, ()):
            there = _beyond(whole, c, e, m)
            if there is not None and there not in found:
                found.add(there)
                left.append(there)
    return found


def _beyond(whole: "Decomposition", c: "Connection", e: int, m: int) -> Kink | None:
    """Return the node at which lines of the donor have the kink that lines of the block of `c` have at node `m` along
    `e`; None if `c` does not connect it."""
    d = direction(c.face)
    node = np.array([[lo] for lo, _ in c.range])
    if e == d:
        end = layer(c.face, whole.blocks[c.block].size)[0]
        if not 0 <= side(c.face) * (m - end) + 1 <= 2:
            return None
    elif not c.range[e][0] <= m < c.range[e][1]:
        return None
    node[e] = m
    step = np.zeros_like(node)
    step[e] = 1
    there = c.donors(node)[:, 0]
    along = int(np.argmax(np.abs(c.donors(node + step)[:, 0] - there)))
    number = int(there[along])
    return (c.donor, along, number) if -1 <= number <= whole.blocks[c.donor].size[along] else None


def between_kinks(xi: np.ndarray, kinks: np.ndarray, low: int, high: int) -> tuple[np.ndarray, np.ndarray]:
    """Return, for n positions along a grid line, the range of nodes between the nearest kink before and the nearest
    kink after: the first node and the last node + 1, (n,) each. `xi` (n,): positions as fractional node indexes.
    `kinks` (m,): node indexes of the kinks, in any order. `low`, `high`: the line has the nodes low ... high - 1, whose
    ends count as kinks."""
    marks = np.unique([low, *(m for m in kinks if low < m < high - 1), high - 1])
    number = np.clip(np.searchsorted(marks, xi, "right") - 1, 0, len(marks) - 2)
    return marks[number], marks[number + 1] + 1
