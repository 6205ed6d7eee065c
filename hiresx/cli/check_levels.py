"""The levels of a refined case, as `hiresx check` shows them."""

from functools import partial
from typing import TYPE_CHECKING, Any

from hiresx.cli import terminal
from hiresx.decomposition.hierarchy import shared_hierarchy
from hiresx.decomposition.levels import levels_size
from hiresx.decomposition.refinement import refine_domain, refined_grid
from hiresx.grid.size import host_memory, in_bytes
from hiresx.mpi.communicator import single_process
from hiresx.simulation.flow_flags import tiles_at_start
from hiresx.solver.initial_flow import initial_flow

if TYPE_CHECKING:
    from hiresx.case import Case
    from hiresx.cli.grid_checks import CheckedGrid
    from hiresx.decomposition import Decomposition
    from hiresx.grid import Grid

# Nodes of a level from which on it is said that they are made: some ten seconds.
LONG = 10_000_000


def computed_grid(case: "Case", found: "CheckedGrid") -> "tuple[Grid, Decomposition]":
    """The grid and the whole blocks that a case computes on: those of all levels, where these follow the flow with the
    tiles of the initial one. Raises HiresxError for what cannot be refined."""
    if case.refine is None:
        return found.grid, found.decomposition
    nodes, needed = levels_size(found.decomposition, case.refine.finest)
    if nodes > LONG and needed <= host_memory():
        terminal.note(f"refine: coordinates of {nodes:,} nodes are made, {in_bytes(needed)}; this takes a while")
    if case.refine.criterion is not None:
        alone = single_process()
        hierarchy = shared_hierarchy(alone, found.grid, found.decomposition, found.extended, case.refine)
        grid, made, _ = hierarchy.with_tiles(tiles_at_start(partial(initial_flow, case), alone)(hierarchy))
        return grid, made
    made, _ = refine_domain(found.decomposition, found.extended, case.refine)
    return refined_grid(found.grid, made), made


def report(made: "Decomposition") -> list[dict[str, Any]]:
    """Tiles and points of each level; an empty list without refinement."""
    if made.levels is None:
        return []
    rows = []
    for level in range(made.levels.finest + 1):
        points = [b.points for b, tile in zip(made.blocks, made.levels.tiles, strict=True) if tile.level == level]
        rows.append({"level": level, "blocks": len(points), "points": sum(points)})
    return rows
