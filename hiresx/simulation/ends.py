"""Conditions at which a run ends: the last step or time, a signal to one of the ranks, or the limit of
wall-clock time."""

import time as wall
from typing import Any

import numpy as np

from hiresx.base.termination_signals import Requests
from hiresx.case import Case
from hiresx.case.schema import Time
from hiresx.errors import HiresxError
from hiresx.mpi.communicator import Communicator
from hiresx.output.saved.checkpoint import Checkpoints
from hiresx.solver import Solver

# Times closer than this fraction of a step count as equal.
SAME_TIME = 1e-9


class Ends:
    """The conditions under which the run of `case` stops. `made`: the time on the monotonic clock at which the run
    began, in s. `checkpoint_due`: whether a checkpoint is due by the clock of rank 0; all ranks receive this value in
    `is_stop_requested`. `checkpoints`: the writer of checkpoints, or None."""

    def __init__(self, case: Case, comm: Communicator, made: float, checkpoints: Checkpoints | None):
        self._spec, self._comm, self._made, self._checkpoints = case.time, comm, made, checkpoints
        self._longest_step = 0.0
        self.checkpoint_due = False

    def begin(self) -> None:
        """Discard the recorded durations of steps, because a new sequence of steps begins."""
        self._longest_step = 0.0

    def record_step_time(self, seconds: float) -> None:
        """Record the duration in seconds of a step, including monitors and outputs."""
        self._longest_step = max(seconds, 0.5 * self._longest_step)

    def is_finished(self, solver: Solver, last_step: int | None) -> bool:
        """Return whether the run has reached its end: it has converged, or has reached the last time or step of the
        case, or step number `last_step`."""
        return solver.integrator.converged or is_reached(self._spec, solver.time, solver.steps, solver.dt, last_step)

    def is_stop_requested(self, requests: Requests) -> bool:
        """Return whether a signal has reached any of the ranks, or the wall time of the run is used up. `requests`: the
        signals that reached this rank; the signal on which all ranks agree is stored in its attribute `agreed`. All
        ranks must call this."""
        due = self._comm.root and self._checkpoints is not None and self._checkpoints.is_due()
        found = np.array([requests.signal or 0, self._out_of_time(), due], dtype=float)
        if self._comm.size > 1:
            found = self._comm.max(found)
        # A signal that this rank received in the meantime is kept, and sent to the others at the next call.
        requests.agreed = int(found[0]) or None
        self.checkpoint_due = bool(found[2])
        return bool(found[0] or found[1])

    def _out_of_time(self) -> bool:
        limit = self._spec.wall_limit
        if limit is None or not self._longest_step:  # at least one step, so that restarts under the limit advance
            return False
        last = self._longest_step + (self._checkpoints.seconds if self._checkpoints is not None else 0.0)
        return wall.monotonic() - self._made + last > limit


def check_steps(steps: Any) -> None:
    """Raise HiresxError if `steps`, the number of steps to run, is neither None nor an integer of 0 or more."""
    if steps is not None and not (isinstance(steps, int | np.integer) and not isinstance(steps, bool) and steps >= 0):
        raise HiresxError(
            f"run(steps={steps!r}): steps are a whole number, 0 or more", "leave it out to run to the end"
        )


def is_reached(spec: Time, time: float, steps: int, dt: float, last_step: int | None) -> bool:
    """Return whether a run has reached the end that the table [time], `spec`, sets, or step number `last_step`. `time`:
    the time reached after `steps` steps. `dt`: the size of the last step. All times are in L / c_ref."""
    if last_step is not None and steps >= last_step:
        return True
    if spec.end is None or spec.local:
        return False
    return time >= spec.end - SAME_TIME * max(dt, SAME_TIME)
