"""Two-dimensional grids in the form of three-dimensional codes, and left-handed blocks.

Many grids come with two equal planes in one direction, in the plane x-z as often as in x-y: one of the planes is taken
and turned into x-y, with the directions i and j. Left-handed blocks get one direction reversed, with the same nodes,
because `hiresx` computes on right-handed blocks.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hiresx.base.arrays import triple
from hiresx.base.plural import plural
from hiresx.case.error_messages import did_you_mean
from hiresx.errors import HiresxError
from hiresx.grid.blocks import AXES, Block, RawBlock, format_size
from hiresx.grid.connections import TOLERANCE, Grid
from hiresx.grid.motions import Motion, Vector, motion
from hiresx.grid.quality import hands
from hiresx.grid.reindexing import Reindexing, reindex

# Numbers of nodes in a thin direction, which exists only because the program that wrote the file is three-dimensional.
THIN = (1, 2)
# The rotation that turns a plane with this normal into x-y.
TURNS = {
    "x": ((0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (1.0, 0.0, 0.0)),
    "y": ((1.0, 0.0, 0.0), (0.0, 0.0, 1.0), (0.0, -1.0, 0.0)),
}
# The rotation that turns a line along this axis to x.
LINE_TURNS = {
    "y": ((0.0, 1.0, 0.0), (-1.0, 0.0, 0.0), (0.0, 0.0, 1.0)),
    "z": ((0.0, 0.0, 1.0), (0.0, 1.0, 0.0), (-1.0, 0.0, 0.0)),
}


def flatten(grid: Grid) -> tuple[Grid, list[str]]:
    """Convert a plane grid that is stored as a three-dimensional one (1 or 2 nodes in one direction) to a grid in the
    x-y plane, and a line (1 or 2 nodes in two directions) to a grid along x. Returns the grid and sentences on the
    changes; a three-dimensional grid is returned unchanged.

    Raises HiresxError if only some blocks are thin, if the two planes of a block differ, or if the grid lies in an
    oblique plane."""
    thin = [_thin(block) for block in grid.blocks]
    if not any(thin):
        return grid, []
    for block, found in zip(grid.blocks, thin, strict=True):
        if not found:
            other = grid.blocks[next(n for n, there in enumerate(thin) if there)]
            raise HiresxError(
                f"block '{block.name}' of {format_size(block.size)} nodes is three-dimensional, block "
                f"'{other.name}' of {format_size(other.size)} is not",
                "give blocks of the same number of dimensions",
            )
    blocks = grid.blocks
    lines = [n for n, found in enumerate(thin) if len(found) > 1]
    if lines:
        if len(lines) != len(blocks) or any(len(found) > 2 for found in thin):
            raise HiresxError(
                f"block '{blocks[lines[0]].name}' of {format_size(blocks[lines[0]].size)} nodes is thin in two "
                "directions",
                "a 2-D grid has two directions of 7 nodes or more; of a 1-D grid all blocks are thin in two",
            )
        return _align_with_x(grid, thin)
    chosen = [found[0] for found in thin]
    for block, d in zip(blocks, chosen, strict=True):
        if block.size[d] == 2:
            _check_equal(block, d)
    by = [Reindexing(order=triple((*(e for e in range(3) if e != d), d)), thin=(d,)) for d in chosen]
    grid = reindex(grid, by)
    words = []
    doubled = sum(block.size[d] == 2 for block, d in zip(blocks, chosen, strict=True))
    if doubled:
        names = sorted({AXES[d] for d in chosen})
        words.append(f"one of two equal planes taken in direction {' or '.join(names)} of {plural(doubled, 'block')}")
    elif any(d != 2 for d in chosen):
        words.append("directions named i and j")
    normal = _normal(grid.blocks)
    if normal != "z":
        grid = move_grid(grid, motion(np.array(TURNS[normal])))
        words.append(f"the plane {'y-z' if normal == 'x' else 'x-z'} turned into x-y")
    # All nodes get the z of the first one, from which the others differ by round-off.
    level = np.array(float(grid.blocks[0].z[0, 0, 0]))
    flat = [replace(b, z=np.broadcast_to(level, b.x.shape)) for b in grid.blocks]
    return replace(grid, blocks=tuple(flat)), words


def _align_with_x(grid: Grid, thin: Sequence[Sequence[int]]) -> tuple[Grid, list[str]]:
    """Return (the grid along x of blocks with one row of cells, notes)."""
    words = []
    doubled = [(block, d) for block, found in zip(grid.blocks, thin, strict=True) for d in found if block.size[d] == 2]
    for block, d in doubled:
        _check_equal(block, d)
    if doubled:
        words.append(f"one of equal lines taken of {plural(len({block.name for block, _ in doubled}), 'block')}")
    by = [
        Reindexing(order=triple((*(e for e in range(3) if e not in found), *found)), thin=tuple(found))
        for found in thin
    ]
    grid = reindex(grid, by)
    extents = [_spread(grid.blocks, axis) for axis in "xyz"]
    along = int(np.argmax(extents))
    if sorted(extents)[1] > TOLERANCE * extents[along]:
        raise HiresxError("the grid is a line that runs along none of x, y and z", "give a straight one along x")
    if along:
        grid = move_grid(grid, motion(np.array(LINE_TURNS["xyz"[along]])))
        words.append(f"turned from {'xyz'[along]} along x")
    _, y, z = grid.blocks[0].node(0, 0, 0)
    blocks = [replace(b, y=np.full(b.x.shape, y), z=np.full(b.x.shape, z)) for b in grid.blocks]
    return replace(grid, blocks=tuple(blocks)), words


def _spread(blocks: Sequence[Block], axis: str) -> float:
    """Return the extent of all blocks along an axis."""
    values = [getattr(b, axis) for b in blocks]
    return max(float(v.max()) for v in values) - min(float(v.min()) for v in values)


def make_right_handed(grid: Grid) -> tuple[Grid, list[str]]:
    """Return the grid with the index i reversed in every left-handed block, and sentences on the changes. A block with
    cells of both handednesses is not changed."""
    return reverse_i(grid, [block.name for block in grid.blocks if hands(block) == "left"], "left-handed and ")


def reverse_i(grid: Grid, names: Sequence[str], why: str = "") -> tuple[Grid, list[str]]:
    """Return the grid with the index i reversed in the blocks `names`, and sentences on the changes. `why`: the reason,
    which the sentences contain. Raises HiresxError for the name of a block that does not exist."""
    known = [block.name for block in grid.blocks]
    for name in names:
        if name not in known:
            raise HiresxError(f"grid.reverse: there is no block '{name}'", did_you_mean(name, known, "blocks"))
    if not names:
        return grid, []
    by = [Reindexing(reverse=(block.name in names, False, False)) for block in grid.blocks]
    shown = ", ".join(f"'{name}'" for name in names[:4]) + (" and others" if len(names) > 4 else "")
    return reindex(grid, by), [f"{plural(len(names), 'block')} {why}reversed in i: {shown}"]


def move_grid(grid: Grid, by: Motion, scale: float = 1.0) -> Grid:
    """Return the grid, scaled by the factor `scale` and then moved by `by`. The periods and the motions of the
    connections are changed accordingly."""

    def transform(own: Motion) -> Motion:
        scaled = Motion(own.rotation, triple(scale * t for t in own.translation))
        if own.rotation is None:
            return Motion(None, triple(Motion(by.rotation)(np.array(scaled.translation)).tolist()))
        return by.inverse.then(scaled).then(by)

    def of(period: Vector | Motion) -> Vector | Motion:
        if isinstance(period, Motion):
            return transform(period)
        return transform(Motion(None, triple(period))).translation

    blocks = []
    for block in grid.blocks:
        if by.still and block.is_stored:
            nodes = [c * scale for c in block.coordinates]
        else:
            nodes = list(by(scale * np.stack([block.x, block.y, block.z])))
        blocks.append(type(block)(block.name, *triple(nodes), block.regions, scale * block.rounding))
    connections = []
    for c in grid.connections:
        there = transform(c.motion) if not c.motion.still else c.motion
        connections.append(replace(c, translation=there.translation, rotation=there.rotation))
    periods = tuple({axis: of(period) for axis, period in known.items()} for known in grid.period)
    return Grid(tuple(blocks), tuple(connections), periods)


def checked_grid(grid: Grid) -> Grid:
    """Return the grid with every `RawBlock` (a block as read from a file) replaced by a `Block`, in which the solver
    can compute. Raises HiresxError for a block with coordinates that are not finite, or with too few nodes (the
    conditions of `Block`)."""
    blocks = [
        Block(b.name, *b.coordinates, b.regions, b.rounding) if isinstance(b, RawBlock) else b for b in grid.blocks
    ]
    return replace(grid, blocks=tuple(blocks))


def _thin(block: Block) -> list[int]:
    return [d for d in range(3) if block.size[d] in THIN]


def _extent(blocks: Sequence[Block]) -> float:
    return max(max(block.extents) for block in blocks)


def _check_equal(block: Block, d: int) -> None:
    """Raises HiresxError unless the two planes in direction d differ only by a shift along one axis."""
    planes = [np.stack([np.take(c, n, axis=2 - d) for c in block.coordinates]) for n in (0, 1)]
    shift = (planes[1] - planes[0]).reshape(3, -1)
    extent = max(float(np.ptp(p)) for p in planes[0].reshape(3, -1))
    if np.ptp(shift, axis=1).max() <= TOLERANCE * max(extent, 1e-300):
        return
    for a in range(3):
        b, c = (e for e in range(3) if e != a)
        radii = [np.hypot(p[b], p[c]) for p in planes]
        near = TOLERANCE * extent
        if np.abs(radii[1] - radii[0]).max() <= near and np.abs(planes[1][a] - planes[0][a]).max() <= near:
            angles = [np.arctan2(p[c], p[b])[r > near] for p, r in zip(planes, radii, strict=True)]
            turn = float(np.degrees(np.median(angles[1] - angles[0])))
            raise HiresxError(
                f"block '{block.name}': an axisymmetric grid: its two planes in direction {AXES[d]} are turned by "
                f"{turn:.4g} degrees about {'xyz'[a]}",
                "give one of its planes, in x-y, y the radius: axisymmetric = true computes with it, [grid] revolve "
                "turns it around",
            )
    at = np.argmax(np.abs(shift - np.median(shift, axis=1, keepdims=True)).max(axis=0))
    place = planes[0].reshape(3, -1)[:, at]
    raise HiresxError(
        f"block '{block.name}' has 2 nodes in direction {AXES[d]}, and its two planes differ, most at (x, y, z) = "
        f"({place[0]:.6g}, {place[1]:.6g}, {place[2]:.6g})",
        "a 2-D grid has one plane, or two equal ones; a 3-D grid has 7 nodes or more in every direction",
    )


def _normal(blocks: Sequence[Block]) -> str:
    """Return the axis along which a plane grid has no extent."""
    extent = _extent(blocks)
    flat = [axis for axis in "zyx" if _spread(blocks, axis) <= TOLERANCE * extent]
    if not flat:
        raise HiresxError(
            "the grid is a surface that lies in none of the planes x-y, x-z and y-z",
            "turn it into x-y before (the grid file), or give a 3-D grid",
        )
    return flat[0]
