"""Two-dimensional grids as three-dimensional codes hold them, and blocks whose indexes run the left way.

Many grids come with two equal planes in one direction, in the plane x-z as often as in x-y: one of the planes is taken,
turned into x-y, its directions made i and j. And a left-handed block gets one direction reversed, which leaves the same
nodes: `hiresx` computes on right-handed blocks.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from hiresx.arrays import triple
from hiresx.errors import HiresxError
from hiresx.grid.blocks import AXES, Block, Delivered
from hiresx.grid.connections import TOLERANCE, Grid
from hiresx.grid.motions import Motion, Vector, motion
from hiresx.grid.quality import hands
from hiresx.grid.reindexing import Reindexing, reindexed

# Nodes in a direction that is there only because the program that wrote the file knows three dimensions.
THIN = (1, 2)
# What turns a plane with this normal into x-y, right-handed.
TURNS = {
    "x": ((0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (1.0, 0.0, 0.0)),
    "y": ((1.0, 0.0, 0.0), (0.0, 0.0, 1.0), (0.0, -1.0, 0.0)),
}


def flattened(grid: Grid) -> tuple[Grid, list[str]]:
    """(the grid in the plane x-y, what was done in words), or the grid itself when no block of it is thin.

    Raises HiresxError for grids of which only some blocks are thin, whose two planes are not equal, or lie askew.
    """
    thin = [_thin(block) for block in grid.blocks]
    if not any(thin):
        return grid, []
    for block, found in zip(grid.blocks, thin, strict=True):
        if not found:
            other = grid.blocks[next(n for n, there in enumerate(thin) if there)]
            raise HiresxError(
                f"block '{block.name}' of {_size(block)} nodes is three-dimensional, block '{other.name}' of "
                f"{_size(other)} is not",
                "give blocks of the same number of dimensions",
            )
    blocks = grid.blocks
    lines = [n for n, found in enumerate(thin) if len(found) > 1]
    if lines:
        if any(blocks[n].size[1:] != (1, 1) for n in lines) or len(lines) != len(blocks):
            raise HiresxError(
                f"block '{blocks[lines[0]].name}' of {_size(blocks[lines[0]])} nodes is thin in two directions",
                "a 2-D grid has two directions of 7 nodes or more, a 1-D grid runs along i and x",
            )
        return grid, []
    chosen = [found[0] for found in thin]
    for block, d in zip(blocks, chosen, strict=True):
        if block.size[d] == 2:
            _check_equal(block, d)
    by = [Reindexing(order=triple((*(e for e in range(3) if e != d), d)), thin=(d,)) for d in chosen]
    grid = reindexed(grid, by)
    words = []
    doubled = sum(block.size[d] == 2 for block, d in zip(blocks, chosen, strict=True))
    if doubled:
        names = sorted({AXES[d] for d in chosen})
        words.append(f"one of two equal planes taken in direction {' or '.join(names)} of {_blocks(doubled)}")
    elif any(d != 2 for d in chosen):
        words.append("directions named i and j")
    normal = _normal(grid.blocks)
    if normal != "z":
        grid = moved(grid, motion(np.array(TURNS[normal])))
        words.append(f"the plane {'y-z' if normal == 'x' else 'x-z'} turned into x-y")
    return grid, words


def right_handed(grid: Grid) -> tuple[Grid, list[str]]:
    """(the grid with every left-handed block reversed in i, what was done in words). A block of both senses stays."""
    left = [hands(block) == "left" for block in grid.blocks]
    if not any(left):
        return grid, []
    by = [Reindexing(reverse=(wrong, False, False)) for wrong in left]
    names = [block.name for block, wrong in zip(grid.blocks, left, strict=True) if wrong]
    told = ", ".join(f"'{name}'" for name in names[:4]) + (" and others" if len(names) > 4 else "")
    return reindexed(grid, by), [f"{_blocks(len(names))} left-handed and reversed in i: {told}"]


def moved(grid: Grid, by: Motion, scale: float = 1.0) -> Grid:
    """The grid scaled, then moved, with what it says of motions between its faces."""

    def carried(own: Motion) -> Motion:
        scaled = Motion(own.rotation, triple(scale * t for t in own.translation))
        if own.rotation is None:
            return Motion(None, triple(Motion(by.rotation)(np.array(scaled.translation)).tolist()))
        return by.inverse.then(scaled).then(by)

    def of(period: Vector | Motion) -> Vector | Motion:
        if isinstance(period, Motion):
            return carried(period)
        return carried(Motion(None, triple(period))).translation

    blocks = []
    for block in grid.blocks:
        if by.still and block.stored:
            nodes = [c * scale for c in (block.x, block.y, block.z)]
        else:
            nodes = list(by(scale * np.stack([block.x, block.y, block.z])))
        blocks.append(type(block)(block.name, *triple(nodes), block.regions))
    connections = []
    for c in grid.connections:
        there = carried(c.motion) if not c.motion.still else c.motion
        connections.append(replace(c, translation=there.translation, rotation=there.rotation))
    periods = tuple({axis: of(period) for axis, period in known.items()} for known in grid.period)
    return Grid(tuple(blocks), tuple(connections), periods)


def checked(grid: Grid) -> Grid:
    """The grid with blocks that can be computed on. Raises HiresxError as `Block` does."""
    blocks = [Block(b.name, b.x, b.y, b.z, b.regions) if isinstance(b, Delivered) else b for b in grid.blocks]
    return replace(grid, blocks=tuple(blocks))


def _thin(block: Block) -> list[int]:
    return [d for d in range(3) if block.size[d] in THIN]


def _size(block: Block) -> str:
    return " x ".join(map(str, block.size))


def _blocks(count: int) -> str:
    return f"{count} block{'s' * (count > 1)}"


def _extent(blocks: Sequence[Block]) -> float:
    return max(max(block.extents) for block in blocks)


def _check_equal(block: Block, d: int) -> None:
    """The two planes in direction d differ by a shift along one axis only."""
    planes = [np.stack([np.take(c, n, axis=2 - d) for c in (block.x, block.y, block.z)]) for n in (0, 1)]
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
    """The axis along which a plane grid has no extent."""
    extent = _extent(blocks)
    flat = [
        axis
        for axis in "zyx"
        if max(float(getattr(b, axis).max()) for b in blocks) - min(float(getattr(b, axis).min()) for b in blocks)
        <= TOLERANCE * extent
    ]
    if not flat:
        raise HiresxError(
            "the grid is a surface that lies in none of the planes x-y, x-z and y-z",
            "turn it into x-y before (the grid file), or give a 3-D grid",
        )
    return flat[0]
