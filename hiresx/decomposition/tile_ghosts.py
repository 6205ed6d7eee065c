"""The ghosts of tiles of refinement that are interpolated, and linear functions of the indexes of many boxes of nodes,
which are evaluated by few operations over all boxes."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from hiresx.decomposition.halo_copies import padded_shape, padding
from hiresx.decomposition.patched_donors import layers_behind
from hiresx.decomposition.patches import Decomposition
from hiresx.grid.blocks import Block, Range, direction, side
from hiresx.grid.patched import PATCHED


def over_boxes(sizes: np.ndarray, first: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Return the values (m, n) of m linear functions at all nodes of boxes, box by box, in a box along the last
    direction first. `sizes` (b, d): nodes of the boxes along d directions. `first` (m, b): the values at their first
    nodes. `steps` (m, b, d): the differences of the values along each direction."""
    for axis in range(sizes.shape[1]):
        along = sizes[:, axis]
        if (along == 1).all():
            continue
        box = np.repeat(np.arange(len(along)), along)
        place = np.arange(len(box)) - np.repeat(np.cumsum(along) - along, along)
        first = first[:, box] + steps[:, box, axis] * place
        if axis + 1 < sizes.shape[1]:
            # The rows that were boxes before are the boxes of the other directions.
            sizes, steps = sizes[box], steps[:, box]
    return first


def strides_of(blocks: Sequence[Block], halo: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the differences (n, 3) along i, j, k of flat indexes into the padded arrays of blocks, and the flat
    indexes (n,) of their first nodes."""
    shapes = np.array([padded_shape(block, halo) for block in blocks]).reshape(-1, 3)
    strides = np.stack([np.ones(len(shapes), int), shapes[:, 2], shapes[:, 1] * shapes[:, 2]], axis=1)
    return strides, (strides * np.array([padding(block, halo) for block in blocks]).reshape(-1, 3)).sum(axis=1)


@dataclass(frozen=True, eq=False)
class TileGhosts:
    """The ghosts behind a face of a tile, or a part of it, that are interpolated from the next coarser level. `place`:
    the number of the patch in the list of patches of the whole blocks. `face`, `range`: its face and its nodes. `halo`:
    the number of layers of ghosts."""

    place: int
    face: str
    range: Range
    halo: int

    per = 1  # places for each ghost

    @property
    def count(self) -> int:
        """Number of ghosts."""
        return self.halo * prod(hi - lo for lo, hi in self.range)

    @property
    def index(self) -> np.ndarray:
        """Indexes i, j, k (3, n) of the ghosts in the whole block, layer by layer."""
        return layers_behind(self.face, self.range, range(1, self.halo + 1)).reshape(3, -1)


def find_level_donors(whole: Decomposition) -> list[TileGhosts]:
    """Return the ghosts of all tiles that are interpolated from the next coarser level."""
    return [
        TileGhosts(place, patch.face, patch.range, whole.stencil.halo)
        for place, patch in enumerate(whole.patches)
        if patch.condition.type == PATCHED
    ]


class GhostFaces:
    """The ghosts `found` as arrays with an entry for each of their faces. `block`: the whole block. `direction`,
    `side`: the direction of the face, and 1 or -1. `low`, `high` (n, 3): the box of the ghosts in the whole block.
    `count`: the number of ghosts. `number`: that of the first one. They are numbered layer by layer, within a layer
    along i first."""

    def __init__(self, whole: Decomposition, found: Sequence[TileGhosts]):
        self.block = np.array([whole.patches[entry.place].block for entry in found], int)
        self.direction = np.array([direction(entry.face) for entry in found], int)
        self.side = np.array([side(entry.face) for entry in found], int)
        nodes, halo = np.array([entry.range for entry in found]).reshape(-1, 3, 2), whole.stencil.halo
        self.low, self.high = nodes[..., 0].copy(), nodes[..., 1].copy()
        at = np.arange(len(found)), self.direction
        self.low[at] += np.where(self.side > 0, 1, -halo)
        self.high[at] += np.where(self.side > 0, halo, -1)
        self.count = (self.high - self.low).prod(axis=1)
        self.number = np.cumsum(self.count) - self.count

    def at_ghosts(
        self, face: np.ndarray, low: np.ndarray, high: np.ndarray, first: np.ndarray, steps: np.ndarray
    ) -> np.ndarray:
        """Return the numbers of the ghosts in boxes of nodes, in their order, and linear functions of their indexes:
        (1 + m, n). `face` (b,): the faces behind which the boxes lie. `low`, `high` (b, 3): the boxes. `first` (m, b):
        the values of the functions at the node `low`. `steps` (m, b, 3): their differences along i, j and k."""
        d, turned = self.direction[face], self.side[face] < 0
        at = np.arange(len(face)), d
        # Behind a lower face layers follow each other against the index.
        behind = low - self.low[face]
        behind[at] = np.where(turned, (self.high[face] - high)[at], behind[at])
        of_face = _layers_first((self.high - self.low)[face], d, 1)
        numbers = np.concatenate([np.cumprod(of_face[:, :0:-1], axis=1)[:, ::-1], np.ones((len(face), 1), int)], axis=1)
        along = [numbers, *(_layers_first(own, d, 0) for own in steps)]
        start = [self.number[face] + (_layers_first(behind, d, 0) * numbers).sum(axis=1)]
        for values, own in zip(first, along[1:], strict=True):
            start.append(values + np.where(turned, own[:, 0] * ((high - low)[at] - 1), 0))
            own[:, 0] *= np.where(turned, -1, 1)
        return over_boxes(_layers_first(high - low, d, 1), np.stack(start), np.stack(along))


def _layers_first(values: np.ndarray, d: np.ndarray, other: int) -> np.ndarray:
    """Return values (n, 3) along i, j and k as (n, 4): those along the directions `d` (n,), then those along k, j and
    i, with `other` in place of those along `d`."""
    every = np.arange(len(values))
    found = np.concatenate([values[every, d, None], values[:, ::-1]], axis=1)
    found[every, 3 - d] = other
    return found


def tile_targets(
    whole: Decomposition, cut: Decomposition, found: Sequence[TileGhosts]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the result of `hiresx.decomposition.patched_donors.targets` for the ghosts of tiles."""
    faces, boxes = GhostFaces(whole, found), np.array([part.box for part in cut.parts])
    # Each face is combined with all parts of its block.
    owner = np.array([part.whole for part in cut.parts])
    order = np.argsort(owner, kind="stable")
    begin, end = (np.searchsorted(owner[order], faces.block, which) for which in ("left", "right"))
    (part,) = order[over_boxes((end - begin)[:, None], begin[None], np.ones((1, len(begin), 1), int))]
    face = np.repeat(np.arange(len(begin)), end - begin)
    low, high = faces.low[face], faces.high[face]
    own, at = boxes[part], (np.arange(len(face)), faces.direction[face])
    # A part has the ghosts behind its own nodes.
    before = np.where(faces.side[face] > 0, low[at] - 1, high[at])
    has = (own[at][:, 0] <= before) & (before < own[at][:, 1])
    least, most = np.maximum(low, own[..., 0]), np.minimum(high, own[..., 1])
    least[at], most[at] = low[at], high[at]
    has &= (least < most).all(axis=1)
    face, part, least, most = face[has], part[has], least[has], most[has]
    strides, origins = strides_of(cut.blocks, cut.stencil.halo)
    start = origins[part] + (strides[part] * (least - boxes[part, :, 0])).sum(axis=1)
    ghost, flat = faces.at_ghosts(face, least, most, start[None], strides[part][None])
    of, places = np.full(len(ghost), -1), np.zeros(len(ghost), np.int32)
    of[ghost], places[ghost] = np.repeat(part, (most - least).prod(axis=1)), flat
    return of, places, np.repeat(faces.direction, faces.count)
