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
    """Entries of a list of integers for the nodes of n boxes. In a box they are a linear function of the indexes along
    three directions, of which the first runs fastest. `sizes` (n, 3): the number of nodes of each box along these
    directions. `value` (n,): the entry of the first node. `steps` (n, 3): the differences of the entries from node to
    node along each direction. `place` (n,): the position of the first entry in the list. `apart` (n,): the distance of
    the entries of successive nodes in the list. A number instead of an array holds for all boxes."""

    sizes: np.ndarray
    value: ArrayLike
    steps: ArrayLike
    place: ArrayLike
    apart: ArrayLike = 1

    def rows(self) -> np.ndarray:
        """Return the boxes for the kernel `fill_lists`: an integer array (n, 9) with the columns place, apart, value,
        three sizes and three steps."""
        columns = [np.broadcast_to(np.reshape(of, (-1, 1)), (len(self.sizes), 1)) for of in self[3:] + self[1:2]]
        return np.concatenate([*columns, self.sizes, np.broadcast_to(self.steps, self.sizes.shape)], axis=1)


def filled_lists(backend: Backend, program: Program, length: int, boxes: Sequence[ListBoxes]) -> Any:
    """Return a list of integers, an int32 array (length,) on the device. `boxes`: boxes of nodes, each with the linear
    function that gives the entries of its nodes and their positions in the list (`ListBoxes`). Entries of the list that
    belong to no box are not initialised. `program`: the program with the kernel `fill_lists`, which computes the
    entries in one launch. Raises HiresxError if the list does not fit in memory."""
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
