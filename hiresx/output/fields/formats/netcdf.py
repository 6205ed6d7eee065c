"""Fields in netCDF-4, see `hiresx.output.fields.field_file`: the files of a run, which ranks write together.

The netCDF library writes one file, from which the layout of all files of a series is learned. The files of the series
are copies of this layout with the arrays inserted (`hiresx.output.saved.file_layout`)."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.output.fields import coordinate_file
from hiresx.output.fields.field_file import SUFFIX, Coordinates, Series, frames
from hiresx.output.fields.formats import FormatFrame, FormatSeries, WrittenSeries
from hiresx.output.saved import files
from hiresx.output.saved.files import FileLayout, JointFile
from hiresx.output.saved.places import LocalRegion


def frame(directory: str | Path, step: int, name: str = "fields") -> Path:
    """Return the path of the netCDF file with the fields of one step: <name>_<step, six digits or more>.nc in the run
    directory. `name`: the name of a subset of the fields, by default the whole fields."""
    return Path(directory) / f"{name}_{step:06d}{SUFFIX}"


def clear(directory: str | Path, name: str = "fields", after: int = -1) -> int:
    """Remove the netCDF field files in `directory` of steps later than `after`, so that files of an earlier run are not
    confused with those of a new run. `name`: the name of a subset of the fields, by default the whole fields. Returns
    the number of removed files. Raises HiresxError if a file cannot be removed."""
    found = [path for step, path in frames(directory, name).items() if step > after]
    files.remove(found)
    if not frames(directory, name):
        coordinate_file.clear(directory, name)
    return len(found)


class NetcdfSeries(FormatSeries):
    """Writer of the netCDF files of an output at all times. `about`: the data of the output that do not change with
    time."""

    def __init__(self, about: WrittenSeries):
        self._about = about
        self._names = [piece.name for piece in about.pieces]
        self._layout: FileLayout | None = None

    def frame(self, directory: Path, time: float, step: int) -> FormatFrame:
        """Return the object that writes the netCDF file of one time. `directory`: the run directory. `time`: in units
        of L / c_ref (length scale over sound speed). `step`: number of time steps before this time. The first call
        writes a temporary file, in which it finds the positions of the arrays in all files of the series. All ranks
        must call this method. Raises HiresxError if the temporary file cannot be written."""
        about, path = self._about, frame(directory, step, self._about.name)
        coordinates = self._begin(directory, path)
        assert self._layout is not None
        layouts = [*coordinates, (path, self._layout)]
        joint = [JointFile(path, layout, about.tag, about.comm.root) for path, layout in layouts]
        return FieldFrame(joint, self._names, {("", "time"): time, ("", "step"): step})

    def _begin(self, directory: Path, path: Path) -> list[tuple[Path, FileLayout]]:
        """Determine, before the first file, the layout of the files. Returns the coordinate file if it must be written.
        Collective."""
        if self._layout is not None:
            return []
        about, coordinates, linked = self._about, [], ""
        # This is done at the first file: if levels follow the flow, some series have no files.
        digest = files.on_root(about.comm, self._coordinate_digest)
        if digest:
            place, there = files.on_root(about.comm, lambda: coordinate_file.place(directory, about.name, digest))
            linked = place.name
            if not there:
                series = Coordinates(about.pieces, about.case, about.part, digest)
                coordinates.append((place, self._find_layout(series, place)))
        self._layout = self._find_layout(
            Series(
                about.pieces,
                about.case,
                about.variables,
                about.precision,
                about.part,
                linked,
                about.joined_by,
                about.levels,
            ),
            path,
        )
        return coordinates

    def _coordinate_digest(self) -> str:
        """Return the digest of the coordinates if they are written once, else ""."""
        if self._about.case["output"].get("coordinates") != "once":
            return ""
        return coordinate_file.digest(self._about.pieces, self._about.grid)

    def _find_layout(self, series: Series, path: Path) -> FileLayout:
        """Return the layout: on rank 0 all of it, on other ranks the positions of the arrays. Collective."""
        found: list[FileLayout] = []

        def learn() -> FileLayout:
            found.append(series.measure_layout(path))
            return found[0].places

        places = files.on_root(self._about.comm, learn)
        return found[0] if found else places


Format = NetcdfSeries


class FieldFrame:
    """Writer of the netCDF field file of one time, which the ranks of a communicator write together (see `JointFile`).
    `joint`: the coordinate file, if it must be written too, and last the field file. `names`: the names of the blocks.
    `numbers`: time and step, by key. It is a context, for one thread at a time."""

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

    def put(self, n: int, regions: Sequence[LocalRegion]) -> None:
        """Write the values that this rank has in block number `n` of the output. `regions`: the points of this block
        whose values the rank has, with coordinates and variables."""
        for file in self._files:
            for region in regions:
                for name, values in {"x": region.x, "y": region.y, "z": region.z, **region.values}.items():
                    if not file.holds((self._names[n], name)):
                        continue  # coordinates or variables of the accompanying file
                    if region.missing is not None:
                        values = np.where(region.missing, np.nan, values)
                    file.put((self._names[n], name), region.place, [values])

    def publish(self) -> None:
        """Give the files their final names, the coordinate file first, so that no field file links to a missing one.
        Called on rank 0 after all ranks have left the `with` block of this object."""
        for file in self._files:
            file.publish()

    def discard(self) -> None:
        """Remove the temporary files of this time. Called instead of `publish`."""
        for file in self._files:
            file.discard()
