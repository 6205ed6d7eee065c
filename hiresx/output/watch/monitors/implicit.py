"""How the implicit integrator comes on: a history of every step, and what is said of a run that ends before its
residual has fallen as far as was asked."""

import sys
from collections.abc import Mapping
from typing import Any

from hiresx.case import Case
from hiresx.output.watch.history import Column
from hiresx.output.watch.sampling import Monitor
from hiresx.output.watch.watched import WatchedRun
from hiresx.solver import Solver
from hiresx.time.linearised import Steady

COLUMNS = (
    Column("residual", "root of the sum of squares of all rates of change", "c_ref / L"),
    Column("drop", "residual of the first step over this one", "1"),
    Column("cfl", "CFL number of the pseudo-time step", "1"),
    Column("share", "share of the Newton step that was taken", "1"),
    Column("linear_drop", "residual of the linear equations over that at the start", "1"),
    Column("products", "products with the Jacobian", "1"),
)


def build(case: Case, simulation: WatchedRun) -> list[Monitor]:
    if not isinstance(simulation.solver.integrator, Steady):
        return []
    return [Progress(case, simulation)]


class Progress(Monitor):
    """Has nan ahead of the first step."""

    def __init__(self, case: Case, simulation: WatchedRun):
        comm = simulation.solver.comm
        super().__init__(comm, "implicit", "implicit", COLUMNS, 1, out=simulation.out)
        self._drop = case.implicit.drop

    def measure(self, solver: Solver) -> dict[str, float]:
        report = solver.integrator.report
        return {column.name: float(report.get(column.name, float("nan"))) for column in COLUMNS}

    def finish(self, solver: Solver) -> None:
        report = solver.integrator.report
        if report and not solver.integrator.converged and sys.exception() is None:
            self.notes.append(stall(report, self._drop))
        super().finish(solver)


def stall(report: Mapping[str, Any], drop: float) -> str:
    """Return where an iteration stands that ended early, by its `report`, and what to try."""
    place = report["largest"]
    if report["linear_drop"] > 0.1:
        advice = "the linear equations were not solved: more implicit.krylov or implicit.sweeps, a smaller largest_cfl"
    elif report["share"] < 1:
        advice = "steps were shortened to keep density and pressure: a smaller time.cfl, a start nearer to the end"
    else:
        advice = "it still falls or swings: more time.steps; weights that come to rest by a larger scheme.epsilon"
    return (
        f"the residual fell by {report['drop']:.3g}, not by implicit.drop = {drop:.3g}; it is largest in the equation "
        f"of {place['equation']} at node (i, j, k) = {tuple(place['node'])} of block '{place['block']}', with CFL "
        f"{report['cfl']:.3g}, {report['share']:g} of the last step and a linear residual of "
        f"{report['linear_drop']:.2g}; {advice}"
    )
