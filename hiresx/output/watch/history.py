"""Histories: the samples of a monitor in a netCDF file. Each sample is appended, and the file is valid at any time.

The file has netCDF's classic format with 64-bit offsets, which every netCDF library reads: a header, the positions of a
probe, then one record per sample. The netCDF library creates the file with everything before the first sample. This
module appends the samples itself, for two reasons. First, appending takes microseconds: it writes the record and then
the count in the header, so that after a crash all earlier samples remain. Second, the time step must not call the
library while a thread uses it to write fields. Format: NetCDF Classic Format Specification, Unidata (CDF-2).
"""

import io
import itertools
import os
import struct
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TextIO

import numpy as np

from hiresx.base.plural import plural
from hiresx.base.whole_files import describe_path
from hiresx.errors import HiresxError
from hiresx.output.saved import directories, files
from hiresx.output.saved.netcdf_library import LOCK, library

FOLDER = "history"
# Tags and types of the format.
_DIMENSION, _VARIABLE, _ATTRIBUTE = 10, 11, 12
_CHAR, _INT, _DOUBLE = 2, 4, 6
# The attribute `filter` of a history with instantaneous samples.
NO_FILTER = "none"
_COUNT = 4  # position of the number of records in the header
_PIECE = 1 << 20  # number of bytes that are read at once


class Column(NamedTuple):
    """A quantity that every sample of a history has. `name`: its name, such as "p". `long_name`: its description.
    `units`: its unit, such as "c_ref"; "1" for a number without dimension."""

    name: str
    long_name: str
    units: str


_BELONGS = "put the file back that belongs to this run, or remove this one to begin a new history"

STEP = Column("step", "time steps taken", "1")
TIME = Column("time", "time", "L / c_ref")


class History:
    """Writer of the history of the monitor `name`. Each sample has a step, a time and a value for each column, or for
    each column and place. `columns`: descriptions of the quantities.

    `kind`: the type of the monitor. `places`: coordinates (n, 3), in units of the length scale L. `folder`: the folder
    of the file <name>.nc; if it is None, the samples are stored in memory. Nothing is written before `start`.
    `numbers`: type of the columns in the file, ">f8" or ">f4"."""

    # Descriptions of the differences between the file of a changed monitor and this one.
    _kind_of_change = "columns or places"

    def __init__(
        self,
        name: str,
        kind: str,
        columns: Sequence[Column],
        places: np.ndarray | None = None,
        folder: Path | None = None,
        numbers: str = ">f8",
    ):
        self.name, self.kind = name, kind
        # How samples were filtered against aliasing.
        self.filter = NO_FILTER
        self.places = None if places is None else np.asarray(places, dtype=float).reshape(-1, 3)
        self.path = None if folder is None else Path(folder) / f"{name}.nc"
        self.samples = 0
        # CRC-32 of all samples in the file, by which a checkpoint knows them.
        self.digest = 0
        # Messages about an earlier file.
        self.notes: list[str] = []
        self._numbers = numbers
        self.define(columns)
        # Steps of samples that were written at the end of a run and that its continuation takes again. There is no
        # message about them.
        self.anew: tuple[int, ...] = ()
        self._rows: list[bytes] = []
        self._file: int | None = None
        self._header = b""

    def define(self, columns: Sequence[Column]) -> None:
        """Set the columns of this history, the quantities that each sample has besides step and time. Call this method
        before `start`."""
        self.columns = tuple(columns)
        shape = () if self.places is None else (len(self.places),)
        self._nothing = np.full(shape, np.nan)
        self._record = np.dtype(
            [("step", ">i4"), ("time", ">f8"), *((column.name, self._numbers, shape) for column in self.columns)]
        )

    def start(self, kept: int | None = None, restarted: bool = False, digest: int | None = None) -> int:
        """Begin a new history, or continue the existing one after its first `kept` samples, and return the number of
        samples. Later samples are removed, since the run will take them again. `kept`: None for a new history.
        `digest`: the checksum (CRC-32) of the first `kept` samples, if it is known.

        `restarted`: whether the run continues from a checkpoint. This method then renames a file that it cannot
        continue, begins a new one, and adds a message to the attribute `notes`. The file becomes
        <name>.before-<step>.nc if its columns, places or attributes differ (because the monitor was changed), or if the
        checkpoint has no data on it (`kept` is None). A damaged file becomes <name>.nc.damaged. Raises HiresxError if
        the file has too few samples or different ones, such as those of another run, and if it cannot be written."""
        self.close()
        if self.path is None:
            del self._rows[kept or 0 :]
            self.samples = len(self._rows)
            return self.samples
        self._header = self._encode_header()
        with files.naming_errors(self.path):
            there = self.path.exists()
            if kept is not None and there and self._resume(kept, digest):
                self.samples = kept
                return kept
            if restarted and there:
                self._set_aside(kept)
            elif restarted and kept:
                self.notes.append(f"{self.path} is missing, which had {plural(kept, 'sample')}: a new history begins")
            self._create()
        return self.samples

    def add(self, step: int, time: float, values: Mapping[str, Any]) -> int:
        """Append a sample and return the number of samples. `step`: the number of the time step. `time`: in units of L
        / c_ref (length scale over sound speed). `values`: the values by the names of the columns; a missing one is NaN.
        Raises HiresxError if the sample cannot be written."""
        cells = [values.get(column.name, self._nothing) for column in self.columns]
        row = struct.pack(">id", step, time) + np.array(cells, self._numbers).tobytes()
        if self._file is None:
            self._rows.append(row)
        else:
            with files.naming_errors(self._there):
                files.write_at(self._file, row, len(self._header) + self.samples * self._record.itemsize)
                files.write_at(self._file, struct.pack(">i", self.samples + 1), _COUNT)
            self.digest = zlib.crc32(row, self.digest)
        self.samples += 1
        return self.samples

    def sync(self) -> None:
        """Wait until every sample of the history is on disk. Raises HiresxError if this fails, or if the file was
        removed."""
        if self._file is None:
            return
        with files.naming_errors(self._there):
            os.fsync(self._file)
            gone = os.fstat(self._file).st_nlink == 0
        if gone:
            raise HiresxError(f"{self.path} was removed while the run writes to it", "restart from a checkpoint")

    def close(self) -> None:
        """Close the history file, if it is open. `start` opens it again."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def __del__(self) -> None:
        with suppress(OSError):
            self.close()

    def memory(self) -> dict[str, np.ndarray]:
        """Return the samples of a history that has no file: for each column an array (samples,), or (samples, places).
        The result is empty if the samples are in a file."""
        return {} if self.path is not None else self._by_column()

    def _by_column(self) -> dict[str, np.ndarray]:
        rows = np.frombuffer(b"".join(self._rows), self._record)
        return {name: _to_native(rows[name]) for name in self._record.names or ()}

    def remember(self, memory: Mapping[str, np.ndarray]) -> None:
        """Restore the samples of a history that has no file. `memory`: the result of `History.memory`. Nothing is
        restored if it has other columns than this history."""
        if self.path is not None or memory.keys() != set(self._record.names or ()):
            return
        rows = np.zeros(len(memory[STEP.name]), self._record)
        for name, values in memory.items():
            rows[name] = values
        self._rows = [row.tobytes() for row in rows]

    def table(self) -> "HistoryTable":
        """Return all samples of this history so far as a `HistoryTable`."""
        if self.path is not None and self.path.exists():
            return read(self.path)
        columns = {column.name: column for column in (STEP, TIME, *self.columns)}
        return HistoryTable(self.name, self.kind, self._by_column(), columns, self.places, self.filter)

    # ---- the file

    @property
    def _there(self) -> Path:
        """The path of a history that has a file."""
        assert self.path is not None
        return self.path

    def _create(self) -> None:
        directories.make_directory(self._there.parent)
        with files.replacing(self._there) as temporary:
            temporary.write_bytes(self._header)
        self._file = os.open(self._there, os.O_RDWR)
        self.samples = self.digest = 0

    def _resume(self, kept: int, digest: int | None) -> bool:
        """Go on in the file that is there; False if it is of another monitor."""
        handle = os.open(self._there, os.O_RDWR)
        try:
            header = os.pread(handle, len(self._header), 0)
            if not self._fits(header):
                return False
            there = struct.unpack_from(">i", header, _COUNT)[0]
            fit = (os.fstat(handle).st_size - len(self._header)) // self._record.itemsize
            length = len(self._header) + kept * self._record.itemsize
            if min(there, fit) < kept:
                raise HiresxError(
                    f"{self.path} holds {plural(max(min(there, fit), 0), 'sample')}, the checkpoint was written "
                    f"after {kept}",
                    _BELONGS,
                )
            found = self._digest_of(handle, length)
            if digest not in (None, found):
                raise HiresxError(
                    f"{self.path} holds other samples than those that the checkpoint was written after: it is of "
                    "another run, or was changed",
                    _BELONGS,
                )
            if (dropped := self._behind(handle, length, min(there, fit) - kept)) > 0:
                self.notes.append(
                    f"{self.path}: {plural(dropped, 'sample')} behind the checkpoint dropped, to be taken anew"
                )
            os.pwrite(handle, struct.pack(">i", kept), _COUNT)
            os.ftruncate(handle, length)
        except BaseException:
            os.close(handle)
            raise
        self._file, self.digest = handle, found
        return True

    def _fits(self, there: bytes) -> bool:
        """Whether a file that begins with `there`, as long as the own header, is of this monitor."""
        return _without_count(there) == _without_count(self._header)

    def _digest_of(self, handle: int, end: int) -> int:
        """The digest of the samples up to the byte `end`."""
        found, at = 0, len(self._header)
        while at < end:
            piece = os.pread(handle, min(_PIECE, end - at), at)
            if not piece:
                break  # it was truncated in the meantime
            found, at = zlib.crc32(piece, found), at + len(piece)
        return found

    def _behind(self, handle: int, first: int, dropped: int) -> int:
        """Number of the `dropped` samples, which begin at the byte `first`, that are not of the steps `anew`, which
        come first."""
        known_steps = 0
        for n in range(min(dropped, len(self.anew))):
            step = os.pread(handle, 4, first + n * self._record.itemsize)
            known_steps += step in [struct.pack(">i", known) for known in self.anew]
        return dropped - known_steps

    def _set_aside(self, kept: int | None) -> None:
        """Rename the file that is there. `kept`: how many samples the checkpoint knows of."""
        try:
            samples, last = self._stored_samples()
        except HiresxError:
            aside = _free_name(self._there, f"{self._there.name}.damaged", "")
            were = "was" if kept == 1 else "were"
            lost = f"; {plural(kept, 'sample')} {were} in it when the checkpoint was written" if kept else ""
            self.notes.append(f"{self.path} is not a whole history: it is kept as {aside.name}, a new one begins{lost}")
        else:
            # named after its last sample, so that it is still sorted correctly
            aside = _free_name(self._there, f"{self.name}.before-{last}", ".nc")
            why = "the checkpoint knows nothing of it" if kept is None else f"it has other {self._kind_of_change}"
            self.notes.append(
                f"{self.path} is not continued, {why}: it is kept as {aside.name}, with {plural(samples, 'sample')}"
            )
        self._there.rename(aside)

    def _stored_samples(self) -> tuple[int, int]:
        """Number of samples in the existing file, and the step of the last. Raises HiresxError for another file."""
        table = read(self._there)
        return table.samples, int(table.data[STEP.name][-1]) if table.samples else 0

    def _encode_header(self) -> bytes:
        """The file without samples: the header, the record count 0, and the places."""
        fixed = self._fixed_columns()
        described: list[tuple[Column, str, tuple[str, ...]]] = [(column, "f8", ("point",)) for column, _ in fixed]
        for column in (STEP, TIME, *self.columns):
            kind = self._record[column.name]
            described.append((column, kind.base.str[1:], ("sample", "point")[: 1 + len(kind.shape)]))
        with LOCK:
            file = library().Dataset(self.name, "w", memory=1, format="NETCDF3_64BIT_OFFSET")
            file.set_fill_off()
            file.createDimension("sample", None)
            if self.places is not None:
                file.createDimension("point", len(self.places))
            file.setncatts(self._attributes())
            for column, number, dimensions in described:
                variable = file.createVariable(column.name, number, dimensions)
                variable.setncatts({"long_name": column.long_name, "units": column.units})
            for column, values in fixed:
                file[column.name][:] = values
            made = file.close()  # whole pages of memory
        check_header(header := io.BytesIO(made))
        return bytes(made[: header.tell() + sum(8 * len(values) for _, values in fixed)])

    def _attributes(self) -> dict[str, str]:
        """Attributes of the file."""
        attributes = {"title": f"history of {self.name}", "source": "hiresx", "kind": self.kind, "name": self.name}
        return attributes | ({"filter": self.filter} if self.kind == "probe" else {})

    def _fixed_columns(self) -> list[tuple[Column, np.ndarray]]:
        """The variables that have one value for every place."""
        if self.places is None:
            return []
        return [(Column(axis, f"{axis} coordinate", "L"), self.places[:, d]) for d, axis in enumerate("xyz")]


def _free_name(path: Path, stem: str, ending: str) -> Path:
    """A name beside `path` that nothing has yet: `stem`, or with a number; what was set aside before stays."""
    names = (f"{stem}{f'-{n}' if n > 1 else ''}{ending}" for n in itertools.count(1))
    return next(found for found in map(path.with_name, names) if not os.path.lexists(found))


def _without_count(header: bytes) -> bytes:
    return header[:_COUNT] + header[_COUNT + 4 :]


def _to_native(array: np.ndarray) -> np.ndarray:
    return np.array(array, dtype=np.int64 if array.dtype.kind == "i" else np.float64)


@dataclass
class HistoryTable:
    """The samples of a history that was read from its file. `name`: the name of the monitor. `kind`: the type of the
    monitor. `data`: the columns by name, each (n,) for n samples, or (n, places) if there are places; step and time are
    first. `columns`: the descriptions of the columns. `places` (places, 3): coordinates in units of the length scale L,
    or None. `filter`: how the samples were filtered against aliasing."""

    name: str
    kind: str
    data: dict[str, np.ndarray]
    columns: dict[str, Column]
    places: np.ndarray | None = None
    filter: str = NO_FILTER

    @property
    def samples(self) -> int:
        """The number of samples in the history."""
        return len(self.data["step"])

    @property
    def quantities(self) -> list[str]:
        """Names of the columns except step and time."""
        return [name for name in self.data if name not in (STEP.name, TIME.name)]

    def flat(self) -> dict[str, np.ndarray]:
        """Return the columns by name as arrays (samples,). A column with several places is split into name_0, name_1,
        ...; a column with a single place keeps its name."""
        found = {}
        for name, values in self.data.items():
            if values.ndim == 1:
                found[name] = values
            elif values.shape[1] == 1:
                found[name] = values[:, 0]
            else:
                found |= {f"{name}_{n}": values[:, n] for n in range(values.shape[1])}
        return found

    def write_csv(self, stream: TextIO) -> None:
        """Write the samples to `stream` as comma-separated values with all digits, a line for each sample."""
        flat = self.flat()
        stream.write(",".join(flat) + "\n")
        for row in zip(*(values.tolist() for values in flat.values()), strict=True):
            stream.write(",".join(map(repr, row)) + "\n")


def read(path: str | Path) -> HistoryTable:
    """Read the history file `path` and return its samples as a table. A run may still be writing to the file. Raises
    HiresxError if it is missing or not a history."""
    netCDF4 = library()

    path = Path(path)
    try:
        with path.open("rb") as file:
            check_header(file)
            size = os.fstat(file.fileno()).st_size
        with LOCK, netCDF4.Dataset(path) as file:
            file.set_auto_mask(False)
            columns, data = {}, {}
            for name, variable in file.variables.items():
                if variable.size * np.dtype(variable.dtype).itemsize > size:
                    # the library would allocate memory for them
                    raise ValueError(f"{name} has more values than the file")
                columns[name] = Column(name, variable.long_name, variable.units)
                data[name] = _to_native(variable[...])
            places = np.stack([data.pop(axis) for axis in "xyz"], axis=1) if "point" in file.dimensions else None
            _check(data, places)
            filter_ = file.getncattr("filter") if "filter" in file.ncattrs() else NO_FILTER
            columns = {name: column for name, column in columns.items() if name in data}
            return HistoryTable(file.getncattr("name"), file.kind, data, columns, places, filter_)
    except FileNotFoundError as error:
        raise files.io_error(path, error, "read") from None
    except (OSError, AttributeError, LookupError, TypeError, ValueError, RuntimeError, MemoryError) as error:
        what = f"{path} is not a history ({describe_path(path) or error})"
        raise HiresxError(what, "give one from the folder history of a run") from None


def check_header(file: BinaryIO) -> None:
    """Raise ValueError if the header of an open netCDF file of the classic format is inconsistent. Otherwise the netCDF
    library would allocate gigabytes because of a damaged number. `file`: the file, at its beginning. Files of other
    netCDF formats are not checked."""
    if file.read(3) != b"CDF":
        return
    if file.read(1) != b"\x02":
        raise ValueError("it is of another netCDF format")
    file.read(4)  # the number of records

    def number() -> int:
        found = int.from_bytes(file.read(4).rjust(4, b"\xff"), "big", signed=True)
        if found < 0:
            raise ValueError("its header was cut off or changed")
        return found

    def skip(count: int) -> None:
        if len(file.read(min(count + -count % 4, 1 << 20))) < count:
            raise ValueError("its header was cut off or changed")

    def items(tag: int) -> range:
        if number() not in (0, tag):
            raise ValueError("its header was changed")
        return range(number())

    def attributes() -> None:
        for _ in items(_ATTRIBUTE):
            skip(number())
            skip({_CHAR: 1, _INT: 4, _DOUBLE: 8}.get(number(), 1) * number())

    for _ in items(_DIMENSION):
        skip(number())
        number()
    attributes()
    for _ in items(_VARIABLE):
        skip(number())
        skip(4 * number())
        attributes()
        skip(16)  # type, size, place


def _check(data: Mapping[str, np.ndarray], places: np.ndarray | None) -> None:
    """Raises ValueError for invalid data, such as those of a truncated file."""
    if STEP.name not in data or TIME.name not in data:
        raise ValueError("it has no column step or time")
    samples = len(data[STEP.name]) if data[STEP.name].ndim == 1 else -1
    for name, values in data.items():
        shape = (samples,) if places is None or name in (STEP.name, TIME.name) else (samples, len(places))
        if values.shape != shape:
            raise ValueError(f"{name} has the shape {values.shape}")


def histories(run: str | Path) -> dict[str, Path]:
    """Return the paths of the history files in the run directory `run` by name, in alphabetical order."""
    return {path.stem: path for path in sorted((Path(run) / FOLDER).glob("*.nc"))}
