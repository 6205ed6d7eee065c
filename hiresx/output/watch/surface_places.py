"""The geometry of a surface on which the flow is sampled (a table `[[surface]]` of the case): its points, their areas
with outward normals, and its end caps."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from hiresx.case.surfaces import BoxSurface, CylinderSurface, Nodes
from hiresx.case.surfaces import Surface as Spec
from hiresx.decomposition import Decomposition, places
from hiresx.errors import HiresxError
from hiresx.grid.blocks import Block, Range, direction, side, slices
from hiresx.grid.stored_coordinates import part_of

# Largest number of places of a surface. More places are assumed to be a mistake, since a sample would have 400 MB.
MOST = 10_000_000
# Nodes closer than this fraction of the shortest edge count as coincident when edges of a surface are searched.
_SAME = 1e-4
_SIDES = ("xmin", "xmax", "ymin", "ymax", "zmin", "zmax")


@dataclass(frozen=True, eq=False)
class Places:
    """Points of a surface at which the flow is sampled.

    - `at` (n, 3): their coordinates, in units of the length scale L.
    - `areas` (n, 3): the area of each point times the outward unit normal; in plane flow per unit length along z.
    - `caps`: x of the end caps of a surface with several; one nan for other surfaces.
    - `first`, `last` (n,): the surface that ends at `caps[m - 1]` has the number m; a point belongs to the surfaces
      with the numbers from `first` to `last`.
    - `block` (n,), `index` (n, 3): the nodes, if the points are nodes, else None.
    - `gaps`: descriptions of the openings of a surface that is not closed."""

    at: np.ndarray
    areas: np.ndarray
    first: np.ndarray
    last: np.ndarray
    caps: tuple[float, ...]
    gaps: tuple[str, ...]
    block: np.ndarray | None = None
    index: np.ndarray | None = None

    @property
    def count(self) -> int:
        """Number of points of the whole surface, on all ranks together."""
        return len(self.at)


def surface(key: str, spec: Spec, decomposition: Decomposition) -> Places:
    """Return the points, areas and normals of a surface on which the flow is sampled. `spec`: a table [[surface]] of
    the case. `key`: the name of this table in error messages, such as "surface.0". `decomposition`: the blocks of the
    grid. Raises HiresxError for unknown blocks, regions and ranges, for a shape that does not suit the dimensions of
    the grid, and for too many points."""
    who = f'{key} "{spec.name}"'
    dimensions = max(len(block.active) for block in decomposition.blocks)
    if dimensions == 1:
        raise HiresxError(f"{who}: there are no surfaces in one dimension", "use a [[probe]]")
    if spec.nodes is not None:
        return _of_nodes(who, spec.nodes, decomposition)
    form = spec.box or spec.cylinder
    assert form is not None
    if dimensions == 2 and spec.cylinder is not None:
        raise HiresxError(f"{who}: a cylinder needs three dimensions", "give a box, of which z does not matter")
    if dimensions == 3 and spec.box is not None and not spec.box.lower[2] < spec.box.upper[2]:
        raise HiresxError(f"{who}: lower must lie below upper along z, too", "give the box a height along z")
    if form.caps and "xmax" in form.open:
        raise HiresxError(f"{who}: caps are places of the side xmax, which is open", 'take "xmax" out of open, or caps')
    count = _cells(form, dimensions)
    if count > MOST:
        raise HiresxError(f"{who} has {count} cells, {MOST} are the most", "give a larger spacing, or fewer cells")
    pieces = list(_of_box(form, dimensions) if isinstance(form, BoxSurface) else _of_cylinder(form))
    at, areas, first, last = (np.concatenate(part) for part in zip(*pieces, strict=True))
    names = [name for name in form.open if dimensions == 3 or name[0] != "z"]
    gaps = tuple(f"it is open at {name}" for name in _SIDES if name in names)
    caps = (*sorted(form.caps), _ends(form)[1]) if "xmax" not in form.open else (float("nan"),)
    return Places(at, areas, first, last, caps, gaps)


def _ends(form: BoxSurface | CylinderSurface) -> tuple[float, float]:
    return (form.start, form.end) if isinstance(form, CylinderSurface) else (form.lower[0], form.upper[0])


def _segments(form: BoxSurface | CylinderSurface) -> list[tuple[float, float, int]]:
    """Start, end and number of cells of the parts along x between the caps."""
    start, end = _ends(form)
    edges = [start, *sorted(form.caps), end]
    return [(a, b, _number(form, 0, b - a, end - start)) for a, b in pairwise(edges)]


def _number(form: BoxSurface | CylinderSurface, axis: int, length: float, whole: float) -> int:
    """Cells of a `length` along an axis of which the `whole` has the number that was given."""
    if form.spacing is not None:
        return max(1, int(np.ceil(min(length / form.spacing * (1 - 1e-12), 2.0 * MOST))))
    assert form.cells is not None
    return max(1, round(form.cells[axis] * length / whole))


def _cells(form: BoxSurface | CylinderSurface, dimensions: int) -> int:
    """An upper bound of the number of cells."""
    nx = sum(number for *_, number in _segments(form))
    caps = len(form.caps) + 2
    if isinstance(form, CylinderSurface):
        around, across = _round(form)
        return nx * around + caps * around * across
    ny, nz = _across(form, dimensions)
    return 2 * nx * (ny + nz) + caps * ny * nz


def _across(box: BoxSurface, dimensions: int) -> tuple[int, int]:
    """Cells of a box along y and z."""
    size = [b - a for a, b in zip(box.lower, box.upper, strict=True)]
    return _number(box, 1, size[1], size[1]), _number(box, 2, size[2], size[2]) if dimensions == 3 else 1


def _round(cylinder: CylinderSurface) -> tuple[int, int]:
    """Cells of a cylinder around it and along its radius."""
    widest = max(cylinder.radius, cylinder.end_radius or cylinder.radius)
    around = 2 * np.pi * widest
    return max(8 if cylinder.spacing else 3, _number(cylinder, 1, around, around)), _number(cylinder, 2, widest, widest)


def _middles(start: float, end: float, number: int) -> np.ndarray:
    return start + (np.arange(number) + 0.5) * (end - start) / number


_Line = tuple[float, float, int]
_Piece = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def _piece(at: np.ndarray, areas: np.ndarray, first: int, last: int) -> _Piece:
    return at, areas, np.full(len(at), first), np.full(len(at), last)


def _of_box(box: BoxSurface, dimensions: int) -> Iterator[_Piece]:
    """Places, areas, first and last surface of the sides of a box. A side along x ends where a cap is."""
    low, high = np.array(box.lower), np.array(box.upper)
    if dimensions == 2:
        low[2], high[2] = -0.5, 0.5
    ny, nz = _across(box, dimensions)
    segments = _segments(box)
    final = len(segments)
    for name in _SIDES[: 2 * dimensions]:
        d, sign = "xyz".index(name[0]), -1.0 if name.endswith("min") else 1.0
        if name in box.open:
            continue
        if d == 0:
            ends = [(low[0], 1, final)] if sign < 0 else [(b, m, m) for m, (_, b, _) in enumerate(segments, 1)]
            for x, first, last in ends:
                yield _piece(*_plane(d, sign, x, (low[1], high[1], ny), (low[2], high[2], nz)), first, last)
            continue
        e, number = (2, nz) if d == 1 else (1, ny)
        for m, segment in enumerate(segments, 1):
            across = (low[e], high[e], number)
            pair = (across, segment) if d == 1 else (segment, across)
            yield _piece(*_plane(d, sign, high[d] if sign > 0 else low[d], *pair), m, final)


def _plane(d: int, sign: float, at: float, one: _Line, two: _Line) -> tuple[np.ndarray, np.ndarray]:
    """Middles and areas of the cells of a rectangle normal to direction `d`; `one`, `two`: start, end and number of
    cells along the two directions after it, in turn."""
    a, b = (grid.ravel() for grid in np.meshgrid(_middles(*one), _middles(*two), indexing="ij"))
    found, areas = np.empty((a.size, 3)), np.zeros((a.size, 3))
    found[:, d], found[:, (d + 1) % 3], found[:, (d + 2) % 3] = at, a, b
    areas[:, d] = sign * np.prod([(end - start) / number for start, end, number in (one, two)])
    return found, areas


def _of_cylinder(cylinder: CylinderSurface) -> Iterator[_Piece]:
    """Pieces of a cylinder, as those of `_of_box`. Areas are those of the round surface, not of facets."""
    around, across = _round(cylinder)
    segments = _segments(cylinder)
    final = len(segments)
    y, z = cylinder.centre
    angle = 2 * np.pi * (np.arange(around) + 0.5) / around
    end_radius = cylinder.end_radius or cylinder.radius
    slope = (end_radius - cylinder.radius) / (cylinder.end - cylinder.start)

    def radius(x: np.ndarray) -> np.ndarray:
        return cylinder.radius + slope * (x - cylinder.start)

    def to_cartesian(x: np.ndarray, r: np.ndarray, theta: np.ndarray) -> np.ndarray:
        return np.stack([x, y + r * np.cos(theta), z + r * np.sin(theta)], axis=1)

    for m, (a, b, number) in enumerate(segments, 1):
        x, theta = (grid.ravel() for grid in np.meshgrid(_middles(a, b, number), angle, indexing="ij"))
        r = radius(x)
        normal = np.stack([np.full(x.size, -slope), np.cos(theta), np.sin(theta)], axis=1)
        share = r * 2 * np.pi / around * (b - a) / number
        yield _piece(to_cartesian(x, r, theta), normal * share[:, None], m, final)
    discs = [] if "xmin" in cylinder.open else [(-1.0, cylinder.start, 1, final)]
    if "xmax" not in cylinder.open:
        discs += [(1.0, b, m, m) for m, (_, b, _) in enumerate(segments, 1)]
    for sign, x, first, last in discs:
        whole = float(radius(np.array(x)))
        r, theta = (grid.ravel() for grid in np.meshgrid(_middles(0, whole, across), angle, indexing="ij"))
        areas = np.zeros((r.size, 3))
        areas[:, 0] = sign * r * whole / across * 2 * np.pi / around
        yield _piece(to_cartesian(np.full(r.size, x), r, theta), areas, first, last)


# ---- nodes


def _of_nodes(who: str, pieces: Sequence[Nodes], decomposition: Decomposition) -> Places:
    at, areas, blocks, indexes, corners = [], [], [], [], []
    for n, piece in enumerate(pieces):
        for b, face, range_ in places(decomposition.grid_blocks, f"{who}, nodes.{n}", piece):
            block = decomposition.blocks[b]
            box = _plane_of(f"{who}, nodes.{n}", piece.index, block, face, range_)
            if np.prod([hi - lo for lo, hi in box]) > MOST:
                raise HiresxError(f"{who} has more than {MOST} nodes", "give a range")
            nodes = np.stack([np.asarray(part_of(c, slices(box))) for c in (block.x, block.y, block.z)], axis=-1)
            vectors, found = _areas(nodes, face, len(block.active))
            lines = [np.arange(lo, hi) for lo, hi in box]
            index = np.stack(np.meshgrid(*lines, indexing="ij")).transpose(3, 2, 1, 0)
            at.append(nodes.reshape(-1, 3))
            areas.append(vectors.reshape(-1, 3))
            blocks.append(np.full(len(at[-1]), b))
            indexes.append(index.reshape(-1, 3))
            corners.append(found)
    everywhere = np.concatenate(at)
    one = np.ones(len(everywhere), dtype=int)
    return Places(
        everywhere, np.concatenate(areas), one, one, (float("nan"),), _openings(corners),
        np.concatenate(blocks), np.concatenate(indexes).astype(float),
    )  # fmt: skip


def _plane_of(who: str, index: int | None, block: Block, face: str, range_: Range) -> Range:
    """The nodes `range_` of a face, moved to the `index` along its direction."""
    d = direction(face)
    box, n = list(range_), block.size[d]
    if index is not None:
        at = index + n if index < 0 else index
        if not 0 <= at < n:
            raise HiresxError(
                f"{who}: index = {index} is none of the {n} nodes of block '{block.name}' along {'ijk'[d]}",
                f"give one from {-n} to {n - 1}",
            )
        box[d] = (at, at + 1)
    for e in block.active:
        if e != d and box[e][1] - box[e][0] < 2:
            raise HiresxError(f"{who}: one node along {'ijk'[e]} has no area", "give a range of 2 nodes or more")
    return box[0], box[1], box[2]


def _areas(nodes: np.ndarray, face: str, dimensions: int) -> tuple[np.ndarray, np.ndarray]:
    """Areas times normals of nodes [k, j, i, xyz], which point as the face does: a quarter of each cell beside them.
    Also the edges of the cells (n, 2, 3), inner ones twice; in the plane their ends (n, 1, 3)."""
    d = direction(face)
    if dimensions == 2:
        line = nodes.reshape(-1, 3)
        step = np.diff(line, axis=0)
        normal = np.stack([step[:, 1], -step[:, 0], np.zeros(len(step))], axis=1) * (1 if d == 0 else -1) * side(face)
        areas = np.zeros_like(line)
        areas[:-1] += 0.5 * normal
        areas[1:] += 0.5 * normal
        return areas.reshape(nodes.shape), np.concatenate([line[:-1], line[1:]])[:, None]
    # in cyclic order after d, so that their cross product points along d
    one, two = (2 - (d + m) % 3 for m in (1, 2))
    plane = nodes.transpose(one, two, 2 - d, 3)[:, :, 0]
    a, b, c, e = plane[:-1, :-1], plane[1:, :-1], plane[1:, 1:], plane[:-1, 1:]
    cells = 0.125 * side(face) * np.cross(c - a, e - b)
    areas = np.zeros_like(plane)
    for rows in (slice(0, -1), slice(1, None)):
        for columns in (slice(0, -1), slice(1, None)):
            areas[rows, columns] += cells
    edges = [np.stack(pair, axis=2).reshape(-1, 2, 3) for pair in ((a, b), (b, c), (c, e), (e, a))]
    back = np.argsort((one, two, 2 - d))
    return areas[:, :, None].transpose(*back, 3), np.concatenate(edges)


def _openings(found: Sequence[np.ndarray]) -> tuple[str, ...]:
    """The border of a surface: edges that belong to one cell alone."""
    edges = np.concatenate(found)
    lengths = np.linalg.norm(edges[:, 0] - edges[:, -1], axis=1)
    shortest = lengths[lengths > 0].min() if (lengths > 0).any() else np.ptp(edges.reshape(-1, 3), axis=0).max() / 1e3
    ends = np.round(edges.reshape(-1, 3) / (_SAME * shortest)).astype(np.int64)
    _, number = np.unique(ends, axis=0, return_inverse=True)
    pairs = np.sort(number.reshape(len(edges), -1), axis=1)
    _, inverse, count = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
    alone = (count[inverse.ravel()] % 2 == 1) & ((pairs[:, 0] != pairs[:, -1]) | (pairs.shape[1] == 1))
    if not alone.any():
        return ()
    border = edges[alone].reshape(-1, 3)
    low, high = (", ".join(f"{c:.4g}" for c in end) for end in (border.min(axis=0), border.max(axis=0)))
    return (f"it has a border of {int(alone.sum())} edges, from ({low}) to ({high})",)
