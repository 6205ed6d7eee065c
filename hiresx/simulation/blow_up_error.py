"""The error for a flow that has blown up, with the position and the flow around it."""

from pathlib import Path
from typing import Any

import numpy as np

from hiresx import kernels
from hiresx.base.arrays import triple
from hiresx.case.source_table import source_formulas
from hiresx.equations import GAS_PRIMITIVE
from hiresx.errors import HiresxError
from hiresx.grid.blocks import Range
from hiresx.grid.motions import format_vector
from hiresx.output.fields import field_file as fields
from hiresx.solver import Solver

FILE = "blow-up.nc"
# A flow has blown up where its waves are so many times faster than when the time step was largest.
TOO_FAST = 1e6
# Number of nodes on each side of the place that are written: more than twice the reach of the scheme.
REACH = 8
_VARIABLES = GAS_PRIMITIVE


class BlowUp(HiresxError):
    """The error for a flow that has become invalid. `block` (name or number of the whole block) and `node` (i, j, k):
    the place. `rank`: the rank that has this node; None if no node is invalid yet. `again`: KEY=VALUE, a setting with
    which a restart may get further; None if no restart can. `is_finite`: whether density and pressure are still
    positive and finite."""

    placed = True
    is_finite = False

    def __init__(
        self,
        message: str,
        hint: str,
        block: int | None = None,
        node: tuple[int, int, int] | None = None,
        rank: int | None = None,
        again: str | None = "",
    ):
        super().__init__(message, hint)
        self.block, self.node, self.rank, self.again = block, node, rank, again


def _hint(solver: Solver) -> str:
    """Return a hint for the case after a blow-up. A restart may change the step, but not the computation."""
    limits = kernels.trait("positivity", solver.case.scheme.positivity, "limits_flux")
    limiter = 'begin anew with scheme.positivity = "limiter"'
    refine = solver.case.refine  # levels that conserve change rates that the limiter has accepted
    conserves = ["begin anew without refine.conservative"] * (refine is not None and refine.conservative)
    return ", or ".join([f"lower {_step(solver)}", *([] if limits else [limiter]), *conserves])


# whole block, 0 rho or 1 p, (k, j, i), value, (x, y, z), rank
Found = tuple[int, int, tuple[int, int, int], float, tuple[float, float, float], int]


def _step(solver: Solver) -> str:
    return "time.cfl" if solver.case.time.dt is None else "time.dt"


def _again(solver: Solver) -> str:
    """Return the setting with half of the step."""
    time = solver.case.time
    return f"{_step(solver)}={0.5 * (time.dt or time.cfl or 0.0):g}"


def check(solver: Solver) -> tuple[np.ndarray, float, float]:
    """Return the root mean squares of dq/dt (5,), the least density and the least pressure of the flow of `solver`.
    Raises BlowUp if one of them is not finite or density or pressure is not positive. All ranks must call this."""
    norms, density, pressure = solver.norms()
    if not ((np.isfinite(norms).all() or not solver.has_rates) and density > 0 and pressure > 0):
        raise find(solver, "the rate of change is not finite")
    return norms, density, pressure


def find(solver: Solver, otherwise: str) -> BlowUp:
    """Return the error for the first node whose density or pressure is not a positive number, or at which a formula of
    the table [source] of the case file is not finite. If there is no such node, return an error with the text
    `otherwise`. All ranks must call this; the error is the same on all of them, and must be raised on all."""
    if (of_source := find_in_source(solver)) is not None:
        return of_source
    found = [first for first in solver.comm.allgather(_first(solver)) if first is not None]
    error = _error(solver, min(found, key=lambda first: first[:3])) if found else nowhere(solver, otherwise)
    error.everywhere = True
    return error


def find_in_source(solver: Solver) -> BlowUp | None:
    """Return the error for the first node with a valid state at which a formula of the table [source] of the case file
    is not finite, now or at a time within the next step; None if there is none. All ranks must call this."""
    if solver.case.source is None:
        return None
    found = [first for first in solver.comm.allgather(_first_of_source(solver)) if first is not None]
    if not found:
        return None
    whole, (k, j, i), key, value, xyz, t, rank = min(found, key=lambda first: first[:2])
    text = solver.case.source.texts()[key]
    error = BlowUp(
        f"source.{key} = \"{text}\" is {value} in block '{solver.grid.blocks[whole].name}' at "
        f"node (i, j, k) = ({i}, {j}, {k}), (x, y, z) = {format_vector(xyz)}, time {t:.6g}",
        "change the formula so that it is a number there: maximum(a, 0), or where(a < b, c, d) around the whole",
        whole,
        (i, j, k),
        rank,
        None,  # a restart computes with the same formula
    )
    error.everywhere = True
    return error


# whole block, (k, j, i), key, value, (x, y, z), time, rank
OfSource = tuple[int, tuple[int, int, int], str, float, tuple[float, float, float], float, int]


def _first_of_source(solver: Solver) -> OfSource | None:
    """Return the first of this rank's nodes at which a source is not finite."""
    formulas, parameters = source_formulas(solver.case)
    found: list[OfSource] = []
    for n, state in enumerate(solver.states):
        with np.errstate(all="ignore"):
            values = solver.primitives(n)
            values["T"] = solver.case.gas.gamma * values["p"] / values["rho"]
        good = (values["rho"] > 0) & (values["p"] > 0) & np.isfinite(sum(values[name] for name in values))
        values |= {axis: getattr(state.block, axis) for axis in "xyz"}
        for key, formula in formulas.items():
            for t in (solver.time, solver.time + 0.5 * solver.dt, solver.time + solver.dt):
                with np.errstate(all="ignore"):
                    rate = formula.values(values | {"t": np.full(good.shape, t)}, parameters)
                bad = good & ~np.isfinite(rate)
                if bad.any():
                    k, j, i = (int(m) for m in np.argwhere(bad)[0])
                    place = triple(m + first for m, first in zip((k, j, i), reversed(state.first), strict=True))
                    xyz = triple(float(c) for c in state.block.node(i, j, k))
                    value = float(rate[k, j, i])
                    found.append((state.part.whole, place, key, value, xyz, t, solver.comm.rank))
                    break
    return min(found, key=lambda first: first[:2], default=None)


def nowhere(solver: Solver, what: str) -> BlowUp:
    """Return the error for a flow that failed at an unknown position. `what`: the reason, for the message."""
    return BlowUp(
        f"the flow blew up: {what} at {_moment(solver)}; density and pressure are positive everywhere"
        f"{solver.integrator.obstacle}",
        _hint(solver),
        again=_again(solver),
    )


def _moment(solver: Solver) -> str:
    return f"step {solver.steps}, time {solver.time:.6g}"


def _first(solver: Solver) -> Found | None:
    """Return the first invalid one of this rank's nodes: (whole block, 0 rho or 1 p, (k, j, i), value, (x, y, z),
    rank)."""
    found: list[Found] = []
    for n, state in enumerate(solver.states):
        with np.errstate(all="ignore"):
            values = solver.primitives(n)
        for order, name in enumerate(("rho", "p")):
            bad = ~(values[name] > 0) | ~np.isfinite(values[name])
            if bad.any():
                k, j, i = (int(m) for m in np.argwhere(bad)[0])
                place = triple(int(m) + first for m, first in zip((k, j, i), reversed(state.first), strict=True))
                xyz = triple(float(c) for c in state.block.node(i, j, k))
                found.append((state.part.whole, order, place, float(values[name][k, j, i]), xyz, solver.comm.rank))
                break
    return min(found, default=None)


def _error(solver: Solver, first: Found, moment: str | None = None) -> BlowUp:
    whole, order, (k, j, i), value, xyz, rank = first
    return BlowUp(
        f"the flow blew up: {('rho', 'p')[order]} = {value:.4g} in block '{solver.grid.blocks[whole].name}' at node "
        f"(i, j, k) = ({i}, {j}, {k}), (x, y, z) = {format_vector(xyz)}, {moment or _moment(solver)}",
        f"{_hint(solver)}; look at the grid and the conditions near that place",
        whole,
        (i, j, k),
        rank,
        _again(solver),
    )


class StepLimit:
    """A check that the time step of a run has not collapsed. An unstable flow may keep positive and finite density and
    pressure while its waves become faster without end and its steps shorter. It costs a comparison of numbers on the
    host, as the size of steps is known there. Grid and CFL number are those of the run, so that a restart or another
    solver of the same run does not change what the largest step was."""

    def __init__(self) -> None:
        self._largest = 0.0

    def check(self, solver: Solver) -> float:
        """Return the size of the last time step, in L / c_ref. Raises BlowUp, with the node of the fastest waves, if
        the CFL number now permits a step that is `TOO_FAST` times smaller than the largest one that the run has made:
        on the same grid the waves at a node have then become faster by this factor. Steps that end at the time of an
        output, are shortened by `time.retries`, or follow from viscosity, from `implicit.tolerance`, or from `time.dt`
        do not count, and neither do steps before a state that a user has set. All ranks must call this."""
        time, dt = solver.case.time, float(solver.dt)
        if time.local or time.cfl is None or solver.integrator.next_step is not None:
            return dt
        cache = solver.step_size.state_cache
        self._largest, cache.replaced = max(0.0 if cache.replaced else self._largest, dt), False
        if dt * TOO_FAST < self._largest:
            inviscid = float((solver.step_size.radii() if cache.radii is None else cache.radii)[0])
            if inviscid * self._largest > TOO_FAST * time.cfl:
                raise self._error(solver)
        return dt

    def _error(self, solver: Solver) -> BlowUp:
        invalid = find(solver, "")
        if invalid.block is not None:
            return invalid
        speed, whole, (k, j, i), xyz, rank = max(solver.comm.allgather(_fastest(solver)), key=lambda found: found[0])
        error = BlowUp(
            f"the flow blew up: the time step fell from {self._largest:.4g} to {solver.dt:.4g}, as |u| + c = "
            f"{speed:.4g} in block '{solver.grid.blocks[whole].name}' at node (i, j, k) = ({i}, {j}, {k}), (x, y, z) = "
            f"{format_vector(xyz)}, {_moment(solver)}; density and pressure are positive everywhere",
            f"{_hint(solver)}; look at the grid and the conditions near that place",
            whole,
            (i, j, k),
            rank,
            _again(solver),
        )
        error.everywhere = error.is_finite = True
        return error


def _fastest(solver: Solver) -> tuple[float, int, tuple[int, int, int], tuple[float, float, float], int]:
    """Of this rank's nodes the one with the largest |u| + c: (|u| + c, whole block, (k, j, i), (x, y, z), rank)."""
    found = (-1.0, 0, (0, 0, 0), (0.0, 0.0, 0.0), solver.comm.rank)
    for n, state in enumerate(solver.states):
        values = solver.primitives(n)
        with np.errstate(all="ignore"):
            speed = np.sqrt(sum(values[name] ** 2 for name in "uvw"))
            speed += np.sqrt(solver.case.gas.gamma * values["p"] / values["rho"])
        k, j, i = (int(m) for m in np.unravel_index(speed.argmax(), speed.shape))
        if speed[k, j, i] > found[0]:
            place = triple(m + first for m, first in zip((k, j, i), reversed(state.first), strict=True))
            xyz = triple(float(c) for c in state.block.node(i, j, k))
            found = float(speed[k, j, i]), state.part.whole, place, xyz, solver.comm.rank
    return found


class Trace:
    """A search for the node and the step at which the flow became invalid first. It repeats the steps since a valid
    state, and examines the state after every update and every boundary condition on nodes of faces.

    The device still has the state at the start of the last step. If time steps follow from the CFL number, an invalid
    state is detected in the same step, so that this state is enough. With a fixed or local step an invalid state may
    not be detected for many steps, and not all time integrators store the state. In these cases `remember` stores a
    copy of a state that was found valid.
    """

    def __init__(self, solver: Solver):
        self._solver = solver
        time, every = solver.case.time, solver.case.monitor.every
        self._keeps = not solver.integrator.keeps_start or (every > 1 and (time.local or time.dt is not None))
        self._good: tuple[dict[str, Any], dict[tuple[str, Range], np.ndarray]] | None = None

    def remember(self) -> None:
        """Store a copy of the present state, which was found valid, if it may be needed for a search."""
        if self._keeps:
            kept = {(piece.name, piece.box): np.array(piece.array) for piece in self._solver.pieces()}
            self._good = self._solver.values(), kept

    def back(self, error: BlowUp) -> BlowUp:
        """Repeat the steps since the last valid state that is stored, to find the node and the step at which the flow
        became invalid first. Return the error that names them, or `error` if the search is not possible. The solver
        then has the invalid state. `error`: an error that was raised on all ranks. All ranks must call this."""
        solver = self._solver
        if not error.everywhere or error.block is None or error.is_finite:
            return error
        last = solver.steps
        if solver.can_rewind:
            solver.rewind()
        elif self._good is not None:
            values, kept = self._good
            solver.restore(values, lambda name, box: kept[name, box])
        else:
            return error
        if (of_source := find_in_source(solver)) is not None:
            return of_source
        # A step that could not be undone was not counted.
        return began(solver, last - solver.steps + (not solver.integrator.keeps_start), error)


def began(solver: Solver, steps: int, otherwise: BlowUp) -> BlowUp:
    """Make up to `steps` time steps with `solver` from a valid state, and stop when density or pressure of a node
    becomes invalid. Return the error that names this node, or `otherwise` if there is none. All ranks must call
    this."""
    found: list[BlowUp] = []
    # The norms overwrite intermediate results of the tasks of a stage. They are therefore computed before the first
    # task and after the update.
    between = True

    def watch(stage: int, task: str) -> bool:
        nonlocal between
        looks = task == "update" or (between and task == "boundary")
        between = looks
        if not looks:
            return True
        solver.settle()
        _, density, pressure = solver.norms()
        if density > 0 and pressure > 0:
            return True
        firsts = [first for first in solver.comm.allgather(_first(solver)) if first is not None]
        if firsts:
            what = "the update" if task == "update" else "the boundary conditions"
            moment = f"by {what} of stage {stage + 1} of step {solver.steps + 1}, time {solver.time:.6g}"
            found.append(_error(solver, min(firsts, key=lambda first: first[:3]), moment))
        return not found

    for _ in range(steps):
        if not solver.watched_step(watch):
            break
    if not found:
        return otherwise
    found[0].everywhere = True
    return found[0]


def write_neighbourhood(directory: Path, solver: Solver, error: BlowUp, case: dict[str, Any]) -> Path | None:
    """Write rho, u, v, w, p around the invalid node that `error` names to the field file `directory`/blow-up.nc, as far
    as this rank has the nodes, and return its path; None if the node is unknown. `case`: the case as nested
    dictionaries, which the file contains. Only the rank that has the node calls this. Raises HiresxError if the file
    cannot be written."""
    if error.block is None or error.node is None:
        return None
    n, place = next(
        (n, place)
        for n, state in enumerate(solver.states)
        if state.part.whole == error.block
        for place in [[m - first for m, first in zip(error.node, state.first, strict=True)]]
        if all(0 <= m < size for m, size in zip(place, state.size, strict=True))
    )
    state = solver.states[n]
    box = tuple(slice(max(m - REACH, 0), m + REACH + 1) for m in reversed(place))
    with np.errstate(all="ignore"):
        values = {name: np.ascontiguousarray(v[box]) for name, v in solver.primitives(n).items()}
    i, j, k = (s.start + first for s, first in zip(reversed(box), state.first, strict=True))
    block = state.block
    name = f"{state.name}_from_{i}_{j}_{k}"
    part = fields.FieldBlock(name, *triple(np.ascontiguousarray(c[box]) for c in (block.x, block.y, block.z)), values)
    return fields.write(directory / FILE, [part], solver.time, solver.steps, case, _VARIABLES)
