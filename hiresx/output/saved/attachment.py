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
        """Before the first step of this process; after `restore` if the run continues from a checkpoint."""

    def set_conditions(self, solver: Solver) -> None:
        """Set what conditions of the next step follow from the flow, as `after_step` does, but sample nothing: before
        each step that `Simulation.step` takes."""

    def after_step(self, solver: Solver) -> None:
        """After every step, or after as many as `steps_left` gave: does its work if it is due."""

    def steps_left(self, solver: Solver) -> int:
        """Number of steps that may pass, from the present state, before `after_step` is needed: the steps without work,
        and one more. `next_time` stops them by itself."""
        return 1

    def capture(self) -> dict[str, Any]:
        """Return numbers, texts and numpy arrays by name, enough to continue as if the run had not stopped. They are
        the same on all ranks. An array over nodes is a list of pieces, those of the nodes of this rank
        (hiresx.decomposition.held_arrays)."""
        return {}

    def restore(self, captured: Mapping[str, Any]) -> None:
        """Restore what `capture` returned. A list of pieces is replaced by a function read(name, box) -> array."""

    def finish(self, solver: Solver) -> None:
        """Called at the end of the run, also after a failure or an interrupt, when the state may be invalid."""
