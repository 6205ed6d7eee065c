"""Checkpoints: all that a run needs to go on bit for bit, written aside, synced, renamed; the last few are kept.

They lie in `<run>/checkpoints/`, numbered in the order in which they were written; the step is in the name for people.
"""

import math
import re
import time as wall
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.errors import HiresxError
from hiresx.output import container, files
from hiresx.output.attachment import Attachment
from hiresx.output.container import Container, Damaged

FOLDER = "checkpoints"
# Of what a checkpoint holds and how it is laid out: another one is refused.
FORMAT = 1
_PATTERN = re.compile(r"checkpoint_(\d+)_step_(\d+)\.hxc")
_FORMATS = "install the version of hiresx that wrote it, or begin a new run"

Contents = tuple[Mapping[str, Any], Iterable[tuple[str, np.ndarray]]]


def listed(directory: str | Path) -> list[Path]:
    """The checkpoints of the run in `directory`, the one written last first."""
    folder = Path(directory) / FOLDER
    found = [path for path in folder.glob("checkpoint_*.hxc") if _PATTERN.fullmatch(path.name)]
    return sorted(found, key=_number, reverse=True)


def _number(path: Path) -> int:
    return int(_PATTERN.fullmatch(path.name)[1])


@dataclass
class Found:
    """A whole checkpoint. `directory`: the run it lies in, None if it lies elsewhere. `passed`: later ones that are
    not whole, with the reason."""

    container: Container
    directory: Path | None
    passed: list[tuple[Path, str]] = field(default_factory=list)


def find(path: str | Path) -> Found:
    """The checkpoint that `path` means: a file, or the newest whole one of a run directory.

    Raises HiresxError when there is none, for a file that is not whole, and for another version of the format.
    """
    path = Path(path)
    if path.is_file():
        parent = path.absolute().parent
        return Found(opened(path), path.parent.parent if parent.name == FOLDER else None)
    if not path.is_dir():
        raise HiresxError(f"{path}: no such run and no such checkpoint", "give the folder of a run, or a file in it")
    if path.absolute().name == FOLDER and not listed(path):
        path = path.parent
    passed: list[tuple[Path, str]] = []
    for candidate in listed(path):
        try:
            return Found(opened(candidate), path, passed)
        except Damaged as error:
            passed.append((candidate, error.message))
    if passed:
        raise HiresxError(
            f"no checkpoint in {path} is whole: {'; '.join(reason for _, reason in passed)}",
            f"begin the run again: hiresx run {path / 'case'} --out ANOTHER_DIR",
        )
    raise HiresxError(
        f"there is no checkpoint in {path}",
        f"a run writes its first one before its first step; begin anew: hiresx run {path / 'case'} --out ANOTHER_DIR"
        if (path / "case").is_dir()
        else "give the folder that hiresx run made",
    )


def opened(path: Path) -> Container:
    """The checkpoint `path`, every bit of it checked. Raises Damaged, and HiresxError for another format."""
    found = Container(path)
    version = found.values.get("format")
    if version != FORMAT:
        raise HiresxError(
            f"{path} is a checkpoint of format {version}, written by hiresx {found.values.get('hiresx')}; "
            f"this one reads format {FORMAT}",
            _FORMATS,
        )
    found.verify()
    return found


def describe(path: str | Path) -> dict[str, Any]:
    """What a checkpoint holds, without its arrays: format, hiresx (version), backend, written (UTC), step, time, case,
    blocks (name -> (ni, nj, nk)), attachments (names). Raises HiresxError as `opened`."""
    values = opened(Path(path)).values
    with understood(Path(path)):
        return {
            **{key: values[key] for key in ("format", "hiresx", "backend", "written", "case")},
            "step": values["solver"]["steps"],
            "time": values["solver"]["time"],
            "blocks": {block["name"]: tuple(block["size"]) for block in values["grid"]},
            "attachments": sorted(values["attachments"]),
        }


class Checkpoints(Attachment):
    """Writes checkpoints into `directory` as `spec` ([checkpoint] of the case) asks; nothing if `spec.keep` is 0.

    `contents` gives what goes in: values, and a generator of named arrays. `alive` raises if the state is not worth
    keeping. `clock` gives seconds and never goes backwards. The interval never changes a time step: the first step
    that reaches it is the one.
    """

    name = "checkpoints"

    def __init__(
        self,
        directory: Path,
        spec,
        contents: Callable[[], Contents],
        alive: Callable[[], None],
        clock: Callable[[], float] = wall.monotonic,
    ):
        self._directory, self._spec, self._contents, self._alive, self._clock = directory, spec, contents, alive, clock
        self._step: int | None = None
        self._period = 0
        self.seconds = 0.0

    def start(self, solver, source: Path | None, new: bool) -> None:
        """Before the first step. `source`: the checkpoint whose state this is, None without one. The directory of a
        `new` run loses the checkpoints that an earlier one left there."""
        self._written = self._clock()
        self._period = self._periods(solver)
        if new:
            self._prune(0)
        ours = source is not None and source.absolute().parent == self._folder.absolute()
        self._step = solver.steps if ours else None
        self.write(solver)

    @property
    def _folder(self) -> Path:
        return self._directory / FOLDER

    def _periods(self, solver) -> int:
        return 0 if self._spec.every_time is None else math.floor(solver.time / self._spec.every_time * (1 + 1e-9))

    def after_step(self, solver) -> None:
        if self._due(solver):
            self.write(solver)

    def _due(self, solver) -> bool:
        spec = self._spec
        if spec.every_steps is not None and solver.steps % spec.every_steps == 0:
            return True
        return self._periods(solver) > self._period or self._clock() - self._written >= spec.every_wall

    def write(self, solver) -> None:
        """Write one now, unless this step has one. Raises what `alive` raises, and HiresxError naming the path when it
        cannot be written; the earlier ones stay then."""
        if self._spec.keep == 0 or self._step == solver.steps:
            return
        began = self._clock()
        self._alive()
        values, arrays = self._contents()
        if self._step is None and not self._folder.is_dir():
            files.directory(self._folder)
        number = max(map(_number, listed(self._directory)), default=0) + 1
        path = self._folder / f"checkpoint_{number:06d}_step_{solver.steps:06d}.hxc"
        container.write(path, {"format": FORMAT, **values}, arrays)
        self._step, self._period, self._written = solver.steps, self._periods(solver), self._clock()
        self.seconds = self._written - began
        self._prune(self._spec.keep)

    def last_good(self, tried: Sequence[str]) -> Container | None:
        """The newest whole checkpoint whose name is not among `tried`; if there is no other, the oldest; None if there
        is none at all."""
        whole = []
        for path in listed(self._directory):
            with suppress(HiresxError):
                whole.append(opened(path))
        return next((found for found in whole if found.path.name not in tried), whole[-1] if whole else None)

    def _prune(self, keep: int) -> None:
        files.remove(listed(self._directory)[keep:])


def set_aside(passed: Iterable[tuple[Path, str]]) -> None:
    """Rename checkpoints that are not whole, so that they count no more among the last ones."""
    for path, _ in passed:
        with suppress(OSError):
            path.rename(path.with_name(f"{path.name}.damaged"))


def parted(name: str, captured: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What `Attachment.capture` gave, parted into values and arrays. Raises TypeError naming what cannot be kept."""
    values, arrays = {}, {}
    for key, value in captured.items():
        if isinstance(value, np.ndarray):
            arrays[key] = value
        elif value is None or isinstance(value, bool | int | float | str | np.generic):
            values[key] = value
        else:
            raise TypeError(f"attachment {name} wants to keep {key} = {value!r}, no number, text or array")
    return values, arrays


@contextmanager
def understood(path: Path) -> Iterator[None]:
    """Around what looks into a checkpoint: what is not there, or not what it should be, becomes Damaged."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise Damaged(
            f"{path} does not hold what a checkpoint must ({type(error).__name__}: {error})", "take another one"
        ) from error
