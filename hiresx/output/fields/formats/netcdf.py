"""Fields in netCDF-4, see `hiresx.output.fields.field_file`: the files of a run, which ranks write together.

The library makes one file of a series, or none but to find out how it is laid out; the others are that layout with the
arrays in their places (`hiresx.output.saved.file_layout`). Where that fails rank 0 writes what all have by the library.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.base.notify import notify
from hiresx.mpi.communicator import Communicator
from hiresx.output.fields import coordinate_file
from hiresx.output.fields.field_file import SUFFIX, Coordinates, FieldBlock, Series, frames
from hiresx.output.fields.formats import FormatSeries, SeriesFrame, WrittenSeries
from hiresx.output.fields.selection import Piece
from hiresx.output.saved import files
from hiresx.output.saved.files import FileLayout, JointFile
from hiresx.output.saved.places import IndexBox, IndexPortion


def frame(directory: str | Path, step: int, name: str = "fields") -> Path:
    """Where the fields of `step`, or the subset `name` of them, are kept in a run directory:
    <name>_<step, six digits or more>.nc."""
    return Path(directory) / f"{name}_{step:06d}{SUFFIX}"


def clear(directory: str | Path, name: str = "fields", after: int = -1) -> int:
    """Remove the field files (or those of the subset `name`) of steps beyond `after` that an earlier run left in
    `directory`; returns how many.

    A new run there would otherwise be mixed up with the old one's later steps. Raises HiresxError if one cannot go.
    """
    found = [path for step, path in frames(directory, name).items() if step > after]
    files.remove(found)
    if not frames(directory, name):
        coordinate_file.clear(directory, name)
    return len(found)


class NetcdfSeries(FormatSeries):
    """The netCDF files of an output. `frame` tries the layout beside the first file: raises HiresxError as if that were
    written."""

    def __init__(self, about: WrittenSeries):
        self._about = about
        self._names = [piece.name for piece in about.pieces]
        self._digest = files.once(about.comm, self._digested)
        self._series: Series | None = None
        self._layout: FileLayout | None = None

    def frame(self, directory: Path, time: float, step: int) -> SeriesFrame:
        about, path = self._about, frame(directory, step, self._about.name)
        grid = self._begin(directory, path) if self._series is None else None
        unknown = self._layout is None or (grid is not None and grid[2] is None)
        if unknown:
            assert self._series is not None
            made = [(self._series, path)] if grid is None else [grid[:2], (self._series, path)]
            return GatheredFrame(made, about.pieces, about.variables, time, step)
        layouts = [(path, self._layout)] if grid is None else [grid[1:], (path, self._layout)]
        joint = [JointFile(path, layout, about.tag, about.comm.root) for path, layout in layouts if layout is not None]
        return FieldFrame(joint, self._names, {("", "time"): time, ("", "step"): step})

    def _begin(self, directory: Path, path: Path) -> tuple[Series, Path, FileLayout | None] | None:
        """Finds out how the files are laid out; gives the file of the coordinates if it must be written. Collective."""
        about, grid, linked = self._about, None, ""
        if self._digest:
            place, there = files.once(about.comm, lambda: coordinate_file.place(directory, about.name, self._digest))
            linked = place.name
            if not there:
                series = Coordinates(about.pieces, about.case, about.part, self._digest)
                grid = series, place, self._learned(series, place)
        self._series = Series(
            about.pieces, about.case, about.variables, about.precision, about.part, linked, about.joined_by
        )
        self._layout = self._learned(self._series, path)
        return grid

    def _digested(self) -> str:
        """What the coordinates are known by, where they are written once; else ""."""
        if self._about.case["output"].get("coordinates") != "once":
            return ""
        if coordinate_file.h5py() is None:
            notify("h5py is missing: the coordinates are written in each file of the fields (pip install h5py)")
            return ""
        return coordinate_file.digest(self._about.pieces, self._about.grid)

    def _learned(self, series: Series, path: Path) -> FileLayout | None:
        """The layout, on rank 0 whole, on the others the places of the arrays. Collective."""
        found: list[FileLayout | None] = []

        def learn() -> FileLayout | None:
            found.append(series.learn(path))
            return None if found[0] is None else found[0].places

        places = files.once(self._about.comm, learn)
        return found[0] if found else places


Format = NetcdfSeries


class FieldFrame:
    """The field file of one time, which the ranks of a communicator write together (see `JointFile`): the last of
    `joint`, laid out as the blocks called `names` of a `Series`; before it the file of the coordinates, where that must
    be written too. `numbers`: time and step, by key. A context, for one thread at a time."""

    def __init__(self, joint: Sequence[JointFile], names: Sequence[str], numbers: Mapping[Any, float]):
        self._files, self._names, self._numbers = joint, names, numbers
        self._opened = ExitStack()

    def __enter__(self) -> "FieldFrame":
        with ExitStack() as opened:
            for file in self._files:
                opened.enter_context(file)
                file.frame({key: number for key, number in self._numbers.items() if file.holds(key)})
            self._opened = opened.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self._opened.__exit__(*error)

    def put(self, n: int, portions: Sequence[IndexPortion]) -> None:
        """What this process has of block number `n`."""
        for file in self._files:
            for portion in portions:
                for name, values in {"x": portion.x, "y": portion.y, "z": portion.z, **portion.values}.items():
                    if not file.holds((self._names[n], name)):
                        continue  # coordinates or variables of the file beside
                    if portion.missing is not None:
                        values = np.where(portion.missing, np.nan, values)
                    file.put((self._names[n], name), portion.place, [values])

    def complete(self, comm: Communicator) -> None:
        """Nothing: all is where it belongs."""

    def publish(self) -> None:
        """Once all ranks have left it, on rank 0: the coordinates have their name before the first file that links to
        them."""
        for file in self._files:
            file.publish()

    def discard(self) -> None:
        """Instead of `publish`."""
        for file in self._files:
            file.discard()


class GatheredFrame:
    """The files `made` of one time, by the library, which only one process can use: rank 0 writes what all have of the
    `blocks`."""

    def __init__(
        self, made: Sequence[tuple[Series, Path]], blocks: Sequence[Piece], variables: Sequence[str], time: float,
        step: int,
    ):  # fmt: skip
        self._made, self._blocks, self._variables, self._moment = made, blocks, variables, (time, step)
        self._kept: list[list[IndexPortion]] = [[] for _ in blocks]

    def __enter__(self) -> "GatheredFrame":
        return self

    def __exit__(self, *error: Any) -> None:
        """Nothing is open."""

    def put(self, n: int, portions: Sequence[IndexPortion]) -> None:
        """What this process has of block number `n`."""
        self._kept[n] += portions

    def complete(self, comm: Communicator) -> None:
        """Writes the files. Collective."""
        kept, self._kept = self._kept, []
        of_ranks = [kept] if comm.mpi_comm is None else comm.mpi_comm.gather(kept)
        with comm.together():
            if comm.root:
                blocks = [
                    _together(block, [portion for of_rank in of_ranks for portion in of_rank[n]], self._variables)
                    for n, block in enumerate(self._blocks)
                ]
                for series, path in self._made:
                    series.write(path, blocks, *self._moment)

    def publish(self) -> None:
        """They have their names."""

    def discard(self) -> None:
        """What was not written left nothing."""


def _together(block: Piece, portions: Sequence[IndexPortion], variables: Sequence[str]) -> FieldBlock:
    """A block from all its portions."""
    arrays = {name: np.empty(block.shape, portions[0].values[name].dtype) for name in variables}
    arrays |= {axis: np.empty(block.shape) for axis in "xyz"}
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
    return FieldBlock(block.name, arrays["x"], arrays["y"], arrays["z"], state, block.gaps)
