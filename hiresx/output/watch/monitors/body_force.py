"""`[body_force]`: the history of the force, and the acceleration that keeps the mass flow.

With m the mean of rho u along the axis, a the acceleration there and rho the mean density, what acts against the flow
in a step dt is rho a - (m_after - m_before)/dt. The next step is given that, and a share of the deficit M - m:

    rho a = (rho a)_before - (m_after - m_before)/dt + (M - m_after)/T,    T = max(response, dt),

with which the deficit decays as exp(-t/T) where the resistance is steady. The first step has nothing before it: it adds
(M - m)/T to the acceleration of the case.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.case import Case
from hiresx.case.body_force import BodyForce as Spec
from hiresx.output.watch.columns import Columns, pad, volumes
from hiresx.output.watch.history import Column
from hiresx.output.watch.sampling import Monitor
from hiresx.output.watch.watched import WatchedRun
from hiresx.solver import Solver

COLUMNS = (
    Column("mass_flow", "mean of rho u along the axis", "rho_ref c_ref"),
    Column("acceleration", "acceleration along the axis, of the step that begins here", "c_ref^2 / L"),
    Column("force", "mean density times the acceleration", "rho_ref c_ref^2 / L"),
)
# Sums of the kernel: of the conserved variables, and room for those of a second weight.
_SUMS = 10
# Names of what a checkpoint holds.
_KEPT = ("goal", "acceleration", "time_before", "mass_flow_before")


def build(case: Case, simulation: WatchedRun) -> list[Monitor]:
    if case.body_force is None:
        return []
    return [BodyForceMonitor(case.body_force, simulation.solver, simulation.out)]


class BodyForceMonitor(Monitor):
    """Sets the field `kept_acceleration` of all parts at the start and after each step, where the mass flow is kept."""

    def __init__(self, spec: Spec, solver: Solver, out: Path | None):
        super().__init__(solver.comm, "body_force", "body_force", COLUMNS, spec.every, None, out)
        self._spec, self._row = spec, 1 + "xyz".index(spec.axis)
        self._given = self._acceleration = float(spec.acceleration[self._row - 1])
        self._goal = spec.mass_flow
        self._before: tuple[float, float] | None = None  # time and mass flow
        weights = [volumes(solver, n) for n in range(len(solver.states))]
        self._total = float(solver.comm.sum(sum(float(weight.sum()) for weight in weights)))
        padded = [pad(solver, state, weight) for state, weight in zip(solver.states, weights, strict=True)]
        arguments = [{"weight": weight, "other": weight, "both": 0} for weight in padded]
        self._sums = Columns(solver, _SUMS).prepare("column_totals", arguments)

    def begin(self, solver: Solver, restarted: bool) -> None:
        if self._spec.keep is not None:
            if self._before is None:
                self._control(solver)
            self._put(solver)
        super().begin(solver, restarted)

    def after_step(self, solver: Solver) -> None:
        if self._spec.keep is not None and (self._before is None or solver.time != self._before[0]):
            self._control(solver)
            self._put(solver)
        super().after_step(solver)

    def steps_left(self, solver: Solver) -> int:
        return super().steps_left(solver) if self._spec.keep is None else 1

    def measure(self, solver: Solver) -> Mapping[str, Any]:
        density, flow = self._means()
        a = self._acceleration
        return {"mass_flow": flow, "acceleration": a, "force": density * a}

    def _means(self) -> tuple[float, float]:
        """Mean density, and mean of rho u along the axis. Collective."""
        sums = np.zeros(_SUMS)
        for found in self._sums():
            sums += found.sum(axis=(1, 2))
        means = self._comm.sum(sums) / self._total
        return float(means[0]), float(means[self._row])

    def _control(self, solver: Solver) -> None:
        density, flow = self._means()
        if self._goal is None:
            self._goal = flow
        response = self._spec.response
        if self._before is not None:
            dt = solver.time - self._before[0]
            self._acceleration -= (flow - self._before[1]) / dt / density
            response = max(response, dt)
        self._acceleration += (self._goal - flow) / response / density
        self._before = solver.time, flow

    def _put(self, solver: Solver) -> None:
        added = np.full(1, self._acceleration - self._given, solver.configuration.real)
        for state in solver.states:
            solver.backend.copy(state.array("kept_acceleration"), solver.backend.to_device(added))

    def capture(self) -> dict[str, Any]:
        if self._spec.keep is None or self._before is None:
            return super().capture()
        assert self._goal is not None
        values = (self._goal, self._acceleration, *self._before)
        return super().capture() | dict(zip(_KEPT, values, strict=True))

    def restore(self, captured: Mapping[str, Any]) -> None:
        super().restore(captured)
        if "goal" in captured and self._spec.keep is not None:
            goal, self._acceleration, time, flow = (float(captured[name]) for name in _KEPT)
            self._goal, self._before = self._spec.mass_flow if self._spec.mass_flow is not None else goal, (time, flow)
