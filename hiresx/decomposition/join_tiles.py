"""Tiles at connections of blocks. A tile needs its partner tiles on the other side of the connection, and tiles on both
sides must begin and end at the same nodes."""

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from hiresx.base.arrays import triple
from hiresx.decomposition.levels import may_end
from hiresx.decomposition.patches import Decomposition
from hiresx.grid.blocks import Range, direction, intersection, side
from hiresx.grid.cutting import image

# The nodes at which tiles of a block begin and end, along i, j, k.
Lattice = Sequence[Sequence[int]]
# A tile: its block, and its place in the lattice along k, j, i.
Place = tuple[int, int, int, int]


def origins(grid: Decomposition, tile: int) -> list[list[int]]:
    """Return, for each block, a node along i, j and k at which a box of finer grid (tile) begins; the others begin at
    multiples of `tile` nodes from there. If the indexes of two connected blocks run in the same direction along their
    common face, the tiles of both begin at the same nodes, unless other connections prevent this. `grid`: the
    decomposition of the whole grid on one level. `tile`: the number of nodes of a tile along a direction."""
    links: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    for c in grid.connections:
        for e in grid.blocks[c.block].active:
            f = next(f for f in range(3) if c.matrix[f][e])
            if e != direction(c.face) and c.matrix[f][e] > 0:
                links.setdefault((c.block, e), []).append((c.donor, f, c.offset[f]))
    found: dict[tuple[int, int], int] = {}
    for start in ((b, d) for b in range(len(grid.blocks)) for d in range(3)):
        found.setdefault(start, 0)
        left = [start]
        while left:
            b, d = left.pop()
            for other, f, offset in links.get((b, d), ()):
                if (other, f) not in found:
                    found[other, f] = (found[b, d] + offset) % tile
                    left.append((other, f))
    return [[found[b, d] for d in range(3)] for b in range(len(grid.blocks))]


def tiles_within(lattice: Lattice, box: Range) -> Iterator[tuple[int, int, int]]:
    """Yield the position (k, j, i) among the tiles (boxes of finer grid) of a block of every tile that contains nodes
    of `box`. `box`: half-open index ranges (i, j, k) of nodes on the level of the tiles, which may extend beyond the
    block. `lattice`: three lists, along i, j and k, of the node indexes at which tiles begin and end."""
    ranges = []
    for ends, (lo, hi) in zip(lattice, box, strict=True):
        first, last = np.searchsorted(ends, [max(lo, 0), min(hi, ends[-1]) - 1], "right") - 1
        ranges.append(range(int(first), int(last) + 1))
    yield from product(*reversed(ranges))


def partners_of(grid: Decomposition, lattices: Sequence[Lattice]) -> dict[Place, list[Place]]:
    """Return which boxes of finer grid (tiles) require others, because the level must not end at a connection: a
    dictionary from a tile at such a connection to its partners, the tiles that contain the donors of its ghost nodes
    there. A tile is named by (block, k, j, i): the number of its block and its position among the tiles of the block.
    `grid`: the decomposition of the whole grid on the level. `lattices`: for each block three lists, along i, j and k,
    of the node indexes at which tiles begin and end."""
    found: dict[Place, list[Place]] = {}
    for c in grid.connections:
        if may_end(c, grid.blocks):
            continue
        d, n, halo = direction(c.face), grid.blocks[c.block].size[direction(c.face)], grid.stencil.halo
        ghosts = (-halo, 0) if side(c.face) < 0 else (n, n + halo)
        for k, j, i in tiles_within(lattices[c.block], c.range):
            tile = box_of(lattices[c.block], (k, j, i))
            shared = intersection(tile, c.range)
            assert shared is not None  # the tile contains nodes of it
            behind = triple(ghosts if e == d else ends for e, ends in enumerate(shared))
            donors = image(behind, c.matrix, c.offset)
            others = [(c.donor, *other) for other in tiles_within(lattices[c.donor], donors)]
            found.setdefault((c.block, k, j, i), []).extend(others)
    return found


def box_of(lattice: Lattice, place: tuple[int, int, int]) -> Range:
    """Return the half-open index ranges (i, j, k) of the nodes of one tile (box of finer grid). `place`: its position
    (k, j, i) among the tiles of its block. `lattice`: three lists, along i, j and k, of the node indexes at which tiles
    begin and end."""
    k, j, i = place
    return triple((ends[m], ends[m + 1]) for ends, m in zip(lattice, (i, j, k), strict=True))


def with_partners(partners: dict[Place, list[Place]], taken: Sequence[np.ndarray]) -> None:
    """Add to the masks `taken` all boxes of finer grid (tiles) that must exist because others exist: their partners on
    the other side of connections, the partners of these, and so on. `taken`: for each block a boolean mask [k, j, i]
    with one entry for each possible tile, which is changed in place. `partners`: the result of `partners_of`, a
    dictionary from a tile (block, k, j, i) to the tiles that it requires."""
    new = [place for place in partners if taken[place[0]][place[1:]]]
    while new:
        found = [other for place in new for other in partners[place] if not taken[other[0]][other[1:]]]
        for other in found:
            taken[other[0]][other[1:]] = True
        new = [other for other in dict.fromkeys(found) if other in partners]
