"""Refinement of a decomposition: boxes of finer grid (tiles) of all levels become additional blocks, with their
connections and boundary conditions."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import pairwise, product

import numpy as np

from hiresx.base.arrays import triple
from hiresx.base.plural import plural
from hiresx.case.refine import PASSED, Refine, RefinedRegion
from hiresx.decomposition.ghost_layers import GhostLayers
from hiresx.decomposition.join_tiles import origins, partners_of, with_partners
from hiresx.decomposition.level_tiles import LevelTiles, with_level
from hiresx.decomposition.levels import (
    Extended,
    Levels,
    Space,
    Tile,
    make_levels,
    spaces_of,
    spaces_of_levels,
)
from hiresx.decomposition.oblique_walls import unrefinable_places
from hiresx.decomposition.patches import Decomposition
from hiresx.errors import HiresxError
from hiresx.grid import Block, Grid
from hiresx.grid.blocks import (
    Range,
    direction,
    whole_box,
)
from hiresx.grid.orientation import layout_of
from hiresx.grid.patched import WIDTH

# Masks of the tiles of a lattice that exist, (tiles along k, j, i), for each block.
Taken = list[np.ndarray]


def refine(coarse: Decomposition, extended: Sequence[Extended], table: Refine) -> tuple[Decomposition, list[Extended]]:
    """Add boxes of finer grid (tiles) to a decomposition in the regions that the table [refine] of the case file names.
    `coarse`: the blocks of the original grid, not divided among ranks. `extended`: their coordinates, ghosts included.
    Returns the new decomposition, whose blocks are those of the grid followed by the tiles, and the coordinates with
    ghosts of all blocks. The tiles of a level lie inside the tiles of the next coarser level. The coarser tiles extend
    so far around them that they contain all nodes from which ghosts are interpolated, except at faces of the blocks.

    Raises HiresxError for regions that name no block, contain no node or extend beyond a block, for a level that ends
    on a connection of blocks, for tiles beside a condition that does not support refinement, and for levels that do not
    fit into the memory."""
    grids, nodes = make_levels(coarse, extended, table.finest)
    lattices = lattices_of(grids, table)
    return with_tiles(grids, nodes, lattices, spaces_of_levels(grids), _choose_tiles(grids, lattices, table))


def with_tiles(
    grids: Sequence[Decomposition],
    nodes: Sequence[Sequence[Extended]],
    lattices: Sequence[Sequence[list[list[int]]]],
    spaces: dict[tuple[int, int], Space],
    taken: Sequence[Taken],
    kept: Callable[[np.ndarray], np.ndarray] = np.ascontiguousarray,
    known: dict[int, LevelTiles] | None = None,
) -> tuple[Decomposition, list[Extended]]:
    """Return the decomposition that has the blocks of the original grid followed by chosen boxes of finer grid (tiles),
    and the coordinates with ghosts of all blocks. For each level of refinement: `grids`, the blocks if they were
    refined completely; `nodes`, their coordinates with ghosts; `lattices`, for each block three lists, along i, j and
    k, of the node indexes at which tiles begin and end; `spaces`, the index spaces of all blocks (`spaces_of_levels`);
    `taken`, for each block the boolean mask [k, j, i] of the chosen tiles. Adjacent tiles become one block
    (`joined_boxes`). `kept`: a function that gets a view of the coordinates of a tile and returns the array to store,
    by default a contiguous array. `known`: the tiles of each level in the last call, which are used again where no tile
    has changed, and are replaced. Raises HiresxError for tiles that are not allowed (`refine`)."""
    made = coarse = grids[0]
    tiles = [Tile(0, b, whole_box(block.size)) for b, block in enumerate(coarse.blocks)]
    coordinates = list(nodes[0])
    for level in range(1, len(grids)):
        pieces = [(b, box) for b, chosen in enumerate(taken[level]) for box in joined_boxes(lattices[level][b], chosen)]
        if not pieces:
            continue
        known = {} if known is None else known
        if level not in known or known[level].pieces != pieces:
            known[level] = LevelTiles.of(grids[level], pieces, level, kept)
        if (known[level].first, known[level].place) != (len(made.blocks), len(made.patches)):
            known[level] = known[level].behind(len(made.blocks), len(made.patches))
        made = with_level(made, known[level])
        tiles += [Tile(level, b, box) for b, box in pieces]
        coordinates += [_part(nodes[level][b], box, coarse.stencil.halo, kept) for b, box in pieces]
    return replace(made, levels=Levels(tuple(tiles), spaces)), coordinates


def refine_domain(
    coarse: Decomposition, extended: Sequence[Sequence[np.ndarray] | GhostLayers], table: Refine
) -> tuple[Decomposition, list[Extended | GhostLayers]]:
    """Add boxes of finer grid (tiles) to a decomposition as `refine` does, with further checks. `coarse`: the blocks of
    the original grid, not divided among ranks. `extended`: for each block its coordinates x, y, z with ghosts, or
    GhostLayers if they are left in the grid file. `table`: the table [refine] of the case. Returns the blocks of the
    grid followed by the tiles, and the coordinates with ghosts of all of them. Raises HiresxError as `refine` does, for
    GhostLayers, and for a tile on a slip wall that is curved, oblique to the grid lines or has an edge (a line where
    the normal jumps). With `refine.conservative`, it raises HiresxError for a tile at an inflow or outflow as well."""
    made, coordinates = refine(coarse, refuse_in_file(extended), table)
    for place in unrefinable_places(made):
        patch = made.patches[place]
        if patch.block >= len(coarse.blocks):
            raise HiresxError(
                f"refine: a tile of block '{coarse.blocks[_base(made, patch.block)].name}' lies on face {patch.face}, "
                "a slip wall that is curved, has an edge or is met by oblique grid lines, which does not support "
                "refinement",
                "keep the refined regions away from it: tiles of refine.tile nodes cover the regions whole",
            )
    refuse_open(made, table)
    return made, [*coordinates]


def refuse_open(made: Decomposition, table: Refine) -> None:
    """Raise HiresxError if a box of finer grid (tile) of the decomposition `made` touches a boundary that prescribes
    values at nodes (an inflow or outflow) and the table [refine] demands conservation (`conservative`)."""
    assert made.levels is not None
    for patch in made.patches if table.conservative else ():
        if made.levels.tiles[patch.block].level and patch.condition.type in PASSED:
            raise HiresxError(
                f"refine.conservative: a tile of block '{made.blocks[_base(made, patch.block)].name}' lies on face "
                f'{patch.face} with the condition "{patch.condition.type}", through which nothing is conserved',
                "keep the refined regions away from it, or leave refine.conservative out",
            )


def refuse_in_file(extended: Sequence[Sequence[np.ndarray] | GhostLayers]) -> list[Extended]:
    """Return the coordinates `extended` of all blocks if they are in memory. Raises HiresxError if the coordinates of
    some blocks are left in the grid file, since refinement needs all of them."""
    here = [(c[0], c[1], c[2]) for c in extended if not isinstance(c, GhostLayers)]
    if len(here) < len(extended):
        raise HiresxError(
            "refine needs the coordinates of all blocks in memory, and the grid is so large that they are left in its "
            "file",
            "leave refine out, or take a smaller grid",
        )
    return here


def refined_grid(grid: Grid, made: Decomposition) -> Grid:
    """Return `grid` with the blocks of `made`: the blocks of `grid`, followed by boxes of finer grid (tiles)."""
    period = (*grid.period, *({} for _ in made.blocks[len(grid.blocks) :]))
    return replace(grid, blocks=made.blocks, period=period)


def _base(made: Decomposition, block: int) -> int:
    assert made.levels is not None
    return made.levels.tiles[block].base


def _part(extended: Extended, box: Range, halo: int, kept: Callable[[np.ndarray], np.ndarray]) -> Extended:
    at = tuple(slice(lo, hi + 2 * halo) for lo, hi in reversed(box))
    return triple(kept(c[at]) for c in extended)


# ---- the choice of tiles


def lattices_of(grids: Sequence[Decomposition], table: Refine) -> list[list[list[list[int]]]]:
    """Return the node indexes at which boxes of finer grid (tiles) may begin: for each level of refinement and block
    three ascending lists, along i, j and k. A tile has the nodes from one entry of a list up to the next entry, which
    does not belong to it. The last entry is the end of the last tile. `grids`: for each level the blocks if they were
    refined completely. `table`: the table [refine] of the case. Raises HiresxError for a direction of
    `refine.symmetric` along which a block continues one spacing behind its last nodes, since its levels cannot be
    symmetric there."""
    coarse = grids[0]
    for c in coarse.connections:
        along = "ijk"[direction(c.face)]
        if along in table.symmetric and layout_of(c, coarse.blocks) == "offset":
            raise HiresxError(
                f"refine.symmetric: block '{coarse.blocks[c.block].name}' continues along {along} one spacing from its "
                "last nodes, so its levels are not symmetric to its middle",
                f"leave {along} out",
            )
    symmetric = triple(axis in table.symmetric for axis in "ijk")
    return [
        [
            _lattice_of(block, table.tile, grid, symmetric, origin)
            for block, origin in zip(grid.blocks, origins(grid, table.tile), strict=True)
        ]
        for grid in grids
    ]


def _lattice_of(
    block: Block, tile: int, grid: Decomposition, symmetric: tuple[bool, bool, bool], origin: Sequence[int]
) -> list[list[int]]:
    """Return, for each direction, the nodes at which tiles begin and end. Tiles begin at `origin` and every `tile`
    nodes from there; those at the ends of the block may be thicker. If `symmetric`, they have `tile` nodes from both
    ends, and the one in the middle may be thicker."""
    least = max(grid.stencil.least_nodes, grid.stencil.halo + 1, WIDTH, tile)
    found = []
    for n, mirrored, first in zip(block.size, symmetric, origin, strict=True):
        if mirrored and n > least:
            starts = [m * tile for m in range((n - least) // (2 * tile) + 1)]
            found.append([*starts, *(n - start for start in reversed(starts))])
        else:
            inner = [start for start in range(first, n, tile) if start >= least and n - start >= least]
            found.append([0, *inner, n])
    return found


def with_mirrored(taken: np.ndarray, table: Refine) -> np.ndarray:
    """Return the mask `taken` of the boxes of finer grid (tiles) of a block with their mirror images added, along the
    directions that the key `refine.symmetric` names. `taken`: boolean, [k, j, i], one entry for each possible tile.
    `table`: the table [refine] of the case."""
    for d, axis in enumerate("ijk"):
        if axis in table.symmetric:
            taken = taken | np.flip(taken, 2 - d)
    return taken


def boxes_of(lattice: Sequence[Sequence[int]], chosen: np.ndarray) -> Iterator[Range]:
    """Yield the half-open index ranges (i, j, k) of those cells of a lattice for which the mask `chosen` [k, j, i] is
    true. `lattice`: the node indexes at which cells begin and end along i, j and k."""
    for k, j, i in np.argwhere(chosen):
        yield triple((ends[m], ends[m + 1]) for ends, m in zip(lattice, (i, j, k), strict=True))


def joined_boxes(lattice: Sequence[Sequence[int]], chosen: np.ndarray) -> Iterator[Range]:
    """Yield few boxes, as half-open index ranges (i, j, k), that together cover the chosen cells of a lattice, each
    cell once. `lattice`: the node indexes at which cells begin and end along i, j and k. `chosen`: the mask [k, j, i]
    of the cells. A box begins at a corner and extends along i as far as cells are chosen, then along j and k as far as
    all its rows are chosen."""
    along_i, along_j, along_k = lattice
    for (i, i1), (j, j1), (k, k1) in _joined(chosen.shape, chosen.tobytes()):
        yield (along_i[i], along_i[i1]), (along_j[j], along_j[j1]), (along_k[k], along_k[k1])


@lru_cache(maxsize=1024)  # from one change of tiles to the next most blocks of the grid have the same tiles
def _joined(shape: tuple[int, ...], chosen: bytes) -> list[Range]:
    """Return the boxes of `joined_boxes` in indexes of tiles. `chosen`: the mask as bytes."""
    # There are few tiles, so a set of their places is faster than slices of the mask.
    places = [(k, j, i) for k, j, i in np.argwhere(np.frombuffer(chosen, bool).reshape(shape)).tolist()]
    left, found = set(places), []
    for k, j, i in places:
        if (k, j, i) not in left:
            continue
        i1, j1, k1 = i + 1, j + 1, k + 1
        while (k, j, i1) in left:
            i1 += 1
        while all((k, j1, m) in left for m in range(i, i1)):
            j1 += 1
        while all((k1, n, m) in left for n in range(j, j1) for m in range(i, i1)):
            k1 += 1
        left.difference_update(product(range(k, k1), range(j, j1), range(i, i1)))
        found.append(((i, i1), (j, j1), (k, k1)))
    return found


def _choose_tiles(
    grids: Sequence[Decomposition], lattices: Sequence[Sequence[list[list[int]]]], table: Refine
) -> list[Taken]:
    taken = regions_taken(grids, lattices, table)
    reach = reach_of(grids[0])
    for level in range(len(grids) - 1, 0, -1):
        with_partners(partners_of(grids[level], lattices[level]), taken[level])
        if level == 1:
            break
        for b, lattice in enumerate(lattices[level]):
            space = spaces_of(grids[level - 1], level - 1)[level - 1, b]
            for box in list(boxes_of(lattice, taken[level][b])):
                take_around(box, space, reach, lattices[level - 1][b], taken[level - 1][b])
    return taken


def regions_taken(
    grids: Sequence[Decomposition], lattices: Sequence[Sequence[list[list[int]]]], table: Refine
) -> list[Taken]:
    """Return the boxes of finer grid (tiles) in the regions that the table [refine] of the case file names, without the
    coarser tiles that must surround them: for each level and block a boolean mask [k, j, i] over all possible tiles.
    Level 0 is the grid itself, and its masks are false everywhere. `grids`: for each level the blocks if they were
    refined completely. `lattices`: the node indexes at which tiles begin and end (`lattices_of`). Raises HiresxError
    for a region that names no block, has no node, or has nodes beyond a block."""
    taken = [[np.zeros([len(ends) - 1 for ends in reversed(found)], bool) for found in lattice] for lattice in lattices]
    for n, region in enumerate(table.region):
        _take_region(n, region, grids, lattices, taken)
    return [[with_mirrored(some, table) for some in level] for level in taken]


def reach_of(coarse: Decomposition) -> int:
    """Return how many nodes of the coarser level must exist around a box of finer grid, so that its ghosts can be
    interpolated. `coarse`: the coarser level, whose stencils determine the number."""
    return (coarse.stencil.halo + 1) // 2 + WIDTH // 2


def _take_region(
    n: int,
    region: RefinedRegion,
    grids: Sequence[Decomposition],
    lattices: Sequence[Sequence[list[list[int]]]],
    taken: Sequence[Taken],
) -> None:
    grid, found = grids[region.level], False
    names = [block.name for block in grid.blocks]
    if region.block is not None and region.block not in names:
        raise HiresxError(
            f"refine.region.{n}: the grid has no block '{region.block}'", f"its blocks are {', '.join(names)}"
        )
    for b, block in enumerate(grid.blocks):
        if region.block not in (None, block.name):
            continue
        inside = np.ones(block.x.shape, bool)
        for axis in "xyz"[: len(block.active)]:
            ends = getattr(region, axis)
            if ends is not None:
                c = getattr(block, axis)
                inside &= (c >= ends[0]) & (c <= ends[1])
        if not inside.any():
            continue
        for d, axis in enumerate("ijk"):
            ends = getattr(region, axis)
            if ends is not None:
                _check_nodes(n, region, axis, grids[0].blocks[b].size[d], block.name, len(names))
            if ends is not None and block.size[d] > 1:
                index = np.arange(block.size[d]) / 2**region.level
                shape = [1, 1, 1]
                shape[2 - d] = -1
                inside &= ((index >= ends[0]) & (index <= ends[1])).reshape(shape)
        found |= bool(inside.any())
        lattice = lattices[region.level][b]
        for at in product(*(range(len(ends) - 1) for ends in reversed(lattice))):
            box = tuple(slice(ends[m], ends[m + 1]) for ends, m in zip(reversed(lattice), at, strict=True))
            taken[region.level][b][at] |= bool(inside[box].any())
    if not found:
        raise HiresxError(
            f"refine.region.{n} holds no node of the grid",
            "give a box that contains nodes, in the grid's unit of length",
        )


def _check_nodes(n: int, region: RefinedRegion, axis: str, nodes: int, block: str, blocks: int) -> None:
    """Raises HiresxError for a range of the region `n` along i, j or k that the `nodes` of a block do not have.
    `blocks`: how many there are."""
    first, last = getattr(region, axis)
    if first < 0 or last >= nodes:
        other = "" if region.block is not None or blocks == 1 else ", or name the block that is meant by block"
        raise HiresxError(
            f"refine.region.{n}: {axis} = [{first}, {last}] is not within block '{block}', which has "
            f"{plural(nodes, 'node')} along {axis}",
            f"{f'give nodes from 0 to {nodes - 1}' if nodes > 1 else f'leave {axis} out'}{other}",
        )


def take_around(box: Range, space: Space, reach: int, lattice: Sequence[Sequence[int]], taken: np.ndarray) -> None:
    """Set a mask of the boxes of finer grid (tiles) of a block to true for all tiles that a finer tile needs: those
    that lie under it or within `reach` nodes around it. `box`: half-open index ranges (i, j, k) of the finer tile on
    its own level. `space`: the indexes of the whole block on the coarser level. `lattice`: three lists, along i, j and
    k, of the node indexes at which tiles of the coarser level begin and end. `taken`: the boolean mask [k, j, i] of the
    coarser tiles, which is changed."""
    chosen = [_tiles_around(ends, d, space, reach, lattice[d]) for d, ends in enumerate(box)]
    taken[np.ix_(*reversed(chosen))] = True


def _tiles_around(ends: tuple[int, int], d: int, space: Space, reach: int, below: Sequence[int]) -> np.ndarray:
    """Return, along direction `d`, the tiles of the coarser level, which begin and end at `below`, under the nodes
    `ends` of a level and `reach` nodes around them."""
    (lo, hi), n, wrap = ends, space.size[d], space.wrapped[d]
    nodes = np.arange(lo // 2 - reach, hi // 2 + reach + 1) if n > 1 else np.array([0])
    nodes = nodes % n if wrap is not None and wrap.step == n else np.clip(nodes, 0, n - 1)
    return np.unique(np.searchsorted(below, nodes, "right") - 1)


def around_tiles(
    lattice: Sequence[Sequence[int]], space: Space, reach: int, below: Sequence[Sequence[int]]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return which boxes of finer grid (tiles) of the next coarser level each tile needs: for i, j and k an array
    (tiles, coarser tiles) of the tiles along this direction, which is 1 if the coarser tile lies under the tile or
    within `reach` nodes around it, otherwise 0. A coarser tile is needed if the entries of all three directions are 1.
    `lattice`, `below`: three lists, along i, j and k, of the node indexes at which tiles begin and end on the level and
    on the coarser level. `space`: the indexes of the whole block on the coarser level."""
    found = []
    for d in range(3):
        along = np.zeros((len(lattice[d]) - 1, len(below[d]) - 1))
        for n, ends in enumerate(pairwise(lattice[d])):
            along[n, _tiles_around(ends, d, space, reach, below[d])] = 1
        found.append(along)
    return triple(found)


def along_lines(taken: np.ndarray, lines: Sequence[np.ndarray]) -> np.ndarray:
    """Return the mask [k, j, i] of the boxes of a lattice that are selected by at least one item of `taken`, a mask [k,
    j, i] of nodes, or of boxes of a finer level. `lines`: for i, j and k an array (items, boxes) that is positive where
    an item selects a box along this direction, otherwise 0. An item selects a box if it does so along all three
    directions."""
    found = lines[1].T @ (taken.astype(np.float32) @ lines[0])
    along_k = lines[2].T @ found.reshape(len(found), -1)
    return np.asarray(along_k.reshape(-1, *found.shape[1:]) > 0)
