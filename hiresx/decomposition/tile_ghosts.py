"""The interpolated ghosts of tiles (boxes of nodes of a finer level), and functions that evaluate linear functions of
the indexes at all nodes of many boxes by few array operations."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hiresx.decomposition.halo_copies import padded_shape, padding
from hiresx.decomposition.patches import Decomposition
from hiresx.grid.blocks import Block, direction, side


def over_boxes(sizes: np.ndarray, first: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Return the values, integers (m, n), of m linear functions of the node indexes at all n nodes of b boxes, for
    instance flat indexes in m arrays. The nodes follow each other box by box, and within a box the last of the d
    directions runs fastest. `sizes` (b, d): the number of nodes of the boxes along each direction. `first` (m, b): the
    values at the first nodes of the boxes. `steps` (m, b, d): the differences of the values from node to node along
    each direction."""
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
    """Return two integer arrays for the arrays with ghost nodes of n blocks: their strides along i, j, k, in array
    elements (n, 3), and the flat indexes in them of the first node that is no ghost (n,). `halo`: the number of ghost
    layers."""
    shapes = np.array([padded_shape(block, halo) for block in blocks]).reshape(-1, 3)
    strides = np.stack([np.ones(len(shapes), int), shapes[:, 2], shapes[:, 1] * shapes[:, 2]], axis=1)
    return strides, (strides * np.array([padding(block, halo) for block in blocks]).reshape(-1, 3)).sum(axis=1)


def first_places(count: np.ndarray, group: np.ndarray | None = None) -> np.ndarray:
    """Return the position (n,) of the first item of each of n entries when the items of all entries follow each other
    in one list. `count` (n,): the number of items of each entry; counts 2, 3, 1 give the positions 0, 2, 5. `group`
    (n,): if given, the entries follow each other by ascending group, and in their order within a group."""
    if group is None:
        return np.cumsum(count) - count
    order = np.argsort(group, kind="stable")
    found = np.empty(len(count), int)
    found[order] = first_places(count[order])
    return found


@dataclass(frozen=True, eq=False)
class TileGhosts:
    """The ghost nodes of refined boxes (tiles) that are interpolated from the next coarser level, as n boxes of ghosts.
    Each lies behind a face of a box of nodes that one rank computes (a part). `part` (n,): the number of the part.
    `direction`, `side` (n,): the direction normal to the face (0, 1, 2), and -1 for a lower or 1 for an upper face.
    `level`, `base` (n,): the level, and the number of the block of the unrefined grid. `low`, `high` (n, 3): first and
    last + 1 of the indexes i, j, k of the ghosts on the level. `place` (n,): the flat index of the first ghost in the
    array with ghosts of the part. `strides` (n, 3): the strides of this array along i, j, k."""

    part: np.ndarray
    direction: np.ndarray
    side: np.ndarray
    level: np.ndarray
    base: np.ndarray
    low: np.ndarray
    high: np.ndarray
    place: np.ndarray
    strides: np.ndarray

    @classmethod
    def of(cls, whole: Decomposition, cut: Decomposition, patches: Sequence[int]) -> "TileGhosts":
        """Return the ghost nodes behind boundary patches of a decomposition. `patches`: the numbers of these patches in
        `whole.patches`. `whole`: the decomposition before its division among ranks, with its levels of refinement.
        `cut`: the decomposition into the boxes of nodes that the ranks compute."""
        assert whole.levels is not None
        chosen, halo = [whole.patches[n] for n in patches], whole.stencil.halo
        block = np.array([patch.block for patch in chosen], int)
        d, sides = (np.array([of(patch.face) for patch in chosen], int) for of in (direction, side))
        nodes = np.array([patch.range for patch in chosen]).reshape(-1, 3, 2)
        low, high = nodes[..., 0].copy(), nodes[..., 1].copy()
        at = np.arange(len(chosen)), d
        low[at] += np.where(sides > 0, 1, -halo)
        high[at] += np.where(sides > 0, halo, -1)
        # Each face is combined with all parts of its block.
        boxes, owner = np.array([part.box for part in cut.parts]), np.array([part.whole for part in cut.parts])
        order = np.argsort(owner, kind="stable")
        begin, end = (np.searchsorted(owner[order], block, which) for which in ("left", "right"))
        (place,) = over_boxes((end - begin)[:, None], begin[None], np.ones((1, len(begin), 1), int))
        part, face = order[place], np.repeat(np.arange(len(begin)), end - begin)
        own, at = boxes[part], (np.arange(len(face)), d[face])
        # A part has the ghosts behind its own nodes.
        before = np.where(sides[face] > 0, low[face][at] - 1, high[face][at])
        least, most = np.maximum(low[face], own[..., 0]), np.minimum(high[face], own[..., 1])
        least[at], most[at] = low[face][at], high[face][at]
        has = (own[at][:, 0] <= before) & (before < own[at][:, 1]) & (least < most).all(axis=1)
        part, face, least, most = part[has], face[has], least[has], most[has]
        strides, origins = strides_of(cut.blocks, cut.stencil.halo)
        tiles = [whole.levels.tiles[n] for n in block.tolist()]
        level, base = (np.array(of, int)[face] for of in ([t.level for t in tiles], [t.base for t in tiles]))
        first = np.array([[lo for lo, _ in t.box] for t in tiles]).reshape(-1, 3)[face]
        flat = origins[part] + (strides[part] * (least - boxes[part, :, 0])).sum(axis=1)
        return cls(part, d[face], sides[face], level, base, least + first, most + first, flat, strides[part])
