"""The geometry of a case. It is the same on every rank, and each host stores the coordinates once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from hiresx.base.arrays import triple
from hiresx.case import Case
from hiresx.decomposition.coordinates import extended_coordinates
from hiresx.decomposition.ghost_layers import GhostLayers, coordinates_in_box
from hiresx.decomposition.hierarchy import Choosing, Hierarchy, shared_hierarchy
from hiresx.decomposition.parts import Part
from hiresx.decomposition.patches import Decomposition, decompose, with_conditions
from hiresx.decomposition.refinement import refine_domain, refined_grid
from hiresx.decomposition.split_blocks import split
from hiresx.grid import Block, Grid, build
from hiresx.grid.stored_coordinates import give_back
from hiresx.mpi.communicator import Communicator, single_process

Coordinates = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class Domain:
    """The geometry of a run: the grid and its division among the ranks. `grid`: the grid. `whole`: its blocks with
    their connections and boundary patches, not divided. `cut`: the boxes of nodes that the ranks compute, with their
    connections and patches. `comm`: the ranks. `extended`: coordinates x, y, z of the whole blocks with ghost layers.
    If the nodes of a block are left in the grid file, `extended` has only the layers beside its faces, and `own` has
    the nodes that this rank has read. `hierarchy`: the levels of refinement from which boxes of finer grid (tiles) are
    chosen during the run, None if the tiles do not change."""

    comm: Communicator
    grid: Grid
    whole: Decomposition
    cut: Decomposition
    extended: list[Coordinates | GhostLayers]
    own: dict[Part, Coordinates] = field(default_factory=dict)
    hierarchy: Hierarchy | None = None

    @property
    def halo(self) -> int:
        """Number of ghost layers on each side of every block."""
        return self.whole.stencil.halo

    @property
    def mine(self) -> list[int]:
        """Numbers of the boxes of nodes that this rank computes: indexes into `cut.parts` and `cut.blocks`, which list
        the boxes of all ranks."""
        return [n for n, part in enumerate(self.cut.parts) if part.rank == self.comm.rank]

    def coordinates(self, part: Part) -> Coordinates:
        """Return the coordinates x, y, z of one part of the grid with `halo` ghost layers on all sides: arrays (nk + 2
        halo, nj + 2 halo, ni + 2 halo), in units of the length scale L. `part`: the box of nodes of a block that one
        rank computes. The ghosts at a cut through a block are nodes of that block."""
        if part in self.own:
            return self.own[part]
        extended = self.extended[part.whole]
        if isinstance(extended, GhostLayers):
            return coordinates_in_box(self.whole.blocks[part.whole], extended, self.halo, _box(part, self.halo))
        return triple(c[_box(part, self.halo)] for c in extended)


def domain(
    case: Case,
    comm: Communicator | None = None,
    grid: Grid | None = None,
    parts: Callable[[Decomposition], Sequence[Part]] | None = None,
    tiles: Choosing = Hierarchy.regions,
) -> Domain:
    """Build the geometry of a case: the grid, the boundary condition or connection of every face node, the coordinates
    with ghost layers, and the division of the blocks among the ranks. Collective; an error on one rank is raised on
    all.

    `comm`: the ranks, by default this process alone. `grid`: a grid that replaces the grid of the case. `parts`: a
    function of the undivided blocks that returns the boxes of nodes into which they are divided, with their ranks;
    None: blocks are not divided, and rank 0 has all. `tiles`: if a criterion refines the grid during the run, a
    function of the `Hierarchy` of levels that chooses the first boxes of finer grid, as masks [k, j, i] over all
    possible boxes for each level and block; its result must be the same on all ranks. Raises HiresxError for a grid
    that cannot be made or read, for face nodes without or with several conditions (`decompose`), and for `parts` that
    do not contain each node once or are too thin (`split`)."""
    comm = comm or single_process()
    adapts = case.refine is not None and case.refine.criterion is not None
    fixed = None if adapts else case.refine  # the table, if the levels do not change
    first: tuple[Grid, list[Coordinates | GhostLayers]] | None = None
    decomposed: Decomposition | None = None
    with comm.together():
        if comm.local.root:
            grid = build(case.grid, case.directory) if grid is None else grid
            decomposed = decompose(case, grid)
            grid = grid if decomposed.blocks is grid.blocks else replace(grid, blocks=decomposed.blocks)
            # The nodes beside the faces are no longer needed.
            extended = [
                made.without_interior(block, decomposed.stencil.halo) if isinstance(made, GhostLayers) else made
                for block, made in zip(decomposed.blocks, extended_coordinates(decomposed), strict=True)
            ]
            if fixed is not None:
                decomposed, extended = refine_domain(decomposed, extended, fixed)
                grid = refined_grid(grid, decomposed)
            first = grid, extended
            for block in decomposed.blocks:
                block.forget()
            if any(block.is_stored for block in decomposed.blocks):
                give_back()
    seen, extended = _one_copy(comm, first, case.stencil.halo)
    grid = first = None  # free the memory of arrays that are shared now
    with comm.together():
        if fixed is None and (comm.local.size > 1 or decomposed is None):
            decomposed = decompose(case, seen)
    if fixed is not None and comm.local.size > 1:
        # The tiles are chosen once on each host, and all its ranks share the nodes.
        bare = None if decomposed is None else replace(decomposed, blocks=())
        decomposed = replace(with_conditions(comm.local.bcast(bare), case.boundary), blocks=seen.blocks)
    assert decomposed is not None
    if adapts and case.refine is not None:
        return with_tiles(comm, shared_hierarchy(comm, seen, decomposed, extended, case.refine), tiles, parts)
    return _cut(comm, seen, decomposed, extended, parts)


def with_tiles(
    comm: Communicator,
    hierarchy: Hierarchy,
    tiles: Choosing,
    parts: Callable[[Decomposition], Sequence[Part]] | None,
) -> Domain:
    """Build the geometry of a refined grid from the levels of refinement in `hierarchy`. `comm`: the ranks. `tiles`: a
    function of `hierarchy` that chooses the boxes of finer grid (tiles), as masks [k, j, i] over all possible tiles for
    each level and block. `parts`: a function of the undivided blocks that returns the boxes of nodes into which blocks
    and tiles are divided, with their ranks; None: they are not divided. Collective; an error on one rank is raised on
    all. Raises HiresxError for tiles that are not allowed (`Hierarchy.with_tiles`) and for `parts` that do not contain
    each node once or are too thin (`split`)."""
    taken = tiles(hierarchy)
    with comm.together():
        grid, whole, extended = hierarchy.with_tiles(taken)
    return replace(_cut(comm, grid, whole, [*extended], parts), hierarchy=hierarchy)


def cut_again(ground: Domain, parts: Callable[[Decomposition], Sequence[Part]]) -> Domain:
    """Return the geometry `ground` with its blocks divided differently among the ranks. `ground`: the grid, its
    coordinates and its present division. `parts`: a function of the undivided blocks that returns the new boxes of
    nodes with their ranks. Grid and coordinates stay the same. Raises HiresxError on all ranks if the boxes do not
    contain each node once or are too thin (`split`). Collective."""
    cut = _cut(ground.comm, ground.grid, ground.whole, ground.extended, parts)
    return replace(cut, hierarchy=ground.hierarchy)


def _cut(
    comm: Communicator,
    grid: Grid,
    whole: Decomposition,
    extended: list[Coordinates | GhostLayers],
    parts: Callable[[Decomposition], Sequence[Part]] | None,
) -> Domain:
    cutting: Sequence[Part] | None = None
    with comm.together():
        if parts is not None and comm.root:
            cutting = parts(whole)
    # All ranks take the partition of rank 0: a partitioning library may be installed on some hosts only.
    cutting = comm.bcast(cutting)
    with comm.together():
        cut = whole if cutting is None else split(whole, cutting)
    with comm.together():
        own = _read(comm, whole, cut, extended)
        if own:
            # The fields use views of the coordinates that were read: the nodes without their ghosts.
            blocks = (
                _inner(b, own[p], whole.stencil.halo) if p in own else b
                for b, p in zip(cut.blocks, cut.parts, strict=True)
            )
            cut = replace(cut, blocks=tuple(blocks))
    return Domain(comm, grid, whole, cut, extended, own)


def _one_copy(
    comm: Communicator, first: tuple[Grid, list[Coordinates | GhostLayers]] | None, halo: int
) -> tuple[Grid, list[Coordinates | GhostLayers]]:
    """Return the grid and the coordinates with ghosts of the first rank of this host, in memory that all its ranks
    share, or in the file."""
    if comm.local.size == 1 and first is not None:
        return first
    description = views = None
    if first is not None:
        grid, given = first
        shape = [(b.name, b.size, b.regions, b.rounding, b if b.is_stored else None) for b in grid.blocks]
        description = shape, (grid.connections, grid.period, grid.touching)
        views = [c for block in given for c in _arrays(block)]
    shape, rest = comm.local.bcast(description)
    views = comm.share_on_host(views)
    extended: list[Coordinates | GhostLayers] = []
    blocks = []
    for b, (name, size, regions, rounding, left) in enumerate(shape):
        coordinates = triple(views[3 * b : 3 * b + 3])
        if left is not None:
            blocks.append(left)
            extended.append(GhostLayers.over(left, halo, coordinates, inside=0))
            continue
        inside = tuple(slice(halo, halo + n) for n in reversed(size))
        blocks.append(Block(name, *triple(c[inside] for c in coordinates), regions, rounding))
        extended.append(coordinates)
    return Grid(tuple(blocks), *rest), extended


def _arrays(extended: Coordinates | GhostLayers) -> Sequence[np.ndarray]:
    return extended.layers if isinstance(extended, GhostLayers) else extended


def _read(
    comm: Communicator, whole: Decomposition, cut: Decomposition, extended: Sequence[Coordinates | GhostLayers]
) -> dict[Part, Coordinates]:
    """Read the coordinates with ghosts of this rank's parts of blocks that stay in their file."""
    for block in (*whole.blocks, *cut.blocks):
        block.forget()
    found, halo = {}, whole.stencil.halo
    for part in cut.parts:
        ghosts = extended[part.whole]
        if part.rank == comm.rank and isinstance(ghosts, GhostLayers):
            found[part] = coordinates_in_box(whole.blocks[part.whole], ghosts, halo, _box(part, halo))
    return found


def _box(part: Part, halo: int) -> tuple[slice, slice, slice]:
    return triple(slice(s.start, s.stop + 2 * halo) for s in part.slices)


def _inner(block: Block, extended: Coordinates, halo: int) -> Block:
    inside = tuple(slice(halo, halo + n) for n in reversed(block.size))
    return Block(block.name, *triple(c[inside] for c in extended), block.regions, block.rounding)
