"""Coordinates of the ghost nodes of a block, and of the nodes near its faces from which they are computed. The
coordinates of the other nodes remain in the grid file.

The values are those of `extended_coordinates`."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from hiresx.base.arrays import triple
from hiresx.grid.blocks import Block
from hiresx.grid.patched import HIGHEST
from hiresx.grid.stored_coordinates import part_of, slabs

# Number of nodes beside a face from which polynomials extrapolate.
INSIDE = HIGHEST + 1


class GhostLayers:
    """Coordinates (3, nk + 2 halo, nj + 2 halo, ni + 2 halo) of a three-dimensional block with `halo` ghost layers, of
    which only the layers beside the faces are stored. They are read and set by arrays of indexes as [:, k, j, i], where
    index 0 is the first ghost node. Nodes in none of the stored layers are NaN.

    `layers`: for each array axis (k, j, i) the coordinates in the layers beside the two faces normal to it."""

    def __init__(self, block: Block, halo: int):
        deep = max(INSIDE, halo + 1)  # the farthest ghost may be the mirror image of the last node
        self._set_size(block, halo, deep)
        self.layers: list[np.ndarray] = []
        for axis, n in enumerate(block.size[::-1]):
            shape = (min(m, 2 * self.kept) if a == axis else m for a, m in enumerate(self.shape))
            self.layers.append(np.full((3, *shape), np.nan))
            for first, last in ((0, min(deep, n)), (max(n - deep, 0), n)):
                box = tuple(slice(first, last) if a == axis else slice(None) for a in range(3))
                inside = [slice(halo, halo + m) for m in block.size[::-1]]
                begin = int(self._place(axis, np.array(halo + first)))
                inside[axis] = slice(begin, begin + last - first)
                for c, coordinate in enumerate((block.x, block.y, block.z)):
                    self.layers[axis][c][tuple(inside)] = coordinate[box]

    @classmethod
    def over(cls, block: Block, halo: int, layers: Sequence[np.ndarray], inside: int) -> "GhostLayers":
        """Return a `GhostLayers` object that uses existing arrays of coordinates. `block`: the block to which they
        belong. `halo`: number of ghost layers. `layers`: for each array axis (k, j, i) an array (3, ...) with x, y, z
        in the layers beside the two faces normal to it, those of the first face first. `inside`: number of layers of
        nodes inside the block that the arrays contain at each face."""
        made = cls.__new__(cls)
        made._set_size(block, halo, inside)
        made.layers = list(layers)
        return made

    def without_interior(self, block: Block, halo: int) -> "GhostLayers":
        """Return a copy of these coordinates that contains only the `halo` ghost layers of `block` and no nodes inside
        it. The nodes inside are needed only until all ghosts have been computed."""
        layers = [
            np.ascontiguousarray(np.delete(held, range(halo, held.shape[axis + 1] - halo), axis=axis + 1))
            for axis, held in enumerate(self.layers)
        ]
        return GhostLayers.over(block, halo, layers, inside=0)

    def _set_size(self, block: Block, halo: int, inside: int) -> None:
        self.shape = triple(n + 2 * halo for n in block.size[::-1])
        self.kept = halo + inside

    def _place(self, axis: int, at: np.ndarray) -> np.ndarray:
        """Return the positions in `layers[axis]` of the indexes `at` along that axis."""
        return np.where(at < self.kept, at, at - self.shape[axis] + self.layers[axis].shape[axis + 1])

    def _known_layers(self, index: tuple[np.ndarray, ...]) -> Iterator[tuple[np.ndarray, np.ndarray, tuple[Any, ...]]]:
        """Yield for each axis (layers, mask of the nodes in them, indexes of these)."""
        places = np.broadcast_arrays(*index)
        for axis, (at, n) in enumerate(zip(places, self.shape, strict=True)):
            known = (at < self.kept) | (at >= n - self.kept)
            if known.any():
                there = [m[known] for m in places]
                there[axis] = self._place(axis, there[axis])
                yield self.layers[axis], known, (slice(None), *there)

    def __getitem__(self, index: tuple[Any, ...]) -> np.ndarray:
        places = index[1:]
        values = np.full((3, *np.broadcast_shapes(*(np.shape(p) for p in places))), np.nan)
        for layers, known, there in self._known_layers(places):
            values[:, known] = layers[there]
        return values

    def __setitem__(self, index: tuple[Any, ...], values: np.ndarray) -> None:
        for layers, known, there in self._known_layers(index[1:]):
            layers[there] = values[:, known]


def coordinates_in_box(
    block: Block, ghosts: GhostLayers, halo: int, box: tuple[slice, slice, slice]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the coordinates x, y, z of the nodes and ghosts in a box of a block whose coordinates are left in the grid
    file: arrays [k, j, i]. Coordinates of nodes are read from the file, coordinates of ghosts are taken from `ghosts`.
    `box`: slices [k, j, i] of the block with its `halo` ghost layers."""
    ranges = [(s.start, s.stop) for s in box]
    result = np.empty((3, *(hi - lo for lo, hi in ranges)))
    pieces = []
    for (lo, hi), n in zip(ranges, block.x.shape, strict=True):
        cuts = [(lo, min(hi, halo)), (max(lo, halo), min(hi, halo + n)), (max(lo, halo + n), hi)]
        pieces.append([(way, a, b) for way, (a, b) in zip((-1, 0, 1), cuts, strict=True) if a < b])
    for place in product(*pieces):
        there = tuple(slice(a - lo, b - lo) for (_, a, b), (lo, _) in zip(place, ranges, strict=True))
        if any(way for way, _, _ in place):
            index = np.meshgrid(*(np.arange(a, b) for _, a, b in place), indexing="ij", sparse=True)
            result[(slice(None), *there)] = ghosts[(slice(None), *index)]
        else:
            inside = triple(slice(a - halo, b - halo) for _, a, b in place)
            for c, coordinate in enumerate((block.x, block.y, block.z)):
                first = there[0].start
                for (slab,) in slabs(part_of(coordinate, inside)):
                    result[c][first : first + len(slab), there[1], there[2]] = slab
                    first += len(slab)
    return triple(result)
