"""Grid sequencing of steady flow: an implicit run starts from the steady flow on the grid of every second node.

The initial flow is restricted to every second node, advanced to steady flow there, and interpolated back. The
interpolation is of sixth order. It is linear where density or pressure of the two interpolations differ by a tenth or
more, as for new tiles of levels (`hiresx.simulation.prolongation`). The coarser run starts from a still coarser one in
the same way.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hiresx.case import Case
from hiresx.case.far_field_vortex import vortex_of
from hiresx.case.functions import STATE
from hiresx.case.outputs import Output
from hiresx.case.validation import check_state
from hiresx.equations.gas import Gas, conservative
from hiresx.errors import HiresxError
from hiresx.grid.shaping import coarsen
from hiresx.simulation.prolongation import interpolate, line_weights

if TYPE_CHECKING:
    from hiresx.simulation.simulation import Simulation

# Drop of the residual on a coarser grid beyond which its discretisation error far exceeds the remaining iteration
# error.
ENOUGH = 1e4


def start_from_coarser(simulation: "Simulation") -> None:
    """Replace the initial state by the steady flow on the grid of every second node, interpolated to all nodes, if the
    case sets the key `implicit.sequence` and the run has not made a step. A line that describes this is added to
    `simulation.restarted`. All ranks must call this. Raises HiresxError for a grid that cannot be coarsened in this
    way, and if the run on the coarser grid fails."""
    case = simulation.case
    if not case.implicit.sequence or simulation.step_count:
        return
    comm, solver = simulation.comm, simulation.solver
    with comm.together():
        try:
            grid, _ = coarsen(solver.grid)
        except HiresxError as error:
            raise HiresxError(f"implicit.sequence = {case.implicit.sequence}: {error.message}", error.hint) from None
    fine = _whole_states(simulation)
    coarse = type(simulation)(
        _coarser(case), solver.backend.name, profiles=simulation.profiles, grid=grid, comm=comm, bind=False,
        rebalance="never", initial=simulation.initial, scalars=simulation.scalars,
    )  # fmt: skip
    steps = [
        tuple(_step(n, m) for n, m in zip(block.size, other.size, strict=True))
        for block, other in zip(solver.grid.blocks, grid.blocks, strict=True)
    ]
    names = [block.name for block in solver.grid.blocks]
    _set(coarse, {name: fine[name][:, :: s[2], :: s[1], :: s[0]] for name, s in zip(names, steps, strict=True)})
    coarser_lines = coarse.restarted  # the run discards them
    record = coarse.run(progress=False)
    gas, found = Gas.of(case), {}
    for (name, values), block, step in zip(_whole_states(coarse).items(), solver.grid.blocks, steps, strict=True):
        weights = [line_weights(n, s) for n, s in zip(block.size, step, strict=True)]
        q = np.stack(conservative(gas.gamma, *values))
        found[name] = np.stack(list(gas.primitive(interpolate(q, weights, gas)).values()))
    _set(simulation, found)
    fall = (record["implicit"] or {}).get("drop", 1.0)
    simulation.restarted.extend(
        [
            *coarser_lines,
            f"started from the flow on {grid.points:,} nodes: {coarse.step_count} steps there, fall of the residual "
            f"{fall:.2g}",
        ]
    )


def _step(nodes: int, coarser: int) -> int:
    return 1 if nodes == coarser else 2


def _coarser(case: Case) -> Case:
    """Return the case of the coarser run. Nothing is written, and only the lift that a vortex of the far field needs is
    monitored."""
    implicit = case.implicit.model_copy(
        update={"sequence": case.implicit.sequence - 1, "drop": min(case.implicit.drop, ENOUGH)}
    )
    nothing: dict[str, Any] = dict.fromkeys(("extrema", "conservation", "kinetic_energy"))
    nothing |= dict.fromkeys(("monitors", "probe", "surface"), ())
    vortex = vortex_of(case)
    nothing["force"] = tuple(f for f in case.force if vortex is not None and f.name == vortex[0].force)
    time = case.time.model_copy(update={"wall_limit": None})
    return case.model_copy(update={"implicit": implicit, "output": Output(), "time": time, **nothing})


def _whole_states(simulation: "Simulation") -> dict[str, np.ndarray]:
    """Return rho, u, v, w, p and the scalars (n, nk, nj, ni) of all blocks of the grid, by name, on every rank.
    Collective."""
    names = [*STATE, *Gas.of(simulation.case).scalars]
    own = [(b.whole, b.first, np.stack([b.state(name) for name in names])) for b in simulation.blocks]
    found = {b.name: np.empty((len(names), *b.size[::-1])) for b in simulation.solver.grid.blocks}
    for parts in simulation.comm.allgather(own):
        for block, first, values in parts:
            found[block][_box(first, values.shape[1:])] = values
    return found


def _set(simulation: "Simulation", states: dict[str, np.ndarray]) -> None:
    """Set the state of all parts of this rank. Raises HiresxError for invalid values. Collective."""
    solver, carried = simulation.solver, Gas.of(simulation.case).scalars
    with simulation.comm.together():
        for n, view in enumerate(simulation.blocks):
            values = states[view.whole][_box(view.first, view.x.shape)]
            state = dict(zip([*STATE, *carried], values, strict=True))
            places = np.asarray(view.x), np.asarray(view.y), np.asarray(view.z)
            check_state(f"the flow from another grid in block '{view.name}'", state, places)
            rho, u, v, w, p = (state.pop(name) for name in STATE)
            solver.set_state(n, rho, u, v, w, p, scalars=state)
    solver.complete_state()


def _box(first: Sequence[int], shape: Sequence[int]) -> tuple[slice, ...]:
    i, j, k = first
    return (slice(None), *(slice(m, m + n) for m, n in zip((k, j, i), shape, strict=True)))
