"""The results of a flow that can be differentiated: single numbers that its monitors measure, and lift and drag."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from hiresx.case import Case
from hiresx.case.error_messages import did_you_mean
from hiresx.errors import HiresxError
from hiresx.output.watch.monitors.force import ForceMonitor
from hiresx.output.watch.monitors.user import UserMonitor
from hiresx.output.watch.sampling import Monitor
from hiresx.output.watch.watched_surface import NodeContributions
from hiresx.simulation import Simulation

# Kinds of monitors whose samples are single numbers of the flow at that moment.
KINDS = ("force", "conservation", "kinetic_energy", "function")
# Coefficients of a force: across and along the velocity of `initial.state`, in the plane of x and y.
LIFT, DRAG = "lift", "drag"


def measure(simulation: Simulation, wanted: Sequence[str]) -> dict[str, float]:
    """Return the results `wanted` of the current flow of `simulation`, by full name HISTORY.QUANTITY. A name without
    the history is completed. All ranks must call this. Raises HiresxError for a name that no history has, and for one
    that several histories have."""
    full = all("." in name for name in wanted)
    values = _all(simulation, {name.partition(".")[0] for name in wanted} if full else None)
    with simulation.comm.together():
        return {name: values[name] for name in (full_name(values, name) for name in wanted)}


def shares(simulation: Simulation, wanted: Sequence[str]) -> list[NodeContributions]:
    """Return the contributions of single nodes to those of the results `wanted` that are forces, given by full name
    HISTORY.QUANTITY, for the current flow of `simulation`."""
    found, left = [], list(wanted)
    for monitor in simulation.attachments:
        if isinstance(monitor, ForceMonitor):
            states, places, of_force = monitor.shares()
            of_force = {**_coefficients(simulation.case, of_force), **of_force}
            named = {f"{monitor.history.name}.{name}": of_force[name] for name in of_force}
            mine = [name for name in left if name in named]
            left = [name for name in left if name not in named]
            if mine:
                found.append(NodeContributions(states, places, {name: named[name] for name in mine}))
    return found


def check_forces(simulation: Simulation, wanted: Sequence[str]) -> None:
    """Raise HiresxError for a result among `wanted`, given by full name HISTORY.QUANTITY, to which no single nodes
    contribute. All ranks must call this."""
    forces = {name for of_walls in shares(simulation, wanted) for name in of_walls.values}
    with simulation.comm.together():
        for name in wanted:
            if name not in forces:
                raise HiresxError(
                    f"--of {name}: the adjoint method is for the forces of [[force]] only",
                    "leave out --adjoint for others",
                )


def full_name(values: Mapping[str, float], name: str) -> str:
    """Return the full name HISTORY.QUANTITY, such as "wall.lift", of the result `name`, which may be a full name, or
    QUANTITY alone if only one history has it. `values`: all results by full name. Raises HiresxError if no result has
    this name, or several have it."""
    if name in values:
        return name
    near = [full for full in values if full.partition(".")[2] == name]
    if len(near) == 1:
        return near[0]
    if near:
        raise HiresxError(f"--of {name}: {' and '.join(near)} have this name", "name one of them in full")
    if not values:
        raise HiresxError(
            f"--of {name}: no monitor of the case records single numbers",
            "add a [[force]] to the case, a [conservation], or a function of case.py that `monitors` names",
        )
    last = [full.partition(".")[2] for full in values]
    if name.rpartition(".")[2] in (LIFT, DRAG) and "force_x" in last:
        raise HiresxError(
            f"--of {name}: lift and drag are along and across the velocity of initial.state, and the case has none in "
            "the plane of x and y",
            "give initial.state instead of initial.function, or differentiate force_x and force_y",
        )
    raise HiresxError(
        f"--of {name}: no monitor of the case has such a number", did_you_mean(name, [*values, *last], "numbers")
    )


def _all(simulation: Simulation, histories: set[str] | None) -> dict[str, float]:
    """Return all numbers, of these histories alone where they are given and all exist."""
    watching = [m for m in simulation.attachments if isinstance(m, Monitor) and m.history.kind in KINDS]
    if histories is not None and histories <= {m.history.name for m in watching}:
        watching = [m for m in watching if m.history.name in histories]
    simulation.solver.steps += 1  # functions of users are called once in a step
    found: dict[str, float] = {}
    for monitor in watching:
        solver, name = simulation.solver, monitor.history.name
        values: Mapping[str, float]
        if isinstance(monitor, ForceMonitor):
            values = monitor.integrals()  # extremes along walls have no derivative where their place changes
            values = {**_coefficients(simulation.case, values), **values}
        else:
            values = monitor.values(solver) if isinstance(monitor, UserMonitor) else monitor.measure(solver)
        found |= {f"{name}.{quantity}": float(value) for quantity, value in values.items()}
    return found


def _coefficients(case: Case, force: Mapping[str, Any]) -> dict[str, Any]:
    """Return lift and drag over rho V^2/2 and the unit of area: L, or L^2 in three dimensions, where the flow starts
    from a uniform state that moves."""
    state = case.initial.state
    if state is None or case.axisymmetric or math.hypot(state.u, state.v) == 0.0:
        return {}
    speed = math.hypot(state.u, state.v)
    along, across, pressure = state.u / speed, state.v / speed, 0.5 * state.rho * speed**2
    x, y = force["force_x"], force["force_y"]
    return {LIFT: (y * along - x * across) / pressure, DRAG: (x * along + y * across) / pressure}
