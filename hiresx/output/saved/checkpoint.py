"""Checkpoints: everything that a run needs to continue bit for bit. They are written to a temporary file, synced and
renamed; the last few are kept.

They are in `<run>/checkpoints/`, numbered in the order in which they were written. Their names also contain the step,
for information.

The ranks of a communicator write one file together, and any number of ranks can read it. Arrays that are distributed
over the ranks are stored as boxes of nodes (hiresx.decomposition.held_arrays); of other data the values of rank 0 are
stored. A function that takes a communicator is called by all its ranks."""

import math
import os
import re
import time as wall
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hiresx.base.shell import quote
from hiresx.decomposition.held_arrays import LazyArray, Piece
from hiresx.errors import HiresxError
from hiresx.launch.command import LAUNCHED_BY
from hiresx.mpi.communicator import Communicator, single_process
from hiresx.output.saved import container, directories, distributed_arrays, files
from hiresx.output.saved.attachment import MANY, Attachment
from hiresx.output.saved.container import Container, DamagedCheckpoint, RemovedCheckpoint
from hiresx.output.saved.distributed_arrays import Reader
from hiresx.solver import Solver

if TYPE_CHECKING:
    from hiresx.case.outputs import Checkpoint as Spec

FOLDER = "checkpoints"
# Version of the content and layout of checkpoints. Other versions are rejected.
FORMAT = 2
# Defaults without `every_wall`: the longest time, in s, that is lost if a run is killed, and the largest fraction of
# the time of a run for writing checkpoints.
LOST = 300.0
SHARE = 0.01
_PATTERN = re.compile(r"checkpoint_(\d+)_step_(\d+)\.hxc")
_FORMATS = "install the version of hiresx that wrote it, or begin a new run"

Arrays = Iterable[tuple[str, np.ndarray | LazyArray]]
Contents = tuple[Mapping[str, Any], Arrays]


def list_checkpoints(directory: str | Path) -> list[Path]:
    """Return the paths of the checkpoints of the run in `directory`, the newest first."""
    folder = Path(directory) / FOLDER
    found = [path for path in folder.glob("checkpoint_*.hxc") if _PATTERN.fullmatch(path.name)]
    return sorted(found, key=_number, reverse=True)


def run_directory(path: Path) -> Path | None:
    """Return the folder of the run for `path`: the folder itself, its folder of checkpoints, or a file in that folder.
    Return None for a file elsewhere, which belongs to no run."""
    folder = path.parent if path.is_file() else path
    if folder.absolute().name == FOLDER and not list_checkpoints(folder):
        return folder.parent if folder.name else folder.absolute().parent
    return None if path.is_file() else path


def command_to_continue(directory: str | Path, setting: str = "") -> str:
    """Return the shell command that continues the run in `directory` from its last checkpoint; "" if the run has no
    checkpoint. The command begins with `command_that_starts`. `setting`: a
    change of the case for the option --set, as the text KEY=VALUE; "" for none."""
    more = f" --set {setting}" if setting else ""
    return f"{command_that_starts()} --restart {quote(directory)}{more}" if list_checkpoints(directory) else ""


def command_that_starts() -> str:
    """Return the beginning of the shell command that started this run: `hiresx launch -n N` with its options, or
    `hiresx run`."""
    return os.environ.get(LAUNCHED_BY, "hiresx run")


def _number(path: Path) -> int:
    found = _PATTERN.fullmatch(path.name)
    assert found is not None
    return int(found[1])


@dataclass
class FoundCheckpoint:
    """A valid checkpoint that `find` has opened. `container`: the opened file. `directory`: the run to which it
    belongs; None if it is not in the folder of a run. `passed`: later checkpoints that are damaged, with the
    reasons."""

    container: Container
    directory: Path | None
    passed: list[tuple[Path, str]] = field(default_factory=list)


def find(path: str | Path, comm: Communicator | None = None) -> FoundCheckpoint:
    """Open the checkpoint file `path`, or the newest valid checkpoint of the run directory `path`. Rank 0 of `comm`
    searches; all ranks open the file, and each verifies a share of the checksums. `comm`: None for this process alone.
    Raises HiresxError if there is no checkpoint, for a damaged file, and for another version of the format. All ranks
    must call this function."""
    path = Path(path)
    if files.on_root(comm, path.is_file):
        return FoundCheckpoint(open_checkpoint(path, comm), files.on_root(comm, lambda: run_directory(path)))
    passed: list[tuple[Path, str]] = []
    removed: list[tuple[Path, str]] = []
    while True:
        # The list is read anew each time: a run in progress may have written a newer checkpoint and removed the others.
        directory, candidates = files.on_root(comm, lambda: _candidates(path))
        tried = {found for found, _ in (*passed, *removed)}
        candidate = next((found for found in candidates if found not in tried), None)
        if candidate is None:
            break
        try:
            return FoundCheckpoint(open_checkpoint(candidate, comm), directory, passed)
        except DamagedCheckpoint as error:
            passed.append((candidate, error.message))
        except RemovedCheckpoint as error:
            removed.append((candidate, error.message))
    with (comm or single_process()).together():
        raise HiresxError(
            f"no checkpoint in {directory} is whole: {'; '.join(reason for _, reason in (*passed, *removed))}",
            f"begin the run again: hiresx run {quote(directory / 'case')} --out ANOTHER_DIR",
        )


def _candidates(path: Path) -> tuple[Path, list[Path]]:
    """Return the run directory for `path`, and its checkpoints, at least one."""
    if not path.is_dir():
        kind = files.describe_path(path)
        what = ": no such run and no such checkpoint" if kind == files.ABSENT else f" {kind}"
        raise HiresxError(f"{path}{what}", "give the folder of a run, or a file in it")
    path = run_directory(path) or path
    found = list_checkpoints(path)
    if not found:
        raise HiresxError(
            f"there is no checkpoint in {path}",
            "the run keeps none (checkpoint.keep = 0) or ended before its first; start it again: "
            f"hiresx run {quote(path / 'case')} --out ANOTHER_DIR"
            if (path / "case").is_dir()
            else "a run that ended before its first checkpoint leaves none: start it again; or give the folder that "
            "hiresx run made",
        )
    return path, found


def open_checkpoint(path: Path, comm: Communicator | None = None) -> Container:
    """Open the checkpoint file `path` and verify all of its checksums, of which each rank of `comm` verifies a share
    (None: this process verifies all). Raises DamagedCheckpoint for a damaged file, and HiresxError for another version
    of the format and if the ranks see different files. All ranks must call this function."""
    comm = comm or single_process()
    with comm.together():
        found = Container(path)
        version = found.values.get("format")
        if version != FORMAT:
            raise HiresxError(
                f"{path} is a checkpoint of format {version}, written by hiresx {found.values.get('hiresx')}; "
                f"this one reads format {FORMAT}",
                _FORMATS,
            )
    seen = comm.allgather(found.sha256)
    with comm.together():
        if len(set(seen)) > 1:
            other = next(rank for rank, one in enumerate(seen) if one != seen[0])
            raise HiresxError(
                f"{path} is another file to rank {other} than to rank 0",
                "keep runs on a file system that all hosts share",
            )
        found.verify(comm.rank, comm.size)
    return found


def describe(path: str | Path) -> dict[str, Any]:
    """Return the content of the checkpoint `path` without its arrays, as a dictionary: format, hiresx (version),
    backend, written (UTC), step, time (L / c_ref), case, blocks (name -> (ni, nj, nk)), attachments (names of the
    monitors and outputs whose data it has). Raises HiresxError for a damaged file and for another version of the
    format."""
    values = open_checkpoint(Path(path)).values
    with reading_contents(Path(path)):
        return {
            **{key: values[key] for key in ("format", "hiresx", "backend", "written", "case")},
            "step": values["solver"]["steps"],
            "time": values["solver"]["time"],
            "blocks": {block["name"]: tuple(block["size"]) for block in values["grid"]},
            "attachments": sorted(values["attachments"]),
        }


class Checkpoints(Attachment):
    """Writer of checkpoints into `directory`, at the intervals of `spec` (the table [checkpoint] of the case). It
    writes none if `spec.keep` is 0. An interval never changes a time step: a checkpoint is written after the first step
    that reaches it.

    `contents`: a function that returns the content of a checkpoint: values (rank 0's are written) and this rank's
    arrays by name. `alive`: a function that raises, on all ranks, if the state is invalid. `clock`: a function that
    returns seconds and never goes backwards; the clock of rank 0 decides (see `is_due`)."""

    name = "checkpoints"

    def __init__(
        self,
        directory: Path,
        spec: "Spec",
        contents: Callable[[], Contents],
        alive: Callable[[], None],
        clock: Callable[[], float] = wall.monotonic,
        comm: Communicator | None = None,
    ):
        self._directory, self._spec, self._contents, self._alive, self._clock = directory, spec, contents, alive, clock
        self._comm = comm or single_process()
        self._step: int | None = None
        self._period = 0
        self._looked: float | None = None
        self._pace = 0.0
        # Seconds that it took to write the last two.
        self._took: list[float] = []

    @property
    def seconds(self) -> float:
        """Estimated wall time to write a checkpoint, in s: the longer of the times that the last two took; 0 before the
        first."""
        return max(self._took, default=0.0)

    def start(self, solver: Solver, source: Path | None, new: bool) -> None:
        """Prepare for the first step of a run, and write a first checkpoint. `source`: the path of the checkpoint from
        which the run continues; None for a run from its initial flow. No checkpoint is written if `source` lies in the
        directory of this run. `new`: whether a new run begins in the directory; checkpoints of an earlier run are then
        removed. All ranks must call this method."""
        self._begun = self._written = self._clock()
        self._period = self._periods(solver)
        if new:
            self._prune(0)
        ours = source is not None and source.absolute().parent == self._folder.absolute()
        self._step = solver.steps if ours else None
        self.write(solver)

    @property
    def _folder(self) -> Path:
        return self._directory / FOLDER

    def _periods(self, solver: Solver) -> int:
        return 0 if self._spec.every_time is None else math.floor(solver.time / self._spec.every_time * (1 + 1e-9))

    def is_due(self) -> bool:
        """Return whether the wall time that has passed, by the clock of this rank, requires a checkpoint after the next
        step. Call this method before each step."""
        now = self._clock()
        if self._looked is not None:
            self._pace = now - self._looked
        self._looked = now
        # After a step that takes as long as the last one.
        then = now + self._pace
        if self._spec.every_wall is not None:
            return then - self._written >= self._spec.every_wall
        # The computation since the start of the last checkpoint is lost until the next one is written, so that one step
        # later would be too late. A checkpoint that a busy file system delayed does not postpone the next one.
        affordable = min(self._took, default=0.0) / SHARE
        return then + self._pace + self.seconds - self._begun > LOST and then - self._begun >= affordable

    def steps_left(self, solver: Solver) -> int:
        """Return how many time steps may be made before `after_step` must be called. With an interval in steps these
        are the steps until the next checkpoint. With an interval in simulated time it is half of the number of steps,
        of the present length, until the next checkpoint, since the length may change."""
        spec, left = self._spec, MANY
        if spec.every_steps is not None:
            left = spec.every_steps - solver.steps % spec.every_steps
        if spec.every_time is not None:
            time = (self._period + 1) * spec.every_time - solver.time
            left = min(left, max(1, int(0.5 * time / solver.dt) if solver.dt > 0 else 1))
        return left

    def after_step(self, solver: Solver, due: bool = False) -> None:
        """Write a checkpoint if an interval has passed. `due`: whether the interval in wall time has passed: the result
        of `is_due` on rank 0 before the step, which the caller passes on all ranks. All ranks must call this method."""
        if self._spec.keep and (due or self._due_by_count(solver)):
            self.write(solver)

    def _due_by_count(self, solver: Solver) -> bool:
        spec = self._spec
        if spec.every_steps is not None and solver.steps % spec.every_steps == 0:
            return True
        return self._periods(solver) > self._period

    def write(self, solver: Solver) -> None:
        """Write a checkpoint now, unless one was already written at this step. Raises HiresxError, with the path, if it
        cannot be written; earlier checkpoints then remain. If the state is invalid, the function `alive`, which was
        passed to the constructor, raises its error. All ranks must call this method."""
        if self._spec.keep == 0 or self._step == solver.steps:
            return
        began = self._clock()
        self._alive()
        values, contents = self._contents()
        with self._comm.together():
            arrays = list(contents)
        names = self._comm.allgather([name for name, _ in arrays])
        with self._comm.together():
            distributed_arrays.check_whole(name for theirs in names for name in theirs)
        path = files.on_root(self._comm, lambda: self._next(solver.steps))
        container.write(path, {"format": FORMAT, **values}, arrays, self._comm)
        self._step, self._period, self._written = solver.steps, self._periods(solver), self._clock()
        self._begun, self._looked = began, None
        self._took = [*self._took[-1:], self._written - began]
        self._prune(self._spec.keep)

    def _next(self, step: int) -> Path:
        if self._step is None and not self._folder.is_dir():
            directories.make_directory(self._folder)
        number = max(map(_number, list_checkpoints(self._directory)), default=0) + 1
        return self._folder / f"checkpoint_{number:06d}_step_{step:06d}.hxc"

    def last_good(self, tried: Sequence[str]) -> Container | None:
        """Open and return the newest valid checkpoint of the run whose file name is not in `tried`. If every valid
        checkpoint is in `tried`, return the oldest of them; if there is no valid one, return None. All ranks must call
        this method."""
        oldest = None
        for path in files.on_root(self._comm, lambda: list_checkpoints(self._directory)):
            with suppress(HiresxError):
                oldest = open_checkpoint(path, self._comm)
                if path.name not in tried:
                    return oldest
        return oldest

    def _prune(self, keep: int) -> None:
        files.on_root(self._comm, lambda: files.remove(list_checkpoints(self._directory)[keep:]))


def set_aside(passed: Iterable[tuple[Path, str]]) -> None:
    """Rename damaged checkpoints to <name>.damaged, so that later searches ignore them. `passed`: pairs of the path of
    a checkpoint and the damage that was found."""
    for path, _ in passed:
        with suppress(OSError):
            path.rename(path.with_name(f"{path.name}.damaged"))


def split_captured(
    name: str, captured: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, np.ndarray], dict[str, list[Piece]]]:
    """Divide the data that a monitor or output stores in a checkpoint into three dictionaries by name: numbers and
    texts, whole arrays, and distributed arrays. A distributed array is a list of the boxes of nodes that this rank has
    (`Piece`). `name`: the name of the monitor or output. `captured`: the result of `Attachment.capture`. Raises
    TypeError, with the name of the entry, for an object that cannot be stored."""
    values, arrays, spread = {}, {}, {}
    for key, value in captured.items():
        if isinstance(value, np.ndarray):
            arrays[key] = value
        elif value is None or isinstance(value, bool | int | float | str | np.generic):
            values[key] = value
        elif isinstance(value, list) and all(isinstance(item, Piece) for item in value):
            spread[key] = value
        else:
            raise TypeError(f"attachment {name} returned {key} = {value!r}, which is no number, text, array or pieces")
    return values, arrays, spread


def pack(captured: Mapping[str, Mapping[str, Any]], comm: Communicator | None = None) -> Contents:
    """Convert the data of monitors and outputs to the form in which a checkpoint stores them: nested values, and pairs
    (name, array) of this rank. `captured`: the result of `Attachment.capture` by the name of the monitor or output. Of
    arrays that are the same on all ranks, only rank 0 of `comm` returns them. Of a distributed array each rank returns
    the boxes of nodes that it has; a rank without nodes must have an empty list under the name of the array."""
    root = comm is None or comm.root
    values: dict[str, Any] = {}
    arrays: list[tuple[str, np.ndarray | LazyArray]] = []
    for name, found in captured.items():
        plain, whole, spread = split_captured(name, found)
        values[name] = {"values": plain, "arrays": list(whole), "pieces": list(spread)}
        arrays += [(_place(name, key), array) for key, array in whole.items() if root]
        for key, theirs in spread.items():
            arrays += distributed_arrays.label_pieces(f"{_place(name, key)}/", theirs)
    return values, arrays


def unpack(found: Container) -> dict[str, dict[str, Any]]:
    """Return the data of each monitor and output in the opened checkpoint `found`, by name, in the form that
    `Attachment.restore` expects. A distributed array is a function read(name, box) that returns its nodes in the
    half-open index ranges `box` (i, j, k). Call this function inside `reading_contents`."""
    return {
        name: part["values"]
        | {key: found.array(_place(name, key)) for key in part["arrays"]}
        | {key: distributed_arrays.read_from_file(found, f"{_place(name, key)}/") for key in part["pieces"]}
        for name, part in found.values["attachments"].items()
    }


def restore_in_memory(
    captured: Mapping[str, Any], reader: Callable[[Sequence[Piece]], Reader] = distributed_arrays.read_from_memory
) -> dict[str, Any]:
    """Convert `captured`, the result of `Attachment.capture`, to the form that `Attachment.restore` expects, without a
    checkpoint file. Each distributed array, a list of boxes of nodes, is replaced by a function read(name, box), which
    `reader` makes from the list. `reader`: a function that copies the arrays at once, so that later changes of them
    have no effect."""
    *plain, spread = split_captured("", captured)
    return plain[0] | plain[1] | {key: reader(theirs) for key, theirs in spread.items()}


def _place(name: str, key: str) -> str:
    return f"attachments/{name}/{key}"


@contextmanager
def reading_contents(path: Path) -> Iterator[None]:
    """Return a context for reading the content of the checkpoint `path`, in which missing or wrong content raises
    DamagedCheckpoint."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        damaged = DamagedCheckpoint(
            f"{path} does not hold what a checkpoint must ({type(error).__name__}: {error})", "take another one"
        )
        damaged.everywhere = getattr(error, "everywhere", False)
        raise damaged from error
