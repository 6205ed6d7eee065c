"""Numbers of the nodes of all blocks, in the order of block, k, j and i, which do not depend on the partition."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hiresx.grid import Block


class NodeNumbers:
    """The numbering of the nodes of whole `blocks`, in which each node has one number from 0 on."""

    def __init__(self, blocks: Sequence[Block]):
        self._sizes = np.array([block.size for block in blocks], dtype=np.int64)
        self._first = np.cumsum([0, *self._sizes.prod(axis=1)])

    def of(self, block: Any, nodes: Any) -> np.ndarray:
        """Return the numbers of nodes in this numbering of the nodes of all blocks, from 0. `block`: the number of the
        block. `nodes`: the indexes i, j and k. Block and indexes may be integers or arrays that broadcast to one shape;
        the result has this shape."""
        ni, nj, (i, j, k) = self._sizes[block, 0], self._sizes[block, 1], nodes
        found: np.ndarray = self._first[block] + (k * nj + j) * ni + i
        return found

    def nodes(self, numbers: np.ndarray) -> np.ndarray:
        """Return block, i, j and k of nodes, an array (4, ...). `numbers`, of the shape (...): their numbers in the
        order block, k, j, i of the whole grid."""
        block = np.searchsorted(self._first, numbers, side="right") - 1
        row, i = np.divmod(numbers - self._first[block], self._sizes[block, 0])
        k, j = np.divmod(row, self._sizes[block, 1])
        return np.stack([block, i, j, k])
