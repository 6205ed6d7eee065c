"""Faces that touch other faces, or lie inside other blocks, without a connection.

If two blocks meet but their nodes do not coincide (a patched interface, a gap, or overlapping blocks), no connection is
found, and their faces would become boundaries. A wall there would block the flow, so such faces are reported.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from hiresx.base.arrays import triple
from hiresx.grid.blocks import MINIMUM_NODES, Block, direction, face_range, one_inside, slices
from hiresx.grid.connections import Connection, Grid, Touching
from hiresx.grid.connectivity_check import misfit, seam_steps
from hiresx.grid.matching import matching_distance
from hiresx.grid.motions import Motion
from hiresx.grid.orientation import join, possible_matrices
from hiresx.grid.singular import collapsed_direction

# Faces touch if their distance is below this multiple of the smaller of the spacings normal to them.
GAP = 1.1
# Two faces with a node of each on every grid line are one grid step apart if that step is within these multiples of the
# adjacent steps.
STEP = (0.6, 1.5)
# Least number of adjacent cells of a contact, in each direction of a face. Walls that meet at a sharp edge have fewer.
WIDE = 3
# Two faces lie along each other if the cosine of the angle between them is above this value.
ALONG = 0.7
# Two faces that share an edge do not lie on each other if the sine of the angle between them exceeds this value (5
# degrees).
OPENS = 0.087
# Edges count as shared if they are closer than this fraction of the spacing normal to the faces.
SHARED = 0.01
# Side, in cells, of the tiles of a face. The bounding boxes of tiles determine which cells may be near each other.
TILE = 8
# Largest number of cells of a face that are searched inside other blocks.
SAMPLES = 256
# Nodes at the end of a face are out of place if at most so many in a row are not joined, and if their distances from
# the nodes to which the connection beside them would join them are below this multiple of the step to the joined node.
ENDS, ASIDE = 3, 0.3
# Number of nodes of a block among which the nearest one is found first; then the nodes around it are examined.
COARSE = 20_000


def drop_chance_contacts(grid: Grid) -> tuple[Grid, list[str]]:
    """Remove accidental connections from a grid whose connections were found by comparing node coordinates. Returns the
    grid, and sentences on narrow connections that were not removed. A connection narrower than a stencil is accidental
    if its two faces also lie on each other where no nodes coincide."""
    narrow = [c for c in grid.connections if _is_narrow(grid.blocks, c)]
    if not narrow:
        return grid, []
    pairs = {_faces(t) for t in touching(grid, holes=False)}
    chance = {n for n, c in enumerate(narrow) if {(c.block, c.face), (c.donor, c.donor_face)} in pairs}
    dropped = [narrow[n] for n in chance]
    words = []
    for c in (c for n, c in enumerate(narrow) if n not in chance):
        widths = " x ".join(str(hi - lo) for d, (lo, hi) in enumerate(c.range) if d != direction(c.face))
        own, other = grid.blocks[c.block].name, grid.blocks[c.donor].name
        words.append(f"joined over {widths} nodes only: block '{own}', face {c.face}, and block '{other}'")
    return replace(grid, connections=tuple(c for c in grid.connections if c not in dropped)), words


def _is_narrow(blocks: Sequence[Block], c: Connection) -> bool:
    # A line of nodes at the rim may belong to another connection.
    across = [d for d in blocks[c.block].active if d != direction(c.face)]
    return any(c.range[d][1] - c.range[d][0] < MINIMUM_NODES - 2 for d in across)


def _faces(contact: Touching) -> frozenset[tuple[int, str | None]]:
    return frozenset({(contact.block, contact.face), (contact.other, contact.other_face)})


def touching(grid: Grid, holes: bool = True) -> list[Touching]:
    """Return all faces, or parts of faces, that lie on another block or inside it but have no connection. `holes`:
    whether the result also includes nodes that a connection leaves out although it connects their neighbours, since
    they are out of place on one of the two faces."""
    with np.errstate(all="ignore"):
        surfaces = [
            _Surface(grid, b, face)
            for b, block in enumerate(grid.blocks)
            for face in block.faces
            # the ends of a line cannot lie along each other, and a collapsed face has no cells
            if len(block.active) > 1 and collapsed_direction(block, face) is None
        ]
        found: list[Touching] = []
        coarse: dict[int, np.ndarray] = {}
        for own in surfaces:
            found += [*_holes(own), *_open_ends(grid, own)] if holes else ()
            if not own.free.any():
                continue
            for other in surfaces:
                if own is not other and own.near(other):
                    found += _one_step(grid.blocks, own, other) or _between(own, other)
            found += _inside(grid, own, coarse)
    return found


class _Surface:
    """A face: the centres (n, 3) of its cells, the spacing normal to it, and the possible distance of centres from the
    true surface."""

    def __init__(self, grid: Grid, b: int, face: str):
        block, self.block, self.face = grid.blocks[b], b, face
        self.range = face_range(face, block.size)
        d = direction(face)
        self.across = [e for e in (2, 1, 0) if e != d]
        shape = [block.size[e] for e in self.across]
        nodes, behind = (
            _nodes(block, slices(r)).reshape(*shape, 3) for r in (self.range, one_inside(face, self.range))
        )
        self.nodes = nodes
        self.centres = _of_cells(nodes)
        self.outward = _of_cells(nodes - behind)
        self.sag = (_of_cells(_bend(nodes, 0)) + _of_cells(_bend(nodes, 1))) / 8
        self.lie = _lie(nodes)
        self.spacing = _spacing(self.outward, self.lie, 1 in nodes.shape[:2])
        held = np.zeros(shape, dtype=bool)
        # For each node 1 + the position in `joins` of the map that takes it to another face, 0 for none.
        self.joins: list[Connection] = []
        self.joined = np.zeros(shape, dtype=int)
        for c in grid.connections:
            if (c.block, c.face) == (b, face):
                joint = replace(c, range=self.range)
                self.joins += [joint] * (joint not in self.joins)
                self.joined[tuple(slice(*c.range[e]) for e in self.across)] = 1 + self.joins.index(joint)
                # The line of nodes at the rim of a range belongs to another connection, but its cells belong to this
                # one.
                part = [(max(c.range[e][0] - 1, 0), c.range[e][1] + 1) for e in self.across]
                held[tuple(slice(lo, hi) for lo, hi in part)] = True
        # A cell without extent is part of a collapsed line.
        self.free = (_of_cells(held.astype(float)) != 1) & np.any(self.lie != 0, axis=-1)
        self.low, self.high = nodes.reshape(-1, 3).min(axis=0), nodes.reshape(-1, 3).max(axis=0)

    @cached_property
    def facets(self) -> list[tuple[np.ndarray, ...]]:
        return _facets(self)

    @property
    def reach(self) -> float:
        return float(GAP * self.spacing.max() + self.sag.max())

    def near(self, other: "_Surface") -> bool:
        room = self.reach + other.reach
        return bool((self.low - room <= other.high).all() and (other.low - room <= self.high).all())

    def tiles(self, count: np.ndarray) -> Iterator[tuple[slice, slice]]:
        for a in range(0, count.shape[0], TILE):
            for b in range(0, count.shape[1], TILE):
                yield slice(a, a + TILE), slice(b, b + TILE)


def _of_cells(values: np.ndarray) -> np.ndarray:
    """Return means over the corners of the cells of a face (n2, n1, ...); a singleton direction has one cell."""
    for axis in (0, 1):
        if values.shape[axis] > 1:
            lo, hi = (np.take(values, range(s, values.shape[axis] - 1 + s), axis) for s in (0, 1))
            values = (lo + hi) / 2
    return values


def _lie(nodes: np.ndarray) -> np.ndarray:
    """Return for each cell a unit vector: the normal of a surface, the tangent of a line; 0 if the cell has no
    extent."""
    if 1 in nodes.shape[:2]:
        line = nodes.reshape(-1, 3)
        lie = np.diff(line, axis=0).reshape(*(max(n - 1, 1) for n in nodes.shape[:2]), 3)
    else:
        lie = np.cross(nodes[1:, 1:] - nodes[:-1, :-1], nodes[1:, :-1] - nodes[:-1, 1:])
    size = np.linalg.norm(lie, axis=-1, keepdims=True)
    return np.where(size > 0, lie / np.where(size > 0, size, 1), 0)


def _spacing(outward: np.ndarray, lie: np.ndarray, line: bool) -> np.ndarray:
    """Return the component of the steps `outward` that is normal to the cells. `lie`: see `_lie`."""
    length, part = np.linalg.norm(outward, axis=-1), np.abs(np.sum(outward * lie, axis=-1))
    across: np.ndarray = np.sqrt(np.maximum(length**2 - part**2, 0.0)) if line else part
    return np.where(np.any(lie != 0, axis=-1), across, length)


def _bend(nodes: np.ndarray, axis: int) -> np.ndarray:
    """Return the second differences along one direction of a face."""
    size = np.zeros(nodes.shape[:2])
    if nodes.shape[axis] > 2:
        inner = [slice(None)] * 2
        inner[axis] = slice(1, -1)
        size[tuple(inner)] = np.linalg.norm(np.diff(nodes, 2, axis=axis), axis=-1)
    return size


def _holes(own: _Surface) -> Iterator[Touching]:
    """Yield the nodes of a face that are not joined, while both neighbours on a grid line are, by one map: nodes that
    are out of place on one of the two faces."""
    for n, joint in enumerate(own.joins, 1):
        nodes = np.zeros(own.joined.shape, dtype=bool)
        for axis in (0, 1):
            here, at = np.moveaxis(own.joined, axis, 0), np.moveaxis(nodes, axis, 0)
            at[1:-1] |= (here[1:-1] == 0) & (here[:-2] == n) & (here[2:] == n)
        if nodes.any():
            yield _report(own, joint.donor, joint.donor_face, _of_cells(nodes.astype(float)) > 0)


def _open_ends(grid: Grid, own: _Surface) -> Iterator[Touching]:
    """Yield the nodes at the ends of a face that are not joined, while the next one on a grid line is, and that nearly
    coincide with the nodes to which the same connection would join them: nodes that are out of place on one of the two
    faces."""
    if own.joined.all():
        return
    index = np.indices([hi - lo for lo, hi in own.range]) + np.reshape([lo for lo, _ in own.range], (3, 1, 1, 1))
    order = [e for e in range(3) if e not in own.across] + own.across
    for n, joint in enumerate(own.joins, 1):
        donor = grid.blocks[joint.donor]
        ranges = face_range(joint.donor_face, donor.size)
        to = joint.donors(index)
        inside = np.all([(lo <= i) & (i < hi) for i, (lo, hi) in zip(to, ranges, strict=True)], axis=0)
        held = np.array([np.clip(i, 0, size - 1) for i, size in zip(to, donor.size, strict=True)])
        image = np.where(inside, joint.motion(donor.node(*held)), np.inf)
        image = np.transpose(image, (0, *(1 + e for e in order)))[:, 0]
        gap = np.linalg.norm(image - np.moveaxis(own.nodes, -1, 0), axis=0)
        out = np.zeros(own.joined.shape, dtype=bool)
        for axis, way in product((0, 1), (1, -1)):
            joined, aside, nodes, found = (np.moveaxis(a, axis, 0)[::way] for a in (own.joined, gap, own.nodes, out))
            for count in range(1, min(ENDS + 1, len(joined))):
                step = np.linalg.norm(nodes[count] - nodes[count - 1], axis=-1)
                ends = (joined[:count] == 0).all(axis=0) & (joined[count] == n)
                found[:count] |= ends & (aside[:count] < ASIDE * step).all(axis=0)
        if out.any() and gap[out].max() > matching_distance(grid.blocks):
            yield _report(own, joint.donor, joint.donor_face, _of_cells(out.astype(float)) > 0)


def _between(own: _Surface, other: _Surface) -> list[Touching]:
    mask = _cells_on(own, other, None)
    if _is_wide(mask):
        edge = _shared_edge(own, other)
        mask = mask if edge is None else _cells_on(own, other, edge)
    return [
        replace(contact, over=_lies_over(own, other, mask))
        for contact in ([_report(own, other.block, other.face, mask)] if _is_wide(mask) else [])
    ]


def _cells_on(own: _Surface, other: _Surface, edge: np.ndarray | None) -> np.ndarray:
    """Return the mask of the cells of a face that lie on another face. `edge`: the segments of the edge that the two
    share."""
    mask = np.zeros(own.free.shape, dtype=bool)
    tiles = other.facets
    lows, highs, widest = (np.stack([t[m] for t in tiles]) for m in (0, 1, 2))
    for tile in own.tiles(own.free):
        chosen = np.argwhere(own.free[tile]) + np.array([tile[0].start, tile[1].start])
        if not len(chosen):
            continue
        place = tuple(chosen.T)
        points, spacing, sag = own.centres[place], own.spacing[place], own.sag[place]
        room = GAP * np.maximum(spacing.max(), widest[:, :1]) + sag.max() + widest[:, 1:]
        near = ((points.min(axis=0) <= highs + room) & (points.max(axis=0) >= lows - room)).all(axis=1)
        for n in np.flatnonzero(near):
            _, _, _, facets, off, bent, lie = tiles[n]
            apart = GAP * np.minimum(spacing[:, None], off)
            if edge is not None:
                apart = np.minimum(apart, OPENS * _distance(points, edge)[:, None])
            allowed = apart + sag[:, None] + bent
            along = np.abs(own.lie[place] @ lie.T) > ALONG
            # Cells of faces that meet at an edge lie along few of each other or none.
            these, those = along.any(axis=1), along.any(axis=0)
            if not these.any():
                continue
            limit = np.where(along, allowed, -1)[np.ix_(these, those)]
            mask[tuple(chosen[these][_on(points[these], facets[those], limit)].T)] = True
    return mask


def _shared_edge(own: _Surface, other: _Surface) -> np.ndarray | None:
    """Return the segments (n, 2, 3) of the edges of `own` that are also edges of `other`, points in two dimensions;
    None if there are none."""
    theirs = np.concatenate([_segments(line) for line in _edges(other)])
    near = SHARED * min(own.spacing.min(), other.spacing.min())
    found = []
    for line in _edges(own):
        shared = _distance(line, theirs) <= near
        segments = _segments(line)
        found.append(segments[shared] if len(line) == 1 else segments[shared[:-1] & shared[1:]])
    edge = np.concatenate(found)
    return edge if len(edge) else None


def _edges(surface: _Surface) -> Iterator[np.ndarray]:
    """Return the nodes (n, 3) of every edge of a face; for a line its ends."""
    for axis in (0, 1):
        if surface.nodes.shape[axis] > 1:
            yield from (np.take(surface.nodes, end, axis) for end in (0, -1))


def _segments(line: np.ndarray) -> np.ndarray:
    """Return the segments (n, 2, 3) between consecutive nodes (n + 1, 3); for one node this node."""
    return np.stack([line, line], axis=1) if len(line) == 1 else np.stack([line[:-1], line[1:]], axis=1)


def _distance(points: np.ndarray, segments: np.ndarray) -> np.ndarray:
    """Return the distances of points (p, 3) from the nearest of the segments (n, 2, 3)."""
    start, along = segments[:, 0], segments[:, 1] - segments[:, 0]
    square = np.einsum("nc,nc->n", along, along)
    found = np.empty(len(points))
    for n, point in enumerate(points):
        away = point - start
        share = np.clip(np.einsum("nc,nc->n", away, along) / np.where(square > 0, square, 1.0), 0.0, 1.0)
        found[n] = np.linalg.norm(away - share[:, None] * along, axis=1).min()
    return found


def _lies_over(own: _Surface, other: _Surface, mask: np.ndarray) -> bool:
    """True if two faces that lie on each other face the same way, at the cell in the middle of those that do."""
    cell = tuple(np.argwhere(mask)[mask.sum() // 2])
    nearest = np.argmin(np.sum((other.centres - own.centres[cell]) ** 2, axis=-1))
    return bool(own.outward[cell] @ other.outward.reshape(-1, 3)[nearest] > 0)


def _one_step(blocks: Sequence[Block], own: _Surface, other: _Surface) -> list[Touching]:
    """Return the contact of two whole faces if one has the next nodes of every grid line of the other. No node is
    shared, or the last node of a ring is left out."""
    apart = np.linalg.norm(own.nodes.mean(axis=(0, 1)) - other.nodes.mean(axis=(0, 1)))
    if not (own.free.all() and other.free.all() and apart <= STEP[1] * own.spacing.max()):
        return []
    here, there = ((s.block, s.face, s.range) for s in (own, other))
    for matrix in possible_matrices(blocks, here, there):
        c = join("", here, there, matrix, "offset", Motion())
        if round(float(np.linalg.det(matrix))) > 0 and misfit(blocks, c, "offset")[0] == 0:
            steps = seam_steps(blocks, c)
            if all((STEP[0] * beside <= steps[1]).all() and (steps[1] <= STEP[1] * beside).all() for beside in steps):
                return [replace(_report(own, other.block, other.face, own.free), one_step=True)]
    return []


def _facets(surface: _Surface) -> list[tuple[np.ndarray, ...]]:
    """Return for each tile: its bounding box (low, high), the largest spacing and sag, segments (n, 2, 3) of a line or
    triangles (n, 3, 3) of a surface, and the spacing, sag and `_lie` (n, 3) of each."""
    nodes = surface.nodes
    tiles: list[tuple[np.ndarray, ...]] = []
    for rows, columns in surface.tiles(surface.spacing):
        off, bent = surface.spacing[rows, columns].ravel(), surface.sag[rows, columns].ravel()
        lie = surface.lie[rows, columns].reshape(-1, 3)
        part = nodes[rows.start : rows.stop + 1, columns.start : columns.stop + 1]
        if 1 in nodes.shape[:2]:
            line = part.reshape(-1, 3)
            facets = np.stack([line[:-1], line[1:]], axis=1)
        else:
            a, b, c, d = (p.reshape(-1, 3) for p in (part[:-1, :-1], part[:-1, 1:], part[1:, 1:], part[1:, :-1]))
            facets = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
            off, bent, lie = np.tile(off, 2), np.tile(bent, 2), np.tile(lie, (2, 1))
        corners = part.reshape(-1, 3)
        widest = np.array([off.max(), bent.max()])
        tiles.append((corners.min(axis=0), corners.max(axis=0), widest, facets, off, bent, lie))
    return tiles


def _on(points: np.ndarray, facets: np.ndarray, allowed: np.ndarray) -> np.ndarray:
    """Return the mask of the points (p, 3) that lie over one of the facets, no farther than `allowed` (p, facets)."""
    start, first = facets[:, 0], facets[:, 1] - facets[:, 0]
    away = points[:, None] - start[None]
    square = np.einsum("fc,fc->f", first, first)
    u = np.einsum("pfc,fc->pf", away, first)
    slack = 0.02
    if facets.shape[1] == 2:
        u = u / square
        within = (u >= -slack) & (u <= 1 + slack)
        rest = away - u[..., None] * first[None]
    else:
        second = facets[:, 2] - facets[:, 0]
        v = np.einsum("pfc,fc->pf", away, second)
        cross, other = np.einsum("fc,fc->f", first, second), np.einsum("fc,fc->f", second, second)
        determinant = square * other - cross**2
        s, t = (other * u - cross * v) / determinant, (square * v - cross * u) / determinant
        within = (s >= -slack) & (t >= -slack) & (s + t <= 1 + slack)
        rest = away - s[..., None] * first[None] - t[..., None] * second[None]
    return (within & (np.linalg.norm(rest, axis=-1) <= allowed)).any(axis=1)


def _inside(grid: Grid, own: _Surface, coarse: dict[int, np.ndarray]) -> Iterator[Touching]:
    """Yield other blocks inside which a face lies. `coarse`: some nodes of the blocks that were examined before."""
    cells = np.argwhere(own.free)
    chosen = cells[np.unique(np.linspace(0, len(cells) - 1, min(SAMPLES, len(cells))).astype(int))]
    points = own.centres[tuple(chosen.T)]
    for b, block in enumerate(grid.blocks):
        if b == own.block:
            continue
        low, high = (np.array([f(c) for c in block.coordinates]) for f in (np.min, np.max))
        axes = [c for c in range(3) if len(block.active) == 3 or c < len(block.active)]
        near = ((points > low) & (points < high))[:, axes].all(axis=1)
        if not near.any():
            continue
        if b not in coarse:
            coarse[b] = _coarse(block)
        hits = chosen[near][_is_inside(block, coarse[b], points[near])]
        if len(hits) > len(points) // 50:
            mask = np.zeros(own.free.shape, dtype=bool)
            mask[tuple(hits.T)] = True
            yield _report(own, b, None, mask)


def _stride(block: Block) -> int:
    return max(1, round(float(block.points / COARSE) ** (1 / len(block.active))))


def _coarse(block: Block) -> np.ndarray:
    """Return a subset of the nodes of a block, at equal index steps, (nk', nj', ni', 3)."""
    every = slice(None, None, _stride(block))
    return np.stack([_nodes(block, (k, every, every)) for k in range(0, block.size[2], _stride(block))])


def _is_inside(block: Block, coarse: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return the mask of the points (n, 3) that lie inside a block, beyond the cells at its faces."""
    stride = _stride(block)
    flat = coarse.reshape(-1, 3)
    squares = np.sum(flat**2, axis=1)
    inside = np.zeros(len(points), dtype=bool)
    for n, point in enumerate(points):
        at = np.unravel_index(int(np.argmin(squares - 2 * (flat @ point))), coarse.shape[:3])
        begin = [max(stride * (int(i) - 1), 0) for i in at]
        box = tuple(slice(first, stride * (int(i) + 1) + 1) for first, i in zip(begin, at, strict=True))
        part = _nodes(block, box)
        nearest = np.unravel_index(int(np.argmin(np.sum((part - point) ** 2, axis=-1))), part.shape[:3])
        inside[n] = _covers(block, [first + int(i) for first, i in zip(begin, nearest, strict=True)], point)
    return inside


def _nodes(block: Block, index: tuple[Any, ...]) -> np.ndarray:
    return np.moveaxis(block.at(index), 0, -1)


def _covers(block: Block, index: list[int], point: np.ndarray) -> bool:
    """True if a point lies in the cells around node `index` [k, j, i], and these are not cells at a face."""
    edges = np.eye(3)
    for d in block.active:
        axis, n = 2 - d, block.size[d]
        if not 1 < index[axis] < n - 2:
            return False
        ahead, behind = list(index), list(index)
        ahead[axis] += 1
        behind[axis] -= 1
        edges[d] = (_nodes(block, tuple(ahead)) - _nodes(block, tuple(behind))) / 2
    try:
        shift = np.linalg.solve(edges.T, point - _nodes(block, tuple(index)))
    except np.linalg.LinAlgError:
        return False
    return bool((np.abs(shift[list(block.active)]) < 1).all())


def _is_wide(mask: np.ndarray) -> bool:
    wide = [np.count_nonzero(mask.any(axis=1 - axis)) >= min(WIDE, n) for axis, n in enumerate(mask.shape) if n > 1]
    return bool(mask.any()) and all(wide)


def _report(own: _Surface, b: int, face: str | None, mask: np.ndarray) -> Touching:
    at = np.argwhere(mask)
    range_ = list(own.range)
    for e, column, n in zip(own.across, at.T, own.nodes.shape[:2], strict=True):
        range_[e] = (int(column.min()), min(int(column.max()) + 2, n))
    place = triple(float(c) for c in own.centres[tuple(at[0])])
    return Touching(own.block, own.face, triple(range_), b, face, int(mask.sum()), place)
