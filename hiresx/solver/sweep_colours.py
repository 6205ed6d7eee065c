"""The two colours of nodes and of grid lines for the sweeps of the implicit integrator. They follow from the indices in
the whole grid, so that they do not depend on its cut, and alternate across joined faces where that is possible."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from hiresx.device.state import BlockState
from hiresx.equations import DIRECTIONS
from hiresx.grid.connections import Connection

# Takes the place of the direction of lines, for sweeps over nodes.
NODES = -1


class Colours:
    """The two colours, 0 and 1, of nodes and grid lines in the block Gauss-Seidel sweeps. The colour of a node is the
    parity of i + j + k + c. The colour of a line is the parity of the sum of its two other indexes and c. The number c
    belongs to the block and the direction of the lines (`constants`). `count`: the number of blocks, not divided among
    ranks. `connections`: their connections."""

    def __init__(self, count: int, connections: Sequence[Connection]):
        self._count, self._connections = count, connections

    def of_first(self, s: BlockState, direction: int) -> int:
        """Return an integer whose parity (even 0, odd 1) is the colour of the first grid line along `direction` (0, 1,
        2) in a box of nodes, or of its first node if `direction` is the constant NODES. `s`: the box, which this rank
        computes."""
        along = 0 if direction == NODES else s.first[direction]
        return sum(s.first) - along + int(self.constants[s.part.whole, direction])

    @cached_property
    def constants(self) -> np.ndarray:
        """The integers c (blocks, 4), 0 or 1, for lines along i, j and k, and for nodes, that are added to sums of node
        indexes whose parity is a colour. They make colours alternate across joined faces. Faces are considered one
        after another, those with most nodes first. A face that would close an odd cycle has the same colour on both
        sides."""
        root = np.arange(self._count * (DIRECTIONS + 1)).reshape(self._count, -1)
        found = np.zeros_like(root)
        for one in sorted(self._connections, key=lambda one: -int(np.prod(np.diff(one.range)))):
            for d in (*range(DIRECTIONS), NODES):
                e = NODES if d == NODES else next(row for row in range(DIRECTIONS) if one.matrix[row][d])
                skipped = 0 if d == NODES else one.offset[e]
                turned = (sum(one.offset) - skipped + found[one.block, d] + found[one.donor, e]) % 2
                mine, theirs = root[one.block, d], root[one.donor, e]
                if mine != theirs:
                    of_mine = root == mine
                    found[of_mine] = (found[of_mine] + turned) % 2
                    root[of_mine] = theirs
        return found
