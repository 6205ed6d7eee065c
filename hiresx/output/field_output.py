"""Fields and subsets of them, written in the background while the run goes on."""

import math
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.errors import HiresxError
from hiresx.output import derived, fields, files, selection, vtk
from hiresx.output.attachment import Attachment
from hiresx.output.fields import FieldBlock
from hiresx.output.writer import Writer

# Times closer than this share of a step are the same time.
SAME_TIME = 1e-9
# The same, as a share of the time between outputs: what rounding does to time / every.
_ROUNDING = 1e-6

# Threads that compute derived variables while a GPU computes the flow.
_WORKERS = 8
_TYPES = {"fp64": np.dtype("f8"), "fp32": np.dtype("f4")}


def check(case: Any) -> None:
    """Raises HiresxError for what [output] asks that no grid can give: variables that do not exist, and a time between
    outputs where there is no common time."""
    for table, place in _tables(case):
        names = table.variables or ()
        derived.check(names, f"{place}.variables")
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
        selection.subset(subset, blocks, subset.variables or case.output.variables)


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
    pieces: list[selection.Piece] = field(default_factory=list)
    next_time: float = math.inf
    written: int | None = None
    series: fields.Series | None = None

    @property
    def part(self) -> str:
        return "" if self.spec is None else selection.describe(self.spec)

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
    written, for the first of them; what is derived from the state and written is the business of a thread. Its failure
    is raised once, by the next `after_step`; what was written before stays, and nothing more is written.

    `directory`: None writes nothing, but steps end at the same times. Raises HiresxError as `check`; `begin` as
    `check_grid`.
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
                    table.precision or output.precision or case.scheme.precision,
                    clock.every_time,
                    clock.every_steps,
                    spec,
                )
            )
        self._writer = Writer()
        self._files = 0
        self._workers = 1

    @property
    def next_time(self) -> float:
        """The next time at which an output is due: a step must end there."""
        return min(output.next_time for output in self._outputs)

    @property
    def summary(self) -> dict[str, Any]:
        """Files written, seconds the writing took in its thread, and seconds that the run waited for it."""
        return {"files": self._files, "write_s": self._writer.busy, "waited_s": self._writer.waited}

    def begin(self, solver: Any, restarted: bool) -> None:
        """Removes what an earlier run left of later steps, and writes the first fields; of a run that continues, only
        what is due now and is not there."""
        continued = restarted or solver.steps > 0
        if self.directory is not None:
            files.directory(self.directory)
        if solver.backend.name == "cuda":
            # The host's cores have nothing else to do; on a CPU they are the solver's.
            self._workers = max(1, min(_WORKERS, len(os.sched_getaffinity(0)) - 1))
        for output in self._outputs:
            blocks = solver.decomposition.blocks
            if output.spec is None:
                output.pieces = selection.whole(blocks)
            else:
                output.pieces = selection.subset(output.spec, blocks, output.variables)
            if self.directory is not None:
                after = solver.steps if continued else -1
                fields.clear(self.directory, output.name, after)
                vtk.clear(self.directory, output.name, after)
        if restarted:
            due = [output for output in self._outputs if output.due(solver) and not self._there(output, solver.steps)]
        else:
            due = [output for output in self._outputs if output.written != solver.steps]
        self._write(solver, due)
        for output in self._outputs:
            if not restarted or output.due(solver) or (output.next_time == math.inf):
                output.count(solver.time)

    def after_step(self, solver: Any) -> None:
        """Begins the outputs that are due. Raises the failure of an earlier one."""
        self._writer.check()
        due = [output for output in self._outputs if output.due(solver)]
        if due:
            self._write(solver, due)
            for output in due:
                output.count(solver.time)

    def capture(self) -> dict[str, Any]:
        """The clocks. Waits for what is being written: a checkpoint may count on the outputs before it. Raises the
        failure of one."""
        self._writer.drain()
        self._writer.check()
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
        """Writes the last fields, unless an exception is being handled: then the state may be bad, or between two
        steps. Returns when all is written; raises a failure that was not raised yet."""
        if sys.exception() is None and not self._writer.failed:
            self._write(solver, [output for output in self._outputs if output.written != solver.steps])
        self._writer.drain()
        self._writer.check()

    def _there(self, output: _Output, step: int) -> bool:
        if self.directory is None:
            return True
        frames = {"netcdf": fields.frame, "vtk": vtk.frame}
        return all(frames[kind](self.directory, step, output.name).is_file() for kind in self._case.output.formats)

    def _write(self, solver: Any, outputs: Sequence[_Output]) -> None:
        if self.directory is None or not outputs:
            return
        work = [(output, [[_fetch(solver, s) for s in piece.sources] for piece in output.pieces]) for output in outputs]
        time, step = solver.time, solver.steps

        def job() -> None:
            for output, fetched in work:
                self._save(output, fetched, time, step)

        self._writer.submit(job)
        for output in outputs:
            output.written = step

    def _save(self, output: _Output, fetched: list[list[Callable]], time: float, step: int) -> None:
        """In the thread: the files of one output."""
        formats = self._case.output.formats
        dtype, gamma = _TYPES[output.precision], self._case.gas.gamma
        blocks = []
        # What two formats want is computed once and held; else one piece at a time.
        known = None if len(formats) > 1 else []
        for piece, arrived in zip(output.pieces, fetched, strict=True):
            evaluate = partial(_evaluate, piece, output.variables, arrived, gamma, dtype, self._workers)
            values = selection.Values(output.variables, dtype, evaluate, known)
            blocks.append(FieldBlock(piece.name, piece.x, piece.y, piece.z, values, piece.gaps))
        if "netcdf" in formats:
            if output.series is None:
                output.series = fields.Series(blocks, self._dump, output.variables, output.precision, output.part)
            output.series.write(fields.frame(self.directory, step, output.name), blocks, time, step)
            self._files += 1
        if "vtk" in formats:
            vtk.write(self.directory, blocks, time, step, output.variables, name=output.name)
            self._files += 1


def _evaluate(piece: selection.Piece, names: Sequence[str], arrived: Sequence[Callable], *how) -> dict[str, np.ndarray]:
    """The variables of a piece, once its conservative variables have come to the host."""
    return piece.evaluate(names, [q() for q in arrived], *how)


def _fetch(solver: Any, source: selection.Source) -> Callable[[], np.ndarray]:
    """Begins to bring the conservative variables (5, bk, bj, bi) of a source to the host; the function gives them."""
    state = solver.states[source.block]
    if source.x.shape == state.block.x.shape:
        # Ghosts and all: one piece of memory, so that a device need not gather it first.
        whole = solver.backend.fetch(state.q)
        return lambda: state.interior(whole())
    return solver.backend.fetch(state.interior(state.q)[(slice(None), *source.box)])
