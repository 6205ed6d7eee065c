"""Nodes on the edges and corners of a block where several walls meet. Their state must not depend on the order of the
walls or the directions of indexes. At no-slip walls they take the mean of the velocities and of the temperatures (or
scalars) that the walls give. At slip walls they keep the velocity that is tangential to all of them
(kernels/boundary/no_slip.h, reflect.h)."""

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from hiresx.decomposition import Patch
from hiresx.grid.blocks import Range, direction, intersection, side, slices

# Two slip walls count as one that continues if the sine of the angle between them is below this value; the normal is
# then the mean of both.
ONE_WALL = 0.1
# Two slip walls count as normal to each other if the cosine of the angle between them is below this value.
RIGHT = 1e-9


class CornerShares(NamedTuple):
    """Weights of one no-slip wall at the nodes of its patch where several walls meet; every array is (n2, n1), one
    value for each node of the patch.

    The walls write the value of a node one after the other. Each wall adds to the velocity in the node the fraction
    `velocity` of the difference between its own value and the value that the earlier walls have written. It does the
    same with the temperature and the fraction `held`. The fraction is 1 for the first wall and 1/2 for the second, so
    that the result is the mean over all walls. `walls`: the number of walls at the node. `inward`: the offset, in the
    padded array, to the next node that is on none of these walls.
    """

    velocity: np.ndarray
    held: np.ndarray
    walls: np.ndarray
    inward: np.ndarray


def _box(patch: Patch) -> tuple[slice, ...]:
    return tuple(slices(patch.range))


def _on_face(values: np.ndarray, patch: Patch) -> np.ndarray:
    """Return the values [..., k, j, i] at the nodes of a patch as (n2, n1)."""
    k, j, i = slices(patch.range)
    return np.take(values[..., k, j, i], 0, axis=-1 - direction(patch.face))


def shares(
    size: tuple[int, int, int], strides: Sequence[int], patches: Sequence[Patch], holds: Sequence[bool]
) -> list[CornerShares | None]:
    """Return, for each of the no-slip walls `patches` of a block, the weights (`CornerShares`) by which it sets the
    nodes where several no-slip walls meet; None for a wall that meets no other. `size` (ni, nj, nk): the numbers of
    nodes of the block. `strides` (i, j, k): the strides of its arrays with ghost layers, in numbers. `holds`: for each
    wall, whether the case gives its temperature."""
    walls, held, inward = (np.zeros(size[::-1], np.int64) for _ in range(3))
    before = []
    # In the order in which the conditions write their nodes.
    for n in sorted(range(len(patches)), key=lambda n: direction(patches[n].face)):
        patch, box = patches[n], _box(patches[n])
        walls[box] += 1
        held[box] += holds[n]
        inward[box] -= side(patch.face) * strides[direction(patch.face)]
        before.append((n, walls[box].copy(), held[box].copy()))
    found: list[CornerShares | None] = [None] * len(patches)
    for n, count, given in before:
        patch = patches[n]
        all_, of_those = walls[_box(patch)], held[_box(patch)]
        if (all_ > 1).any():
            adiabatic = np.where(of_those > 0, 0.0, 1.0 / count)
            share = 1.0 / np.maximum(given, 1) if holds[n] else adiabatic
            values = (1.0 / count, share, all_.astype(float), inward[_box(patch)])
            found[n] = CornerShares(*(np.take(v, 0, axis=2 - direction(patch.face)) for v in values))
    return found


def held_shares(size: tuple[int, int, int], patches: Sequence[Patch]) -> list[np.ndarray | None]:
    """Return, for each of the walls `patches` of a block, the weights with which it sets a scalar at the nodes where
    several walls meet, if all walls prescribe the value of the scalar; None for a wall that meets no other. An array of
    weights is (n2, n1), the axes [k, j, i] without the direction normal to the wall. `size` (ni, nj, nk): the numbers
    of nodes of the block."""
    found = shares(size, (0, 0, 0), patches, [True] * len(patches))
    return [None if one is None else one.held for one in found]


def beside_walls(size: tuple[int, int, int], patches: Iterable[Patch]) -> np.ndarray:
    """Return the mask [k, j, i] of those nodes of a block of `size` (ni, nj, nk) that lie on one of the walls
    `patches`."""
    found = np.zeros(size[::-1], dtype=bool)
    for patch in patches:
        found[_box(patch)] = True
    return found


def apart_from_walls(near: np.ndarray, patch: Patch, walls: np.ndarray) -> np.ndarray:
    """Set entries of `near` to 0 in place, and return it. `near` (2, 2, n2, n1), on the host: 1 if differences along
    the wall `patch` may use the neighbour of a node, otherwise 0 (`hiresx.rhs.wall_ends.wall_arguments`). The first
    axis is the index direction along the face, the second the side of the neighbour (lower index, then higher), and the
    last two are the nodes of the patch. An entry becomes 0 if the neighbour lies on another wall, because that wall
    determines the values there. `walls`: the mask [k, j, i] of the nodes of the other walls."""
    tangents = [e for e in range(3) if e != direction(patch.face)]
    on_face = np.where(_on_face(walls, patch), 0.0, 1.0)
    for sides, axis in zip(near, (1, 0), strict=True):
        if on_face.shape[axis] > 1 and len(tangents) == 2:
            n = on_face.shape[axis]
            lower, upper = (np.take(on_face, range(*ends), axis) for ends in ((0, n - 1), (1, n)))
            before = [slice(None)] * 2
            before[axis] = slice(1, None)
            sides[0][tuple(before)] *= lower
            before[axis] = slice(None, -1)
            sides[1][tuple(before)] *= upper
    return near


class SlipCorners(NamedTuple):
    """Nodes of the patch of a slip wall at which it meets other slip walls obliquely. `which` (n2, n1): for each node
    of the patch its index in `left`, or -1. `left` (n, 9): for each such node a 3 x 3 matrix, by rows; it projects a
    velocity onto the direction that is tangential to all the walls."""

    which: np.ndarray
    left: np.ndarray


def slip_corners(
    size: tuple[int, int, int], patches: Sequence[Patch], areas: Callable[[int, Range], np.ndarray]
) -> list[SlipCorners | None]:
    """Return, for each of the slip walls `patches` of a block of `size` (ni, nj, nk), the nodes where it meets other
    slip walls obliquely, with the directions of velocity that remain free. The result is None for a wall without such
    nodes. Nodes where walls meet at right angles are left out: there the walls may remove their normal velocities one
    after the other, in any order. `areas(d, box)`: returns the area vectors (3, nk, nj, ni) of direction d in a box of
    nodes."""
    none: list[SlipCorners | None] = [None] * len(patches)
    pairs = [
        (box, one, other)
        for one, other in combinations(range(len(patches)), 2)
        if direction(patches[one].face) != direction(patches[other].face)
        and (box := intersection(patches[one].range, patches[other].range))
    ]
    if not pairs:
        return none
    at, units = _normals(size, [(box, {direction(patches[n].face) for n in both}) for box, *both in pairs], areas)
    cosines = np.abs(units @ np.swapaxes(units, 1, 2))
    oblique = np.flatnonzero(np.max([cosines[:, a, b] for a, b in combinations(range(3), 2)], axis=0) > RIGHT)
    if not oblique.size:
        return none
    number = np.full(len(units) + 1, -1)  # the last one for nodes on a single wall
    number[oblique] = np.arange(oblique.size)
    left = np.array([_along_all(units[n]) for n in oblique]).reshape(-1, 9)
    found = none
    for n, patch in enumerate(patches):
        which = number[_on_face(at, patch)]
        found[n] = SlipCorners(which, left) if (which >= 0).any() else None
    return found


def slip_walls_beside(
    size: tuple[int, int, int],
    patch: Patch,
    flow: np.ndarray,
    walls: Sequence[Patch],
    areas: Callable[[int, Range], np.ndarray],
) -> SlipCorners | None:
    """Return the nodes of an inflow `patch` of a block of `size` (ni, nj, nk) where slip `walls` meet it and its
    direction of flow is not tangential to them, with the directions of velocity that remain free. The result is None
    without such nodes. `flow` (3, n2, n1): the unit vector of the flow at each node of the patch. `areas(d, box)`:
    returns the area vectors (3, nk, nj, ni) of direction d in a box of nodes."""
    boxes = [
        (box, {direction(wall.face)})
        for wall in walls
        if direction(wall.face) != direction(patch.face) and (box := intersection(wall.range, patch.range))
    ]
    if not boxes:
        return None
    at, units = _normals(size, boxes, areas)
    which = _on_face(at, patch)
    met = which >= 0
    across = np.abs(np.einsum("ndc,cn->nd", units[which[met]], flow[:, met])).max(axis=1)
    which[met] = np.where(across > RIGHT, which[met], -1)
    if not (which >= 0).any():
        return None
    return SlipCorners(which, np.array([_along_all(at_node) for at_node in units]).reshape(-1, 9))


def _normals(
    size: tuple[int, int, int],
    boxes: Sequence[tuple[Range, set[int]]],
    areas: Callable[[int, Range], np.ndarray],
) -> tuple[np.ndarray, np.ndarray]:
    """Number the nodes in `boxes`, pairs (box, index directions of the walls there), of a block of `size` (ni, nj, nk).
    Return the number of every node [k, j, i], or -1, and the unit normals (node, direction of the wall, component) of
    the walls, which are 0 for directions without a wall. `areas`: see `slip_corners`."""
    at = np.full(size[::-1], -1)
    for box, _ in boxes:
        at[tuple(slices(box))] = 0
    at[at == 0] = np.arange(np.count_nonzero(at == 0))
    units = np.zeros((at.max() + 1, 3, 3))
    for box, directions in boxes:
        nodes = at[tuple(slices(box))].ravel()
        for d in directions:
            area = areas(d, box).reshape(3, -1).T
            length = np.linalg.norm(area, axis=1, keepdims=True)
            units[nodes, d] = area / np.where(length > 0, length, 1.0)
    return at, units


def _along_all(units: np.ndarray) -> np.ndarray:
    """Return a matrix (3, 3) that removes the components of a velocity normal to each of the planes with the `units`
    (n, 3) as normals."""
    values, vectors = np.linalg.eigh(units.T @ units)
    # for two walls with normals at the angle a the eigenvalues are 1 - cos a and 1 + cos a
    least = 1 - np.sqrt(1 - ONE_WALL**2)
    along = vectors[:, values <= least]
    found: np.ndarray = along @ along.T
    return found
