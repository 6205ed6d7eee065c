"""`[body_force]`: the history of the force, and the acceleration that keeps the mass flow.

With m the mean of rho u along the axis, a the acceleration there and rho the mean density, the resistance of the flow
in a step dt is rho a - (m_after - m_before)/dt. The force of the next step balances it and adds a share of the deficit
M - m:

    rho a = (rho a)_before - (m_after - m_before)/dt + (M - m_after)/T,    T = max(response, dt),

with which the deficit decays as exp(-t/T) where the resistance is steady. The first step has the acceleration of the
case. The launches that compute this are made at the start of every step, so that a device takes many steps without the
host. Only ranks that add their sums on the host compute it there, after every step."""

from collections.abc import Callable, Mapping
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.case import Case
from hiresx.case.body_force_table import BodyForce as Spec
from hiresx.device.interface import Call
from hiresx.output.watch.columns import pad, volumes
from hiresx.output.watch.history import Column
from hiresx.output.watch.sampling import Monitor
from hiresx.output.watch.watched import WatchedRun
from hiresx.solver import Solver

COLUMNS = (
    Column("mass_flow", "mean of rho u along the axis", "rho_ref c_ref"),
    Column("acceleration", "acceleration along the axis, of the step that begins here", "c_ref^2 / L"),
    Column("force", "mean density times the acceleration", "rho_ref c_ref^2 / L"),
)
# Number of sums that a device computes concurrently, and the number that remains for the mean.
THREADS, LANES = 1024, 16


class KeptNumber(IntEnum):
    """Indexes of the numbers that the device stores for the body force (kernels/terms/body_force.h), each a double."""

    BEFORE = 0
    HAS_GOAL = 1
    GOAL = 2
    ACCELERATION = 3
    TIME = 4
    FLOW_BEFORE = 5
    DENSITY = 6
    FLOW = 7


# Those of them that a checkpoint stores, by name:
_NAMES = {
    "goal": KeptNumber.GOAL,
    "acceleration": KeptNumber.ACCELERATION,
    "time_before": KeptNumber.TIME,
    "mass_flow_before": KeptNumber.FLOW_BEFORE,
}


def build(case: Case, simulation: WatchedRun) -> list[Monitor]:
    """Return the monitor of the body force in the run `simulation` in a list, which is empty if the case has no body
    force."""
    if case.body_force is None:
        return []
    return [BodyForceMonitor(case.body_force, simulation.solver, simulation.out)]


class BodyForceMonitor(Monitor):
    """Monitor of the body force and the mass flow. `spec`: the table [body_force]. `out`: the run directory, or None.
    If the mass flow is kept constant, it sets the acceleration of the flow, the field `kept_acceleration`, in every
    step."""

    def __init__(self, spec: Spec, solver: Solver, out: Path | None):
        super().__init__(solver.comm, "body_force", "body_force", COLUMNS, spec.every, None, out)
        self._spec, self._backend, self._row = spec, solver.backend, 1 + "xyz".index(spec.axis)
        self._given = float(spec.acceleration[self._row - 1])
        kept = np.zeros(len(KeptNumber))
        kept[[KeptNumber.HAS_GOAL, KeptNumber.GOAL, KeptNumber.ACCELERATION]] = (
            spec.mass_flow is not None, spec.mass_flow or 0.0, self._given
        )  # fmt: skip
        self._state = solver.backend.to_device(kept)
        self._added = self._backend.zeros((1,), solver.configuration.real)
        for state in solver.states[:1]:  # the same for all parts
            self._added = state.array("kept_acceleration")
        weights = [volumes(solver, n) for n in range(len(solver.states))]
        self._volume = float(solver.comm.sum(sum(float(weight.sum()) for weight in weights)))
        self._sums = self._backend.zeros((max(len(weights), 1), 2, LANES))
        self._together = self._backend.zeros((1, 2, 1))
        calls = self._sum_calls(solver, weights)
        memory, alone = solver.halo.memory, solver.comm.size == 1
        between = None
        if memory is not None and solver.configuration.real == "float64":
            between = memory.sums(self._sums, np.zeros(len(weights), int), self._together)
        self._on_host = not alone and between is None
        calls += between or []
        last = self._keep_call(solver, self._sums if alone else self._together)
        self._calls = calls if self._on_host else [*calls, last]
        self._launch, self._launch_last = solver.program.prepare(self._calls), solver.program.prepare([last])
        self._leave: Callable[[], None] | None = None

    def _sum_calls(self, solver: Solver, weights: list[np.ndarray]) -> list[Call]:
        """Launches that fill the sums of all parts."""
        call, calls = solver.program.call, []
        for state, weight, sums in zip(solver.states, weights, self._sums, strict=False):
            ni, nj, nk = state.size
            partial, fewer = self._backend.zeros((2, nk * ni)), self._backend.zeros((2, THREADS))
            calls += [
                call(
                    "column_mass_flow", (ni, 1, nk), **state.place, height=nj, columns=nk * ni, width=ni,
                    sv=state.variable_stride, q=state.q, weight=pad(solver, state, weight), row=self._row,
                    partial=partial,
                ),
                call("sum_columns", (THREADS, 2, 1), count=nk * ni, threads=THREADS, values=partial, result=fewer),
                call("sum_columns", (LANES, 2, 1), count=THREADS, threads=LANES, values=fewer, result=sums),
            ]  # fmt: skip
        return calls

    def _keep_call(self, solver: Solver, sums: Any) -> Call:
        """The launch that finds the acceleration from `sums` (rows, 2, terms)."""
        return solver.program.call(
            "keep_mass_flow", (1, 1, 1), rows=sums.shape[0], terms=sums.shape[2], sums=sums, volume=self._volume,
            keep=int(self._spec.keep is not None), response=float(self._spec.response), given=self._given,
            clock=solver.clock.array, kept=self._state, added=self._added,
        )  # fmt: skip

    def begin(self, solver: Solver, restarted: bool) -> None:
        """Open the history and take the first sample. If the body force keeps the mass flow constant, first compute its
        acceleration for the first time step. `restarted`: whether the run continues from a checkpoint, and with it the
        history. All ranks must call this method."""
        if self._spec.keep is not None and self._on_host:
            self._control(solver)
        elif self._spec.keep is not None and self._leave is None:
            self._leave = solver.look_at_steps(self._calls)
        super().begin(solver, restarted)

    def after_step(self, solver: Solver) -> None:
        """Compute the acceleration by the body force for the next time step, unless the device does so without the
        host, and take a sample if one is due. All ranks must call this method."""
        if self._spec.keep is not None and self._on_host:
            self._control(solver)
        super().after_step(solver)

    def steps_left(self, solver: Solver) -> int:
        """Return the number of time steps until `after_step` must be called: 1 if the host computes the acceleration by
        the body force at every step, else the number until a sample is due."""
        return 1 if self._spec.keep is not None and self._on_host else super().steps_left(solver)

    def finish(self, solver: Solver) -> None:
        """End the control of the mass flow and close the history, at the end of a run."""
        if self._leave is not None:
            self._leave()
            self._leave = None
        super().finish(solver)

    def measure(self, solver: Solver) -> Mapping[str, Any]:
        """Return the mean mass flux "mass_flow" (rho_ref c_ref), "acceleration" (c_ref^2 / L) and "force" per volume
        (rho_ref c_ref^2 / L) along the axis of the body force. All ranks must call this method."""
        self._control(solver)
        kept = self._backend.to_host(self._state)
        density, flow, a = (float(kept[n]) for n in (KeptNumber.DENSITY, KeptNumber.FLOW, KeptNumber.ACCELERATION))
        return {"mass_flow": flow, "acceleration": a, "force": density * a}

    def _control(self, solver: Solver) -> None:
        """Find the acceleration of the next step now. At its start the device leaves it as it is. Collective."""
        solver.clock.put(solver.time, solver.dt)
        self._launch()
        if self._on_host:
            sums = self._comm.sum(self._backend.to_host(self._sums).sum(axis=(0, 2)))
            self._backend.copy(self._together, self._backend.to_device(sums.reshape(1, 2, 1)))
            self._launch_last()

    def capture(self) -> dict[str, Any]:
        """Return the data for a checkpoint: the samples so far, and the present acceleration and mass flow."""
        kept = self._backend.to_host(self._state)
        if not kept[KeptNumber.BEFORE]:
            return super().capture()
        return super().capture() | {name: float(kept[n]) for name, n in _NAMES.items()}

    def restore(self, captured: Mapping[str, Any]) -> None:
        """Restore the samples, the acceleration and the mass flow of a checkpoint. `captured`: the result of
        `capture`."""
        super().restore(captured)
        if "goal" in captured and self._spec.keep is not None:
            kept = np.zeros(len(KeptNumber))
            kept[[KeptNumber.BEFORE, KeptNumber.HAS_GOAL]] = 1.0
            for name, n in _NAMES.items():
                kept[n] = float(captured[name])
            if self._spec.mass_flow is not None:
                kept[KeptNumber.GOAL] = self._spec.mass_flow
            added = np.full(1, kept[KeptNumber.ACCELERATION] - self._given, self._added.dtype)
            for to, values in ((self._state, kept), (self._added, added)):
                self._backend.copy(to, self._backend.to_device(values))
