"""Fields and subsets of them, written in the background while the run goes on."""

import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.device.fields import output_fields
from hiresx.equations import equations
from hiresx.equations.storage import STORAGE
from hiresx.errors import HiresxError
from hiresx.estimate.resources import layout
from hiresx.mpi.background import JointWriter, Work
from hiresx.mpi.communicator import Communicator, single_process
from hiresx.output.fields import derived, formats, selection
from hiresx.output.fields.content import Content
from hiresx.output.fields.field_file import check_names
from hiresx.output.fields.formats import FormatFrame
from hiresx.output.fields.local_regions import LocalSamples, LocalState, PartBox
from hiresx.output.saved import directories, files
from hiresx.output.saved.attachment import MANY, Attachment
from hiresx.rhs.compact import NAME as COMPACT

# Times closer than this fraction of a step count as equal.
SAME_TIME = 1e-9
# Times closer than this fraction of the time between outputs also count as equal: it covers the round-off of time /
# every_time.
_ROUNDING = 1e-6

# Number of threads that compute derived variables while a GPU computes the flow.
_WORKERS = 8


def check(case: Any) -> None:
    """Raise HiresxError for wrong entries of the table [output] of `case`, as far as they do not depend on the grid:
    unknown variables, variables that are named twice, and fields that a run of this case does not have."""
    for table, place in _tables(case):
        names = table.variables or ()
        derived.check(names, f"{place}.variables", equations(case).scalars)
        for name in output_fields().keys() & set(names):
            layout(case, COMPACT).must_have(name)  # the same for every plan
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise HiresxError(f'{place}.variables: "{twice}" is there twice', "name it once")


def check_grid(case: Any, blocks: Sequence[Any], of_grid: Sequence[str] | None = None) -> None:
    """Raise HiresxError if a subset of the fields that `case` requests does not fit the grid. `blocks`: the blocks of
    all levels of refinement, objects with name, x, y, z. `of_grid`: for each block the name of the unrefined block in
    which it lies; None without levels."""
    for subset in case.output.subset:
        selection.subset(subset, blocks, of_grid)


def _tables(case: Any) -> list[tuple[Any, str]]:
    return [(case.output, "output"), *((s, f"output.subset.{n}") for n, s in enumerate(case.output.subset))]


@dataclass(eq=False)
class _Output:
    """One series of files: its content, the time of the next file, and the last file."""

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
    """Writer of the field files of a run and of the subsets that its case requests, as fields_<step>.nc,
    vtk/fields_<step>.vtm, <subset>_<step>.nc, ... in `directory`. They are written at the start, at their intervals and
    at the end.

    A time step waits only for a copy of the state to the host (on a GPU not even for that), and, if two outputs are
    already being written, for the first of them. A background thread computes derived variables and writes. On several
    ranks each rank writes the nodes that it computes, and a file is renamed to its final name after the first step at
    which all ranks are found to have written it.

    A failure is raised once, on all ranks, by the next `after_step`. Earlier outputs are kept, and nothing more is
    written. `directory`: if None, nothing is written, but steps end at the same times. Raises HiresxError for wrong
    entries of [output], in `begin` for subsets that do not fit the grid. `begin`, `after_step`, `capture` and `finish`
    are collective."""

    name = "fields"

    def __init__(self, case: Any, directory: str | Path | None):
        check(case)
        self.directory = None if directory is None else Path(directory)
        self._case = case
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
        self._comm = single_process()  # until `begin`
        self._writer = JointWriter(self._comm)
        self._files = 0
        self._workers = 1
        # Whether the run continues soon after `finish`, which then writes nothing, and whether it has continued so.
        self.pausing = self.resuming = False

    @property
    def next_time(self) -> float:
        """The next time at which fields are written, in units of L / c_ref (length scale over sound speed). A time step
        must end exactly at this time."""
        return min(output.next_time for output in self._outputs)

    @property
    def summary(self) -> dict[str, Any]:
        """Statistics of the output: `files`, the number of files that were begun; `write_s`, the seconds that writing
        took in the background thread; `waited_s`, the seconds that the time steps waited for it."""
        return {"files": self._files, "write_s": self._writer.busy, "waited_s": self._writer.seconds_waited}

    def begin(self, solver: Any, restarted: bool) -> None:
        """Remove the outputs of an earlier run from the directory (all of them in a new run, those of later steps in a
        continued one), and write the first fields. `restarted`: whether the run continues from a checkpoint; then only
        outputs that are due now and do not exist yet are written. All ranks must call this method."""
        continued = restarted or solver.steps > 0
        self._comm, self._writer = solver.comm, JointWriter(solver.comm)
        if self.directory is not None and not self.resuming:
            directories.make_directory(self.directory, self._comm)
            files.on_root(self._comm, lambda: self._clear(solver.steps if continued else -1))
        if solver.backend.name == "cuda":
            # With a GPU the cores of the host are free; with a CPU the solver uses them.
            self._workers = max(1, min(_WORKERS, len(os.sched_getaffinity(0)) - 1))
        # Between two changes of the tiles often nothing is written.
        for output in self._outputs if not self.resuming else ():
            output.content = self._content(output, solver)
        if restarted:
            due = [output for output in self._outputs if output.due(solver)]
            there = files.on_root(self._comm, lambda: [self._there(output, solver.steps) for output in due])
            due = [output for output, known in zip(due, there, strict=True) if not known]
        else:
            due = [output for output in self._outputs if output.written != solver.steps]
        self._write(solver, due)
        for output in self._outputs:
            if not restarted or output.due(solver) or (output.next_time == math.inf):
                output.count(solver.time)

    def steps_left(self, solver: Any) -> int:
        """Return the number of time steps until the next output whose interval is given in steps, or a number that is
        never reached if there is no such output."""
        periods = [output.every_steps for output in self._outputs if output.every_steps is not None]
        return min((every - solver.steps % every for every in periods), default=MANY)

    def after_step(self, solver: Any) -> None:
        """Begin to write the outputs that are due after a time step. A background thread writes them. Raises
        HiresxError if an earlier output has failed. All ranks must call this method."""
        self._writer.advance()
        due = [output for output in self._outputs if output.due(solver)]
        if due:
            self._write(solver, due)
            for output in due:
                output.count(solver.time)

    def capture(self) -> dict[str, Any]:
        """Wait for outputs that are being written, and return the data for a checkpoint: the times of the next outputs.
        The wait ensures that all outputs before a checkpoint exist; a continued run would not write them again. Raises
        HiresxError if writing has failed."""
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
        """Restore the times of the next outputs from a checkpoint. `captured`: the result of `capture`. If the interval
        of an output has changed since the checkpoint, the times of this output follow from the new interval."""
        for output in self._outputs:
            written = captured.get(f"{output.name}.written")
            output.written = None if written is None else int(written)
            output.next_time = math.inf
            every = captured.get(f"{output.name}.every_time")
            if every is not None and output.every_time == float(every):
                output.next_time = float(captured[f"{output.name}.next_time"])

    def finish(self, solver: Any) -> None:
        """Write the fields of the last step and wait until all files are complete. They are not written if the
        attribute `pausing` is true, because the caller has announced that it continues the run, or while an exception
        is handled, when the state may be invalid or between two steps. Raises HiresxError for a failure that was not
        raised before."""
        if sys.exception() is None and not self._writer.has_failed and not self.pausing:
            self._write(solver, [output for output in self._outputs if output.written != solver.steps])
        self._writer.drain()

    def _clear(self, after: int) -> None:
        assert self.directory is not None
        for output in self._outputs:
            for kind in formats.names():
                formats.format_of(kind).clear(self.directory, output.name, after)

    def _content(self, output: _Output, solver: Any) -> Content:
        dump = self._case.model_dump(mode="json")
        about = output.variables, output.precision, self._case.output.formats, dump, solver
        content = Content(output.name, output.spec, *about)
        if self.directory is not None:
            check_names([piece.name for piece in content.about.pieces])
        return content

    def _there(self, output: _Output, step: int) -> bool:
        if self.directory is None:
            return True
        directory, kinds = self.directory, self._case.output.formats
        return all(formats.format_of(kind).frame(directory, step, output.name).is_file() for kind in kinds)

    def _write(self, solver: Any, outputs: Sequence[_Output]) -> None:
        if self.directory is None or not outputs:
            return
        solver.settle()  # gradients at cuts use ghosts
        contents = []
        for output in outputs:
            output.content = output.content or self._content(output, solver)
            contents.append(output.content)
        self._writer.submit(_FieldsWork([_Files(one, self.directory, solver, self._workers) for one in contents]))
        self._files += len(outputs) * len(self._case.output.formats)
        for output in outputs:
            output.written = solver.steps


class _Files(Work):
    """The files of one output at the present time. The constructor begins to copy the data that they need from the
    device. `workers` threads compute from them. Constructed by all ranks."""

    def __init__(self, content: Content, directory: Path, solver: Any, workers: int):
        self._content, self._directory, self._workers = content, directory, workers
        self._time, self._step = solver.time, solver.steps
        self._of_series: list[FormatFrame] = [
            series.frame(directory, self._time, self._step) for series in content.series
        ]
        with content.comm.together():
            self._fetched = [
                [_fetch(solver, source, content.fields) for source in share.sources] for share in content.shares
            ]
        # For each piece: whether other ranks need values of this one, or its points need values of other ranks.
        self._left: list[np.ndarray | None] = []

    @cached_property
    def _frames(self) -> list[FormatFrame]:
        about = self._content.about, self._directory, self._time, self._step
        return [*self._of_series, *(kind(*about) for kind in self._content.frames)]

    def write(self) -> None:
        content = self._content
        if not content.comm.root and not any(share.sources for share in content.shares):
            self._left = [None] * len(content.shares)
            return
        with ExitStack() as opened:
            for frame in self._frames:
                opened.enter_context(frame)
            for n, share in enumerate(content.shares):
                states = [arrived() for arrived in self._fetched[n]]
                self._fetched[n] = []  # so that only one piece is in memory
                regions, left = share.regions(content.variables, states, content.gas, content.dtype, self._workers)
                for frame in self._frames:
                    frame.put(n, regions)
                self._left.append(left)

    def complete(self, comm: Communicator) -> None:
        if self._content.waits:
            self._exchange(comm)

    def _exchange(self, comm: Communicator) -> None:
        """Exchange values for points between nodes of several ranks, and write these points. Collective."""
        content = self._content
        sampled = [(n, share) for n, share in enumerate(content.shares) if isinstance(share, LocalSamples)]
        of_pieces = [share.values_for_ranks(self._left[n]) for n, share in sampled]
        received = comm.mpi_comm.alltoall([list(of_rank) for of_rank in zip(*of_pieces, strict=True)])
        left, self._left = self._left, []
        with comm.together(), ExitStack() as opened:
            late = {
                n: share.late_regions(content.variables, left[n], [of_rank[m] for of_rank in received], content.dtype)
                for m, (n, share) in enumerate(sampled)
            }
            for frame in self._frames if any(late.values()) else ():
                opened.enter_context(frame)
            for n, regions in late.items():
                for frame in self._frames if regions else ():
                    frame.put(n, regions)

    def publish(self) -> None:
        for frame in self._frames:
            frame.publish()

    def discard(self) -> None:
        for frame in self._frames:
            frame.discard()


class _FieldsWork(Work):
    """The files and regions written at one time."""

    def __init__(self, work: Sequence[Work]):
        self._work = work

    def write(self) -> None:
        for one in self._work:
            one.write()

    def complete(self, comm: Communicator) -> None:
        for one in self._work:
            one.complete(comm)

    def publish(self) -> None:
        for one in self._work:
            one.publish()

    def discard(self) -> None:
        for one in self._work:
            one.discard()


def _fetch(solver: Any, source: PartBox, fields: Sequence[str]) -> Callable[[], LocalState]:
    """Begin to copy the conservative variables and `fields` of a source to the host. The returned function waits for
    them."""
    state = solver.states[source.state]
    q, more = (
        _fetch_array(solver, source, state.q),
        {name: _fetch_array(solver, source, state.array(name)) for name in fields},
    )
    return lambda: LocalState(q(), {name: arrived().reshape(source.x.shape) for name, arrived in more.items()})


def _fetch_array(solver: Any, source: PartBox, array: Any) -> Callable[[], np.ndarray]:
    """Begin to copy the box of a source from `array` ([n,] k, j, i) to the host. The returned function waits for it."""
    state = solver.states[source.state]
    where = zip(source.box, reversed(state.first), reversed(state.halo), strict=True)
    index = (..., *(slice(s.start - first + halo, s.stop - first + halo) for s, first, halo in where))
    if all(n >= size for n, size in zip(source.x.shape, reversed(state.size), strict=True)):
        # The whole array with its ghosts is contiguous in memory, so that a device need not gather it first.
        whole = solver.backend.fetch(array)
        return lambda: whole()[index]
    return solver.backend.fetch(array[index])
