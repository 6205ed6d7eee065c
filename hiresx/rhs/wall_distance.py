"""The exact distance of every node to the nearest wall, over all blocks and their periodic images.

Walls are the faces of cells between nodes of no-slip and modelled walls: in plane grids segments, else four triangles
each that meet in the mean of its corners, so that the distance does not depend on the directions of indexes.
Facets are those of the whole grid, so that the distance depends neither on cuts nor on ranks. They lie in a tree of
boxes, which kernels/wall_distance.h searches for every node.
"""

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from hiresx.base.arrays import Integers, Mask
from hiresx.case import Case
from hiresx.decomposition import Decomposition
from hiresx.device.interface import Backend, Program
from hiresx.errors import HiresxError
from hiresx.grid.blocks import direction, face_range, slices
from hiresx.grid.connections import Connection
from hiresx.grid.motions import Motion

WALLS = ("no_slip", "modelled_wall")
FIELD = "wall_distance"
# Largest number of facets of a box that is not divided; and a number above any squared distance that work memory can
# hold.
_LEAF = 8
_FAR = 1e15
# Largest number of generators of the periodic group that are combined.
_GENERATORS = 3


class FacetTree(NamedTuple):
    """Tree of bounding boxes of the facets of walls. The boxes are in depth-first order. `bounds` (n, 6): the bounds of
    each box. `skip` (n,): the next box if a box and its inner boxes are skipped. `leaves` (n, 2): the range of facets
    of a box without inner boxes. `corners` (facets, 9): the corners of the facets, in their order."""

    bounds: np.ndarray
    skip: np.ndarray
    leaves: np.ndarray
    corners: np.ndarray


def check(case: Case, whole: Decomposition) -> None:
    """Raise HiresxError if `case` needs the distance to walls, but no block of the grid `whole` has a no-slip or
    modelled wall."""
    asked = _asking(case)
    if asked is not None and all(patch.condition.kernel not in WALLS for patch in whole.patches):
        key, hint = asked
        raise _no_wall(key, f", or {hint}")


def _no_wall(asking: str, otherwise: str = "") -> HiresxError:
    """Return the error for a grid without walls. `asking`: the key of the case that needs the distance."""
    return HiresxError(
        f"{asking} asks for the distance to the nearest wall, but no face of the grid is a wall; slip walls and "
        "planes of symmetry do not count",
        f'give a [[boundary]] with type = "no-slip-wall" or "modelled-wall"{otherwise}',
    )


def _asking(case: Case) -> tuple[str, str] | None:
    """Return which key of a case needs the distance to walls, and how to leave it out; None if nothing needs it."""
    if case.turbulence.transported:
        return f'turbulence.model = "{case.turbulence.model}"', "take another model"
    tables = {"output": case.output} | {f"output.subset.{n}": part for n, part in enumerate(case.output.subset)}
    keys = (f"{place}.variables" for place, table in tables.items() if FIELD in (table.variables or ()))
    key = next(keys, None)
    return None if key is None else (key, f'take "{FIELD}" out of {key}')


class WallSearch:
    """Search for the distance of nodes from the walls of `whole`, the decomposition before its division among ranks.
    Raises HiresxError if there are no walls."""

    def __init__(self, backend: Backend, program: Program, whole: Decomposition):
        tree = facet_tree(wall_facets(whole))
        self._backend, self._program = backend, program
        self._motions = [backend.to_device(_numbers(motion)) for motion in images(whole)]
        self._facets = {
            "boxes": len(tree.skip),
            **{name: backend.to_device(getattr(tree, name).reshape(-1)) for name in FacetTree._fields},
        }

    def __call__(self, nodes: np.ndarray, distance: Any, place: Mapping[str, int]) -> None:
        """Compute the distance of nodes to the nearest wall, in L. `nodes` (3, nk, nj, ni): the coordinates of the
        nodes, in L. `distance`: the array on the device, in the type of work arrays, for the results. `place`: the
        offset o of node (0, 0, 0) in this array, and the strides sj and sk."""
        _, nk, nj, ni = nodes.shape
        distance[...] = _FAR
        coordinates = self._backend.to_device(nodes.astype(np.float64).reshape(-1))
        for motion in self._motions:
            self._program.launch(
                "wall_distance", (ni, nj, nk), **place, width=ni, height=nj, points=ni * nj * nk, nodes=coordinates,
                motion=motion, **self._facets, distance=distance,
            )  # fmt: skip


def wall_facets(whole: Decomposition) -> np.ndarray:
    """Return the corners of the triangles into which all walls of the grid `whole` are divided, an array (n, 3, 3) over
    triangle, corner and coordinate (x, y, z in L). Raises HiresxError if the grid has no wall."""
    masks = _wall_nodes(whole)
    if not masks:
        raise _no_wall(f"the field {FIELD}")
    return np.concatenate([_facets(whole, block, face, masks) for block, face in masks])


def images(whole: Decomposition) -> list[Motion]:
    """Return the motions that map a point to its periodic images in the grid `whole`. The distance of a point to the
    walls is the least of the distances of its images. The first motion is the identity. The others are products of the
    motions of periodic connections, in which each motion or its inverse occurs at most once."""
    generators: list[Motion] = []
    for c in whole.connections:
        known = [m for g in generators for m in (g, g.inverse)]
        if not (c.motion.still or c.over_a_pole or any(_same(c.motion, m) for m in known)):
            generators.append(c.motion)
    found = [Motion()]
    for powers in itertools.product((0, 1, -1), repeat=len(generators[:_GENERATORS])):
        total = Motion()
        for generator, power in zip(generators, powers, strict=False):
            total = total.then(generator if power > 0 else generator.inverse) if power else total
        if not any(_same(total, m) for m in found):
            found.append(total)
    return found


def facet_tree(facets: np.ndarray) -> FacetTree:
    """Return a tree of bounding boxes of the triangles `facets` (n, 3, 3), for the search of the nearest one. Each box
    is divided at the median of the centres of its triangles along its longest extent."""
    lower, upper, centres = facets.min(axis=1), facets.max(axis=1), facets.mean(axis=1)
    bounds: list[np.ndarray] = []
    skip: list[int] = []
    leaves: list[tuple[int, int]] = []
    order: list[Integers] = []
    placed = 0
    # The stack contains the facets of a box that is to be made, or the number of a box whose last inner box has been
    # made.
    stack: list[Integers | int] = [np.arange(len(facets))]
    while stack:
        top = stack.pop()
        if isinstance(top, int):
            skip[top] = len(skip)
            continue
        number = len(skip)
        bounds.append(np.concatenate([lower[top].min(axis=0), upper[top].max(axis=0)]))
        skip.append(number + 1)
        if len(top) <= _LEAF:
            leaves.append((placed, placed + len(top)))
            order.append(top)
            placed += len(top)
            continue
        leaves.append((0, 0))
        own = centres[top]
        along = np.argsort(own[:, int(np.argmax(np.ptp(own, axis=0)))], kind="stable")
        half = len(top) // 2
        stack += [number, top[along[half:]], top[along[:half]]]
    corners = np.ascontiguousarray(facets[np.concatenate(order)].reshape(-1, 9))
    return FacetTree(np.array(bounds), np.array(skip, np.int32), np.array(leaves, np.int32), corners)


def _wall_nodes(whole: Decomposition) -> dict[tuple[int, str], Mask]:
    """Return which nodes of a face are on a wall, (nk, nj, ni) with one node across, by block and face."""
    masks: dict[tuple[int, str], Mask] = {}
    for patch in whole.patches:
        if patch.condition.kernel not in WALLS:
            continue
        size = whole.blocks[patch.block].size
        face = face_range(patch.face, size)
        shape = tuple(hi - lo for lo, hi in reversed(face))
        mask = masks.setdefault((patch.block, patch.face), np.zeros(shape, bool))
        own = [(lo - first, hi - first) for (lo, hi), (first, _) in zip(patch.range, face, strict=True)]
        mask[slices((own[0], own[1], own[2]))] = True
    return masks


def _facets(whole: Decomposition, block: int, face: str, masks: dict[tuple[int, str], Mask]) -> np.ndarray:
    """Return the facets of one face, including those to the next nodes across its connected edges."""
    size, normal = whole.blocks[block].size, direction(face)
    box = slices(face_range(face, size))
    places = np.stack([c[box] for c in _coordinates(whole, block)])
    mask = masks[block, face]
    pad = [(0, 0) if d == normal else (1, 1) for d in (2, 1, 0)]
    places, mask = np.pad(places, [(0, 0), *pad]), np.pad(mask, pad)
    for c in whole.connections:
        if c.block == block and direction(c.face) != normal:
            _put_next_nodes(whole, c, face, masks, places, mask)
    flat_places = np.moveaxis(places, 0, -1).squeeze(axis=2 - normal)
    flat = mask.squeeze(axis=2 - normal)
    return np.concatenate(list(_facets_of_face(flat_places, flat)))


def _put_next_nodes(
    whole: Decomposition, c: Connection, face: str, masks: dict[tuple[int, str], Mask], places: np.ndarray, mask: Mask
) -> None:
    """Set the nodes behind a connected edge of `face` in its padded arrays `places` and `mask`, if they are on a
    wall."""
    size, normal = whole.blocks[c.block].size, direction(face)
    at = face_range(face, size)[normal][0]
    ghosts = c.ghosts(1, size).reshape(3, -1)
    ghosts = ghosts[:, ghosts[normal] == at]
    donors = c.donors(ghosts)
    on_wall = np.zeros(ghosts.shape[1], bool)
    for (block, other), nodes in masks.items():
        if block == c.donor:
            first = face_range(other, whole.blocks[block].size)
            index = [donors[d] - first[d][0] for d in range(3)]
            there = np.logical_and.reduce(
                [(n >= 0) & (n < s) for n, s in zip(index, reversed(nodes.shape), strict=True)]
            )
            i, j, k = (n[there] for n in index)
            on_wall[there] |= nodes[k, j, i]
    ghosts, donors = ghosts[:, on_wall], donors[:, on_wall]
    if not ghosts.size:
        return
    i, j, k = donors
    moved = c.motion(np.stack([axis[k, j, i] for axis in _coordinates(whole, c.donor)]))
    i, j, k = (0 * ghosts[d] if d == normal else ghosts[d] + 1 for d in range(3))
    places[:, k, j, i], mask[k, j, i] = moved, True


def _facets_of_face(places: np.ndarray, mask: Mask) -> Iterator[np.ndarray]:
    """Yield the facets of a face of nodes (n2, n1, 3) on a wall: triangles, and segments and points if the wall is
    degenerate."""
    covered = np.zeros(mask.shape, bool)
    whole = mask[:-1, :-1] & mask[1:, :-1] & mask[:-1, 1:] & mask[1:, 1:]
    a, b, c, d = (p[whole] for p in (places[:-1, :-1], places[:-1, 1:], places[1:, :-1], places[1:, 1:]))
    middle = ((a + d) + (b + c)) / 4
    for p, q in ((a, b), (b, d), (d, c), (c, a)):
        yield np.stack([p, q, middle], axis=1)
    for corner in (np.s_[:-1, :-1], np.s_[1:, :-1], np.s_[:-1, 1:], np.s_[1:, 1:]):
        covered[corner] |= whole
    bare = mask & ~covered
    for first, second in ((np.s_[:-1, :], np.s_[1:, :]), (np.s_[:, :-1], np.s_[:, 1:])):
        edge = mask[first] & mask[second] & (bare[first] | bare[second])
        yield np.stack([places[first][edge], places[second][edge], places[second][edge]], axis=1)
    yield np.repeat(places[bare][:, None], 3, axis=1)


def _coordinates(whole: Decomposition, block: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    found = whole.blocks[block]
    return np.asarray(found.x), np.asarray(found.y), np.asarray(found.z)


def _same(a: Motion, b: Motion) -> bool:
    return bool(np.allclose(_numbers(a), _numbers(b), rtol=0, atol=1e-9))


def _numbers(motion: Motion) -> np.ndarray:
    """Return the rotation by rows and the translation, (12,)."""
    rotation = np.eye(3) if motion.rotation is None else np.array(motion.rotation)
    return np.concatenate([rotation.reshape(-1), motion.translation])
