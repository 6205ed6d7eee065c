"""The report of `hiresx check` on the levels of a refined case."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from hiresx.cli import terminal
from hiresx.decomposition.hierarchy import shared_hierarchy
from hiresx.decomposition.levels import levels_size
from hiresx.decomposition.rank_cost import work
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

# Number of nodes of a level from which on a message announces that it is made: some ten seconds.
LONG = 10_000_000


def computed_grid(case: "Case", found: "CheckedGrid") -> "tuple[Grid, Decomposition]":
    """Return the grid and the decomposition on which a case is computed, with the blocks of all levels of refinement.
    `found`: the checked grid of the case. If refinement follows the flow, the refined boxes are those of the initial
    flow. Raises HiresxError for a grid that cannot be refined."""
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
    """Return one dictionary for each level of refinement of the decomposition `made`; an empty list without refinement.
    `level`: the number of the level. `blocks`: the number of its blocks. `points`: the number of its nodes, of which
    `under` lie under finer levels. `part`: the fraction of the grid that the level covers, by nodes. `time`: its
    fraction of the time of a step on a CPU, by the cost of nodes, lines and blocks (`rank_cost.work`)."""
    levels = made.levels
    if levels is None:
        return []
    rows = []
    works = [work(block.size) for block in made.blocks]
    for level in range(levels.finest + 1):
        own = [n for n, tile in enumerate(levels.tiles) if tile.level == level]
        finer = [tile for tile in levels.tiles if tile.level == level + 1]
        points = sum(made.blocks[n].points for n in own)
        throughout = sum(math.prod(levels.spaces[level, base].size) for base in range(levels.of_grid))
        rows.append(
            {
                "level": level,
                "blocks": len(own),
                "points": points,
                # every second node of a level coincides with a node of the next coarser level
                "under": sum(math.prod(-(-hi // 2) + (-lo // 2) for lo, hi in tile.box) for tile in finer),
                "part": points / throughout,
                "time": sum(works[n] for n in own) / sum(works),
            }
        )
    return rows


def table(rows: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of the printed table of levels of refinement, each with level, blocks, nodes, nodes under finer
    levels, the fraction of the grid that the level covers, and its fraction of the time of a step. `rows`: the result
    of `report`."""
    for row in rows:
        yield (
            row["level"], row["blocks"], f"{row['points']:,}", f"{row['under']:,}", f"{row['part']:.1%}",
            f"{row['time']:.1%}",
        )  # fmt: skip
