"""Residual norms of every run, every `monitor.every` steps and at its end."""

from hiresx.case import Case
from hiresx.output.watch.history import Column
from hiresx.output.watch.sampling import Monitor, MonitorToTheEnd
from hiresx.output.watch.watched import WatchedRun
from hiresx.solver import Solver

_RATE = "rho_ref c_ref / L"
COLUMNS = (
    Column("dt", "time step", "L / c_ref"),
    Column("rho", "root mean square of d rho / dt", _RATE),
    *(Column(f"rho_{c}", f"root mean square of d (rho {c}) / dt", "rho_ref c_ref^2 / L") for c in "uvw"),
    Column("e", "root mean square of d e / dt", "rho_ref c_ref^3 / L"),
    Column("least_rho", "least density", "rho_ref"),
    Column("least_p", "least pressure", "rho_ref c_ref^2"),
)


def build(case: Case, simulation: WatchedRun) -> list[Monitor]:
    """Return the monitor of the residual norms of the run `simulation`, which every run has, in a list."""
    return [Residual(case, simulation)]


class Residual(MonitorToTheEnd):
    """Monitor of the root mean squares of the rates of change in the last stage of a step, of the time step, and of the
    smallest density and pressure; NaN before the first step."""

    def __init__(self, case: Case, simulation: WatchedRun):
        comm, every = simulation.solver.comm, case.monitor.every
        super().__init__(comm, "residual", "residual", COLUMNS, every, out=simulation.out)
        self._simulation = simulation

    def measure(self, solver: Solver) -> dict[str, float]:
        """Return the time step, the norms of the rates of change, and the smallest density and pressure, by column. All
        ranks must call this method."""
        history = self._simulation.history
        if history and history[-1]["step"] == solver.steps:  # the run has computed the norms of this step already
            return {column.name: history[-1][column.name] for column in COLUMNS}
        norms, least_density, least_pressure = solver.norms()
        names = [column.name for column in COLUMNS]
        return dict(zip(names, (solver.dt, *norms, least_density, least_pressure), strict=True))
