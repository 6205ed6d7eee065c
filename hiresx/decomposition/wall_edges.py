"""Edges of walls: nodes at which a wall has a corner, such as the sharp trailing edge of an airfoil. Beside them
nothing is interpolated across the corner."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from hiresx.grid.blocks import Range, direction, side
from hiresx.grid.motions import Motion

if TYPE_CHECKING:
    from hiresx.decomposition.patches import Decomposition, Patch

# A wall has an edge at a node at which it turns by at least this angle, in radians, and by this multiple of the angles
# at the nodes beside it.
EDGE, SHARPER = 0.05, 3.0
# Angle in radians at a node up to which a wall counts as straight: coordinates may come from a single-precision file.
STRAIGHT = 1e-4
# Number of nodes beyond an end of a patch from which it is decided whether the end itself is an edge.
BEYOND = 3


# The face of a block behind which a wall is continued by its mirror image, and the reflection.
Image: TypeAlias = "tuple[str, Motion]"


def is_edged(whole: "Decomposition", patch: "Patch", images: Sequence[Image] = ()) -> bool:
    """Return whether a wall has an edge (a sharp corner) on the boundary patch `patch` or at the ends of the patch. A
    sharp end of the wall is an edge, too. Ends of a patch that is one node wide do not count. `whole`: the blocks, not
    divided among ranks. `images`: reflections that continue the wall behind planes of symmetry, as pairs (face on the
    plane, reflection)."""
    return any(
        edges(nodes_beyond(whole, patch.block, patch.range, e, BEYOND, images)).any() for e in _tangents(whole, patch)
    )


def is_bent(whole: "Decomposition", patch: "Patch", images: Sequence[Image] = ()) -> bool:
    """Return whether a wall turns at nodes of the boundary patch `patch` that are not sharp edges, so that it is curved
    between its edges. `whole`: the blocks, not divided among ranks. `images`: reflections that continue the wall behind
    planes of symmetry, as pairs (face on the plane, reflection)."""
    count = BEYOND if images else 0
    return any(
        _bends(nodes_beyond(whole, patch.block, patch.range, e, count, images)).any() for e in _tangents(whole, patch)
    )


def near_edges(whole: "Decomposition", patch: "Patch", reach: int, images: Sequence[Image] = ()) -> np.ndarray:
    """Return a mask of the face nodes of the boundary patch `patch`, [k, j, i] without the axis normal to the face,
    that lie within `reach` nodes of a sharp edge of the wall along a grid line. Edges up to `reach` nodes beyond the
    ends of the patch count, too. `whole`: the blocks, not divided among ranks. `images`: reflections that continue the
    wall behind planes of symmetry, as pairs (face on the plane, reflection)."""
    block, d = whole.blocks[patch.block], direction(patch.face)
    across = [e for e in (2, 1, 0) if e != d]
    found = np.zeros([block.size[e] for e in across], dtype=bool)
    for e in _tangents(whole, patch):
        # The angles at the first and the last node of a line are not known. The marks are valid up to `reach` nodes
        # from the patch.
        beyond = 2 * reach + BEYOND
        edge = edges(nodes_beyond(whole, patch.block, patch.range, e, beyond, images))
        near = edge.copy()
        for step in range(1, reach + 1):
            near[..., step:] |= edge[..., :-step]
            near[..., :-step] |= edge[..., step:]
        # The first angle is that at the second node.
        first, last = patch.range[e][0] - beyond + 1, patch.range[e][1] + beyond - 1
        lo, hi = max(patch.range[e][0] - reach, 0), min(patch.range[e][1] + reach, block.size[e])
        assert first <= lo and hi <= last
        box = [slice(*patch.range[c]) for c in across if c != e]
        box.append(slice(lo, hi))
        rows = np.moveaxis(found, across.index(e), -1)
        rows[tuple(box)] |= near[..., lo - first : hi - first].reshape(rows[tuple(box)].shape)
    return found


def _tangents(whole: "Decomposition", patch: "Patch") -> list[int]:
    return [e for e in whole.blocks[patch.block].active if e != direction(patch.face)]


def nodes_beyond(
    whole: "Decomposition", b: int, range_: Range, e: int, count: int, images: Sequence[Image] = ()
) -> np.ndarray:
    """Return the coordinates (dimensions, ..., n) of a box of nodes extended by `count` nodes beyond both ends along
    index direction `e`. The last axis runs along `e`. `whole`: the blocks, not divided among ranks. `b`: the number of
    the block. `range_`: half-open index ranges of the box. The added nodes may be in the block, across connections, or
    mirror images by `images` (pairs of a face on a plane of symmetry and the reflection). Nodes that do not exist are
    nan."""
    block = whole.blocks[b]
    (lo, hi), size = range_[e], block.size[e]
    box = [np.arange(*r) for r in range_]
    box[e] = np.arange(lo - count, hi + count)
    index = np.stack(np.meshgrid(*box, indexing="ij"))
    nodes = np.full(index.shape, np.nan)
    inside = (index[e] >= 0) & (index[e] < size)
    nodes[:, inside] = block.node(*index[:, inside])
    for c in whole.connections:
        if c.block == b and direction(c.face) == e:
            there = (index[e] >= size) if side(c.face) > 0 else (index[e] < 0)
            for along in range(3):
                if along != e:
                    there = there & (index[along] >= c.range[along][0]) & (index[along] < c.range[along][1])
            donors, limits = c.donors(index[:, there]), np.array(whole.blocks[c.donor].size)[:, None]
            there[there] = known = ((donors >= 0) & (donors < limits)).all(axis=0)
            nodes[:, there] = c.motion(whole.blocks[c.donor].node(*donors[:, known]))
    for face, plane in images:
        if direction(face) == e:
            image = index.copy()
            image[e] = (2 * (size - 1) if side(face) > 0 else 0) - index[e]
            there = ~inside & (image[e] >= 0) & (image[e] < size)
            nodes[:, there] = plane(block.node(*image[:, there]))
    return np.moveaxis(nodes[: len(block.active)], 1 + e, -1)


def edges(face: np.ndarray) -> np.ndarray:
    """Return a mask (..., n - 2) of the nodes at which grid lines have a sharp edge: they turn by more than 0.05 rad
    and three times as much as at the neighbouring nodes. The mask is for all nodes but the first and the last of each
    line. Its first and last entries are always False: the angles there are only used for comparison. `face`
    (dimensions, ..., n): coordinates, with the lines along the last axis; nan for missing nodes."""
    turn = _turns(face)
    beside = np.zeros_like(turn)
    beside[..., 1:] = turn[..., :-1]
    beside[..., :-1] = np.maximum(beside[..., :-1], turn[..., 1:])
    found = (turn > EDGE) & (turn > SHARPER * beside)
    found[..., :1] = found[..., -1:] = False
    return np.asarray(found)


def ends_in_edge(rows: np.ndarray, normal: np.ndarray) -> bool:
    """Return whether a wall and its mirror image in a plane of symmetry form a sharp edge. `rows` (dimensions, n, 3):
    coordinates of wall nodes, the first row in the plane and two further rows beside it. `normal` (dimensions,): the
    unit normal of the plane."""
    steps = np.diff(rows, axis=-1)
    if len(rows) == 2:
        across = np.stack([-steps[1], steps[0]])
    elif rows.shape[1] > 1:
        along = np.gradient(rows, axis=1)
        across = np.cross(along[..., 1:] + along[..., :-1], steps, axis=0)
    else:
        return False
    across /= np.maximum(np.sqrt((across**2).sum(axis=0)), 1e-300)
    turn = 2 * np.arcsin(np.clip(np.abs(normal @ across[..., 0]), 0, 1))
    beside = np.arccos(np.clip((across[..., 0] * across[..., 1]).sum(axis=0), -1, 1))
    return bool(((turn > EDGE) & (turn > SHARPER * beside)).any())


def _bends(face: np.ndarray) -> np.ndarray:
    """Return the mask of the nodes at which grid lines along the last axis turn without an edge, without the first and
    the last angle."""
    return np.asarray(((_turns(face) > STRAIGHT) & ~edges(face))[..., 1:-1])


def _turns(face: np.ndarray) -> np.ndarray:
    """Return the angles in radians by which grid lines along the last axis of (dimensions, ..., n) turn: (..., n -
    2)."""
    steps = np.diff(face, axis=-1)
    size = np.sqrt((steps**2).sum(axis=0))
    cosine = (steps[..., 1:] * steps[..., :-1]).sum(axis=0) / np.maximum(size[..., 1:] * size[..., :-1], 1e-300)
    return np.asarray(np.nan_to_num(np.arccos(np.clip(cosine, -1, 1))))
