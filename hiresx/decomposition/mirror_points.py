"""Ghosts behind walls that mirror places (`hiresx.decomposition.oblique_walls`): the places of their mirror images in
the blocks.

A ghost at the distance d behind a wall takes the flow at the distance d before it, on the same normal. That is no node:
where grid lines meet the wall at the angle a to its normal the two are 2 d tan a apart along the wall.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from hiresx.base.arrays import triple
from hiresx.decomposition.ghost_layers import GhostLayers, coordinates_in_box
from hiresx.decomposition.halo_copies import flat_index
from hiresx.decomposition.oblique_walls import Wall, mirrored_places
from hiresx.decomposition.patched_donors import Rows, layers_behind, linear, share
from hiresx.decomposition.patches import Decomposition
from hiresx.grid import Block
from hiresx.grid.blocks import FACES, direction, layer, side, whole_box
from hiresx.grid.patched import BEYOND, WIDTH, BlockMap, lagrange

Coordinates = Sequence[np.ndarray]

# Rows of nodes along a wall in which mirrored places are looked for, for each ghost layer.
ROWS = 3
# Blocks in which one place is looked for: a mirrored place is a few cells away.
HOPS = 4
# Steps towards the foot of a normal, and the step, in cells, of the differences of normals.
TURNS, STEP = 12, 0.25
# Half the distance, in cells, of the places on both sides of one that derivatives there are the mean of: at a node they
# are those of two polynomials, whichever way indexes run.
ASIDE = 1e-8


@dataclass(frozen=True, eq=False)
class MirrorSources:
    """The ghosts of one patch: `place`, the patch of the whole blocks; `index` (3, n), their nodes in the whole block.
    Each takes the flow at `per` places, one behind the other: `donor` (per n,), whole blocks, `xi` (per n, 3), places
    in their index space, `base` (per n, 3), the first nodes of interpolations, which may lie in connected blocks, and
    `turn` (per n, 3, 3), what brings vectors from there.

    Behind a plane there is one, the mirror image, and `turn` has the reflection. Behind a curved wall there are three,
    the mirror image, the foot of the normal and a third place on it: from the first ghost twice as far from the wall as
    the image, from the others as far as the first. `turn` then has no reflection, and `geometry` (11, n) holds the
    normal at the foot, into the flow, the distance of the image, the derivative of the normal along the wall, xx, yy,
    zz, xy, xz, yz, and the distance of the third place over that of the image. `moved`: cells by which a place was
    moved at most, as it lies outside the grid.
    """

    place: int
    index: np.ndarray
    donor: np.ndarray
    xi: np.ndarray
    base: np.ndarray
    turn: np.ndarray
    geometry: np.ndarray | None
    moved: float

    @property
    def per(self) -> int:
        """Number of places at which each ghost takes the flow: 1 behind a plane, 3 behind a curved wall."""
        return len(self.donor) // self.index.shape[1]


def find_mirror_sources(whole: Decomposition, extended: Sequence[Coordinates | GhostLayers]) -> list[MirrorSources]:
    """Find where all ghosts of mirroring walls take the flow from; `extended`: see `extended_coordinates`."""
    found = mirrored_places(_of_grid(whole))
    maps = _Maps(whole, extended)
    return [_find_sources(whole, extended, maps, wall) for wall in found.values()]


def _of_grid(whole: Decomposition) -> Decomposition:
    """Without the tiles of finer levels, none of which lies on a wall that mirrors places."""
    if whole.levels is None:
        return whole
    count = sum(tile.level == 0 for tile in whole.levels.tiles)
    patches = tuple(patch for patch in whole.patches if patch.block < count)
    connections = tuple(c for c in whole.connections if c.block < count)
    return replace(whole, blocks=whole.blocks[:count], patches=patches, connections=connections, levels=None)


class _Rows:
    """The map of the rows of nodes beside one face of a block: `map`, of a block of these alone, `first`, how many
    nodes along the normal come before them, and `open` (3, 2): whether there are nodes to interpolate from beyond its
    lower and upper ends, of blocks that it is connected to."""

    def __init__(self, whole: Decomposition, extended: Sequence[Coordinates | GhostLayers], b: int, face: str):
        block, d, halo = whole.blocks[b], direction(face), whole.stencil.halo
        rows = min(block.size[d], ROWS * halo)
        self.first = 0 if side(face) < 0 else block.size[d] - rows
        box = [slice(0, m + 2 * halo) for m in block.size]
        box[d] = slice(self.first, self.first + rows + 2 * halo)
        taken = triple(reversed(box))
        given = extended[b]
        coordinates = (
            coordinates_in_box(block, given, halo, taken)
            if isinstance(given, GhostLayers)
            else triple(c[taken] for c in given)
        )
        inner = tuple(slice(halo, -halo) for _ in range(3))
        slab = Block(block.name, *triple(np.ascontiguousarray(c[inner]) for c in coordinates))
        self.map = BlockMap(slab, coordinates, halo, [None] * 3)
        ends = [list(r) for r in whole_box(block.size)]
        ends[d] = [self.first, self.first + rows]
        self.open = np.array([[e != d and _open(whole, b, FACES[2 * e + s], ends) for s in (0, 1)] for e in range(3)])
        self.map.low = np.where(self.open[:, 0], -halo, self.map.low)
        self.map.high = np.where(self.open[:, 1], self.map.high + halo, self.map.high)


def _open(whole: Decomposition, b: int, face: str, box: Sequence[Sequence[int]]) -> bool:
    """True if all nodes of a face of block `b` within `box` are connected."""
    d = direction(face)
    across = [e for e in range(3) if e != d]
    held = np.zeros([box[e][1] - box[e][0] for e in across], dtype=bool)
    for c in whole.connections:
        if (c.block, c.face) == (b, face) and not c.over_a_pole:
            first, last = (
                [min(max(c.range[e][end] - box[e][0], 0), box[e][1] - box[e][0]) for e in across] for end in (0, 1)
            )
            held[first[0] : last[0], first[1] : last[1]] = True
    return bool(held.all())


class _Maps:
    """The rows beside faces, made once."""

    def __init__(self, whole: Decomposition, extended: Sequence[Coordinates | GhostLayers]):
        self._whole, self._extended = whole, extended
        self._made: dict[tuple[int, str], _Rows] = {}

    def __call__(self, b: int, face: str) -> _Rows:
        if (b, face) not in self._made:
            self._made[b, face] = _Rows(self._whole, self._extended, b, face)
        return self._made[b, face]


@dataclass(frozen=True, eq=False)
class _Places:
    """Places: `donor` (n,), blocks, `face` (n,), number of the face of theirs along which the wall goes on, `xi` (n, 3)
    and `base` (n, 3), the first nodes of interpolations. The point x there is `turn` (n, 3, 3) @ x + `shift` (n, 3) as
    the block that asked sees it. `moved`: see `MirrorSources`."""

    donor: np.ndarray
    face: np.ndarray
    xi: np.ndarray
    turn: np.ndarray
    shift: np.ndarray
    base: np.ndarray
    moved: float

    def groups(self, among: np.ndarray) -> Iterator[tuple[int, str, np.ndarray]]:
        """Groups of the places `among` in the same rows: (block, face, indexes into `among`)."""
        for b, f in sorted(set(zip(self.donor[among].tolist(), self.face[among].tolist(), strict=True))):
            yield b, FACES[f], among[(self.donor[among] == b) & (self.face[among] == f)]


def _find_sources(
    whole: Decomposition, extended: Sequence[Coordinates | GhostLayers], maps: _Maps, wall: Wall
) -> MirrorSources:  # fmt: skip
    patch = whole.patches[wall.place]
    b, face, d, halo = patch.block, patch.face, direction(patch.face), whole.stencil.halo
    index = layers_behind(patch, range(1, halo + 1)).reshape(3, -1)
    k, j, i = (index[e] + halo for e in (2, 1, 0))
    given = extended[b]
    ghosts = given[:, k, j, i].T if isinstance(given, GhostLayers) else np.stack([c[k, j, i] for c in given], axis=1)
    edge = patch.range[d][0]
    start = index.T.astype(float)
    start[:, d] = edge
    if wall.normal is not None and wall.point is not None:
        normal = np.zeros(3)
        normal[: len(wall.normal)] = wall.normal
        point = np.zeros(3)
        point[: len(wall.point)] = wall.point
        normals = np.broadcast_to(normal, ghosts.shape)
        distance = (point - ghosts) @ normal
        feet, curvature = None, None
    else:
        feet = _walk(whole, maps, b, face, ghosts, start, on_wall=True)
        places, normals, curvature = _geometry(maps, feet)
        if whole.axisymmetric:  # about the axis the normal turns by its share along y in a length of y
            radius = places[:, 1]
            curvature[2] += np.divide(normals[:, 1], radius, out=np.zeros_like(radius), where=radius > 0)
        distance = np.sum((places - ghosts) * normals, axis=1)
    images = ghosts + 2 * distance[:, None] * normals
    start[:, d] = 2 * edge - index[d]
    image = _walk(whole, maps, b, face, images, start)
    if not wall.curved or feet is None or curvature is None:
        reflection = np.eye(3) - 2 * normals[:, :, None] * normals[:, None, :]
        if patch.condition.kernel == "axis":
            reflection[:, 2, 2] = -1.0  # the swirl
        turn = reflection @ image.turn
        return MirrorSources(wall.place, index, image.donor, image.xi, image.base, turn, None, image.moved)
    layer_number = np.abs(index[d] - edge)
    apart = np.where(layer_number == 1, 2.0, 1.0 / layer_number)
    start[:, d] = edge + apart * (start[:, d] - edge)
    third = _walk(whole, maps, b, face, ghosts + ((1 + apart) * distance)[:, None] * normals, start)
    three = (image, feet, third)
    donor, xi, base, turn = (
        np.stack([getattr(p, name) for p in three], axis=1).reshape(-1, *getattr(image, name).shape[1:])
        for name in ("donor", "xi", "base", "turn")
    )
    geometry = np.concatenate([normals.T, distance[None], curvature, apart[None]])
    return MirrorSources(wall.place, index, donor, xi, base, turn, geometry, max(p.moved for p in three))


def _walk(
    whole: Decomposition,
    maps: _Maps,
    b: int,
    face: str,
    points: np.ndarray,
    start: np.ndarray,
    on_wall: bool = False,
) -> _Places:
    """Locate `points` (n, 3) in the rows along the wall `face` of block `b`, or of the blocks in which it goes on, from
    the starting places `start` (n, 3) in `b`; `on_wall`: find the feet of the normals through them. What lies outside
    of all blocks is moved to where these end."""
    count = len(points)
    at = _Places(
        np.full(count, b), np.full(count, FACES.index(face)), start.copy(), np.tile(np.eye(3), (count, 1, 1)),
        np.zeros((count, 3)), np.zeros((count, 3), dtype=int), 0.0,
    )  # fmt: skip
    left = np.arange(count)
    for _ in range(HOPS):
        gone = []
        for own, along, chosen in at.groups(left):
            rows = maps(own, along)
            d, m = direction(along), rows.map.dimensions
            seen = np.einsum("nba,nb->na", at.turn[chosen], points[chosen] - at.shift[chosen])[:, :m]
            xi = at.xi[chosen]
            xi[:, d] -= rows.first
            xi = _feet(rows.map, d, seen, xi) if on_wall else rows.map.locate(seen, xi)[0]
            xi[:, d] += rows.first
            at.xi[chosen] = xi
            gone.append(_hop(whole, at, own, along, rows, chosen))
        left = np.concatenate(gone)
        if not left.size:
            break
    moved = 0.0
    for own, along, chosen in at.groups(np.arange(count)):
        rows, d = maps(own, along), direction(along)
        size = np.array(whole.blocks[own].size)
        low, high = np.where(rows.open.T, 1.0, BEYOND) * [[-1.0], [1.0]] + [[0, 0, 0], size - 1]
        low[d], high[d] = rows.first, rows.first + rows.map.block.size[d] - 1
        kept = np.clip(at.xi[chosen], low, high)
        moved = max(moved, float(np.abs(kept - at.xi[chosen]).max()))
        at.xi[chosen] = kept
        first = np.where(np.arange(3) == d, rows.first, 0)
        at.base[chosen] = rows.map.base(kept - first) + first
    return replace(at, moved=moved)


def _at(rows: BlockMap, xi: np.ndarray, tangents: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """As `BlockMap.at`, with the same result whichever way indexes run along `tangents`."""
    slopes = []
    for signs in product((-ASIDE, ASIDE), repeat=len(tangents)):
        aside = xi.copy()
        aside[:, tangents] += signs
        slopes.append(rows.at(aside)[1])
    return rows.at(xi)[0], np.asarray(sum(slopes) / len(slopes))


def _feet(rows: BlockMap, d: int, points: np.ndarray, xi: np.ndarray) -> np.ndarray:
    """The places on the face to which `points` are nearest."""
    tangents = [e for e in range(rows.dimensions) if e != d]
    last = np.array(rows.block.size) - 1
    for _ in range(TURNS):
        position, slopes = _at(rows, xi, tangents)
        along = slopes[:, :, tangents]
        square = np.einsum("nca,ncb->nab", along, along)
        right = np.einsum("nca,nc->na", along, points - position)
        step = np.linalg.solve(_regular(square), right[..., None])[..., 0]
        for n, e in enumerate(tangents):
            xi[:, e] = np.clip(xi[:, e] + np.clip(step[:, n], -2, 2), -1.5, last[e] + 1.5)
        if not np.abs(step).max() > 1e-13 * (1 + np.abs(xi).max()):
            break
    return xi


def _hop(
    whole: Decomposition, at: _Places, b: int, face: str, rows: _Rows, chosen: np.ndarray
) -> np.ndarray:  # fmt: skip
    """Find the places `chosen` of block `b` beyond a connected end, and move them into the block beyond. Return which
    these are."""
    d, size = direction(face), np.array(whole.blocks[b].size)
    gone = []
    for c in whole.connections:
        e = direction(c.face)
        if c.block != b or e == d or c.over_a_pole:
            continue
        room = 0.5 + 1e-6 if rows.open[e, int(side(c.face) > 0)] else 1e-6
        over = side(c.face) * at.xi[chosen, e] > (0 if side(c.face) < 0 else size[e] - 1) + room
        node = np.clip(np.round(at.xi[chosen]), 0, size - 1)
        for f, (lo, hi) in enumerate(c.range):
            over &= (f == e) | ((node[:, f] >= lo) & (node[:, f] < hi))
        mine = chosen[over]
        if not mine.size:
            continue
        matrix, offset = np.array(c.matrix), np.array(c.offset)
        normal = int(np.flatnonzero(matrix[:, d])[0])
        wall = matrix[normal, d] * layer(face, whole.blocks[b].size)[0] + offset[normal]
        turn = np.eye(3) if c.rotation is None else np.array(c.rotation)
        at.shift[mine] += at.turn[mine] @ np.array(c.translation)
        at.turn[mine] = at.turn[mine] @ turn
        at.xi[mine] = at.xi[mine] @ matrix.T + offset
        at.donor[mine] = c.donor
        at.face[mine] = 2 * normal + (2 * wall > whole.blocks[c.donor].size[normal] - 1)
        chosen = chosen[~over]
        gone.append(mine)
    return np.concatenate(gone) if gone else np.zeros(0, dtype=int)


def _geometry(maps: _Maps, feet: _Places) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Geometry of places on a wall, in the frame of the block that asked: their points (n, 3), the unit normals (n, 3)
    into the flow and the derivative of the normal along the wall (6, n), xx, yy, zz, xy, xz, yz."""
    count = len(feet.donor)
    points, normals, bend = np.zeros((count, 3)), np.zeros((count, 3)), np.zeros((count, 3, 3))
    for own, along, chosen in feet.groups(np.arange(count)):
        rows, first = maps(own, along).map, maps(own, along).first
        d, m = direction(along), rows.dimensions
        xi = feet.xi[chosen]
        xi[:, d] -= first
        tangents = [e for e in range(m) if e != d]
        position, slopes = _at(rows, xi, tangents)
        points[chosen, :m] = position
        normals[chosen, :m] = _normals(slopes, d, side(along))
        lines = slopes[:, :, tangents]
        dual = lines @ np.linalg.inv(_regular(np.einsum("nca,ncb->nab", lines, lines)))
        for n, e in enumerate(tangents):
            there = {}
            for step in (-2, -1, 1, 2):
                aside = xi.copy()
                aside[:, e] += step * STEP
                there[step] = _normals(_at(rows, aside, tangents)[1], d, side(along))
            change = (8 * (there[1] - there[-1]) - (there[2] - there[-2])) / (12 * STEP)
            bend[chosen, :m, :m] += change[:, :, None] * dual[:, None, :, n]
    points = np.einsum("nab,nb->na", feet.turn, points) + feet.shift
    normals = np.einsum("nab,nb->na", feet.turn, normals)
    bend = feet.turn @ (0.5 * (bend + bend.transpose(0, 2, 1))) @ feet.turn.transpose(0, 2, 1)
    six = [bend[:, a, b] for a, b in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
    return points, normals, np.stack(six)


def _regular(square: np.ndarray) -> np.ndarray:
    """Matrices (n, m, m) of products of lines along a wall, with those of lines that have collapsed, as at the end of a
    wall in a pole, replaced by the unit matrix."""
    m = square.shape[1]
    size = np.trace(square, axis1=1, axis2=2) / m
    collapsed = ~(np.linalg.det(square) > 1e-24 * size**m)
    return np.asarray(np.where(collapsed[:, None, None], np.eye(m), square))


def _normals(slopes: np.ndarray, d: int, face_side: int) -> np.ndarray:
    """Unit normals (n, dimensions) of a wall, into the flow, from the derivatives (n, dimensions, dimensions)."""
    m = slopes.shape[1]
    tangents = [slopes[:, :, e] for e in range(m) if e != d]
    normal = np.cross(tangents[0], tangents[1]) if m == 3 else np.stack([-tangents[0][:, 1], tangents[0][:, 0]], axis=1)
    inwards = -face_side * np.sum(normal * slopes[:, :, d], axis=1)
    size = np.sqrt((normal**2).sum(axis=1)) * np.where(inwards < 0, -1, 1)
    return np.asarray(normal / np.where(size != 0, size, 1)[:, None])


def rows(whole: Decomposition, cut: Decomposition, found: Sequence[MirrorSources]) -> Iterator[Rows]:
    """Yield the contributions of all parts of `cut`, in their order, to the flow at the places of all entries of
    `found`."""
    donor, xi, base, turn = (
        np.concatenate([getattr(f, name) for f in found]) for name in ("donor", "xi", "base", "turn")
    )
    weights = np.stack([lagrange(xi - base)[0], linear(xi, base)])
    given: dict[int, list[_Window]] = {}
    for b in np.unique(donor):
        at = np.flatnonzero(donor == b)
        one = weights[:, at]
        for d, n in enumerate(whole.blocks[b].size):
            if n == 1:
                one[:, :, d] = np.eye(WIDTH)[0]
        for window in _spread(whole, _Window(int(b), at, base[at], one, np.eye(3))):
            given.setdefault(window.block, []).append(window)
    for p, part in enumerate(cut.parts):
        for window in given.get(part.whole, ()):
            made = share(window.base, window.weights, whole.blocks[part.whole].size, part.box)
            if made is not None:
                chosen, start, widths, own = made
                points = window.point[chosen]
                flat = flat_index(start.T, cut.blocks[p], cut.stencil.halo)
                yield Rows(p, points, flat, widths, own, turn[points] @ window.turn)


@dataclass(frozen=True, eq=False)
class _Window:
    """Nodes of one block from which places are interpolated: `point` (n,), which places, `base` (n, 3), the first
    nodes, `weights` (2, n, 3, WIDTH), 0 for those outside, and `turn` (3, 3), what brings vectors from there to the
    block from which they were reached."""

    block: int
    point: np.ndarray
    base: np.ndarray
    weights: np.ndarray
    turn: np.ndarray

    @property
    def nodes(self) -> np.ndarray:
        return np.asarray(self.base[:, :, None] + np.arange(WIDTH))

    def mask(self, keep: np.ndarray) -> "_Window | None":
        """The part of the nodes (n, 3, WIDTH) selected by `keep`; None if nothing is left."""
        weights = np.where(keep, self.weights, 0.0)
        left = (weights != 0).any(axis=(0, 3)).all(axis=1)
        if not left.any():
            return None
        return _Window(self.block, self.point[left], self.base[left], weights[:, left], self.turn)


def _spread(whole: Decomposition, window: _Window, hops: int = 3) -> Iterator[_Window]:
    """Windows of the block's own nodes and of those of connected blocks beyond its ends."""
    size = np.array(whole.blocks[window.block].size)[:, None]
    nodes = window.nodes
    below, above = nodes < 0, nodes >= size
    own = window.mask(~(below | above))
    if own is not None:
        yield own
    if not hops or not ((below | above) & (window.weights != 0).any(axis=0)).any():
        return
    nearest = np.clip(nodes, 0, size - 1)
    for c in whole.connections:
        if c.block != window.block or c.over_a_pole:
            continue
        d = direction(c.face)
        # what lies beyond several ends goes by the first direction
        keep = np.ones_like(below)
        keep[:, :d] = ~(below | above)[:, :d]
        keep[:, d] = (below if side(c.face) < 0 else above)[:, d]
        for e, (lo, hi) in enumerate(c.range):
            if e != d:
                keep[:, e] &= (nearest[:, e] >= lo) & (nearest[:, e] < hi)
        beyond = window.mask(keep)
        if beyond is None:
            continue
        matrix = np.array(c.matrix)
        base, weights = np.zeros_like(beyond.base), np.zeros_like(beyond.weights)
        for e in range(3):
            f = int(np.flatnonzero(matrix[:, e])[0])
            turned = matrix[f, e] < 0
            base[:, f] = matrix[f, e] * (beyond.base[:, e] + (WIDTH - 1) * turned) + c.offset[f]
            weights[:, :, f] = beyond.weights[:, :, e, ::-1] if turned else beyond.weights[:, :, e]
        turn = window.turn if c.rotation is None else window.turn @ np.array(c.rotation)
        yield from _spread(whole, _Window(c.donor, beyond.point, base, weights, turn), hops - 1)
