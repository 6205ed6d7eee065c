"""The tiles that the criteria of refinement select, for the flow of a solver and for the initial flow."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from hiresx.decomposition import Domain
from hiresx.decomposition.flags import CRITERIA, Flags, criterion, looked_at, marks
from hiresx.decomposition.hierarchy import Choosing, Hierarchy
from hiresx.decomposition.levels import part_on_level
from hiresx.decomposition.refinement import Taken, boxes_of
from hiresx.device.arguments import address
from hiresx.device.interface import Call
from hiresx.device.state import BlockState
from hiresx.grid.blocks import FACES, Range, whole_box
from hiresx.grid.patched import PATCHED
from hiresx.mpi.communicator import Communicator
from hiresx.solver import Solver
from hiresx.solver.initial_flow import Flow


def tiles_of_flow(ground: Domain, solver: Solver) -> list[Taken]:
    """Return the tiles (boxes of nodes of finer levels) that the refinement criterion selects in the present flow of
    `solver`, and the tiles that these need: for each level and block a boolean mask [k, j, i] with one entry for each
    possible tile. `ground`: the grid, its levels and its division among the ranks. Collective; the result is the same
    on all ranks."""
    hierarchy, levels = ground.hierarchy, ground.whole.levels
    assert hierarchy is not None and levels is not None
    solver.settle()
    flags = Flags(hierarchy)
    with solver.comm.together():
        looked = [state for state in solver.states if levels.tiles[state.part.whole].level < hierarchy.finest]
        on_levels = [part_on_level(levels, state.part) for state in looked]
        tiles = [(tile.level, tile.base, tile.box) for tile in on_levels]
        alike = [flags.alike(*tile) for tile in tiles]
        largest = _largest_marks(solver, marks_of_flow(ground, solver, looked), alike)
        for tile, marked, first in zip(tiles, largest, alike, strict=True):
            flags.add(*tile, marked, first)
    flags.together()
    return hierarchy.choice.choose(flags.tiles_wanted(hierarchy.of(levels.tiles)))


def marks_of_flow(ground: Domain, solver: Solver, states: Sequence[BlockState]) -> list[Any]:
    """Return, for each of the blocks `states`, an int8 array (nk, nj, ni) on the device that says what the refinement
    criterion demands at each node: 2 to refine, 1 to keep refined, otherwise 0 (see
    `hiresx.decomposition.flags.marks`). `ground`: the grid, its levels and its division among the ranks."""
    assert ground.hierarchy is not None
    table = ground.hierarchy.table
    assert table.criterion is not None
    physical = {(patch.block, patch.face) for patch in ground.whole.patches if patch.condition.type != PATCHED}
    numbers = {
        "criterion": CRITERIA.index(table.criterion), "floor": table.floor, "coarsen": table.coarsen_above,
        "refine": table.refine_above,
    }  # fmt: skip

    def call(state: BlockState, closed: int) -> Call:
        return solver.program.call(
            "refinement_marks", state.size, **state.place, **state.derivative_strides,
            **dict(zip(("nodes_i", "nodes_j", "nodes_k"), state.size, strict=True)), closed=closed, **numbers,
            sv=state.variable_stride, q=state.q, m=state.metrics, jacobian=state.jacobian,
            marks=solver.backend.empty(state.size[::-1], "int8"),
        )  # fmt: skip

    def calls() -> tuple[list[Call], Callable[[], None]]:
        closed = [_closed(ground, state, physical) for state in states]
        made = [solver.kept(("marks", n), (s,), partial(call, s, n)) for s, n in zip(states, closed, strict=True)]
        return made, solver.program.prepare([made])

    made, launch = solver.kept("marks of all", (ground.whole, *states), calls)
    launch()
    return [one.arguments["marks"] for one in made]


def _largest_marks(solver: Solver, marks: Sequence[Any], alike: Sequence[Sequence[np.ndarray]]) -> list[np.ndarray]:
    """Return the largest marks (k, j, i) in boxes of nodes. `marks`: those of the nodes of each part, on the device.
    `alike`: for each part the first nodes of the boxes along i, j and k. The device finds them, and those of all parts
    are copied to the host at once."""
    backend, shapes = solver.backend, [[len(first) for first in reversed(of)] for of in alike]
    ends = np.cumsum([0, *map(prod, shapes)]).tolist()

    def calls() -> tuple[Any, Callable[[], None]]:
        every, bounds, rows = backend.empty((ends[-1],), "int8"), list[int](), []
        for begin, own, shape, of in zip(ends[:-1], marks, shapes, alike, strict=True):
            rows.append((begin, address(own), *own.shape[:0:-1], *shape[:0:-1], len(bounds)))
            bounds += [n for first, size in zip(of, own.shape[::-1], strict=True) for n in (*first.tolist(), size)]
        call = solver.program.call(
            "largest_marks", (ends[-1], 1, 1), parts=len(rows), part=backend.to_device(np.array(rows).ravel()),
            ends=backend.to_device(np.array(bounds, np.int32)), largest=every,
        )  # fmt: skip
        return every, solver.program.prepare([call._replace(touched=[(own, False) for own in marks])])

    if not marks:
        return []
    # The launch holds the arrays whose numbers are in the key, so these numbers stay their own.
    every, launch = solver.kept(("largest marks", *map(id, marks)), (), calls)
    launch()
    found = backend.to_host(every)
    return [found[a:b].reshape(shape) for shape, (a, b) in zip(shapes, pairwise(ends), strict=True)]


def _closed(ground: Domain, state: BlockState, physical: set[tuple[int, str]]) -> int:
    """Return a bit for each face of a part, in the order of FACES: whether it lies on a physical face of its block."""
    whole, size = state.part, ground.whole.blocks[state.part.whole].size
    bits = 0
    for n, face in enumerate(FACES):
        d, upper = divmod(n, 2)
        ends = whole.box[d][upper] == (size[d] if upper else 0)
        bits |= int(ends and (whole.whole, face) in physical) << n
    return bits


def _window(extended: Sequence[np.ndarray], box: Range, halo: int) -> list[np.ndarray]:
    """Return the coordinates with ghosts in a box of nodes and one node around it."""
    single = [n == 2 * halo + 1 for n in reversed(extended[0].shape)]
    around = [
        (halo, halo + 1) if one else (halo + lo - 1, halo + hi + 1) for (lo, hi), one in zip(box, single, strict=True)
    ]
    return [c[tuple(slice(lo, hi) for lo, hi in reversed(around))] for c in extended]


def tiles_at_start(initial: Callable[[], Flow], comm: Communicator) -> Choosing:
    """Return a function that selects tiles (boxes of nodes of finer levels) by the refinement criterion in the initial
    flow, level by level. `initial`: a function that returns the initial flow. All ranks of `comm` must call the
    returned function. Its result is the same on all ranks: for each level and block a boolean mask [k, j, i] with one
    entry for each possible tile. It raises errors of `initial` and of the flow."""

    def choose(hierarchy: Hierarchy) -> Sequence[Taken]:
        taken: Sequence[Taken] | None = None
        with comm.together():
            if comm.root:
                taken = _at_start(hierarchy, initial())
        found: Sequence[Taken] = comm.bcast(taken)
        return found

    return choose


def _at_start(hierarchy: Hierarchy, flow: Flow) -> list[Taken]:
    flags, none = Flags(hierarchy), hierarchy.choice.none()
    for level in range(hierarchy.finest):
        taken = hierarchy.choice.choose(flags.tiles_wanted(none))
        for b, block in enumerate(hierarchy.grids[level].blocks):
            boxes = [whole_box(block.size)]
            if level:
                boxes = list(boxes_of(hierarchy.lattices[level][b], taken[level][b]))
            for box in boxes:
                nodes = _window(hierarchy.nodes[level][b], box, hierarchy.grids[0].stencil.halo)
                gas, _ = flow(*nodes)
                held = [
                    np.broadcast_to(np.asarray(a, float), nodes[0].shape) for a in gas[: looked_at(hierarchy.table)]
                ]
                # the flow behind the ends of a block is not known
                beyond = np.array([[lo == 0, hi == n] for (lo, hi), n in zip(box, block.size, strict=True)])
                flags.add(level, b, box, marks(hierarchy.table, criterion(hierarchy.table, held, nodes, beyond)))
    return hierarchy.choice.choose(flags.tiles_wanted(none))
