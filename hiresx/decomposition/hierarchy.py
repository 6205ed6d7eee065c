"""All levels of refinement that a case may use. They are computed once; tiles are selected from them whenever the
refined regions change."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from hiresx.base.arrays import triple
from hiresx.case.refine import Refine
from hiresx.decomposition.ghost_layers import GhostLayers
from hiresx.decomposition.level_tiles import LevelTiles
from hiresx.decomposition.levels import Extended, Space, Tile, make_levels, spaces_of_levels
from hiresx.decomposition.oblique_walls import mirrored_places
from hiresx.decomposition.parts import Part
from hiresx.decomposition.patches import Decomposition, with_conditions
from hiresx.decomposition.refinement import (
    Taken,
    lattices_of,
    refined_grid,
    refuse_in_file,
    refuse_open,
    regions_taken,
    with_tiles,
)
from hiresx.decomposition.tile_choice import TileChoice
from hiresx.errors import HiresxError
from hiresx.grid import Block, Grid
from hiresx.grid.blocks import whole_box
from hiresx.mpi.communicator import Communicator

# Chooses tiles among those of a hierarchy, by level and block.
Choosing = Callable[["Hierarchy"], Sequence[Taken]]


@dataclass(frozen=True, eq=False)
class Hierarchy:
    """The levels of refinement of a grid, from which boxes of finer grid (tiles) are chosen. `table`: the table
    [refine] of the case. `grid`: the grid without refinement. `comm`: the ranks. `grids`: for each level the blocks if
    they were refined completely; level 0 is the original grid. `nodes`: their coordinates with ghosts, one copy on each
    host. `lattices`: for each level, block and direction, the nodes at which tiles begin and end. `spaces`: for each
    (level, block) its index range. `choice`: the data for the choice of tiles. `present`: the tiles that `with_tiles`
    made last, by level. `on_device`: by (device, level, block) the coordinates that stay on a device, or None."""

    comm: Communicator
    table: Refine
    grid: Grid
    grids: tuple[Decomposition, ...]
    nodes: list[list[Extended]]
    lattices: list[list[list[list[int]]]]
    spaces: dict[tuple[int, int], Space]
    choice: TileChoice
    present: dict[int, LevelTiles] = field(default_factory=dict)
    on_device: dict[tuple[Any, int, int], Any] = field(default_factory=dict)

    @property
    def finest(self) -> int:
        """Number of the finest level of refinement; 0 is the original grid."""
        return len(self.grids) - 1

    @cached_property
    def mirrors(self) -> bool:
        """Whether the grid has walls behind which ghosts take the flow at the mirror images of their own positions,
        which are not nodes. No refined box (tile) may lie on such walls."""
        return bool(mirrored_places(self.grids[0]))

    def regions(self) -> list[Taken]:
        """Return the boxes of finer grid (tiles) in the regions that the case file refines, and the coarser tiles that
        must surround them: for each level and block a boolean mask [k, j, i] over all possible tiles."""
        return self.choice.choose(self.choice.none())

    def of(self, tiles: Sequence[Tile]) -> list[Taken]:
        """Convert boxes of finer grid, `tiles`, to boolean masks [k, j, i] over all possible tiles, for each level and
        block. An entry of `tiles` may be one possible tile or several adjacent ones joined; entries of level 0, the
        original grid, are left out. Raises ValueError for an entry that is not made of possible tiles."""
        taken = self.choice.none()
        for tile in tiles:
            if tile.level == 0:
                continue
            if not (1 <= tile.level <= self.finest and 0 <= tile.base < len(self.grids[0].blocks)):
                raise ValueError(f"no tile of level {tile.level} of block {tile.base}")
            lattice = self.lattices[tile.level][tile.base]
            try:
                at = [slice(ends.index(lo), ends.index(hi)) for ends, (lo, hi) in zip(lattice, tile.box, strict=True)]
            except ValueError:
                at = []
            if not at or any(lo >= hi for lo, hi in tile.box):
                raise ValueError(f"{tile.box} is no tile of level {tile.level} of block {tile.base}")
            taken[tile.level][tile.base][tuple(reversed(at))] = True
        return taken

    def with_tiles(self, taken: Sequence[Taken]) -> tuple[Grid, Decomposition, list[Extended]]:
        """Return the grid, its blocks with connections and boundary conditions, and the coordinates with ghosts, when
        the original grid is refined by the tiles `taken` (boxes of finer grid). `taken`: for each level and block a
        boolean mask [k, j, i] over all possible tiles; adjacent tiles are joined to one block. Raises HiresxError if
        there are more nodes than `refine.most_nodes`, and the errors of `refine`."""
        made, extended = with_tiles(self.grids, self.nodes, self.lattices, self.spaces, taken, np.asarray, self.present)
        refuse_open(made, self.table)
        most = self.table.most_nodes
        if most is not None and made.points > most:
            raise HiresxError(
                f"refine.most_nodes = {most:,}: the levels that the criterion asks for have {made.points:,} nodes",
                "raise refine.most_nodes (a restart may), or begin anew with a higher refine.refine or fewer levels",
            )
        return refined_grid(self.grid, made), made, extended


def shared_hierarchy(
    comm: Communicator,
    grid: Grid,
    coarse: Decomposition,
    extended: Sequence[Sequence[np.ndarray] | GhostLayers],
    table: Refine,
) -> Hierarchy:
    """Compute all levels of refinement above the original grid, from which refined boxes are chosen during the run.
    `comm`: the ranks. `coarse`: the blocks of `grid` with connections and boundary conditions, not divided among ranks.
    `extended`: their coordinates x, y, z with ghosts (GhostLayers, for a block left in the grid file, are refused).
    `table`: the table [refine] of the case file. The first rank of every host computes the coordinates, and the other
    ranks share them. Collective. Raises the errors of `refine`."""
    first: tuple[list[Decomposition], list[list[Extended]]] | None = None
    with comm.together():
        base = refuse_in_file(extended)
        if comm.local.root:
            first = make_levels(coarse, base, table.finest)
    grids, nodes = first or ([], [])
    finer_grids = comm.local.bcast([replace(g, blocks=()) for g in grids[1:]] if first is not None else None)
    views = comm.share_on_host(
        [c for level in nodes[1:] for block in level for c in block] if first is not None else None
    )
    arrays = iter(views)
    all_grids, all_nodes = [coarse], [base]
    for bare in finer_grids:
        level = [triple(next(arrays) for _ in range(3)) for _ in coarse.blocks]
        blocks = [_inner(b, c, bare.stencil.halo) for b, c in zip(coarse.blocks, level, strict=True)]
        parts = tuple(Part(b, whole_box(block.size)) for b, block in enumerate(blocks))
        own = with_conditions(bare, [patch.condition for patch in coarse.patches])
        all_grids.append(replace(own, blocks=tuple(blocks), parts=parts))
        all_nodes.append(level)
    with comm.together():
        lattices = lattices_of(all_grids, table)
        choice = TileChoice.of(all_grids, lattices, regions_taken(all_grids, lattices, table), table)
    spaces = spaces_of_levels(all_grids)
    return Hierarchy(comm, table, grid, tuple(all_grids), all_nodes, lattices, spaces, choice)


def _inner(block: Block, extended: Extended, halo: int) -> Block:
    """Return the block, with the name of `block`, whose coordinates with ghosts are `extended`."""
    inside = tuple(slice(halo, n - halo) for n in extended[0].shape)
    return Block(block.name, *triple(c[inside] for c in extended), rounding=block.rounding)
