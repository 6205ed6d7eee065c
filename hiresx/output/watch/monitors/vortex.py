"""The point vortex in the far-field boundary condition: its circulation follows the lift of the airfoil, and both have
a history.

The circulation of a step is that of the lift at its start. A Newton step takes it as constant, so that its equations
remain local, and the lift after the step gives the next circulation. This converges, because a far field at a distance
of many chords changes only a small part of the lift."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.case import Case
from hiresx.case.far_field_vortex import Vortex, vortex_of
from hiresx.case.model import State
from hiresx.decomposition import Decomposition
from hiresx.errors import HiresxError
from hiresx.output.watch.history import Column
from hiresx.output.watch.monitors.force import ForceMonitor
from hiresx.output.watch.sampling import Monitor
from hiresx.output.watch.watched import WatchedRun
from hiresx.output.watch.watched_surface import NodeContributions
from hiresx.rhs.boundary import Characteristic
from hiresx.solver import Solver
from hiresx.time.linearised import Steady

COLUMNS = (
    Column("circulation", "that of the far field in the step that begins here, clockwise", "c_ref L"),
    Column("lift", "force on the walls, across the stream to its left", "rho_ref c_ref^2 L"),
)
# Number of explicit steps between changes of the circulation: each change is then small.
EXPLICIT = 10


def build(case: Case, simulation: WatchedRun) -> list[Monitor]:
    """Return the monitor of the far-field vortex in the run `simulation` in a list, which is empty if no far-field
    condition of the case has one."""
    found = vortex_of(case)
    return [] if found is None else [VortexMonitor(*found, simulation.solver, simulation.out)]


def check(case: Case, decomposition: Decomposition) -> None:
    """Raise HiresxError if a far-field boundary condition of `case` has a vortex and the grid is not two-dimensional.
    `decomposition`: the blocks of the grid."""
    if vortex_of(case) is None:
        return
    for block in decomposition.blocks:
        if block.active != (0, 1):
            size = " x ".join(map(str, block.size))
            raise HiresxError(
                f"a far field has a vortex, which is for plane flow, and block '{block.name}' has {size} nodes",
                "leave vortex out; a wing needs a far field at a greater distance",
            )


class VortexMonitor(Monitor):
    """Monitor that sets the circulation of the point vortex in all far-field conditions, from the lift of the force
    that `spec` names. `circulation`: the present one, in c_ref L. `stream`: the uniform stream around the vortex."""

    def __init__(self, spec: Vortex, stream: State, solver: Solver, out: Path | None):
        every = 1 if isinstance(solver.integrator, Steady) else EXPLICIT
        super().__init__(solver.comm, "vortex", "vortex", COLUMNS, every, None, out)
        check(solver.case, solver.decomposition)
        number, force = next((n, f) for n, f in enumerate(solver.case.force) if f.name == spec.force)
        self._force, self._every = ForceMonitor(f"force.{number}", force, solver, None), every
        self._stream = np.array([stream.u, stream.v])
        self._per_lift = 1 / (stream.rho * float(np.hypot(*self._stream)))
        self._far = [c for c in solver.conditions if isinstance(c, Characteristic) and c.vortex is not None]
        (self._largest,) = self._comm.min([min([c.largest_circulation for c in self._far], default=np.inf)])
        if not self._largest > 0:
            raise HiresxError(
                f"the centre {list(spec.centre)} of the vortex lies on the far field", "place it within the airfoil"
            )
        self.circulation, self._followed = 0.0, -1

    def after_step(self, solver: Solver) -> None:
        """Set the circulation of the far-field vortex for the next time step if this is due (see `set_conditions`), and
        take a sample if one is due. All ranks must call this method."""
        self.set_conditions(solver)
        super().after_step(solver)

    def set_conditions(self, solver: Solver) -> None:
        """Set the circulation of the far-field vortex from the lift of the current state if the number of steps of the
        run is a multiple of 10, or at any step towards steady flow; otherwise, or if it was already set at this step,
        do nothing. All ranks must call this method."""
        if solver.steps % self._every == 0 and solver.steps != self._followed:
            self.follow()
            self._followed = solver.steps
            if isinstance(solver.integrator, Steady):
                solver.integrator.look_again(solver.system)

    def follow(self) -> None:
        """Set the circulation of the far-field vortex from the lift of the current state, by the Kutta-Joukowski
        theorem. All ranks must call this method."""
        self.circulate(float(np.clip(self._lift() * self._per_lift, -self._largest, self._largest)))

    def measure(self, solver: Solver) -> dict[str, float]:
        """Return a sample for the current state: the circulation in c_ref L and the lift in rho_ref c_ref^2 L, by name.
        All ranks must call this method."""
        return {"circulation": self.circulation, "lift": self._lift()}

    def shares(self) -> NodeContributions:
        """Return the contribution of each wall node of this rank to the circulation that follows from the lift, in
        c_ref L."""
        states, places, force = self._force.shares()
        return NodeContributions(states, places, {"circulation": self._across(force) * self._per_lift})

    def _lift(self) -> float:
        return float(self._across(self._force.integrals()))

    def _across(self, force: Mapping[str, Any]) -> Any:
        """The component of a force across the stream, to its left."""
        u, v = self._stream
        return (force["force_y"] * u - force["force_x"] * v) / np.hypot(u, v)

    def circulate(self, circulation: float) -> None:
        """Set the circulation of the far-field vortex to `circulation`, in c_ref L, in all far-field conditions."""
        self.circulation = circulation
        for condition in self._far:
            condition.circulate(circulation)

    def capture(self) -> dict[str, Any]:
        """Return the data for a checkpoint: the samples so far, and the circulation."""
        return super().capture() | {"circulation": self.circulation, "followed": self._followed}

    def restore(self, captured: Mapping[str, Any]) -> None:
        """Restore the samples and the circulation of a checkpoint. `captured`: the result of `capture`."""
        super().restore(captured)
        self._followed = int(captured["followed"])
        self.circulate(float(captured["circulation"]))
