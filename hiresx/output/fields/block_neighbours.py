"""Nodes beyond the faces of a block in a field file, taken from neighbouring blocks, for central differences at the
faces."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from hiresx.base.arrays import triple
from hiresx.equations.stencil import DIFFERENCE_REACH

if TYPE_CHECKING:
    from hiresx.grid.connections import Connection

ATTRIBUTE = "joined"


@dataclass(frozen=True, eq=False)
class BeyondFace:
    """Values of a variable in the three layers of nodes beyond a face of a block. `values` (3, n, m): the nearest layer
    first; n and m are the two axes of an array `[k, j, i]` along the face. `there` (n, m): where a neighbouring block
    has nodes; the values elsewhere are zero. `apart` (n, m): where the nearest layer is the first one of the
    neighbouring block, so that cells lie between the two blocks."""

    values: np.ndarray
    there: np.ndarray
    apart: np.ndarray


def encode_connections(connections: Sequence["Connection"]) -> str:
    """Return the connections between blocks as a JSON text, which a field file stores as an attribute. `Neighbours`
    decodes it. Connections with a rotation, and those across a pole, are left out, because the components of vectors
    change there."""
    return json.dumps(
        [
            [c.block, c.face, c.range, c.donor, c.matrix, c.offset, c.translation]
            for c in connections
            if c.rotation is None and not c.over_a_pole
        ],
        default=int,
    )


class Neighbours:
    """Access to the nodes beyond the faces of the blocks in a field file. `groups`: the blocks as HDF5 groups. `text`:
    the connections of the blocks, the result of `encode_connections`; "" for none."""

    def __init__(self, groups: Sequence[Any], text: str):
        self._groups = groups
        self._connections = _decode_connections(text) if text else {}

    def of(self, block: int, name: str) -> dict[tuple[int, int], BeyondFace]:
        """Return the values of a variable or coordinate in the three layers of nodes beyond each connected face of a
        block, read from the neighbouring blocks. `block`: number of the block, from 0. `name`: name of the variable or
        coordinate. The result is a dictionary. Each key is a pair that names a face: the axis of an array (0: k, 1: j,
        2: i) and the end of this axis (0: first node, 1: last node). Faces without a neighbour are left out."""
        found: dict[tuple[int, int], BeyondFace] = {}
        if block not in self._connections:
            return found
        from hiresx.grid.blocks import FACES, direction

        shape = tuple(self._groups[block]["x"].shape)
        for c in self._connections[block]:
            if self._short(c):
                continue
            axis, upper = 2 - direction(c.face), FACES.index(c.face) % 2
            rest = tuple(n for a, n in enumerate(shape) if a != axis)
            if (axis, upper) not in found:
                found[axis, upper] = BeyondFace(
                    np.zeros((DIFFERENCE_REACH, *rest)), np.zeros(rest, bool), np.zeros(rest, bool)
                )
            # (3, layers, n, m): layers along the normal, the nearest first, then the other axes of an array.
            index = np.moveaxis(c.ghosts(DIFFERENCE_REACH, (shape[2], shape[1], shape[0])), (1, 2, 3), (3, 2, 1))
            index = np.moveaxis(index, 1 + axis, 1)
            donors = c.donors(index if upper else index[:, ::-1])
            values = self._at(c.donor, name, donors)
            if name in "xyz":
                values = values + c.translation["xyz".index(name)]
            part = tuple(slice(*c.range[2 - a]) for a in range(3) if a != axis)
            found[axis, upper].values[:, *part] = values
            found[axis, upper].there[part] = True
            last = self._groups[c.donor]["x"].shape[2 - c.donor_direction] - 1
            found[axis, upper].apart[part] = donors[c.donor_direction, 0, 0, 0] in (0, last)
        return found

    def _short(self, c: "Connection") -> bool:
        """True if the donor has fewer layers than the differences need."""
        donor = self._groups[c.donor]["x"].shape
        return donor[2 - c.donor_direction] < DIFFERENCE_REACH

    def _at(self, block: int, name: str, index: np.ndarray) -> np.ndarray:
        """Return the values at the nodes `index` (i, j, k). The box that contains them is read."""
        first, last = index.reshape(3, -1).min(axis=1), index.reshape(3, -1).max(axis=1)
        box = tuple(slice(int(first[d]), int(last[d]) + 1) for d in (2, 1, 0))
        values = np.asarray(self._groups[block][name][box], dtype=np.float64)
        i, j, k = index - first.reshape(3, 1, 1, 1)
        return values[k, j, i]


@lru_cache(maxsize=4)
def _decode_connections(text: str) -> dict[int, list["Connection"]]:
    """Return the connections by the number of their block."""
    # Imported here, so that a file without connections is read without the modules of the grid.
    from hiresx.grid.connections import Connection

    found: dict[int, list[Connection]] = {}
    for block, face, range_, donor, matrix, offset, translation in json.loads(text):
        joined = Connection(block, face, triple(map(tuple, range_)), donor, matrix, tuple(offset), tuple(translation))
        found.setdefault(block, []).append(joined)
    return found
