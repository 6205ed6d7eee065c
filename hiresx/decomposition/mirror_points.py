"""Ghosts behind walls whose mirror images are not nodes (`hiresx.decomposition.oblique_walls`): the positions of the
mirror images in the blocks.

A ghost at the distance d behind a wall takes the flow at the distance d in front of it, on the same normal of the wall.
If grid lines meet the wall at the angle a to its normal, this position is 2 d tan a away from the node with the same
index."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hiresx.base.arrays import triple
from hiresx.decomposition.ghost_layers import GhostLayers, coordinates_in_box
from hiresx.decomposition.oblique_walls import (
    Wall,
    mirrored_places,
    mirroring_planes,
    planes_of_symmetry,
    planes_through,
)
from hiresx.decomposition.patched_donors import layers_behind
from hiresx.decomposition.patches import Decomposition, Patch
from hiresx.decomposition.wall_edges import near_edges
from hiresx.grid import Block, Connection
from hiresx.grid.blended import BlendedMap
from hiresx.grid.blocks import FACES, direction, directions_along, layer, side, whole_box
from hiresx.grid.connections import IDENTITY
from hiresx.grid.patched import BEYOND, WIDTH

Coordinates = Sequence[np.ndarray]

# Number of rows of nodes along a wall in which mirrored places are searched, for each ghost layer.
ROWS = 3
# Largest number of blocks in which one place is searched: a mirrored place is a few cells away.
HOPS = 4
# Largest number of steps of the search for the foot of a normal; each reduces the error by the ratio of the distance to
# the radius of curvature. And the step, in cells, of the differences of normals.
TURNS, STEP = 40, 0.25
# Number of cells along a curved wall, from the point where the flow meets it, within which the flow stagnates.
STAGNANT = 3.0
# The fields of `MirrorSources` that have an entry for each place.
OF_PLACES = ("donor", "face", "xi", "base", "share", "turn")


@dataclass(frozen=True, eq=False)
class MirrorSources:
    """The n ghosts behind one wall patch, and the positions at which the flow is interpolated for them. `place`: the
    number of the patch. `index` (3, n): the indexes i, j, k of the ghosts in their block, not divided among ranks.

    The flow is interpolated at `per` positions for each ghost; the positions of one ghost after the other make arrays
    of length per * n. `donor` (per * n,): the number of the block in which the position lies. `face` (per * n,): the
    number of this block's face along which the wall continues. `xi` (per * n, 3): the position as fractional indexes i,
    j, k. `base` (per * n, 3): the first node of the interpolation, which may lie in a connected block. `share` (per *
    n, 3): the weight of the polynomial through the last five nodes (`hiresx.grid.blended`). `turn` (per * n, 3, 3): the
    matrix by which a vector at the position is multiplied. `moved`: the largest distance, in cells, by which a position
    outside the grid was moved into it.

    A ghost behind a plane or beside an edge has one position, its mirror image. `turn` then contains the reflection,
    and `geometry` is None. A ghost behind a curved wall has three positions: the mirror image, the foot of the normal,
    and a third position on the normal. For the first layer of ghosts the third position is twice as far from the wall
    as the image. For the other layers it is as far from the wall as the image of the first layer. `turn` then contains
    no reflection. The rows of `geometry` (12, n) are:
    - the unit normal at the foot, into the flow (3);
    - the distance of the image from the wall;
    - the derivative of the normal along the wall (6: xx, yy, zz, xy, xz, yz);
    - the distance of the third position divided by the distance of the image;
    - the square of the length of three cells (STAGNANT) along the wall divided by the distance of the image."""

    place: int
    index: np.ndarray
    donor: np.ndarray
    face: np.ndarray
    xi: np.ndarray
    base: np.ndarray
    share: np.ndarray
    turn: np.ndarray
    geometry: np.ndarray | None
    moved: float

    @property
    def count(self) -> int:
        """Number of ghost nodes behind the wall for which the flow is interpolated."""
        return self.index.shape[1]

    @property
    def per(self) -> int:
        """Number of positions at which the flow is interpolated for each ghost node: 1 behind a plane wall, 3 behind a
        curved wall."""
        return len(self.donor) // self.count

    def some(self, chosen: np.ndarray) -> "MirrorSources":
        """Return the positions at which the flow is interpolated for those ghost nodes only for which the mask `chosen`
        (n,) is true."""
        places = np.repeat(chosen, self.per)
        of_places = {name: getattr(self, name)[places] for name in OF_PLACES}
        geometry = None if self.geometry is None else self.geometry[:, chosen]
        return replace(self, index=self.index[:, chosen], geometry=geometry, **of_places)


def find_mirror_sources(whole: Decomposition, extended: Sequence[Coordinates | GhostLayers]) -> list[MirrorSources]:
    """Return the positions at which the flow is interpolated for the ghosts behind slip walls, symmetry planes and
    axes, where the mirror images of the ghosts are not nodes. `whole`: the blocks, not divided among ranks. `extended`:
    their coordinates with ghosts (`extended_coordinates`). A wall may have two entries: one for the ghosts beside its
    edges, one for all others."""
    of_grid, whole = _of_grid(whole), with_images(whole)
    found = mirrored_places(of_grid)
    imaged = {(of_grid.patches[wall.place].block, face) for wall in found.values() for face, _ in wall.images}
    maps, near = _Maps(whole, extended, imaged), _near_edges(of_grid, found.values())
    return [
        sources
        for wall in found.values()
        for sources in _apart_from_edges(_find_sources(whole, extended, maps, wall), whole, maps, near)
    ]


def with_images(whole: Decomposition) -> Decomposition:
    """Return the decomposition in which the blocks are also connected with their own mirror images behind the planes of
    symmetry whose ghosts are mirror images of nodes. Flow is interpolated there as in the middle of a grid that has
    both sides of the plane. `whole`: the blocks, not divided among ranks."""
    planes = planes_of_symmetry(whole)
    images = []
    for n in sorted(mirroring_planes(whole)) if planes else ():
        patch = whole.patches[n]
        d = direction(patch.face)
        matrix = triple(IDENTITY[e] if e != d else triple(-m for m in IDENTITY[e]) for e in range(3))
        offset = triple(2 * patch.range[e][0] if e == d else 0 for e in range(3))
        for plane in planes_through(whole, patch, planes)[:1]:
            b, motion = patch.block, (plane.translation, plane.rotation)
            images.append(Connection(b, patch.face, patch.range, b, matrix, offset, *motion))
    return replace(whole, connections=(*whole.connections, *images)) if images else whole


def _near_edges(whole: Decomposition, mirroring: Iterable[Wall]) -> dict[tuple[int, str], np.ndarray]:
    """Return, by block and face, a mask of the nodes beside edges of walls: [k, j, i] without the face's direction. The
    nodes of an interpolation about any other position on the face, or half a cell beside it, contain no edge."""
    found: dict[tuple[int, str], np.ndarray] = {}
    for wall in mirroring:
        if wall.edged:
            patch = whole.patches[wall.place]
            mask = near_edges(whole, patch, WIDTH // 2, wall.images)
            found[patch.block, patch.face] = found.get((patch.block, patch.face), False) | mask
    return found


def _apart_from_edges(
    sources: MirrorSources, whole: Decomposition, maps: "_Maps", near: Mapping[tuple[int, str], np.ndarray]
) -> Iterator[MirrorSources]:
    """Return the sources of a patch, with those of ghosts beside edges replaced by the mirror images of nodes. There
    normals and places would be computed from polynomials through the corner. The plane of such a mirror is that of the
    wall's metrics at the node."""
    patch, count = whole.patches[sources.place], sources.index.shape[1]
    beside = np.zeros(count * sources.per, dtype=bool)
    for b, f in set(zip(sources.donor.tolist(), sources.face.tolist(), strict=True)):
        if (mask := near.get((b, FACES[f]))) is not None:
            chosen = (sources.donor == b) & (sources.face == f)
            beside[chosen] = _on_face(mask, FACES[f], np.round(sources.xi[chosen]).astype(int))
    at_nodes = np.asarray(beside.reshape(count, sources.per).any(axis=1))
    if (mask := near.get((patch.block, patch.face))) is not None:
        at_nodes |= _on_face(mask, patch.face, sources.index.T)
    if not at_nodes.all():
        yield sources.some(np.logical_not(at_nodes))
    if at_nodes.any():
        yield _mirrored_nodes(sources.index[:, at_nodes], sources.place, patch, maps)


def _on_face(mask: np.ndarray, face: str, nodes: np.ndarray) -> np.ndarray:
    """Return the values of a mask of a face, [k, j, i] without its direction, at `nodes` (n, 3) beside or on it."""
    across = directions_along(face)
    return np.asarray(mask[tuple(np.clip(nodes[:, e], 0, mask.shape[n] - 1) for n, e in enumerate(across))])


def _mirrored_nodes(index: np.ndarray, place: int, patch: Patch, maps: "_Maps") -> MirrorSources:
    """Return sources for the ghosts `index` (3, n) that take the flow at the node before the wall on the same grid
    line."""
    count, d = index.shape[1], direction(patch.face)
    edge = patch.range[d][0]
    rows = maps(patch.block, patch.face)
    on_wall, image = index.T.astype(float), index.T.astype(float)
    on_wall[:, d], image[:, d] = edge, 2 * edge - index[d]
    donor, face, turn = (
        np.full(count, patch.block),
        np.full(count, FACES.index(patch.face)),
        np.tile(np.eye(3), (count, 1, 1)),
    )
    first = np.where(np.arange(3) == d, rows.first, 0)
    base = rows.map.base(image - first) + first
    share, _ = rows.map.share(image - first, base - first)
    _, normals, _, _ = _geometry(maps, _Places(donor, face, on_wall, turn, np.zeros((count, 3)), base, share, 0.0))
    turn = turn - 2 * normals[:, :, None] * normals[:, None, :]
    return MirrorSources(place, index, donor, face, image, base, share, turn, None, 0.0)


def _of_grid(whole: Decomposition) -> Decomposition:
    """Return the decomposition without the tiles of finer levels, none of which lies on a wall that mirrors places."""
    if whole.levels is None:
        return whole
    count = sum(tile.level == 0 for tile in whole.levels.tiles)
    patches = tuple(patch for patch in whole.patches if patch.block < count)
    connections = tuple(c for c in whole.connections if c.block < count)
    return replace(whole, blocks=whole.blocks[:count], patches=patches, connections=connections, levels=None)


class _MappedRows:
    """The map of the rows of nodes beside one face of a block. `map`: the map of a block of these rows alone. `first`:
    the number of nodes along the normal before the rows. `open` (3, 2): for each direction, whether nodes of connected
    blocks can be interpolated from beyond the lower and the upper end. Behind the faces `imaged` (block, face) the grid
    is a mirror image, of which the map has the coordinates alone."""

    def __init__(
        self,
        whole: Decomposition,
        extended: Sequence[Coordinates | GhostLayers],
        b: int,
        face: str,
        imaged: Collection[tuple[int, str]],
    ):
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
        self.map = BlendedMap(slab, coordinates, halo, [None] * 3)
        ends = [list(r) for r in whole_box(block.size)]
        ends[d] = [self.first, self.first + rows]
        self.open = np.array([[e != d and _open(whole, b, FACES[2 * e + s], ends) for s in (0, 1)] for e in range(3)])
        known = self.open | np.array([[(b, FACES[2 * e + s]) in imaged for s in (0, 1)] for e in range(3)])
        self.map.low = np.where(known[:, 0], -halo, self.map.low)
        self.map.high = np.where(known[:, 1], self.map.high + halo, self.map.high)
        self.map.ended = ~known
        self.map.ended[d, int(side(face) < 0)] = False  # the block has more rows on the inner side of the wall


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
    """The maps of the rows beside faces, each made once."""

    def __init__(
        self,
        whole: Decomposition,
        extended: Sequence[Coordinates | GhostLayers],
        imaged: Collection[tuple[int, str]],
    ):
        self._whole, self._extended, self._imaged = whole, extended, imaged
        self._made: dict[tuple[int, str], _MappedRows] = {}

    def __call__(self, b: int, face: str) -> _MappedRows:
        if (b, face) not in self._made:
            self._made[b, face] = _MappedRows(self._whole, self._extended, b, face, self._imaged)
        return self._made[b, face]


@dataclass(frozen=True, eq=False)
class _Places:
    """n places in blocks. `donor`, `face`, `xi`, `base`, `share` and `moved` have the meaning that they have in
    `MirrorSources`, with one entry for each place. The point x of the block `donor` is the point `turn` (n, 3, 3) @ x +
    `shift` (n, 3) in the coordinates of the block whose ghosts take the flow."""

    donor: np.ndarray
    face: np.ndarray
    xi: np.ndarray
    turn: np.ndarray
    shift: np.ndarray
    base: np.ndarray
    share: np.ndarray
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
    index = layers_behind(patch.face, patch.range, range(1, halo + 1)).reshape(3, -1)
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
        feet, curvature, cells = None, None, None
    else:
        feet = _walk(whole, maps, b, face, ghosts, start, on_wall=True)
        places, normals, curvature, cells = _geometry(maps, feet)
        if whole.axisymmetric:  # around the axis, the normal turns by its y component over a length y
            radius = places[:, 1]
            curvature[2] += np.divide(normals[:, 1], radius, out=np.zeros_like(radius), where=radius > 0)
        distance = np.sum((places - ghosts) * normals, axis=1)
    images = ghosts + 2 * distance[:, None] * normals
    start[:, d] = 2 * edge - index[d]
    image = _walk(whole, maps, b, face, images, start)
    if not wall.curved or feet is None or curvature is None or cells is None:
        reflection = np.eye(3) - 2 * normals[:, :, None] * normals[:, None, :]
        if patch.condition.kernel == "axis":
            reflection[:, 2, 2] = -1.0  # the swirl
        turn = reflection @ image.turn
        return MirrorSources(
            wall.place, index, image.donor, image.face, image.xi, image.base, image.share, turn, None, image.moved
        )
    layer_number = np.abs(index[d] - edge)
    apart = np.where(layer_number == 1, 2.0, 1.0 / layer_number)
    start[:, d] = edge + apart * (start[:, d] - edge)
    third = _walk(whole, maps, b, face, ghosts + ((1 + apart) * distance)[:, None] * normals, start)
    three = (image, feet, third)
    of_places = {
        name: np.stack([getattr(p, name) for p in three], axis=1).reshape(-1, *getattr(image, name).shape[1:])
        for name in OF_PLACES
    }
    stagnant = np.square(STAGNANT * cells / np.where(distance != 0, distance, np.inf))
    geometry = np.concatenate([normals.T, distance[None], curvature, apart[None], stagnant[None]])
    moved = max(p.moved for p in three)
    return MirrorSources(place=wall.place, index=index, geometry=geometry, moved=moved, **of_places)


def _walk(
    whole: Decomposition,
    maps: _Maps,
    b: int,
    face: str,
    points: np.ndarray,
    start: np.ndarray,
    on_wall: bool = False,
) -> _Places:
    """Locate `points` (n, 3) in the rows along the wall `face` of block `b`, or of the blocks in which it continues.
    `start` (n, 3): the starting positions in `b`. `on_wall`: whether the feet of the normals through the points are
    searched. A point outside of all blocks is moved to their end."""
    count = len(points)
    at = _Places(
        np.full(count, b), np.full(count, FACES.index(face)), start.copy(), np.tile(np.eye(3), (count, 1, 1)),
        np.zeros((count, 3)), np.zeros((count, 3), dtype=int), np.zeros((count, 3)), 0.0,
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
        base = rows.map.base(kept - first)
        at.base[chosen], at.share[chosen] = base + first, rows.map.share(kept - first, base)[0]
    return replace(at, moved=moved)


def _feet(rows: BlendedMap, d: int, points: np.ndarray, xi: np.ndarray) -> np.ndarray:
    """Return the positions on the face that are nearest to `points`."""
    tangents = [e for e in range(rows.dimensions) if e != d]
    last = np.array(rows.block.size) - 1
    left = np.arange(len(points))
    for _ in range(TURNS):
        position, slopes = rows.at(xi[left])
        along = slopes[:, :, tangents]
        square = np.einsum("nca,ncb->nab", along, along)
        right = np.einsum("nca,nc->na", along, points[left] - position)
        step = np.linalg.solve(_regular(square), right[..., None])[..., 0]
        for n, e in enumerate(tangents):
            xi[left, e] = np.clip(xi[left, e] + np.clip(step[:, n], -2, 2), -1.5, last[e] + 1.5)
        left = left[np.abs(step).max(axis=1) > 1e-13 * (1 + np.abs(xi[left]).max(axis=1))]
        if not left.size:
            break
    return xi


def _hop(
    whole: Decomposition, at: _Places, b: int, face: str, rows: _MappedRows, chosen: np.ndarray
) -> np.ndarray:  # fmt: skip
    """Find those of the places `chosen` of block `b` that lie beyond a connected end, and move them into the block
    beyond. Returns which these are."""
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


def _geometry(maps: _Maps, feet: _Places) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the geometry of places on a wall, in the frame of the block whose ghosts need them: their points (n, 3),
    the unit normals (n, 3) into the flow, the derivative of the normal along the wall (6, n), xx, yy, zz, xy, xz, yz,
    and the largest length (n,) of a cell along the wall."""
    count = len(feet.donor)
    points, normals, bend = np.zeros((count, 3)), np.zeros((count, 3)), np.zeros((count, 3, 3))
    cells = np.zeros(count)
    for own, along, chosen in feet.groups(np.arange(count)):
        rows, first = maps(own, along).map, maps(own, along).first
        d, m = direction(along), rows.dimensions
        xi = feet.xi[chosen]
        xi[:, d] -= first
        tangents = [e for e in range(m) if e != d]
        position, slopes = rows.at(xi)
        points[chosen, :m] = position
        normals[chosen, :m] = _normals(slopes, d, side(along))
        lines = slopes[:, :, tangents]
        cells[chosen] = np.sqrt((lines**2).sum(axis=1)).max(axis=1)
        dual = lines @ np.linalg.inv(_regular(np.einsum("nca,ncb->nab", lines, lines)))
        for n, e in enumerate(tangents):
            there = {}
            for step in (-2, -1, 1, 2):
                aside = xi.copy()
                aside[:, e] += step * STEP
                there[step] = _normals(rows.at(aside)[1], d, side(along))
            change = (8 * (there[1] - there[-1]) - (there[2] - there[-2])) / (12 * STEP)
            bend[chosen, :m, :m] += change[:, :, None] * dual[:, None, :, n]
    points = np.einsum("nab,nb->na", feet.turn, points) + feet.shift
    normals = np.einsum("nab,nb->na", feet.turn, normals)
    bend = feet.turn @ (0.5 * (bend + bend.transpose(0, 2, 1))) @ feet.turn.transpose(0, 2, 1)
    six = [bend[:, a, b] for a, b in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
    return points, normals, np.stack(six), cells


def _regular(square: np.ndarray) -> np.ndarray:
    """Return matrices (n, m, m) of products of lines along a wall, in which those of collapsed lines, as at the end of
    a wall in a pole, are replaced by the unit matrix."""
    m = square.shape[1]
    size = np.trace(square, axis1=1, axis2=2) / m
    collapsed = ~(np.linalg.det(square) > 1e-24 * size**m)
    return np.asarray(np.where(collapsed[:, None, None], np.eye(m), square))


def _normals(slopes: np.ndarray, d: int, face_side: int) -> np.ndarray:
    """Return the unit normals (n, dimensions) of a wall, into the flow, from the derivatives (n, dimensions,
    dimensions)."""
    m = slopes.shape[1]
    tangents = [slopes[:, :, e] for e in range(m) if e != d]
    normal = np.cross(tangents[0], tangents[1]) if m == 3 else np.stack([-tangents[0][:, 1], tangents[0][:, 0]], axis=1)
    inwards = -face_side * np.sum(normal * slopes[:, :, d], axis=1)
    size = np.sqrt((normal**2).sum(axis=1)) * np.where(inwards < 0, -1, 1)
    return np.asarray(normal / np.where(size != 0, size, 1)[:, None])
