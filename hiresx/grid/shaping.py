"""Changes of a grid: coarsening to every second node, reflection at a plane, extrusion, and rotation about an axis.

Regions, connections and periods are changed with the nodes.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from hiresx.base.arrays import Reals, triple
from hiresx.base.plural import plural
from hiresx.case.grid_file import GridFile
from hiresx.errors import HiresxError
from hiresx.grid.blocks import (
    AXES,
    MINIMUM_NODES,
    Block,
    Range,
    Regions,
    direction,
    directions_along,
    face_range,
    rectangles_of_face,
    side,
    slices,
)
from hiresx.grid.connections import IDENTITY, TOLERANCE, Connection, Grid
from hiresx.grid.motions import Motion, Vector, motion, rotation_about
from hiresx.grid.orientation import layout_of
from hiresx.grid.reindexing import Reindexing, reindex
from hiresx.grid.singular import collapsed_direction
from hiresx.grid.size import refuse

COORDINATES = ("x", "y", "z")


# maps x, y and z of a plane grid to those of the three-dimensional grid
Drawing = Callable[[Reals, Reals, Reals], tuple[Reals, Reals, Reals]]


def coarsen(grid: Grid) -> tuple[Grid, list[str]]:
    """Return the grid with every second node only, and sentences on the change. A direction of the blocks is coarsened
    if this keeps both ends of the blocks, of their regions and of their connections, if 7 nodes or more are left, and
    if it is possible in all connected blocks. An end of a region may move by one node if another region or a connection
    begins there. Raises HiresxError if no direction can be coarsened."""
    directions = [(b, d) for b, block in enumerate(grid.blocks) for d in block.active]
    group = {place: n for n, place in enumerate(directions)}

    def join(a: tuple[int, int], b: tuple[int, int]) -> None:
        old, new = group[a], group[b]
        for place, number in group.items():
            if number == old:
                group[place] = new

    kept = {(b, d): _halves(0, grid.blocks[b].size[d]) for b, d in directions}
    ends = _ends(grid)
    for b, d in directions:
        kept[b, d] &= (grid.blocks[b].size[d] + 1) // 2 >= MINIMUM_NODES
        for parts in grid.blocks[b].regions.values():
            for face, range_ in parts:
                begins, _ = ends[b, face, d]
                kept[b, d] &= d == direction(face) or _begins_and_ends(*range_[d], begins, set())
    for c in grid.connections:
        normal = direction(c.face)
        for d in grid.blocks[c.block].active:
            e = next(e for e in range(3) if c.matrix[e][d])
            join((c.block, d), (c.donor, e))
            # if nodes are one spacing apart, every second nodes are not two spacings apart
            even = c.offset[e] % 2 == 0  # every second node coincides with such a node of the other block
            beside = even and _begins_and_ends(*c.range[d], *ends[c.block, c.face, d])
            holds = layout_of(c, grid.blocks) == "shared" if d == normal else beside
            kept[c.block, d] &= holds
    bad = {group[place] for place, holds in kept.items() if not holds}
    by = [
        Reindexing(step=triple(2 if (b, d) in group and group[b, d] not in bad else 1 for d in range(3)))
        for b in range(len(grid.blocks))
    ]
    if all(r.still for r in by):
        raise HiresxError(
            "coarsen: there is no direction in which every second node can be left out",
            f"it takes odd numbers of nodes, {2 * MINIMUM_NODES - 1} or more, and patches that end at even indexes",
        )
    before = grid.points
    grid = reindex(grid, by)
    return grid, [f"every second node taken where that can be: {grid.points} of {before} nodes"]


def _halves(lo: int, hi: int) -> bool:
    return lo % 2 == 0 and (hi - 1) % 2 == 0


def _ends(grid: Grid) -> dict[tuple[int, str, int], tuple[set[int], set[int]]]:
    """Return where the half-open ranges of regions begin and end, by block, face and direction."""
    found: dict[tuple[int, str, int], tuple[set[int], set[int]]] = defaultdict(lambda: (set(), set()))
    for b, block in enumerate(grid.blocks):
        for face, range_ in (part for parts in block.regions.values() for part in parts):
            for d, (lo, hi) in enumerate(range_):
                begins, ends = found[b, face, d]
                begins.add(lo)
                ends.add(hi)
    return found


def _begins_and_ends(lo: int, hi: int, begins: set[int], ends: set[int]) -> bool:
    """Return whether a half-open range begins at a second node or where another region ends at one, and the same for
    its end."""
    return lo + lo % 2 < hi and (lo % 2 == 0 or lo in ends) and (hi % 2 == 1 or hi in begins)


def mirror(grid: Grid, axis: str) -> tuple[Grid, list[str]]:
    """Return the grid joined with its mirror image at the plane `axis` = 0 ("x", "y" or "z"), and a sentence on the
    change. A mirrored block has the name of the original block with "-mirror-" and the axis. Regions keep their names;
    regions on the plane are removed. Raises HiresxError if no free face lies in the plane, or if nodes lie on both
    sides of it."""
    extent = max(float(np.ptp(c)) for block in grid.blocks for c in block.coordinates)
    near = TOLERANCE * extent
    values = [getattr(block, axis) for block in grid.blocks]
    low, high = min(float(v.min()) for v in values), max(float(v.max()) for v in values)
    if high - low <= near:
        others = " or ".join(other for other in COORDINATES if other != axis)
        raise HiresxError(
            f'mirror = "{axis}": the grid lies in a plane of constant {axis}',
            f'it can be mirrored along {others}: leave "{axis}" out',
        )
    if low < -near and high > near:
        raise HiresxError(
            f'mirror = "{axis}": nodes lie on both sides of the plane {axis} = 0, from {low:.6g} to {high:.6g}',
            "move the plane of symmetry to 0 (grid.translate), or do not mirror along that axis",
        )
    count = len(grid.blocks)
    reverse = []
    seams: list[Connection] = []
    blocks = []
    for b, block in enumerate(grid.blocks):
        parts = [
            (face, range_)
            for face in block.faces
            # the line of a pole lies in the plane, but nothing is connected there
            if collapsed_direction(block, face) is None
            for range_ in _in_plane(grid, b, face, np.abs(getattr(block, axis)) <= near)
        ]
        d = direction(parts[0][0]) if parts else block.active[0]
        reverse.append(d)
        if any(direction(face) != d for face, _ in parts):
            raise HiresxError(
                f"mirror = \"{axis}\": faces of block '{block.name}' normal to more than one of its directions lie in "
                f"the plane {axis} = 0",
                "cut the block there",
            )
        n = block.size[d]
        for face, range_ in parts:
            # In the image node i has the index n - 1 - i; ghost -1 is the image of node 1, ghost n that of n - 2.
            offset = triple((n - 1) * (e == d) * (1 if side(face) < 0 else -1) for e in range(3))
            seams.append(Connection(b, face, range_, count + b, IDENTITY, offset))
            other = face[0] + ("max" if side(face) < 0 else "min")
            turned = triple((n - range_[e][1], n - range_[e][0]) if e == d else range_[e] for e in range(3))
            back = triple(-o for o in offset)
            seams.append(Connection(count + b, other, turned, b, IDENTITY, back))
        on_plane = {(face, range_) for face, range_ in parts}
        blocks.append(replace(block, regions=_without(block.regions, on_plane)))
    if not seams:
        raise HiresxError(
            f'mirror = "{axis}": no free face lies in the plane {axis} = 0',
            "move the plane of symmetry to 0 (grid.translate)",
        )
    half = Grid(tuple(blocks), grid.connections, grid.period)
    image = reindex(half, [Reindexing(reverse=triple(e == d for e in range(3))) for d in reverse])
    flip = np.eye(3)
    flip[COORDINATES.index(axis)] *= -1
    images = [
        Block(
            f"{block.name}-mirror-{axis}",
            *triple(np.einsum("ab,b...->a...", flip, np.stack([block.x, block.y, block.z])) + 0.0),
            block.regions,
            block.rounding,
        )
        for block in image.blocks
    ]
    joins = [_flip(replace(c, block=c.block + count, donor=c.donor + count), flip) for c in image.connections]
    periods = [{a: _flipped_period(p, flip) for a, p in known.items()} for known in image.period]
    whole = Grid((*blocks, *images), (*grid.connections, *joins, *seams), (*half.period, *periods))
    return whole, [
        f"mirrored at {axis} = 0, joined over {len(seams) // 2} faces: {plural(count, 'block')} become {2 * count}"
    ]


def _in_plane(grid: Grid, b: int, face: str, flat: np.ndarray) -> list[Range]:
    """Yield ranges of a face whose cells lie in the plane (`flat`: nodes [k, j, i]) and that belong to no
    connection."""
    block = grid.blocks[b]
    whole = face_range(face, block.size)
    mask = flat[slices(whole)].copy()
    for c in grid.connections:
        if (c.block, c.face) == (b, face):
            inner = triple((lo + (lo > 0), hi - (hi < n)) for (lo, hi), n in zip(c.range, block.size, strict=True))
            inner = triple(whole[e] if e == direction(face) else inner[e] for e in range(3))
            mask[tuple(slice(lo - f, hi - f) for (lo, hi), (f, _) in zip(inner, whole, strict=True))[::-1]] = False
    across = [e for e in directions_along(face) if block.size[e] > 1]
    found = rectangles_of_face(face, whole, mask)
    return [range_ for range_ in found if all(range_[e][1] - range_[e][0] > 1 for e in across)]


def _without(regions: Regions, parts: set[tuple[str, Range]]) -> Regions:
    held = {
        name: tuple(
            (face, range_)
            for face, range_ in places
            if not any(face == f and _inside(range_, whole) for f, whole in parts)
        )
        for name, places in regions.items()
    }
    return {name: places for name, places in held.items() if places}


def _inside(range_: Range, whole: Range) -> bool:
    return all(a <= lo and hi <= z for (lo, hi), (a, z) in zip(range_, whole, strict=True))


def _flip(c: Connection, flip: np.ndarray) -> Connection:
    """Return the connection of the image blocks, with the mirrored motion."""
    rotation = c.rotation
    if rotation is not None:
        rotation = triple(map(triple, (flip @ np.array(rotation) @ flip).tolist()))
    return replace(c, rotation=rotation, translation=triple((flip @ np.array(c.translation) + 0.0).tolist()))


def _flipped_period(period: Vector | Motion, flip: Reals) -> Vector | Motion:
    if isinstance(period, tuple):
        return triple((flip @ np.array(period) + 0.0).tolist())
    turned = None if period.rotation is None else flip @ np.array(period.rotation) @ flip
    return motion(turned, translation=flip @ np.array(period.translation))


def extrude(grid: Grid, n: int, length: float, periodic: bool = True) -> tuple[Grid, list[str]]:
    """Return a plane grid extruded along z over `length` with `n` nodes, and a sentence on the change. If it is
    `periodic`, the last node lies one spacing before `length`, and otherwise at `length`. Raises HiresxError for a grid
    that is not plane or too large."""
    refuse(grid.points * n)
    heights = length * _shares(n, periodic)

    def nodes(x: Reals, y: Reals, z: Reals) -> tuple[Reals, Reals, Reals]:
        shape = (n, *x.shape[1:])
        return np.broadcast_to(x, shape), np.broadcast_to(y, shape), z + heights[:, None, None]

    drawn = _sweep(grid, "extrude", n, nodes, (0.0, 0.0, length))
    return drawn, [f"drawn out along z: {n} nodes from 0 to {heights[-1]:g}"]


def revolve(grid: Grid, n: int, angle: float, periodic: bool = True) -> tuple[Grid, list[str]]:
    """Return a plane grid revolved about the x axis by `angle` degrees with `n` nodes, and a sentence on the change. If
    it is `periodic`, the last node lies one spacing before `angle`, and otherwise at `angle`. Raises HiresxError for
    nodes at y <= 0, and for a grid that is not plane or too large."""
    for block in grid.blocks:
        y = np.asarray(block.y)
        if (y <= 0).any():
            k, j, i = (int(m) for m in np.argwhere(y <= 0)[0])
            raise HiresxError(
                f"revolve: block '{block.name}' has y = {y[k, j, i]:.6g} at node (i, j, k) = ({i}, {j}, {k})",
                "the axis itself cannot be a grid line: begin at y > 0",
            )
    refuse(grid.points * n)
    turns = np.radians(angle) * _shares(n, periodic)
    cosine, sine = np.cos(turns)[:, None, None], np.sin(turns)[:, None, None]
    period = motion(rotation_about((1.0, 0.0, 0.0), angle))

    def nodes(x: Reals, y: Reals, z: Reals) -> tuple[Reals, Reals, Reals]:
        return np.broadcast_to(x, (n, *x.shape[1:])), y * cosine, y * sine

    drawn = _sweep(grid, "revolve", n, nodes, (0.0, 0.0, 0.0) if abs(angle) == 360 else period)
    return drawn, [f"turned about the x axis: {n} nodes from 0 to {np.degrees(turns[-1]):g} degrees"]


def _shares(n: int, periodic: bool) -> Reals:
    """Return the positions of `n` nodes at equal distances, as fractions of the period or of the distance of the
    ends."""
    return np.arange(n) / (n if periodic else n - 1)


def _sweep(grid: Grid, key: str, n: int, nodes: Drawing, period: Vector | Motion) -> Grid:
    """Return a plane grid with `n` nodes along k, which may be periodic with `period`."""
    if any(len(block.active) != 2 for block in grid.blocks):
        raise HiresxError(f"{key}: the grid is not plane", f"leave {key} out")

    def long(range_: Range) -> Range:
        return (*range_[:2], (0, n))

    blocks = [
        Block(
            block.name,
            *triple(nodes(np.asarray(block.x), np.asarray(block.y), np.asarray(block.z))),
            {name: tuple((f, long(r)) for f, r in parts) for name, parts in block.regions.items()},
            block.rounding,
        )
        for block in grid.blocks
    ]
    connections = [replace(c, range=long(c.range)) for c in grid.connections]
    periods = [{**known, AXES[2]: period} for known in grid.period]
    return Grid(tuple(blocks), tuple(connections), tuple(periods))


def shape_grid(grid: Grid, spec: GridFile) -> tuple[Grid, list[str]]:
    """Return the grid after the changes `coarsen`, `mirror`, `extrude` and `revolve` (functions of this module), in
    this order, and sentences on the changes. `spec`: the table [grid] of a case file, which says which of them to make.
    Raises HiresxError if one of these functions cannot change the grid."""
    words: list[str] = []
    tasks: list[Callable[[Grid], tuple[Grid, list[str]]]] = [
        *[coarsen] * spec.coarsen,
        *[partial(mirror, axis=axis) for axis in spec.mirror],
        *([partial(extrude, **dict(spec.extrude))] if spec.extrude else []),
        *([partial(revolve, **dict(spec.revolve))] if spec.revolve else []),
    ]
    for task in tasks:
        grid, notes = task(grid)
        words += notes
    return grid, words
