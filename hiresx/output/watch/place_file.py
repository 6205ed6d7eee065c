"""Files with samples of the flow at many points: a history that also contains constant data of every point, and that
can be read in sections."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from hiresx.base.plural import plural
from hiresx.errors import HiresxError
from hiresx.output.saved import files
from hiresx.output.saved.netcdf_library import LOCK, library
from hiresx.output.watch import history
from hiresx.output.watch.history import Column, History

_COORDINATES = ("x", "y", "z")


@dataclass(frozen=True)
class Kind:
    """The type of a file with samples at many points, such as a surface. `name`: the name of the type. `folder`: the
    folder of a run that contains such files. `columns`: the columns of every sample. `fixed`: names of quantities that
    are stored once for every point, besides x, y and z. `attributes`: names of attributes of the file, which are
    texts."""

    name: str
    folder: str
    columns: tuple[Column, ...]
    fixed: tuple[str, ...]
    attributes: tuple[str, ...]

    def files(self, run: str | Path) -> dict[str, Path]:
        """Return the files of this kind (the netCDF files in the folder of this kind) of the run directory `run`: a
        dictionary from the file name without suffix to the path, in alphabetical order."""
        return {path.stem: path for path in sorted((Path(run) / self.folder).glob("*.nc"))}


class PlaceFile(History):
    """Writer of samples at many points to the file <folder>/<name>.nc, in the format of `History`. A sample is written
    completely or not at all. `kind`: the type of the file. `places` (n, 3): coordinates in units of the length scale L.
    `fixed`: a column and its values (n,) for each of the quantities that `kind` lists as fixed. `attributes`: texts of
    the file by name. `precision`: "fp64" or "fp32", of the samples."""

    def __init__(
        self,
        kind: Kind,
        name: str,
        places: np.ndarray,
        fixed: Sequence[tuple[Column, np.ndarray]],
        attributes: Mapping[str, str],
        precision: str,
        folder: Path,
    ):
        self._kind, self._fixed, self._described = kind, fixed, attributes
        super().__init__(name, kind.name, kind.columns, places, folder, ">f4" if precision == "fp32" else ">f8")

    def _attributes(self) -> dict[str, str]:
        return {**super()._attributes(), "title": f"{self.kind} {self.name}", **self._described}

    def _fixed_columns(self) -> list[tuple[Column, np.ndarray]]:
        return [*super()._fixed_columns(), *self._fixed]

    def _stored_samples(self) -> tuple[int, int]:
        found = read(self._there, self._kind, StoredPlaces)
        return found.samples, int(found.records["step"][-1]) if found.samples else 0


@dataclass(frozen=True, eq=False)
class StoredPlaces:
    """Samples at many points that were read from the file `path`. `name`: the name of the table of the case. `records`
    (samples,): a structured array that is read from the file when it is used, with the fields step and time and one
    field for each of `columns` with a value for every point. `fixed`: x, y, z and other constant quantities by name,
    each (n,) for n points. `attributes`: the attributes of the file."""

    path: Path
    name: str
    records: np.ndarray
    fixed: dict[str, np.ndarray]
    columns: dict[str, Column]
    attributes: dict[str, Any]

    @property
    def samples(self) -> int:
        """Number of samples in the file."""
        return len(self.records)

    @property
    def quantities(self) -> tuple[str, ...]:
        """Names of the sampled quantities, such as "p", without step and time."""
        return (self.records.dtype.names or ())[2:]

    def fixed_columns(self, *names: str) -> np.ndarray:
        """Return quantities of the points that do not change in time, such as x, as an array (points, len(names)).
        `names`: the names of the quantities."""
        return np.stack([self.fixed[name] for name in names], axis=1)


Stored = TypeVar("Stored", bound=StoredPlaces)


def read(path: str | Path, kind: Kind, made: type[Stored]) -> Stored:
    """Open the file `path` with samples at many points, and return it as an instance of the class `made`. `kind`: the
    type that the file must have. A run may still be writing to the file. The samples are read when they are used.
    Raises HiresxError if the file is missing, truncated, or of another type."""
    netCDF4 = library()
    path = Path(path)
    try:
        with path.open("rb") as file:
            history.check_header(file)
            header, size = file.tell(), path.stat().st_size
        names = (*_COORDINATES, *kind.fixed)
        with LOCK, netCDF4.Dataset(path) as file:
            file.set_auto_mask(False)
            if file.kind != kind.name:
                raise ValueError(f"it is a {file.kind}")
            columns = {n: Column(n, v.long_name, v.units) for n, v in file.variables.items()}
            number = ">f4" if file[kind.columns[0].name].dtype == np.float32 else ">f8"
            points = len(file.dimensions["point"])
            if 8 * points * len(names) > size - header:
                raise _short_error(path, 0, len(file.dimensions["sample"]))
            fixed = {n: np.asarray(file[n][...], dtype=float) for n in names}
            samples = len(file.dimensions["sample"])
            attributes = {n: file.getncattr(n) for n in ("name", *kind.attributes)}
        record = np.dtype([("step", ">i4"), ("time", ">f8"), *((c.name, number, (points,)) for c in kind.columns)])
        begin = header + 8 * points * len(fixed)
        whole = (size - begin) // record.itemsize
        if whole < samples:
            raise _short_error(path, whole, samples)
        records = (
            np.memmap(path, record, "r", begin, (samples,)) if samples else np.empty(0, record)
        )  # a file without samples cannot be mapped to memory
    except FileNotFoundError as error:
        raise files.io_error(path, error, "read") from None
    except (OSError, AttributeError, LookupError, TypeError, ValueError, RuntimeError, MemoryError) as error:
        raise HiresxError(
            f"{path} is not a {kind.name} ({error})", f"give one from the folder {kind.folder} of a run"
        ) from None
    return made(path, attributes["name"], records, fixed, columns, attributes)


def _short_error(path: Path, whole: int, samples: int) -> HiresxError:
    return HiresxError(
        f"{path} was cut short: it holds {whole} of the {plural(samples, 'sample')} that it counts",
        "copy it again, or restart the run from its last checkpoint to sample the others anew",
    )


def normal_columns(normals: np.ndarray, outward: str) -> list[tuple[Column, np.ndarray]]:
    """Return the columns normal_x, normal_y and normal_z of a file, each with its values. `normals` (n, 3): unit
    normals at n points. `outward`: a description of their direction."""
    return [(Column(f"normal_{axis}", f"{outward} along {axis}", "1"), normals[:, d]) for d, axis in enumerate("xyz")]
