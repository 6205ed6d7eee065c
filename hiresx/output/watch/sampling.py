"""Monitors: attachments of a run that take samples at given times and store a history."""

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.mpi.communicator import Communicator
from hiresx.output.saved import files
from hiresx.output.saved.attachment import MANY, Attachment
from hiresx.output.watch.history import FOLDER, Column, History
from hiresx.output.watch.watched import WatchedRun
from hiresx.solver import Solver

# Times closer than this fraction of a step count as equal; kernels/clock.h has the same value, and ROUND_OFF.
SAME_TIME = 1e-9
# Fraction of an interval by which a time may be below its multiple, after the round-off of many steps.
ROUND_OFF = 1e-6
_ROWS = "row."


class SampleTimes:
    """The times of samples: every `every` steps, or at intervals `every_time` of time, in units of L / c_ref (length
    scale over sound speed). Both are counted from step 0 and time 0, also in a restarted run. If both are None there
    are no samples. `last`: the step of the last sample. `next_time`: the latest time at which the next step must
    end."""

    def __init__(self, every: int | None, every_time: float | None):
        self.every, self.every_time = every, every_time
        self.last: int | None = None
        self.next_time = math.inf

    def begin(self, solver: Solver) -> None:
        """Set the time of the next sample, at the start of a run or of its continuation. A sample may be due at
        once."""
        self._set_next(solver.time)
        if self.every_time is not None and solver.steps != self.last:
            nearest = self.every_time * round(solver.time / self.every_time)
            if abs(solver.time - nearest) <= _time_tolerance(solver):
                self.next_time = nearest

    def due(self, solver: Solver) -> bool:
        """Return whether a sample is due at the present step and time. If so, record it as taken, so that a second call
        at this step returns False."""
        if solver.steps == self.last:
            return False
        if self.every is not None:
            due = solver.steps % self.every == 0
        else:
            due = solver.time >= self.next_time - _time_tolerance(solver)
        if due:
            self.mark(solver.steps, solver.time)
        return due

    def due_after(self, step: int) -> bool:
        """Return whether a sample is due after step number `step`, if the interval of samples is given in steps; False
        if it is given in time."""
        return self.every is not None and step % self.every == 0 and step != self.last

    def mark(self, step: int, time: float) -> None:
        """Record that a sample was taken after `step` steps, at `time` in units of L / c_ref (length scale over sound
        speed)."""
        self.last = step
        self._set_next(time)

    def steps_left(self, solver: Solver) -> int:
        """Return the number of time steps until a sample is due, if the interval of samples is given in steps;
        otherwise a number that is never reached."""
        return MANY if self.every is None else self.every - solver.steps % self.every

    def _set_next(self, time: float) -> None:
        if self.every_time is not None:
            self.next_time = (math.floor(time / self.every_time + ROUND_OFF) + 1) * self.every_time


def _time_tolerance(solver: Solver) -> float:
    """Difference below which two times are the same."""
    return max(SAME_TIME * solver.dt, 4 * math.ulp(solver.time))


class Monitor(Attachment):
    """Base class of monitors, which take samples at the times of a `SampleTimes` and store them in a history. A
    subclass defines `measure`. `name`, `kind`: the name of the history and the kind of the monitor. `out`: the run
    directory; None to store the history in memory.

    Every rank of `comm` measures the same values. With a directory rank 0 writes them, and an error there is raised on
    all ranks.

    An iteration towards steady flow is also sampled at the end of a run, where the flow has converged, unless an
    exception is being handled. A run that continues removes this sample, since the last checkpoint was written before
    it. `columns`: the quantities of a sample. `every`, `every_time`: the interval of samples in steps, or in L / c_ref;
    both count from step 0 and time 0. `places`: coordinates (n, 3), in units of the length scale L, or None."""

    def __init__(
        self,
        comm: Communicator,
        name: str,
        kind: str,
        columns: Sequence[Column],
        every: int | None,
        every_time: float | None = None,
        out: Path | None = None,
        places: np.ndarray | None = None,
    ):
        self.name = f"history.{name}"
        self._comm = comm
        self.history = History(name, kind, columns, places, None if out is None else out / FOLDER)
        self._clock = SampleTimes(every, every_time)
        self._kept: int | None = None
        self._digest: int | None = None
        self._begun = False

    @property
    def notes(self) -> list[str]:
        """Messages about the history file, for example that an earlier file was renamed. The caller prints them and
        empties the list."""
        return self.history.notes

    @property
    def next_time(self) -> float:
        """The time, in units of L / c_ref (length scale over sound speed), beyond which the next time step must not go,
        since a sample is due then. Infinite if samples are not taken at an interval of time."""
        return self._clock.next_time

    def measure(self, solver: Solver) -> Mapping[str, Any]:
        """Return the values of a sample by column for the current state: a number, or an array (places,) for a history
        with places. The values are the same on all ranks. All ranks must call this method."""
        raise NotImplementedError

    def begin(self, solver: Solver, restarted: bool) -> None:
        """Open the history and take the first sample. `restarted`: whether the run continues from a checkpoint; its
        history is then continued, and a sample that it already has is not repeated. Called before the first time step.
        All ranks must call this method."""
        if self._begun:
            return
        self.history.anew = (solver.steps,)
        self._start(restarted)
        self._begun = True
        self._clock.begin(solver)
        # The initial state of a run is a sample, too, unless it was taken before the checkpoint was written.
        self.after_step(solver)

    def _start(self, restarted: bool) -> None:
        self.history.samples = self._keeping(lambda: self.history.start(self._kept, restarted, self._digest))

    def after_step(self, solver: Solver) -> None:
        """Take a sample if one is due after this time step. All ranks must call this method."""
        if self._clock.due(solver):
            self._take(solver)

    def _take(self, solver: Solver) -> None:
        """Take the sample that is due."""
        self._sample(solver)

    def _sample(self, solver: Solver) -> None:
        self._add(solver.steps, solver.time, self.measure(solver))

    def steps_left(self, solver: Solver) -> int:
        """Return the number of time steps until a sample is due, if the interval of samples is given in steps.
        Otherwise return a number that is never reached (`next_time` then has the time of the sample)."""
        return self._clock.steps_left(solver)

    def _add(self, step: int, time: float, values: Mapping[str, Any]) -> None:
        self.history.samples = self._keeping(lambda: self.history.add(step, time, values))

    def _keeping(self, work: Callable[[], Any]) -> Any:
        """The result of `work` on the history. Rank 0 alone does it where the history is in a file."""
        return work() if self.history.path is None else files.on_root(self._comm, work)

    def capture(self) -> dict[str, Any]:
        """Return the data for a checkpoint: the number of samples so far and their checksum, and the samples of a
        history in memory."""
        digest = self._keeping(self._sync_digest)
        memory = {_ROWS + name: values for name, values in self.history.memory().items()}
        last = self._clock.last
        samples = {"samples": self.history.samples, "digest": digest}
        return {**samples, "last": -1 if last is None else last, **memory}

    def _sync_digest(self) -> int:
        """The digest of the samples, which are on the disk."""
        self.history.sync()
        return self.history.digest

    def restore(self, captured: Mapping[str, Any]) -> None:
        """Restore the samples of a checkpoint. `captured`: the result of `capture`."""
        self._kept, self._begun = int(captured["samples"]), False
        # checkpoints of earlier versions do not have it
        self._digest = int(captured["digest"]) if "digest" in captured else None
        self._clock.last = None if captured["last"] < 0 else int(captured["last"])
        rows = {name.removeprefix(_ROWS): rows for name, rows in captured.items() if name.startswith(_ROWS)}
        self.history.remember(rows)

    def samples_last_step(self, solver: Solver) -> bool:
        """Return whether the last step of a run is sampled even if no sample is due: true in an iteration towards
        steady flow."""
        return solver.integrator.steady and bool(solver.integrator.report)

    def finish(self, solver: Solver) -> None:
        """Close the history at the end of a run. An iteration towards steady flow first takes a sample of its last
        step, if none was due there; an unsteady run does not. All ranks must call this method."""
        try:
            if self._clock.last != solver.steps and sys.exception() is None and self.samples_last_step(solver):
                self._sample(solver)
            self._digest = self._keeping(self._sync_digest)
        finally:
            self._kept, self._begun = self.history.samples, False
            self.history.close()


class MonitorToTheEnd(Monitor):
    """Base class of monitors that sample the last step of every run, if the run has computed the norms of that step."""

    _simulation: WatchedRun

    def samples_last_step(self, solver: Solver) -> bool:
        """Return whether the last step of a run is sampled even if no sample is due: true if the run has computed its
        residual norms at that step."""
        history = self._simulation.history
        return bool(history) and history[-1]["step"] == solver.steps
