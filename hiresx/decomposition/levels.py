"""Levels of refinement: grids of the blocks with half the spacing of the next coarser level, and the tiles of them that
are computed.

Node m of level l + 1 coincides with node m/2 of level l if m is even. The coordinates of the other nodes are
interpolated from level l by polynomials through six nodes along each direction (sixth order in the spacing). A level is
therefore a smooth grid with its own metrics, ghosts included, on which a uniform flow remains uniform.
"""

import time
from collections.abc import Sequence, Set
from dataclasses import dataclass, field, replace
from math import prod

import numpy as np

from hiresx.base.arrays import triple
from hiresx.base.notify import notify
from hiresx.decomposition.coordinates import extended_coordinates
from hiresx.decomposition.finer_faces import finer_ranges
from hiresx.decomposition.held_arrays import sizes
from hiresx.decomposition.kinks import Kink, between_kinks, find_kinks
from hiresx.decomposition.nodes_behind import NodesBehind, nodes_behind
from hiresx.decomposition.parts import Part
from hiresx.decomposition.patches import Decomposition, Patch
from hiresx.errors import HiresxError
from hiresx.grid import Block, Connection
from hiresx.grid.blocks import FACES, Range, common_boxes, face_range, shift_range, side, whole_box
from hiresx.grid.connections import IDENTITY
from hiresx.grid.orientation import layout_of
from hiresx.grid.patched import WIDTH, Wrap, lagrange, wraps
from hiresx.grid.size import host_memory, in_bytes

# Number of nodes of a level from which on a message announces it: some seconds.
ANNOUNCED = 1_000_000

Extended = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Tile:
    """A box of nodes on one level of refinement. Level 0 is the unrefined grid, and each further level has half the
    spacing of the one before. `level`: the number of the level. `base`: the number of the block of the unrefined grid
    that contains the box. `box`: half-open index ranges (i, j, k) in this block, if it were refined completely."""

    level: int
    base: int
    box: Range


@dataclass(frozen=True)
class Space:
    """The indexes of a block if the whole block were refined to one level of refinement. `size`: the number of nodes
    (ni, nj, nk). `wrapped`: for each direction, the `Wrap` by which the block is connected with itself, as in an
    O-grid, or None. `behind`: the nodes that continue its index space behind connected faces."""

    size: tuple[int, int, int]
    wrapped: tuple[Wrap | None, ...]
    behind: tuple[NodesBehind, ...] = ()

    def nodes(self, base: int) -> tuple[NodesBehind, ...]:
        """Return the nodes of the block itself, whose number is `base`, and then those behind its connected faces."""
        return (NodesBehind(whole_box(self.size), base), *self.behind)


@dataclass(frozen=True)
class Levels:
    """The levels of a refined decomposition. `tiles`: for each block, not divided among ranks, its box of nodes on its
    level; the blocks of the unrefined grid are boxes of level 0. `spaces`: for each (level, block of the unrefined
    grid) the indexes that the block would have on this level (`Space`)."""

    tiles: tuple[Tile, ...]
    spaces: dict[tuple[int, int], Space] = field(default_factory=dict)

    @property
    def finest(self) -> int:
        """Number of the finest level; level 0 is the unrefined grid."""
        return max(tile.level for tile in self.tiles)

    @property
    def of_grid(self) -> int:
        """Number of blocks of the unrefined grid. They come before the blocks of finer levels in the list of blocks."""
        return sum(tile.level == 0 for tile in self.tiles)

    def of(self, level: int, base: int) -> list[int]:
        """Return the numbers, in the list of all undivided blocks, of the boxes of nodes on `level` that lie in block
        `base` of the unrefined grid."""
        return [n for n, tile in enumerate(self.tiles) if (tile.level, tile.base) == (level, base)]

    def behind(self, level: int, base: int) -> list[Range]:
        """Return the boxes of nodes that `level` has behind the connected faces of block `base` of the unrefined grid,
        in the indexes of this block on the level."""
        return [
            n.here(shared)
            for n in self.spaces[level, base].behind
            for *_, shared in common_boxes([n.there(n.box)], [self.tiles[m].box for m in self.of(level, n.block)])
        ]


def part_on_level(levels: Levels, part: Part) -> Tile:
    """Return the box of nodes that one rank computes as a `Tile`, that is, with its level of refinement and in the
    indexes of this level. `part`: the box, as half-open index ranges (i, j, k) of a block. `levels`: the levels of all
    blocks."""
    tile = levels.tiles[part.whole]
    (i, _), (j, _), (k, _) = tile.box
    return Tile(tile.level, tile.base, shift_range(part.box, (i, j, k)))


def spaces_of(decomposition: Decomposition, level: int) -> dict[tuple[int, int], Space]:
    """Return, for every block of one level, its numbers of nodes, the directions in which it is connected with itself,
    and the nodes behind its connected faces (a `Space`), as a dictionary with the keys (level, number of the block).
    `decomposition`: the blocks of the original grid, completely refined to level number `level`, and their connections.
    """
    blocks, connections = decomposition.blocks, dict[int, list[Connection]]()
    for c in decomposition.connections:
        connections.setdefault(c.block, []).append(c)
    of_blocks, halo = [block.size for block in blocks], decomposition.stencil.halo
    return {
        (level, b): Space(
            block.size, tuple(wraps(block, b, connections.get(b, ()))), nodes_behind(b, of_blocks, connections, halo)
        )
        for b, block in enumerate(blocks)
    }


def spaces_of_levels(grids: Sequence[Decomposition]) -> dict[tuple[int, int], Space]:
    """Return the result of `spaces_of` for all levels together. `grids`: for each level the blocks if they were refined
    completely."""
    return {key: space for level, grid in enumerate(grids) for key, space in spaces_of(grid, level).items()}


def finer(coarse: Decomposition, extended: Sequence[Extended]) -> Decomposition:
    """Return the decomposition with half the spacing of `coarse`, for the whole grid: its blocks, not divided among
    ranks, and their connections and boundary patches. New nodes are interpolated to sixth order from `extended`, the
    coordinates x, y, z with ghost nodes of each block of `coarse`. Raises HiresxError for blocks whose last nodes are
    neighbours, if it is not clear which block contains the new nodes between them, and for a connection to nodes that
    the finer donor block does not have."""
    finer_sizes = [_finer_size(coarse, b) for b in range(len(coarse.blocks))]
    kinks = find_kinks(coarse)
    blocks = tuple(
        Block(
            block.name,
            *triple(_halfway(c, coarse, b, finer_sizes[b], kinks) for c in extended[b]),
            rounding=block.rounding,
        )
        for b, block in enumerate(coarse.blocks)
    )
    of_connections, of_patches, of_edges = finer_ranges(
        coarse.connections, coarse.patches, coarse.step_edges, finer_sizes
    )
    connections = tuple(
        replace(c, range=range_, offset=triple(2 * o for o in c.offset))
        for c, ranges in zip(coarse.connections, of_connections, strict=True)
        for range_ in ranges
    )
    patches, step_edges = (
        tuple(replace(p, range=range_) for p, ranges in zip(those, found, strict=True) for range_ in ranges)
        for those, found in ((coarse.patches, of_patches), (coarse.step_edges, of_edges))
    )
    _check_donors(blocks, connections, coarse.stencil.halo)
    parts = tuple(Part(b, whole_box(size)) for b, size in enumerate(finer_sizes))
    return replace(
        coarse,
        blocks=blocks,
        connections=connections,
        patches=patches,
        parts=parts,
        step_edges=step_edges,
    )


def levels_size(coarse: Decomposition, finest: int) -> tuple[int, int]:
    """Return two numbers: the nodes of level `finest` for the whole grid, and the bytes that the coordinates of all
    levels take while they are computed. The bytes include the coordinates with and without ghost nodes and temporary
    arrays of the finest level. `coarse`: the decomposition of the unrefined grid."""
    nodes = needed = 0
    for level in range(1, finest + 1):
        nodes = 0
        for block in coarse.blocks:
            size = [n << level if n > 1 else 1 for n in block.size]
            nodes += prod(size)
            needed += 24 * (prod(size) + prod(n + 2 * coarse.stencil.halo for n in size))
    return nodes, needed + 24 * nodes


def refuse_large(coarse: Decomposition, finest: int) -> None:
    """Raise HiresxError if this machine has too little memory for the coordinates of all levels up to the level
    `finest`, which are computed for the whole grid. `coarse`: the decomposition of the unrefined grid."""
    nodes, needed = levels_size(coarse, finest)
    if needed > host_memory():
        raise HiresxError(
            f"refine: level {finest} of the whole grid has {nodes:,} nodes, of which the tiles are taken; with the "
            f"levels before it the coordinates take {in_bytes(needed)}, this machine has {in_bytes(host_memory())} of "
            "memory",
            "give the regions a lower level, or take a finer grid and lower levels",
        )


def make_levels(
    coarse: Decomposition, extended: Sequence[Extended], finest: int
) -> tuple[list[Decomposition], list[list[Extended]]]:
    """Return two lists with one entry for each level from 0 to `finest`: the decomposition of the whole grid on this
    level, and the coordinates x, y, z with ghost nodes of its blocks. `coarse`: the decomposition of the unrefined
    grid, level 0. `extended`: the coordinates with ghost nodes of its blocks. Before a large level is computed, a
    message states the time that this will probably take. Raises HiresxError if this machine has too little memory for
    the coordinates, and if blocks or connections cannot be refined (`finer`)."""
    refuse_large(coarse, finest)
    grids, nodes = [coarse], [list(extended)]
    took = 0.0
    for level in range(1, finest + 1):
        size, before = (levels_size(coarse, n)[0] for n in (level, level - 1))
        if size > ANNOUNCED:
            expected = f", about {took * size / before:.2g} s" if before else ""
            notify(f"refine: level {level} of {finest} is made: {size:,} nodes{expected}")
        began = time.monotonic()
        grids.append(finer(grids[-1], nodes[-1]))
        nodes.append(refined_extended(grids[-1]))
        took = time.monotonic() - began
    return grids, nodes


def refined_extended(fine: Decomposition) -> list[Extended]:
    """Return, for each block of a level, its coordinates x, y, z with ghost nodes, arrays (nk + 2 halo, nj + 2 halo, ni
    + 2 halo). `fine`: the decomposition of the whole grid on this level."""
    found = extended_coordinates(fine)
    made = [c for c in found if isinstance(c, tuple)]
    assert len(made) == len(found)  # only for nodes in memory
    return made


def _connected(coarse: Decomposition, b: int, face: str) -> bool:
    """Return whether all nodes of a face are connected, to one block or to several."""
    held = sum(prod(sizes(c.range)) for c in coarse.connections if (c.block, c.face) == (b, face))
    return held == prod(sizes(face_range(face, coarse.blocks[b].size)))


def _finer_size(coarse: Decomposition, b: int) -> tuple[int, int, int]:
    size = list(coarse.blocks[b].size)
    for d in coarse.blocks[b].active:
        low, high = FACES[2 * d], FACES[2 * d + 1]
        offset = {
            face: [
                c
                for c in coarse.connections
                if (c.block, c.face) == (b, face) and layout_of(c, coarse.blocks) == "offset"
            ]
            for face in (low, high)
        }
        for face, found in offset.items():
            straight = all(side(c.donor_face) == -side(face) for c in found)
            # The nodes halfway across a connection belong to the block whose last nodes lie before it, along the whole
            # face.
            if found and not (straight and (face == low or _connected(coarse, b, face))):
                raise HiresxError(
                    f"refine: face {face} of block '{coarse.blocks[b].name}' is joined one spacing from its last "
                    "nodes, in a way in which it is not known whose the nodes halfway are",
                    "join such blocks in the sense of their indexes, over the whole of one's upper face (imax, jmax, "
                    "kmax), or let blocks share their end nodes",
                )
        size[d] = 2 * size[d] if offset[high] else 2 * size[d] - 1
    return triple(size)


def _check_donors(blocks: Sequence[Block], connections: Sequence[Connection], halo: int) -> None:
    """Raises HiresxError for a connection of a finer level to nodes that its donor does not have."""
    for c in connections:
        nodes = c.donors(c.ghosts(halo, blocks[c.block].size)).reshape(3, -1)
        if (nodes < 0).any() or (nodes >= np.array(blocks[c.donor].size)[:, None]).any():
            raise HiresxError(
                f"refine: face {c.face} of block '{blocks[c.block].name}' is joined to block '{blocks[c.donor].name}', "
                "which has no nodes for the lines halfway at the end of the join",
                "let joins end at nodes that both blocks have, or where the sense of the indexes is the same",
            )


def _halfway(c: np.ndarray, coarse: Decomposition, b: int, size: tuple[int, int, int], kinks: Set[Kink]) -> np.ndarray:
    """Return a coordinate (nk, nj, ni) of a block with half the spacing, from the coordinate with ghosts."""
    halo, whole = coarse.stencil.halo, coarse.blocks[b]
    c = np.nan_to_num(c)
    for d in (0, 1, 2):
        if whole.size[d] == 1:
            c = np.take(c, [halo], axis=2 - d)
    for d in whole.active:
        axis, n = 2 - d, whole.size[d]
        # Across a connection the grid continues smoothly; behind a boundary ghosts are only extrapolated.
        low = -halo if _connected(coarse, b, FACES[2 * d]) else 0
        high = n + halo if _connected(coarse, b, FACES[2 * d + 1]) else n
        own = np.array([m for block, e, m in kinks if (block, e) == (b, d)], int)
        base, weights = _broken_stencils(np.arange(size[d]) / 2, own, low, high)
        shape = [-1 if e == axis else 1 for e in range(3)]
        made = np.take(c, base + halo, axis=axis) * weights[:, 0].reshape(shape)
        for m in range(1, WIDTH):
            made += np.take(c, base + halo + m, axis=axis) * weights[:, m].reshape(shape)
        c = made
    return np.ascontiguousarray(c)


def _broken_stencils(xi: np.ndarray, kinks: np.ndarray, low: int, high: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the result of `stencils` for stencils that do not cross `kinks` of the line. If fewer than WIDTH nodes lie
    between two kinks, polynomials of a lower degree are used."""
    if not kinks.size:
        return stencils(xi, low, high)
    first, last = between_kinks(xi, kinks, low, high)
    few = last - first < WIDTH
    base, weights = stencils(xi, np.where(few, low, first), np.where(few, high, last))
    for m in np.flatnonzero(few):
        nodes = np.arange(first[m], last[m])
        apart = nodes[:, None] - nodes
        ratios = (xi[m] - nodes) / np.where(apart == 0, 1, apart)
        base[m] = np.clip(first[m], low, high - WIDTH)
        weights[m] = 0.0
        weights[m, nodes - base[m]] = np.where(apart == 0, 1.0, ratios).prod(axis=1)
    return base, weights


def stencils(xi: np.ndarray, low: int | np.ndarray, high: int | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the stencils of polynomial interpolation through WIDTH (6) successive nodes of a line, at the n
    real-valued indexes `xi` (n,): the index of the first node of each stencil (n,), and the weights of its nodes (n,
    WIDTH). Stencils are centred, or as nearly centred as the nodes from `low` to `high` - 1 allow. `low`, `high`: one
    number for all, or arrays (n,)."""
    base = np.clip(np.floor(xi).astype(int) - WIDTH // 2 + 1, low, high - WIDTH)
    # Nodes of a level coincide with nodes of the coarser level or lie halfway between them, so there are few different
    # places.
    places, of_place = np.unique(xi - base, return_inverse=True)
    return base, lagrange(places)[0][of_place]


def may_end(connection: Connection, blocks: Sequence[Block]) -> bool:
    """Return whether a level of refinement may end at a connection. If not, a refined box at the connection must
    continue on the other side. A level may end only where a block is connected with itself, as at the two ends of an
    O-grid, by one spacing from its last node to its first, without rotation and with indexes in the same directions.
    `blocks`: the blocks of the level, refined completely."""
    joins_itself = connection.block == connection.donor
    plain = connection.matrix == IDENTITY and connection.rotation is None  # indexes in the same directions
    return joins_itself and plain and layout_of(connection, blocks) == "offset"


def by_block(patches: Sequence[Patch]) -> dict[int, list[Patch]]:
    """Return boundary patches as a dictionary from the number of a block to its patches. Blocks without patches are
    left out."""
    found: dict[int, list[Patch]] = {}
    for patch in patches:
        found.setdefault(patch.block, []).append(patch)
    return found
