"""`[kinetic_energy]`: mean kinetic energy and what changes it, as for the Taylor-Green vortex."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.case import Case
from hiresx.case.monitors import KineticEnergy as Spec
from hiresx.device.interface import Call
from hiresx.output.watch.columns import Columns, pad, volumes
from hiresx.output.watch.history import Column
from hiresx.output.watch.sampling import Monitor
from hiresx.output.watch.watched import WatchedRun
from hiresx.rhs.viscous import primitives
from hiresx.solver import Solver

_RATE = "rho_ref c_ref^3 / L"
COLUMNS = (
    Column("kinetic_energy", "mean of rho |u|^2 / 2", "rho_ref c_ref^2"),
    Column("rate", "change of kinetic_energy since the sample before, per time", _RATE),
    Column("enstrophy", "mean of rho |vorticity|^2 / 2", "rho_ref c_ref^2 / L^2"),
    Column("dissipation", "mean of tau_ij du_i/dx_j", _RATE),
    Column("dissipation_solenoidal", "mean of mu |vorticity|^2 / Re_c", _RATE),
    Column("dissipation_dilatational", "mean of 4/3 mu (div u)^2 / Re_c", _RATE),
    Column("pressure_dilatation", "mean of p div u", _RATE),
)
# With a model of turbulence.
OF_MODEL = Column("dissipation_model", "mean of tau_ij du_i/dx_j of the eddy viscosity, of the last stage", _RATE)


def build(case: Case, simulation: WatchedRun) -> list[Monitor]:
    if case.kinetic_energy is None:
        return []
    return [KineticEnergyMonitor(case.kinetic_energy, simulation.solver, simulation.out)]


class KineticEnergyMonitor(Monitor):
    """Gradients are those of the solver's viscous terms, ghosts included: 6th-order central, closed by polynomials at
    walls. `rate` belongs to the middle between two samples, and is not a number at the first."""

    def __init__(self, spec: Spec, solver: Solver, out: Path | None):
        columns = (*COLUMNS, OF_MODEL) if solver.layout.eddy_fields else COLUMNS
        super().__init__(solver.comm, "kinetic_energy", "kinetic_energy", columns, spec.every, spec.every_time, out)
        # in the order of the kernel
        self._sums = tuple(column.name for column in columns if column.name != "rate")
        volumes_of, total = [], 0.0
        # by the index of the part, as conditions know it
        self._velocities = {}
        for n, state in enumerate(solver.states):
            volume = volumes(solver, n)
            total += volume.sum()
            volumes_of.append(pad(solver, state, volume))
            # Work arrays are free between steps; an inviscid run on the CPU has none.
            count = len(state.equations.gradients)
            room = state.work is not None and len(state.work) >= count
            w = state.work[:count] if room else solver.backend.zeros((count, *state.shape), state.storage.work)
            self._velocities[state.index] = w
        self._total = float(solver.comm.sum(total))
        self._before: tuple[float, float] | None = None
        reynolds = solver.case.gas.reynolds
        arguments = [
            state.derivative_strides
            | state.eddy_arguments
            | {
                "w": self._velocities[state.index], "m": state.metrics, "jacobian": state.jacobian, "weight": volume,
                "inverse_reynolds": 0.0 if reynolds is None else 1.0 / reynolds,
            }
            for state, volume in zip(solver.states, volumes_of, strict=True)
        ]  # fmt: skip
        self._energy = Columns(solver, len(self._sums)).prepare("column_energy", arguments, self._gradients(solver))

    def measure(self, solver: Solver) -> dict[str, float]:
        solver.settle()
        sums = np.zeros(len(self._sums))
        for found in self._energy():
            sums += found.sum(axis=(1, 2))
        values = dict(zip(self._sums, (self._comm.sum(sums) / self._total).tolist(), strict=True))
        energy = values["kinetic_energy"]
        if self._before is not None and solver.time > self._before[0]:
            values["rate"] = (energy - self._before[1]) / (solver.time - self._before[0])
        self._before = solver.time, energy
        return values

    def _gradients(self, solver: Solver) -> list[Call]:
        """The calls that compute velocity and temperature with ghosts, as at the beginning of a stage."""
        conditions, program = solver.conditions, solver.program
        calls = [call for condition in conditions for call in condition.calls("ghost")]
        calls += [primitives(program, state, self._velocities[state.index]) for state in solver.states]
        for condition in conditions:
            calls += condition.calls("viscous_primitives", self._velocities[condition.state.index])
        return calls

    def capture(self) -> dict[str, Any]:
        before = self._before or (-1.0, 0.0)
        return super().capture() | {"time_before": before[0], "energy_before": before[1]}

    def restore(self, captured: Mapping[str, Any]) -> None:
        super().restore(captured)
        self._before = captured["time_before"], captured["energy_before"]
        if self._before[0] < 0:
            self._before = None
