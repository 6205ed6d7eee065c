"""`[kinetic_energy]`: the mean kinetic energy and the terms that change it, as used for the Taylor-Green vortex."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.case import Case
from hiresx.case.monitors import KineticEnergy as Spec
from hiresx.device.interface import Calls
from hiresx.output.watch.columns import ColumnSums, all_volumes, level_weights, pad
from hiresx.output.watch.device_samples import DeviceMonitor
from hiresx.output.watch.history import Column
from hiresx.output.watch.sampling import Monitor
from hiresx.output.watch.velocities import Velocities
from hiresx.output.watch.watched import WatchedRun
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
    Column("dilatation", "root of the mean of (div u)^2", "c_ref / L"),
    Column("dissipation_numerical", "pressure_dilatation - dissipation - rate, between two samples", _RATE),
)
# Columns with a turbulence model.
OF_MODEL = Column("dissipation_model", "mean of tau_ij du_i/dx_j of the eddy viscosity, of the last stage", _RATE)
_BETWEEN_SAMPLES = ("rate", "dissipation_numerical")


def build(case: Case, simulation: WatchedRun) -> list[Monitor]:
    """Return the monitor of the kinetic energy of the run `simulation` in a list, which is empty if the case has no
    table `[kinetic_energy]`."""
    if case.kinetic_energy is None:
        return []
    return [KineticEnergyMonitor(case.kinetic_energy, simulation.solver, simulation.out)]


class KineticEnergyMonitor(DeviceMonitor):
    """Monitor of the kinetic energy and of the terms of its budget, as means over the grid (docs/outputs.md). `spec`:
    the table [kinetic_energy]. Gradients are computed as in the solver's viscous terms: by central differences of the
    order `scheme.viscous_order`, which use the ghost nodes.

    `rate` and `dissipation_numerical` are values at the middle between two samples and are NaN in the first sample.
    `dissipation_numerical` is pressure dilatation minus dissipation (with that of a turbulence model), averaged over
    two samples, minus the rate of the energy. In a closed or periodic domain without forces it is the dissipation by
    the scheme. If samples are dt apart, the average over two samples has an error of dt^2/12 times the second
    derivative in time."""

    ghosts = True

    def __init__(self, spec: Spec, solver: Solver, out: Path | None):
        columns = (*COLUMNS, OF_MODEL) if solver.layout.has("eddy_viscosity") else COLUMNS
        super().__init__(solver.comm, "kinetic_energy", "kinetic_energy", columns, spec.every, spec.every_time, out)
        # in the order of the kernel
        self._sums = tuple(column.name for column in columns if column.name not in _BETWEEN_SAMPLES)
        volumes_of, total = [], 0.0
        for state, volume in zip(solver.states, all_volumes(solver, level_weights(solver)), strict=True):
            total += volume.sum()
            volumes_of.append(pad(solver, state, volume))
        self._total = float(solver.comm.sum(total))
        # time, kinetic energy, pressure dilatation less dissipation and that of a model
        self._before: tuple[float, float, float] | None = None
        velocities = self._velocities = Velocities(solver)
        self._arguments = [
            velocities.arguments(state) | {"weight": volume}
            for state, volume in zip(solver.states, volumes_of, strict=True)
        ]
        self._energy = ColumnSums(solver, len(self._sums))
        self.count = self._energy.count

    def calls(self, numbers: Any) -> Calls:
        """Return the kernel launches that sum the terms of the energy budget over this rank's nodes and write the sums
        to the device array `numbers`, float64 (`count`,)."""
        return [*self._velocities.calls, *self._energy.calls("column_energy", self._arguments, numbers)]

    def values(self, numbers: np.ndarray, time: float) -> dict[str, float]:
        """Return the terms of the energy budget by column, for the sample at `time`, in units of L / c_ref (length
        scale over sound speed). `numbers` (count,): the sums that the launches `calls` have computed on this rank. All
        ranks must call this method."""
        sums = self._energy.by_part(numbers).sum(axis=0)
        values = dict(zip(self._sums, (self._comm.sum(sums) / self._total).tolist(), strict=True))
        values["dilatation"] = float(np.sqrt(values["dilatation"]))
        energy, supply = values["kinetic_energy"], values["pressure_dilatation"] - values["dissipation"]
        supply -= values.get(OF_MODEL.name, 0.0)
        if self._before is not None and time > self._before[0]:
            time_before, energy_before, supply_before = self._before
            values["rate"] = (energy - energy_before) / (time - time_before)
            values["dissipation_numerical"] = 0.5 * (supply_before + supply) - values["rate"]
        self._before = time, energy, supply
        return values

    def capture(self) -> dict[str, Any]:
        """Return the data for a checkpoint: the samples so far, and the last values of the energy budget, from which
        the next rate is computed."""
        samples = super().capture()  # returns the values before the step
        time, energy, supply = self._before or (-1.0, 0.0, 0.0)
        return samples | {"time_before": time, "energy_before": energy, "supply_before": supply}

    def restore(self, captured: Mapping[str, Any]) -> None:
        """Restore the samples and the last values of the energy budget of a checkpoint. `captured`: the result of
        `capture`."""
        super().restore(captured)
        # A checkpoint of an earlier version has no supply.
        supply = captured.get("supply_before", np.nan)
        self._before = captured["time_before"], captured["energy_before"], supply
        if self._before[0] < 0:
            self._before = None
