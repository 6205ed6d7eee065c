"""The interface of attachments of a run: field files, monitors and checkpoints."""

import math
from collections.abc import Mapping
from typing import Any

from hiresx.solver import Solver

# More steps than are ever taken at a time.
MANY = 1 << 30


class Attachment:
    """Base of everything that is called after each step of a run. A subclass overrides the calls that it needs.

    `name` is unique within a run; a checkpoint stores what `capture` returns under it. Between steps the solver's state
    is complete, and an attachment must not change it. Only the body force sets the acceleration of the next step, and
    only the vortex of a far field its circulation.
    """

    name: str

    @property
    def next_time(self) -> float:
        """Time, in L / c_ref, at which the next step must end at the latest."""
        return math.inf

    @property
    def notes(self) -> list[str]:
        """Messages for the user. The caller prints them and empties the list."""
        return []

    def begin(self, solver: Solver, restarted: bool) -> None:
        """Prepare for the first step of this process. `restarted`: whether the run continues from a checkpoint;
        `restore` was then called before."""

    def set_conditions(self, solver: Solver) -> None:
        """Set the boundary values that follow from the present flow, without taking a sample. Called before each step
        that `Simulation.step` takes; otherwise `after_step` sets them."""

    def after_step(self, solver: Solver) -> None:
        """Do the work that is due. Called after every step, or after as many steps as `steps_left` returned."""

    def steps_left(self, solver: Solver) -> int:
        """Return after how many steps, counted from the present state, `after_step` must be called next. Times at which
        a step must end are given by `next_time` instead."""
        return 1

    def capture(self) -> dict[str, Any]:
        """Return the data that are needed to continue as if the run had not stopped: numbers, texts and NumPy arrays by
        name, the same on all ranks. A distributed array over nodes is a list of pieces, those of the nodes of this rank
        (hiresx.decomposition.held_arrays)."""
        return {}

    def restore(self, captured: Mapping[str, Any]) -> None:
        """Restore the data `captured`, which `capture` returned. In place of a list of pieces there is a function
        read(name, box) -> array."""

    def finish(self, solver: Solver) -> None:
        """Complete the work at the end of a run. Also called after a failure or an interrupt, when the state may be
        invalid."""
