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
    """Entries of a list for n boxes. `sizes` (n, 3): the nodes of the boxes along three directions, of which the first
    changes fastest in the list. `value` (n,): the entry of the first node. `steps` (n, 3): its differences along each
    direction. `place` (n,): the place of the first node in the list. `apart` (n,): the distance to the place of the
    next node. Numbers instead of arrays are the same for all boxes."""

    sizes: np.ndarray
    value: ArrayLike
    steps: ArrayLike
    place: ArrayLike
    apart: ArrayLike = 1

    def rows(self) -> np.ndarray:
        """Return the `list_box` of kernels/level_ghosts.h of each box, with all three sizes, and without `first`."""
        columns = [np.broadcast_to(np.reshape(of, (-1, 1)), (len(self.sizes), 1)) for of in self[3:] + self[1:2]]
        return np.concatenate([*columns, self.sizes, np.broadcast_to(self.steps, self.sizes.shape)], axis=1)


def filled_lists(backend: Backend, program: Program, length: int, boxes: Sequence[ListBoxes]) -> Any:
    """Return an array (length,) of int32 on the device with the entries of `boxes`. Other entries are not set."""
    rows = np.concatenate([some.rows() for some in boxes])
    nodes = rows[:, 3:6].prod(axis=1)
    table = np.column_stack([first_places(nodes), rows[:, :5], rows[:, 6:]]).astype(np.int32)
    lists = backend.empty((length,), "int32")
    entries = int(nodes.sum())
    program.launch(
        "fill_lists", (-(-entries // AT_ONCE), 1, 1), boxes=len(table), entries=entries,
        box=backend.to_device(table.ravel()), lists=lists,
    )  # fmt: skip
    return lists
