"""What the files of one output hold, which part of it each rank has, and the files of one moment."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.announce import announce
from hiresx.communicator import Communicator
from hiresx.device.state import BlockState
from hiresx.equations.gas import Gas
from hiresx.output.fields import coordinate_file, derived, selection
from hiresx.output.fields import field_file as fields
from hiresx.output.fields import formats as others
from hiresx.output.fields.field_file import FieldBlock
from hiresx.output.fields.portions import OwnBoxes, OwnSamples, PartBox
from hiresx.output.saved import files
from hiresx.output.saved.file_layout import FileLayout
from hiresx.output.saved.joint import JointFile
from hiresx.output.saved.places import IndexBox, IndexPortion
from hiresx.output.saved.writer import Work

_TYPES: dict[str, np.dtype] = {"fp64": np.dtype("f8"), "fp32": np.dtype("f4")}


class Content:
    """`variables` in `precision` of the blocks of a solver, or of the subset `spec` of them (None: all); `formats` of
    the files, whose names begin with `name`. `case`: the resolved case as a dictionary.

    Constructed by all ranks of the solver's comm; raises as `selection.subset`.
    """

    def __init__(
        self, name: str, spec: Any, variables: tuple[str, ...], precision: str, formats: Sequence[str],
        case: Mapping[str, Any], solver: Any,
    ):  # fmt: skip
        self.name, self.variables, self.precision, self.formats = name, variables, precision, formats
        self.dtype, self.case, self.comm = _TYPES[precision], case, solver.comm
        self.gas = Gas.of(solver.case)
        self.part = "" if spec is None else selection.describe(spec)
        blocks, parts, own = solver.decomposition.blocks, solver.cut.parts, [state.part for state in solver.states]
        # Found by one for all: it goes through all coordinates.
        self.pieces = files.once(
            self.comm, lambda: selection.whole(blocks) if spec is None else selection.subset(spec, blocks)
        )
        margin = not all(derived.about(variable).local for variable in variables)
        self.shares: list[OwnBoxes | OwnSamples] = [
            OwnBoxes(piece, blocks, own, margin)
            if isinstance(piece, selection.NodeBlock)
            else OwnSamples(piece, blocks, parts, own, self.comm.rank, self.comm.size, margin)
            for piece in self.pieces
        ]
        # Whether ranks wait for each other's values.
        self.waits = bool(self.comm.max(any(share.waits for share in self.shares)))
        # A number that the temporary files of all ranks have in common, and no others.
        self.tag = self.comm.bcast(os.getpid())
        self._layout: FileLayout | None = None
        self._series: fields.Series | None = None
        self._once = case["output"].get("coordinates") == "once"
        self._digest = files.once(self.comm, lambda: self._digested(blocks))
        # The file of the coordinates, until it has been written.
        self.grid: CoordinatesFile | None = None

    def _digested(self, blocks: Sequence[Any]) -> str:
        """What the coordinates are known by, where they are written once."""
        if not self._once or "netcdf" not in self.formats:
            return ""
        if coordinate_file.h5py() is None:
            announce("h5py is missing: the coordinates are written in each file of the fields (pip install h5py)")
            return ""
        return coordinate_file.digest(self.pieces, blocks)

    def series(self, directory: Path, step: int) -> tuple[fields.Series, FileLayout | None]:
        """How the netCDF files are laid out; tried beside the one of `step` the first time. Collective; raises as if
        that were written."""
        if self._series is None:
            about = self.case, self.variables, self.precision, self.part
            linked, there = "", True
            if self._digest:
                path, there = files.once(self.comm, lambda: coordinate_file.place(directory, self.name, self._digest))
                linked = path.name
            if not there:
                grid = fields.Coordinates(self.pieces, self.case, self.part, self._digest)
                self.grid = CoordinatesFile(path, grid, self._learned(grid, path))
            self._series = fields.Series(self.pieces, *about, linked)
            self._layout = self._learned(self._series, fields.frame(directory, step, self.name))
        return self._series, self._layout

    def _learned(self, series: fields.Series, path: Path) -> FileLayout | None:
        """The layout, on rank 0 whole, on the others the places of the arrays. Collective."""
        found: list[FileLayout | None] = []

        def learn() -> FileLayout | None:
            found.append(series.learn(path))
            return None if found[0] is None else found[0].places

        places = files.once(self.comm, learn)
        return found[0] if found else places

    def moment(self, directory: Path, solver: Any, workers: int) -> "Files":
        """The files of now. Begins to copy from the device what they need; `workers` threads compute from it.
        Collective."""
        if "netcdf" in self.formats:
            self.series(directory, solver.steps)
        with self.comm.together():
            fetched = [[_fetch(solver, source) for source in share.sources] for share in self.shares]
        grid, self.grid = self.grid, None
        return Files(self, directory, fetched, solver.time, solver.steps, workers, grid)


@dataclass(frozen=True, eq=False)
class CoordinatesFile:
    """The file `path` of the coordinates, and its layout if one was found."""

    path: Path
    series: fields.Series
    layout: FileLayout | None


class Files(Work):
    """The files of one moment. `fetched`: per piece and source, what gives the conservative variables. `grid`: the file
    of the coordinates if it has to be written too."""

    def __init__(
        self, content: Content, directory: Path, fetched: list[list[Callable[[], np.ndarray]]], time: float, step: int,
        workers: int, grid: CoordinatesFile | None = None,
    ):  # fmt: skip
        self._grid = grid
        self._content, self._directory, self._fetched = content, directory, fetched
        self._time, self._step, self._workers = time, step, workers
        # Per piece: values that others wait for, or that wait for others'; what rank 0 must write by the library.
        self._left: list[np.ndarray | None] = []
        self._kept: list[list[IndexPortion]] = []

    @cached_property
    def _by_library(self) -> bool:
        if "netcdf" not in self._content.formats:
            return False
        unknown = self._grid is not None and self._grid.layout is None
        return unknown or self._content.series(self._directory, self._step)[1] is None

    @cached_property
    def _frames(self) -> list[fields.FieldFrame | others.FormatFrame]:
        content = self._content
        found: list[fields.FieldFrame | others.FormatFrame] = []
        tag, root = content.tag, content.comm.root
        if "netcdf" in content.formats and not self._by_library:
            path = fields.frame(self._directory, self._step, content.name)
            layout = content.series(self._directory, self._step)[1]
            assert layout is not None
            if self._grid is not None:  # it has its name before the first file that links to it
                assert self._grid.layout is not None
                joint = JointFile(self._grid.path, self._grid.layout, tag, root)
                found.append(fields.FieldFrame(joint, content.pieces))
            found.append(fields.FieldFrame(JointFile(path, layout, tag, root), content.pieces, self._time, self._step))
        about = content.pieces, self._time, self._step, content.variables, content.dtype, tag, root, content.name
        return [*found, *others.frames(content.formats, self._directory, *about)]

    def write(self) -> None:
        content = self._content
        if not content.comm.root and not any(share.sources for share in content.shares):
            self._left, self._kept = [None] * len(content.shares), [[] for _ in content.shares]
            return
        with ExitStack() as opened:
            for frame in self._frames:
                opened.enter_context(frame)
            for n, share in enumerate(content.shares):
                states = [arrived() for arrived in self._fetched[n]]
                self._fetched[n] = []  # one piece's worth of memory, not of all
                portions, left = share.portions(content.variables, states, content.gas, content.dtype, self._workers)
                for frame in self._frames:
                    frame.put(n, portions)
                self._left.append(left)
                if self._by_library:
                    self._kept.append(portions)

    def complete(self, comm: Communicator) -> None:
        if self._content.waits:
            self._exchange(comm)
        if self._by_library:
            self._gather(comm)

    def _exchange(self, comm: Communicator) -> None:
        """Points between nodes of several ranks."""
        content = self._content
        sampled = [(n, share) for n, share in enumerate(content.shares) if isinstance(share, OwnSamples)]
        of_pieces = [share.sent(self._left[n]) for n, share in sampled]
        received = comm.mpi_comm.alltoall([list(of_rank) for of_rank in zip(*of_pieces, strict=True)])
        left, self._left = self._left, []
        with comm.together(), ExitStack() as opened:
            late = {
                n: share.late(content.variables, left[n], [of_rank[m] for of_rank in received], content.dtype)
                for m, (n, share) in enumerate(sampled)
            }
            for frame in self._frames if any(late.values()) else ():
                opened.enter_context(frame)
            for n, portions in late.items():
                for frame in self._frames if portions else ():
                    frame.put(n, portions)
                if self._by_library:
                    self._kept[n] += portions

    def _gather(self, comm: Communicator) -> None:
        """The netCDF file by the library, which only one process can use, from what all have."""
        content, (kept, self._kept) = self._content, (self._kept, [])
        of_ranks = [kept] if comm.mpi_comm is None else comm.mpi_comm.gather(kept)
        with comm.together():
            if comm.root:
                blocks = [
                    _together(piece, [portion for of_rank in of_ranks for portion in of_rank[n]], content.variables)
                    for n, piece in enumerate(content.pieces)
                ]
                if self._grid is not None:
                    self._grid.series.write(self._grid.path, blocks, self._time, self._step)
                path = fields.frame(self._directory, self._step, content.name)
                content.series(self._directory, self._step)[0].write(path, blocks, self._time, self._step)

    def publish(self) -> None:
        for frame in self._frames:
            frame.publish()

    def discard(self) -> None:
        for frame in self._frames:
            frame.discard()


class TimeContent(Work):
    """All that is written at one moment."""

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


def _together(piece: selection.Piece, portions: Sequence[IndexPortion], variables: Sequence[str]) -> FieldBlock:
    """A block from all its portions."""
    arrays = {name: np.empty(piece.shape, portions[0].values[name].dtype) for name in variables}
    arrays |= {axis: np.empty(piece.shape) for axis in "xyz"}
    for portion in portions:
        for name, array in arrays.items():
            values = getattr(portion, name) if name in ("x", "y", "z") else portion.values[name]
            if portion.missing is not None:
                values = np.where(portion.missing, np.nan, values)
            if isinstance(portion.place, IndexBox):
                array[tuple(slice(*ends) for ends in portion.place.ends)] = values
            else:
                array.reshape(-1)[portion.place.index] = values
    state = {name: arrays[name] for name in variables}
    return FieldBlock(piece.name, arrays["x"], arrays["y"], arrays["z"], state, piece.gaps)


def _fetch(solver: Any, source: PartBox) -> Callable[[], np.ndarray]:
    """Begins to bring the conservative variables (n, bk, bj, bi) of a source to the host; the function gives them."""
    state = solver.states[source.state]
    where = zip(source.box, reversed(state.first), reversed(state.halo), strict=True)
    index = (slice(None), *(slice(s.start - first + halo, s.stop - first + halo) for s, first, halo in where))
    if all(n >= size for n, size in zip(source.x.shape, reversed(state.size), strict=True)):
        # Ghosts and all: one piece of memory, so that a device need not gather it first.
        whole = solver.backend.fetch(state.q)
        return lambda: _plain(state, whole()[index])
    some = solver.backend.fetch(state.q[index])
    return lambda: _plain(state, some())


def _plain(state: BlockState, kept: np.ndarray) -> np.ndarray:
    """Conservative variables of what `q` holds of them."""
    return state.numbers(kept) if state.storage.carries else kept
