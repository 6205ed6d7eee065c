"""Structured blocks and the names of their faces.

Arrays are indexed [k, j, i]; every list of three (sizes, ranges, index triples) is in the order i, j, k.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from hiresx.base.arrays import check_reals, triple
from hiresx.equations.stencil import Stencil
from hiresx.errors import HiresxError
from hiresx.grid.stored_coordinates import Nodes, StoredCoordinates

AXES: tuple[Literal["i", "j", "k"], ...] = ("i", "j", "k")
FACES = ("imin", "imax", "jmin", "jmax", "kmin", "kmax")
# Valid for every scheme; `hiresx.decomposition.patches` requires more for schemes with wider stencils.
MINIMUM_NODES = Stencil().least_nodes
# Up to this coordinate the squares of volumes are finite.
LARGEST = 1e50

Range = tuple[tuple[int, int], tuple[int, int], tuple[int, int]]
# name -> ((face, node range), ...)
Regions = dict[str, tuple[tuple[str, Range], ...]]


def direction(face: str) -> int:
    """Return the index direction normal to a block face: 0 for i, 1 for j, 2 for k. `face`: "imin", "imax", "jmin",
    ..."""
    return FACES.index(face) // 2


def side(face: str) -> int:
    """Return -1 if `face` is "imin", "jmin" or "kmin", and +1 if it is "imax", "jmax" or "kmax"."""
    return 2 * (FACES.index(face) % 2) - 1


def directions_along(face: str) -> list[int]:
    """Return the two index directions (0: i, 1: j, 2: k) tangential to a block face, in the order of array axes [k, j,
    i]: the greater number first."""
    return [d for d in (2, 1, 0) if d != direction(face)]


def in_face(face: str, range_: Range) -> tuple[slice, slice]:
    """Return the index of the nodes in a range (half-open, of i, j and k) in an array of all nodes of a face, which has
    the axes [k, j, i] without the direction of the face."""
    first, second = (slice(*range_[e]) for e in directions_along(face))
    return first, second


def layer(face: str, size: tuple[int, int, int]) -> tuple[int, int]:
    """Return the half-open index range of the nodes on `face` ("imin", "imax", ...) in the direction normal to it: (0,
    1), or (n - 1, n) for n nodes. `size`: (ni, nj, nk) of the block."""
    n = size[direction(face)]
    return (0, 1) if side(face) < 0 else (n - 1, n)


@lru_cache(maxsize=4096)
def face_range(face: str, size: tuple[int, int, int]) -> Range:
    """Return the half-open index ranges (i, j, k) of all nodes on `face` ("imin", "imax", ...) of a block of `size`
    (ni, nj, nk)."""
    d = direction(face)
    return triple(layer(face, size) if e == d else (0, size[e]) for e in range(3))


def whole_faces(block: "Block", *faces: str) -> tuple[tuple[str, Range], ...]:
    """Return the complete `faces` of a block in the form of a region: a tuple of pairs (face, half-open node
    ranges)."""
    return tuple((face, face_range(face, block.size)) for face in faces)


def one_inside(face: str, range_: Range) -> Range:
    """Return the half-open node ranges of the layer of nodes next to a face, one spacing inside the block. `range_`:
    the half-open ranges (i, j, k) of nodes on `face`."""
    d = direction(face)
    return triple((lo - side(face), hi - side(face)) if e == d else (lo, hi) for e, (lo, hi) in enumerate(range_))


def slices(range_: Range) -> tuple[slice, slice, slice]:
    """Return the NumPy index [k, j, i] of a box of nodes. `range_`: half-open index ranges in the order i, j, k."""
    (i0, i1), (j0, j1), (k0, k1) = range_
    return slice(k0, k1), slice(j0, j1), slice(i0, i1)


def whole_box(size: tuple[int, int, int]) -> Range:
    """Return the half-open index ranges (i, j, k) of all nodes of a block of `size` (ni, nj, nk)."""
    return triple((0, n) for n in size)


def intersection(a: Range, b: Range) -> Range | None:
    """Return the half-open index ranges (i, j, k) of the nodes in both boxes `a` and `b`; None if there are none."""
    # Without a loop, since it is called for all pairs of many boxes.
    (a0, a1), (a2, a3), (a4, a5) = a
    (b0, b1), (b2, b3), (b4, b5) = b
    i, j, k = (max(a0, b0), min(a1, b1)), (max(a2, b2), min(a3, b3)), (max(a4, b4), min(a5, b5))
    return (i, j, k) if i[0] < i[1] and j[0] < j[1] and k[0] < k[1] else None


def shared_boxes(some: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return all pairs of boxes some[n] and others[m] that have common nodes, sorted by n, then by m: the arrays n and
    m (pairs,), and the common nodes (pairs, 3, 2). `some`, `others`: half-open index ranges (boxes, 3, 2)."""
    low = np.maximum(some[:, None, :, 0], others[:, :, 0])
    high = np.minimum(some[:, None, :, 1], others[:, :, 1])
    n, m = np.nonzero((low < high).all(axis=2))
    return n, m, np.stack([low[n, m], high[n, m]], axis=-1)


def ranges_of(boxes: np.ndarray) -> list[Range]:
    """Return half-open index ranges (i, j, k) as tuples of Python numbers. `boxes`: an array of them (boxes, 3, 2)."""
    return [((i, i1), (j, j1), (k, k1)) for (i, i1), (j, j1), (k, k1) in boxes.tolist()]


def common_boxes(some: Sequence[Range], others: Sequence[Range]) -> Iterator[tuple[int, int, Range]]:
    """Yield (n, m, box) for all pairs of boxes some[n] and others[m] that have common nodes. `box`: the half-open index
    ranges (i, j, k) of the common nodes. The pairs are sorted by n, then by m."""
    n, m, shared = shared_boxes(*(np.array([*boxes]).reshape(-1, 3, 2) for boxes in (some, others)))
    yield from zip(n.tolist(), m.tolist(), ranges_of(shared), strict=True)


def shift_range(box: Range, by: tuple[int, int, int]) -> Range:
    """Return the half-open index ranges (i, j, k) of `box` with `by` (i, j, k) added."""
    ((i0, i1), (j0, j1), (k0, k1)), (i, j, k) = box, by
    return (i0 + i, i1 + i), (j0 + j, j1 + j), (k0 + k, k1 + k)


def rectangles(free: np.ndarray) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return disjoint rectangles that cover the True entries of the mask `free` (rows, columns), each as the half-open
    index ranges ((first row, last row + 1), (first column, last column + 1)). They are found greedily: the widest run
    of the first row, extended by all following rows that contain it."""
    free = free.copy()
    found = []
    while free.any():
        row, first = (int(m) for m in np.argwhere(free)[0])
        taken = np.flatnonzero(~free[row, first:])
        last = first + int(taken[0]) if taken.size else free.shape[1]
        stop = row + 1
        while stop < free.shape[0] and free[stop, first:last].all():
            stop += 1
        free[row:stop, first:last] = False
        found.append(((row, stop), (first, last)))
    return found


def rectangles_of_face(face: str, range_: Range, free: np.ndarray) -> list[Range]:
    """Return disjoint rectangles of nodes of a face, as half-open index ranges (i, j, k), that cover the True entries
    of a mask. `range_`: the half-open ranges of the nodes of `face` that the mask describes. `free`: the mask [k, j, i]
    of these nodes."""
    along, found = directions_along(face), []
    for rectangle in rectangles(free.reshape([range_[d][1] - range_[d][0] for d in along])):
        nodes = list(range_)
        for d, (lo, hi) in zip(along, rectangle, strict=True):
            nodes[d] = (range_[d][0] + lo, range_[d][0] + hi)
        found.append(triple(nodes))
    return found


def format_size(size: Iterable[int]) -> str:
    """Return `size`, the numbers of nodes of a block, as text, such as "33 x 17 x 1"."""
    return " x ".join(map(str, size))


def format_range(range_: Iterable[tuple[int, int]]) -> str:
    """Return the half-open node ranges `range_` as text, such as "0:33 16:17 0:1"."""
    return " ".join(f"{lo}:{hi}" for lo, hi in range_)


@dataclass(frozen=True, eq=False)
class Block:
    """One structured block of nodes.

    `x`, `y`, `z`: float64 (nk, nj, ni), in reference lengths. The coordinates of a large file are `StoredCoordinates`,
    which read nodes when they are needed. If a direction has a single node, the block is 2-D (nk = 1, in the x-y plane)
    or 1-D (nj = nk = 1, along x). `regions`: named parts of faces for the boundary conditions of a case: name ->
    ((face, node range), ...). `rounding`: the largest rounding error of a coordinate in the precision in which it is
    given or was stored, in reference lengths.

    Raises HiresxError for arrays of different shape, for coordinates that are masked, not finite or beyond 1e50, and
    for a direction of 2 to 6 nodes."""

    name: str
    x: Nodes
    y: Nodes
    z: Nodes
    regions: Regions = field(default_factory=dict)
    rounding: float = 0.0

    def __post_init__(self) -> None:
        rounding = self.rounding
        for name in "xyz":
            array = getattr(self, name)
            if not isinstance(array, StoredCoordinates):
                try:
                    given = check_reals(array)
                except ValueError as error:
                    raise HiresxError(
                        f"block '{self.name}': {name} {error}",
                        "give every node [k, j, i] a real number: a block has no holes; cut the grid around them",
                    ) from None
                with np.errstate(invalid="ignore"):  # a nan is reported below with its node; the cast must not warn
                    array = given.astype(np.float64, copy=False)
            if array.ndim != 3 or array.shape != np.shape(self.x):
                other = f"; x has {np.shape(self.x)}" if name != "x" else ""
                raise HiresxError(
                    f"block '{self.name}': {name} has the shape {array.shape}{other}",
                    "give x, y and z as three arrays of one shape (nk, nj, ni)",
                )
            size = largest(array)
            if not size <= LARGEST:
                values = np.asarray(array)
                k, j, i = (int(n) for n in np.argwhere(~(np.abs(values) <= LARGEST))[0])
                value = float(values[k, j, i])
                what = f"{value:g}, beyond {LARGEST:g}," if np.isfinite(value) else "not finite"
                raise HiresxError(
                    f"block '{self.name}': {name} is {what} at node (i, j, k) = ({i}, {j}, {k})", "correct the grid"
                )
            object.__setattr__(self, name, array)
            kind = array.stored_type if isinstance(array, StoredCoordinates) else given.dtype
            rounding = max(rounding, rounding_of(size, kind))
        object.__setattr__(self, "rounding", rounding)
        self._check_size()

    def part(self, name: str, box: Range, kept: Callable[[np.ndarray], np.ndarray] = np.asarray) -> "Block":
        """Return the nodes in `box` (half-open index ranges i, j, k) as a new block called `name`, without regions. The
        coordinates are views of this block's arrays; if `kept` is given, they are the results of `kept` for these
        views. The coordinates of this block must be in memory and finite, and the box must have enough nodes for a
        block; these conditions are not checked."""
        found = copy(self)
        for axis in "xyz":
            object.__setattr__(found, axis, kept(getattr(self, axis)[slices(box)]))
        object.__setattr__(found, "name", name)
        object.__setattr__(found, "regions", {})
        return found

    def _check_size(self) -> None:
        for axis, n in zip(AXES, self.size, strict=True):
            if n != 1 and n < MINIMUM_NODES:
                raise HiresxError(
                    f"block '{self.name}' has {n} nodes in direction {axis}; the 6th-order stencil needs "
                    f"{MINIMUM_NODES} or more",
                    f"use at least {MINIMUM_NODES} nodes there (or 1 in j or k for a grid of fewer dimensions)",
                )
        if self.size[0] == 1 or (self.size[1] == 1 and self.size[2] > 1):
            raise HiresxError(
                f"block '{self.name}' has size (ni, nj, nk) = {self.size}",
                "a 2-D grid has nk = 1 and a 1-D grid has nj = nk = 1",
            )

    @property
    def size(self) -> tuple[int, int, int]:
        """Numbers of nodes of the block in the index directions, (ni, nj, nk)."""
        nk, nj, ni = self.x.shape
        return ni, nj, nk

    @property
    def points(self) -> int:
        """Total number of nodes of the block."""
        return self.x.size

    @property
    def is_stored(self) -> bool:
        """Whether the coordinates of the block remain in a file, from which they are read when they are needed."""
        return any(isinstance(c, StoredCoordinates) for c in self.coordinates)

    @property
    def extents(self) -> tuple[float, float, float]:
        """Extents of the block along x, y and z (largest minus smallest coordinate), in reference lengths."""
        return triple(float(c.max() - c.min()) for c in self.coordinates)

    def forget(self) -> None:
        """Free the memory of coordinates that were read from a file. They are read again when they are needed.
        Coordinates that are not stored in a file remain."""
        for c in self.coordinates:
            if isinstance(c, StoredCoordinates):
                c.forget()

    @property
    def active(self) -> tuple[int, ...]:
        """Index directions (0: i, 1: j, 2: k) in which the block has more than one node."""
        size = self.size
        return tuple(d for d in range(3) if size[d] > 1)

    @property
    def faces(self) -> tuple[str, ...]:
        """Names of the faces ("imin", "imax", ...) that need a boundary condition or a connection. These are the faces
        of the index directions with more than one node."""
        return tuple(FACES[2 * d + upper] for d in self.active for upper in (0, 1))

    @property
    def coordinates(self) -> tuple[Nodes, Nodes, Nodes]:
        """The arrays x, y and z of the nodes, (nk, nj, ni) each, in reference lengths."""
        return self.x, self.y, self.z

    def at(self, index: Any) -> np.ndarray:
        """Return the coordinates (3, ...) of nodes, in reference lengths. `index`: a NumPy index [k, j, i] into the
        coordinate arrays."""
        return np.stack([c[index] for c in self.coordinates])

    def node(self, i: Any, j: Any, k: Any) -> np.ndarray:
        """Return the coordinates (x, y, z) of a node, in reference lengths. `i`, `j`, `k`: indexes from 0, or integer
        arrays of one shape; for arrays the result is an array (3, ...)."""
        return self.at((k, j, i))


def largest(array: np.ndarray | StoredCoordinates) -> float:
    """Return the largest absolute value in an array of coordinates; nan if any value is nan."""
    if isinstance(array, StoredCoordinates):
        return array.largest
    return float(np.maximum(np.abs(array.min()), np.abs(array.max())))


def rounding_of(size: float, kind: np.dtype[Any]) -> float:
    """Return the largest rounding error of a number of the magnitude `size` in the NumPy type `kind`: half a unit in
    the last place, or 0 for an integer type."""
    return 0.5 * float(np.spacing(kind.type(size))) if kind.kind == "f" else 0.0


def read_whole(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """Return the blocks with all coordinates as arrays in memory. Coordinates that are still in a file are read."""
    return tuple(
        type(b)(b.name, *triple(np.asarray(c, dtype=float) for c in b.coordinates), b.regions, b.rounding)
        for b in blocks
    )


class RawBlock(Block):
    """A block with the nodes of a grid file, before the grid is changed. Unlike a `Block`, it may have any number of
    nodes in each direction."""

    def _check_size(self) -> None:
        pass
