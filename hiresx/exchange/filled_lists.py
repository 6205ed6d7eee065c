"""Lists of integers that are linear functions of the indexes in boxes. The device computes them from the boxes."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from hiresx.decomposition.tile_ghosts import first_places
from hiresx.device.interface import Backend, Program

# The number of entries that a point of the kernel fill_lists sets (`entries_at_once` in kernels/level_ghosts.h).
AT_ONCE = 32


class ListBoxes(NamedTuple):
    """The entries of a list of integers (such as flat indexes of nodes) for the nodes of n boxes. Within a box, both an
    entry and its position in the list are linear functions of the node. `sizes` (n, 3): the number of nodes of each box
    along three directions, of which the first runs fastest. `value` (n,): the entry of the first node. `steps` (n, 3):
    the differences of the entries from node to node along each direction. `place` (n,): the position of the first
    node's entry in the list. `apart` (n,): the distance in the list between the entries of successive nodes. Instead of
    an array, a number may be given that holds for all boxes."""

    sizes: np.ndarray
    value: ArrayLike
    steps: ArrayLike
    place: ArrayLike
    apart: ArrayLike = 1

    def rows(self) -> np.ndarray:
        """Return the description of the n boxes, an integer array (n, 9). The columns are: the position in the list of
        the entry for the first node of the box, the distance in the list between the entries of successive nodes, the
        entry for the first node, the numbers of nodes along three directions (3 columns), and the change of the entry
        from node to node along each of them (3 columns)."""
        columns = [np.broadcast_to(np.reshape(of, (-1, 1)), (len(self.sizes), 1)) for of in self[3:] + self[1:2]]
        return np.concatenate([*columns, self.sizes, np.broadcast_to(self.steps, self.sizes.shape)], axis=1)


def filled_lists(backend: Backend, program: Program, length: int, boxes: Sequence[ListBoxes]) -> Any:
    """Return an int32 device array (length,), such as a list of node indexes, that the device computes from a
    description by boxes of nodes. `boxes`: each node of a box gives one entry; the entry and its position in the array
    are linear functions of the indexes of the node (`ListBoxes`). Entries that belong to no box are not initialised.
    `program`: the compiled program with the kernel `fill_lists`, which computes all entries in one launch. Raises
    HiresxError if the array does not fit in memory."""
    rows = np.concatenate([some.rows() for some in boxes])
    leading, sizes, steps = np.split(rows, 3, axis=1)
    nodes = sizes.prod(axis=1)
    # The number of nodes implies the size along the last direction.
    table = np.column_stack([first_places(nodes), leading, sizes[:, :-1], steps]).astype(np.int32)
    lists = backend.empty((length,), "int32")
    entries = int(nodes.sum())
    program.launch(
        "fill_lists", (-(-entries // AT_ONCE), 1, 1), boxes=len(table), entries=entries,
        box=backend.to_device(table.ravel()), lists=lists,
    )  # fmt: skip
    return lists
