"""Fields and subsets of them, written in the background while the run goes on."""

import math
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hiresx.communicator import alone
from hiresx.equations import equations
from hiresx.equations.storage import STORAGE
from hiresx.errors import HiresxError
from hiresx.output.fields import derived, selection
from hiresx.output.fields import field_file as fields
from hiresx.output.fields import formats as others
from hiresx.output.fields.content import Content, TimeContent
from hiresx.output.saved import files
from hiresx.output.saved.attachment import MANY, Attachment
from hiresx.output.saved.writer import JointWriter

# Times closer than this share of a step are the same time.
SAME_TIME = 1e-9
# The same, as a share of the time between outputs: what rounding does to time / every.
_ROUNDING = 1e-6

# Threads that compute derived variables while a GPU computes the flow.
_WORKERS = 8


def check(case: Any) -> None:
    """Raises HiresxError for what [output] asks that no grid can give: variables that do not exist, and a time between
    outputs where there is no common time."""
    for table, place in _tables(case):
        names = table.variables or ()
        derived.check(names, f"{place}.variables", equations(case).scalars)
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise HiresxError(f'{place}.variables: "{twice}" is there twice', "name it once")
        if table.every_time is not None and case.time.local:
            raise HiresxError(
                f"{place}.every_time: with time.local there is no common time", f"set {place}.every_steps instead"
            )


def check_grid(case: Any, blocks: Sequence[Any]) -> None:
    """Raises HiresxError for subsets that do not fit the grid's `blocks`."""
    for subset in case.output.subset:
        selection.subset(subset, blocks)


def _tables(case: Any) -> list[tuple[Any, str]]:
    return [(case.output, "output"), *((s, f"output.subset.{n}") for n, s in enumerate(case.output.subset))]


@dataclass(eq=False)
class _Output:
    """One series of files: what is in it, when the next is due, and which was the last."""

    name: str
    variables: tuple[str, ...]
    precision: str
    every_time: float | None
    every_steps: int | None
    spec: Any = None  # the subset; None: whole fields
    content: Content | None = None
    next_time: float = math.inf
    written: int | None = None

    def count(self, time: float) -> None:
        if self.every_time is not None:
            self.next_time = (math.floor(time / self.every_time + _ROUNDING) + 1) * self.every_time

    def due(self, solver: Any) -> bool:
        if self.every_steps is not None and solver.steps % self.every_steps == 0:
            return True
        return solver.time >= self.next_time - SAME_TIME * max(solver.dt, SAME_TIME)


class FieldOutput(Attachment):
    """The fields of a run and the subsets its case asks for, as fields_<step>.nc, vtk/fields_<step>.vtm,
    <subset>_<step>.nc, ... in `directory`: at the start, by their clocks and at the end.

    A time step waits for a copy of the state to the host (on a GPU not even for that) and, when two outputs are being
    written, for the first of them; what is derived from the state and written is the business of a thread. Of several
    ranks each writes what its parts hold, and a file gets its name after the first step at which all are found to have
    written. A failure is raised once, on all ranks, by the next `after_step`; what was written before stays, and
    nothing more is written.

    `directory`: None writes nothing, but steps end at the same times. Raises HiresxError as `check`; `begin` as
    `check_grid`. `begin`, `after_step`, `capture` and `finish` are collective.
    """

    name = "fields"

    def __init__(self, case: Any, directory: str | Path | None):
        check(case)
        self.directory = None if directory is None else Path(directory)
        self._case, self._dump = case, case.model_dump(mode="json")
        output = case.output
        self._outputs = []
        for table, _ in _tables(case):
            spec = None if table is output else table
            clock = table if table.every_time is not None or table.every_steps is not None else output
            self._outputs.append(
                _Output(
                    "fields" if spec is None else spec.name,
                    table.variables or output.variables,
                    table.precision or output.precision or STORAGE[case.scheme.precision].output,
                    clock.every_time,
                    clock.every_steps,
                    spec,
                )
            )
        self._comm = alone()  # until `begin`
        self._writer = JointWriter(self._comm)
        self._files = 0
        self._workers = 1
        # Whether the run goes on soon after `finish`, which then writes nothing.
        self.pausing = False

    @property
    def next_time(self) -> float:
        """The next time at which an output is due: a step must end there."""
        return min(output.next_time for output in self._outputs)

    @property
    def summary(self) -> dict[str, Any]:
        """Files begun, seconds the writing took in its thread, and seconds that the run waited for it."""
        return {"files": self._files, "write_s": self._writer.busy, "waited_s": self._writer.waited}

    def begin(self, solver: Any, restarted: bool) -> None:
        """Removes what an earlier run left of later steps, and writes the first fields; of a run that continues, only
        what is due now and is not there."""
        continued = restarted or solver.steps > 0
        self._comm, self._writer = solver.comm, JointWriter(solver.comm)
        if self.directory is not None:
            files.directory(self.directory, self._comm)
            files.once(self._comm, lambda: self._clear(solver.steps if continued else -1))
        if solver.backend.name == "cuda":
            # The host's cores have nothing else to do; on a CPU they are the solver's.
            self._workers = max(1, min(_WORKERS, len(os.sched_getaffinity(0)) - 1))
        for output in self._outputs:
            output.content = self._content(output, solver)
        if restarted:
            due = [output for output in self._outputs if output.due(solver)]
            there = files.once(self._comm, lambda: [self._there(output, solver.steps) for output in due])
            due = [output for output, known in zip(due, there, strict=True) if not known]
        else:
            due = [output for output in self._outputs if output.written != solver.steps]
        self._write(solver, due)
        for output in self._outputs:
            if not restarted or output.due(solver) or (output.next_time == math.inf):
                output.count(solver.time)

    def steps_left(self, solver: Any) -> int:
        periods = [output.every_steps for output in self._outputs if output.every_steps is not None]
        return min((every - solver.steps % every for every in periods), default=MANY)

    def after_step(self, solver: Any) -> None:
        """Begins the outputs that are due. Raises the failure of an earlier one."""
        self._writer.advance()
        due = [output for output in self._outputs if output.due(solver)]
        if due:
            self._write(solver, due)
            for output in due:
                output.count(solver.time)

    def capture(self) -> dict[str, Any]:
        """The clocks. Waits for what is being written: a checkpoint may count on the outputs before it. Raises the
        failure of one."""
        self._writer.drain()
        found: dict[str, Any] = {}
        for output in self._outputs:
            if output.written is not None:
                found[f"{output.name}.written"] = output.written
            if output.every_time is not None:
                found[f"{output.name}.every_time"] = output.every_time
                found[f"{output.name}.next_time"] = output.next_time
        return found

    def restore(self, captured: Mapping[str, Any]) -> None:
        """Takes the clocks back; one that is set otherwise now begins anew."""
        for output in self._outputs:
            written = captured.get(f"{output.name}.written")
            output.written = None if written is None else int(written)
            output.next_time = math.inf
            every = captured.get(f"{output.name}.every_time")
            if every is not None and output.every_time == float(every):
                output.next_time = float(captured[f"{output.name}.next_time"])

    def finish(self, solver: Any) -> None:
        """Writes the last fields, unless the run is only `pausing` or an exception is being handled: then the state may
        be bad, or between two steps. Returns when all is written; raises a failure that was not raised yet."""
        if sys.exception() is None and not self._writer.failed and not self.pausing:
            self._write(solver, [output for output in self._outputs if output.written != solver.steps])
        self._writer.drain()

    def _clear(self, after: int) -> None:
        assert self.directory is not None
        for output in self._outputs:
            fields.clear(self.directory, output.name, after)
            for kind in others.names():
                others.format_of(kind).clear(self.directory, output.name, after)

    def _content(self, output: _Output, solver: Any) -> Content:
        formats = self._case.output.formats
        about = output.variables, output.precision, formats, self._dump, solver
        return Content(output.name, output.spec, *about)

    def _there(self, output: _Output, step: int) -> bool:
        if self.directory is None:
            return True
        directory, kinds = self.directory, self._case.output.formats
        frames = [fields.frame if kind == "netcdf" else others.format_of(kind).frame for kind in kinds]
        return all(frame(directory, step, output.name).is_file() for frame in frames)

    def _write(self, solver: Any, outputs: Sequence[_Output]) -> None:
        if self.directory is None or not outputs:
            return
        solver.settle()  # at cuts gradients take ghosts
        self._writer.submit(
            TimeContent([_made(output).moment(self.directory, solver, self._workers) for output in outputs])
        )
        self._files += len(outputs) * len(self._case.output.formats)
        for output in outputs:
            output.written = solver.steps


def _made(output: _Output) -> Content:
    """What an output writes: there is one once a run has begun."""
    assert output.content is not None
    return output.content
