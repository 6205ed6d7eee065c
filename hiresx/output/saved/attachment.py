"""The interface of attachments of a run: objects that are called after time steps, which are the writers of field files
and checkpoints, and the monitors."""

import math
from collections.abc import Mapping
from typing import Any

from hiresx.solver import Solver

# More steps than are ever made at a time.
MANY = 1 << 30


class Attachment:
    """Base class of objects that are called after time steps of a run, such as monitors. A subclass overrides the
    methods that it needs. `name`: unique within a run; a checkpoint stores the result of `capture` under this name.
    Between steps the solver's state is complete, and an attachment must not change it. There are two exceptions: the
    body force sets the acceleration of the next step, and the vortex of a far field its circulation."""

    name: str

    @property
    def next_time(self) -> float:
        """The time, in units of L / c_ref (length scale over sound speed), beyond which the next time step must not go,
        so that a step ends exactly there. Infinite if this object needs no such time."""
        return math.inf

    @property
    def notes(self) -> list[str]:
        """Messages for the user that this object has added since the caller last read this list. The caller prints them
        and empties the list."""
        return []

    def begin(self, solver: Solver, restarted: bool) -> None:
        """Prepare this object before the first time step of this process. `restarted`: whether the run continues from a
        checkpoint; the caller has then called `restore` before."""

    def set_conditions(self, solver: Solver) -> None:
        """Set the boundary values that depend on the present flow, such as the circulation of a far-field vortex,
        without taking a sample. `Simulation.step` calls this method before each step; in other runs `after_step` sets
        these values."""

    def launch_ahead(self, solver: Solver, step: int) -> None:
        """Launch the kernels of the sample that is due after step `step`, before the host waits for this step. The
        caller does so in runs of one rank only. The device may make fewer steps than were launched: `after_step` must
        discard the results if the state is then that of another step, or if `DeviceResidentSteps.seen_ahead` is
        false."""

    def after_step(self, solver: Solver) -> None:
        """Take a sample, write a file or do other work that is due after a time step. The run calls this method after
        every time step, or only after as many steps as `steps_left` returned."""

    def steps_left(self, solver: Solver) -> int:
        """Return the largest number of time steps that may be made before the next call of `after_step`. A time at
        which a step must end is given by `next_time` instead."""
        return 1

    def capture(self) -> dict[str, Any]:
        """Return the data with which a restart continues as if the run had not stopped: numbers, strings and NumPy
        arrays by name, the same on all ranks. An array that is distributed over the ranks is a list of
        `hiresx.decomposition.held_arrays.Piece` with the nodes of this rank."""
        return {}

    def restore(self, captured: Mapping[str, Any]) -> None:
        """Restore this object from the data of a checkpoint. `captured`: the result of `capture`, in which a
        distributed array is replaced by a function read(name, box) that returns its nodes in the half-open index ranges
        `box` (i, j, k)."""

    def finish(self, solver: Solver) -> None:
        """Complete the work at the end of a run. The run calls this method also after a failure or an interrupt, when
        the state may be invalid."""
