"""A part: the box of nodes of one block of the grid that one rank computes."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from hiresx.base.arrays import triple
from hiresx.grid.blocks import Range


@dataclass(frozen=True)
class Part:
    """The box of nodes of a block that one rank computes. `whole`: number of the block of the grid. `box`: half-open
    ranges of nodes (i, j, k). `rank`: the rank that computes it."""

    whole: int
    box: Range
    rank: int = 0

    @property
    def first(self) -> tuple[int, int, int]:
        """Index (i, j, k), in the whole block, of the first node of this part."""
        return triple(lo for lo, _ in self.box)

    @property
    def size(self) -> tuple[int, int, int]:
        """Numbers of nodes of this part along the index directions, (ni, nj, nk)."""
        return triple(hi - lo for lo, hi in self.box)

    @property
    def points(self) -> int:
        """Total number of nodes of this part."""
        ni, nj, nk = self.size
        return ni * nj * nk

    @property
    def slices(self) -> tuple[slice, slice, slice]:
        """NumPy index [k, j, i] that selects the nodes of this part in an array of the whole block."""
        return triple(slice(lo, hi) for lo, hi in reversed(self.box))


def points_by_rank(parts: Iterable[Part], ranks: int) -> np.ndarray:
    """Return the number of grid nodes that each of `ranks` ranks computes, int64 (ranks,). `parts`: the boxes of nodes
    into which the grid is divided, with their ranks."""
    points = np.zeros(ranks, np.int64)
    for part in parts:
        points[part.rank] += part.points
    return points
