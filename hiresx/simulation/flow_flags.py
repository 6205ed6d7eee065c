"""The tiles that the flow asks for: that of a solver, and the one that a run begins with."""

from collections.abc import Callable, Sequence

import numpy as np

from hiresx.base.arrays import triple
from hiresx.decomposition import Domain
from hiresx.decomposition.flags import Flags, criterion, looked_at
from hiresx.decomposition.hierarchy import Choosing, Hierarchy
from hiresx.decomposition.refinement import Taken, boxes_of
from hiresx.device.state import BlockState
from hiresx.grid.blocks import FACES, Range, shift_range, whole_box
from hiresx.grid.patched import PATCHED
from hiresx.mpi.communicator import Communicator
from hiresx.solver import Solver
from hiresx.solver.initial_flow import Flow


def tiles_of_flow(ground: Domain, solver: Solver) -> list[Taken]:
    """Return the tiles that the criterion selects in the flow of `solver` on `ground`, with the tiles that these need.
    It is evaluated on the host, from copies of the states with their ghosts. Collective; the result is the same on all
    ranks."""
    hierarchy, levels = ground.hierarchy, ground.whole.levels
    assert hierarchy is not None and levels is not None
    solver.settle()
    flags = Flags(hierarchy)
    physical = {(patch.block, patch.face) for patch in ground.whole.patches if patch.condition.type != PATCHED}
    with solver.comm.together():
        for state in solver.states:
            tile = levels.tiles[state.part.whole]
            if tile.level == hierarchy.finest:
                continue
            box = shift_range(state.part.box, triple(lo for lo, _ in tile.box))
            value = _value(hierarchy, ground, solver, state, physical)
            flags.add(tile.level, tile.base, box, value)
    flags.together()
    return hierarchy.choice.choose(flags.tiles_wanted(hierarchy.of(levels.tiles)))


def _value(
    hierarchy: Hierarchy, ground: Domain, solver: Solver, state: BlockState, physical: set[tuple[int, str]]
) -> np.ndarray:
    """The criterion at the nodes of a part."""
    sides = zip(reversed(state.halo), reversed(state.size), strict=True)
    at = tuple(slice(h - 1, h + n + 1) if h else slice(0, 1) for h, n in sides)  # and a layer of ghosts
    kept = solver.backend.to_host(state.q[: looked_at(hierarchy.table)])
    rho, *momentum = kept[(slice(None), *at)].astype(np.float64)
    flow = [rho, *(m / rho for m in momentum)]
    whole, size = state.part, ground.whole.blocks[state.part.whole].size
    beyond = np.zeros((3, 2), bool)
    for n, face in enumerate(FACES):
        d, upper = divmod(n, 2)
        ends = whole.box[d][upper] == (size[d] if upper else 0)
        beyond[d, upper] = ends and (whole.whole, face) in physical
    nodes = _window(ground.coordinates(state.part), whole_box(state.size), ground.halo)
    return criterion(hierarchy.table, flow, nodes, beyond)


def _window(extended: Sequence[np.ndarray], box: Range, halo: int) -> list[np.ndarray]:
    """What coordinates with ghosts are in a box of nodes and one node around it."""
    single = [n == 2 * halo + 1 for n in reversed(extended[0].shape)]
    around = [
        (halo, halo + 1) if one else (halo + lo - 1, halo + hi + 1) for (lo, hi), one in zip(box, single, strict=True)
    ]
    return [c[tuple(slice(lo, hi) for lo, hi in reversed(around))] for c in extended]


def tiles_at_start(initial: Callable[[], Flow], comm: Communicator) -> Choosing:
    """Return a function that selects tiles by the criterion in the initial flow, level by level. `initial` returns the
    flow. The function is collective, has the same result on all ranks, and raises errors of `initial` and of its
    flow."""

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
                # what the flow is behind the ends of a block is not said
                beyond = np.array([[lo == 0, hi == n] for (lo, hi), n in zip(box, block.size, strict=True)])
                flags.add(level, b, box, criterion(hierarchy.table, held, nodes, beyond))
    return hierarchy.choice.choose(flags.tiles_wanted(none))
