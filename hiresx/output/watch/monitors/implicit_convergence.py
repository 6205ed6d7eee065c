"""The progress of implicit integrators: a history of every step, and the messages at the end of a run on how far the
residual of steady flow has fallen, and about steps of unsteady flow that were not solved."""

import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from hiresx.base.plural import plural
from hiresx.case import Case
from hiresx.case.implicit_table import more_solved
from hiresx.output.watch.history import Column
from hiresx.output.watch.sampling import Monitor
from hiresx.output.watch.watched import WatchedRun
from hiresx.solver import Solver
from hiresx.time.implicit_stages import Stages
from hiresx.time.linearised import Steady

COLUMNS = (
    Column("residual", "root of the sum of squares of all rates of change", "c_ref / L"),
    Column("drop", "residual of the first step over this one", "1"),
    Column("cfl", "CFL number of the pseudo-time step", "1"),
    Column("share", "share of the Newton step that was taken", "1"),
    Column("linear_drop", "residual of the linear equations over that at the start", "1"),
    Column("products", "products with the Jacobian", "1"),
    Column("sweeps", "sweeps in a preconditioning", "1"),
)
STAGE_COLUMNS = (
    Column("newton", "Newton steps, of all stages", "1"),
    Column("products", "products with the Jacobian, of all stages", "1"),
    Column("residual", "root of the sum of squares of what the rates of change do not satisfy", "c_ref / L"),
    Column("drop", "the least fall of the residual in a stage", "1"),
    Column("share", "the smallest share of a Newton step that was taken", "1"),
    Column("linear_drop", "the largest residual of the linear equations over that at the start", "1"),
    Column("assemblies", "how often blocks were made", "1"),
)
ERROR_COLUMN = Column("error", "estimated error of the step over the norm of the state", "1")


def build(case: Case, simulation: WatchedRun) -> list[Monitor]:
    """Return the monitor of the Newton iterations of the run `simulation` in a list, which is empty if the time
    integrator is not implicit."""
    integrator = simulation.solver.integrator
    if isinstance(integrator, Stages):
        errors = () if case.implicit.tolerance is None else (ERROR_COLUMN,)
        return [StageProgress(simulation, (*STAGE_COLUMNS, *errors), case.implicit.newton_drop)]
    if isinstance(integrator, Steady):
        return [NewtonProgress(simulation, COLUMNS, case.implicit.drop)]
    return []


class _OfReport(Monitor):
    """Columns that the integrator reports after each step; has nan ahead of the first one. `drop`: what the case asks
    the residual to fall by."""

    def __init__(self, simulation: WatchedRun, columns: Sequence[Column], drop: float | None):
        super().__init__(simulation.solver.comm, "implicit", "implicit", columns, 1, out=simulation.out)
        self._columns, self._drop = columns, drop

    def measure(self, solver: Solver) -> dict[str, float]:
        report = solver.integrator.report
        return {column.name: float(report.get(column.name, float("nan"))) for column in self._columns}


class StageProgress(_OfReport):
    """Monitor of the Newton iterations of unsteady flow, one sample per time step."""

    def finish(self, solver: Solver) -> None:
        """Complete the history at the end of a run, and add a note about implicit stages of time steps whose Newton
        iteration did not converge."""
        memory = solver.integrator.memory
        if memory.get("stalled") and sys.exception() is None:
            self.notes.append(stalled_stages(memory, solver.integrator.report.get("last_stall", {}), self._drop))
        super().finish(solver)


def stalled_stages(memory: Mapping[str, Any], last: Mapping[str, Any], drop: float | None) -> str:
    """Return a message with the number of implicit stages whose Newton iteration did not converge, the place of the
    last one, and advice. `memory`: the counts of stages that the integrator keeps over the whole run. `last`: time,
    node and residuals of the last such stage; empty if unknown. `drop`: the factor by which the case requires the
    residual to fall, or None if it requires none."""
    asked = "the error in time needs" if drop is None else f"implicit.newton_drop = {drop:.3g}"
    said = (
        f"the residual of {memory['stalled']:g} stages of steps fell by less than {asked}, "
        f"by {memory['least_drop']:.3g} at least"
    )
    if not last:
        return f"{said}; take a smaller step, or more implicit.newton_steps"
    advice = (
        "more implicit.krylov or implicit.sweeps, or a smaller step"
        if last["unsolved"] and last["linear_drop"] > 0.1
        else "a smaller step, or more implicit.newton_steps"
    )
    return (
        f"{said}; that of the last one, at t = {last['time']:.4g}, was largest in the equation of {last['equation']} "
        f"at node (i, j, k) = {tuple(last['node'])} of block '{last['block']}', with a linear residual of "
        f"{last['linear_drop']:.2g}; take {advice}"
    )


class NewtonProgress(_OfReport):
    """Monitor of the Newton iterations towards steady flow."""

    def finish(self, solver: Solver) -> None:
        """Complete the history at the end of a run, and add a note on whether the iteration towards steady flow has
        converged."""
        integrator = solver.integrator
        report = integrator.report
        if report and sys.exception() is None and self._drop is not None:
            if integrator.converged:
                self.notes.append(convergence(integrator.memory, self._drop, solver.steps))
            else:
                self.notes.append(stall(report, self._drop, solver.case.implicit.sweeps))
        super().finish(solver)


def convergence(memory: Mapping[str, float], drop: float, steps: int) -> str:
    """Return a message that the iteration towards steady flow has converged after `steps` steps. `memory`: the first
    and the last residual, by name. `drop`: the factor by which the case requires the residual to fall."""
    first, last = memory["first_residual"], memory["residual"]
    if 0 < last * drop <= first:
        fell = f"fell by {first / last:.2g} (implicit.drop = {drop:g}) in"
    else:
        fell = f"is {last:.2g}, which is round-off, after"
    return f"the residual {fell} {plural(steps, 'step')}: the flow is steady"


def stall(report: Mapping[str, Any], drop: float, sweeps: int | None) -> str:
    """Return a message that the iteration towards steady flow ended without convergence, with possible remedies.
    `report`: the integrator's data of the last step, such as the residuals and the node with the largest one. `drop`:
    the factor by which the case requires the residual to fall. `sweeps`: the key implicit.sweeps of the case."""
    place = report["largest"]
    left = report["linear_drop"]
    solved = "no linear residual known" if math.isnan(left) else f"a linear residual of {left:.2g}"
    if left > 0.1:
        advice = f"the linear equations were not solved: {more_solved(sweeps)}, a smaller implicit.largest_cfl"
    elif report["share"] < 1:
        advice = "steps were shortened to keep density and pressure: a smaller time.cfl, a start nearer to the end"
    elif math.isnan(left):
        advice = "a smaller implicit.largest_cfl, more time.steps, or GMRES: implicit.krylov above 0"
    else:
        advice = "the residual still changes: more time.steps, or a larger scheme.epsilon, so that weights converge"
    return (
        f"the residual fell by {report['drop']:.3g}, not by implicit.drop = {drop:.3g}; it is largest in the equation "
        f"of {place['equation']} at node (i, j, k) = {tuple(place['node'])} of block '{place['block']}', with CFL "
        f"{report['cfl']:.3g}, {report['share']:g} of the last step and {solved}; {advice}"
    )
