"""The interface of attachments of a run: field files, monitors and checkpoints."""

import math
from collections.abc import Mapping
from typing import Any

from hiresx.solver import Solver

# More steps than are ever made at a time.
MANY = 1 << 30


class Attachment:
    """Base class of objects that are called after each step of a run. A subclass overrides the calls that it needs.

    `name`: unique within a run; a checkpoint stores the result of `capture` under this name. Between steps the solver's
    state is complete, and an attachment must not change it. There are two exceptions: the body force sets the
    acceleration of the next step, and the vortex of a far field its circulation.
    """

    name: str

    @property
    def next_time(self) -> float:
        """The latest time, in L / c_ref, at which the next step must end."""
        return math.inf

    @property
    def notes(self) -> list[str]:
        """Messages for the user. The caller prints them and empties the list."""
        return []

    def begin(self, solver: Solver, restarted: bool) -> None:
        """Prepare for the first step of this process. `restarted`: whether the run continues from a checkpoint;
        `restore` has then been called."""

    def set_conditions(self, solver: Solver) -> None:
        """Set the boundary values that depend on the present flow, without taking a sample. It is called before each
        step that `Simulation.step` makes; in other runs `after_step` sets them."""

    def launch_ahead(self, solver: Solver, step: int) -> None:
        """Make launches for a sample after step `step`. It is called when the launches of this step have been made, but
        the host has not waited for them, and only in runs of one rank. The results must be discarded if the state
        afterwards is of another step, or if `DeviceResidentSteps.seen_ahead` is false."""

    def after_step(self, solver: Solver) -> None:
        """Do the work that is due. It is called after every step, or after as many steps as `steps_left` returned."""

    def steps_left(self, solver: Solver) -> int:
        """Return the number of steps, counted from the present state, after which `after_step` must be called next.
        Times at which a step must end are given by `next_time` instead."""
        return 1

    def capture(self) -> dict[str, Any]:
        """Return the data that are needed to continue as if the run had not stopped: numbers, strings and NumPy arrays
        by name, the same on all ranks. A distributed array is a list of pieces with the nodes of this rank
        (hiresx.decomposition.held_arrays)."""
        return {}

    def restore(self, captured: Mapping[str, Any]) -> None:
        """Restore the data `captured`, which `capture` returned. In place of a list of pieces it has a function
        read(name, box) that returns an array."""

    def finish(self, solver: Solver) -> None:
        """Complete the work at the end of a run. It is also called after a failure or an interrupt, when the state may
        be invalid."""
