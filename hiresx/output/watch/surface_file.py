"""Files of surfaces: a history with many places, their normals and areas, of which a part can be read."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.base.plural import plural
from hiresx.errors import HiresxError
from hiresx.output.saved import files
from hiresx.output.saved.netcdf_library import LOCK, library
from hiresx.output.watch import history
from hiresx.output.watch.history import Column, History
from hiresx.output.watch.surface_places import Places

FOLDER = "surfaces"
KIND = "surface"
COLUMNS = (
    Column("rho", "density", "rho_ref"),
    Column("u", "velocity along x", "c_ref"),
    Column("v", "velocity along y", "c_ref"),
    Column("w", "velocity along z", "c_ref"),
    Column("p", "pressure", "rho_ref c_ref^2"),
)
_PLANE, _SPACE = "L", "L^2"
# What is held of every place, besides x, y, z.
_OF_PLACES = ("normal_x", "normal_y", "normal_z", "area", "first", "last")


class SurfaceFile(History):
    """Samples of a surface in <folder>/<name>.nc, in the format of `History`. A sample is stored completely or not at
    all."""

    _kind_of_change = "places, precision or times of sampling"

    def __init__(
        self, name: str, places: Places, plane: bool, precision: str, form: str, sampled: str, folder: Path,
        gamma: float,
    ):  # fmt: skip
        self._surface, self._plane, self._form, self._sampled = places, plane, form, sampled
        self._gamma = gamma
        super().__init__(name, KIND, COLUMNS, places.at, folder, ">f4" if precision == "fp32" else ">f8")

    def _attributes(self) -> dict[str, str]:
        return {
            **super()._attributes(), "title": f"surface {self.name}", "form": self._form,
            "sampled": self._sampled, "gamma": repr(float(self._gamma)),
            "caps": ", ".join(f"{x!r}" for x in self._surface.caps if x == x),
            "gaps": "; ".join(self._surface.gaps),
        }  # fmt: skip

    def _fixed_columns(self) -> list[tuple[Column, np.ndarray]]:
        places = self._surface
        areas = np.linalg.norm(places.areas, axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            normals = np.where(areas[:, None] > 0, places.areas / areas[:, None], 0.0)
        return [
            *super()._fixed_columns(),
            *((Column(f"normal_{axis}", f"outward normal along {axis}", "1"), normals[:, d])
              for d, axis in enumerate("xyz")),
            (Column("area", "area", _PLANE if self._plane else _SPACE), areas),
            (Column("first", "number of the first end cap to whose surface it belongs", "1"), places.first),
            (Column("last", "number of the last end cap to whose surface it belongs", "1"), places.last),
        ]  # fmt: skip

    def _stored_samples(self) -> tuple[int, int]:
        assert self.path is not None
        found = read(self.path)
        return found.samples, int(found.records["step"][-1]) if found.samples else 0


@dataclass(frozen=True, eq=False)
class StoredSurface:
    """A surface that was read: `records` (sample,) stay in the file, with the fields step, time, rho, u, v, w, p, of
    which each of the last five has a value for every place. `fixed`: x, y, z, normal_x, ..., area, first, last."""

    path: Path
    name: str
    records: np.ndarray
    fixed: dict[str, np.ndarray]
    columns: dict[str, Column]
    attributes: dict[str, Any]

    @property
    def samples(self) -> int:
        """Number of samples."""
        return len(self.records)

    @property
    def plane(self) -> bool:
        """True if the flow is plane, so that the surface is a line."""
        return self.columns["area"].units == _PLANE

    @property
    def caps(self) -> tuple[float, ...]:
        """x of the end caps; empty where there is nothing to choose."""
        return tuple(float(x) for x in self.attributes["caps"].split(",") if x.strip())

    @property
    def gaps(self) -> tuple[str, ...]:
        """Return the gaps that keep the surface from being closed."""
        return tuple(filter(None, self.attributes["gaps"].split("; ")))

    def fixed_columns(self, *names: str) -> np.ndarray:
        """Columns `names` of the data that do not change in time, (n, len(names))."""
        return np.stack([self.fixed[name] for name in names], axis=1)


def surfaces(run: str | Path) -> dict[str, Path]:
    """The surfaces of a run directory by name, in alphabetical order."""
    return {path.stem: path for path in sorted((Path(run) / FOLDER).glob("*.nc"))}


def read(path: str | Path) -> StoredSurface:
    """Open the file of a surface; a run may still be writing to it. The samples are read when they are used. Raises
    HiresxError if the file is missing, truncated, or not of a surface."""
    netCDF4 = library()
    path = Path(path)
    try:
        with path.open("rb") as file:
            history.check_header(file)
            header, size = file.tell(), path.stat().st_size
        with LOCK, netCDF4.Dataset(path) as file:
            file.set_auto_mask(False)
            if file.kind != KIND:
                raise ValueError(f"it is a {file.kind}")
            columns = {n: Column(n, v.long_name, v.units) for n, v in file.variables.items()}
            kind = ">f4" if file["p"].dtype == np.float32 else ">f8"
            points = len(file.dimensions["point"])
            if 8 * points * (3 + len(_OF_PLACES)) > size - header:
                raise _short_error(path, 0, len(file.dimensions["sample"]))
            fixed = {n: np.asarray(file[n][...], dtype=float) for n in ("x", "y", "z", *_OF_PLACES)}
            samples = len(file.dimensions["sample"])
            attributes = {n: file.getncattr(n) for n in ("name", "form", "caps", "gaps")}
        record = np.dtype([("step", ">i4"), ("time", ">f8"), *((c.name, kind, (points,)) for c in COLUMNS)])
        begin = header + 8 * points * len(fixed)
        whole = (size - begin) // record.itemsize
        if whole < samples:
            raise _short_error(path, whole, samples)
        records = (
            np.memmap(path, record, "r", begin, (samples,)) if samples else np.empty(0, record)
        )  # a file of no samples cannot be mapped
    except FileNotFoundError as error:
        raise files.io_error(path, error, "read") from None
    except (OSError, AttributeError, LookupError, TypeError, ValueError, RuntimeError, MemoryError) as error:
        raise HiresxError(f"{path} is not a surface ({error})", f"give one from the folder {FOLDER} of a run") from None
    return StoredSurface(path, attributes["name"], records, fixed, columns, attributes)


def _short_error(path: Path, whole: int, samples: int) -> HiresxError:
    return HiresxError(
        f"{path} was cut short: it holds {whole} of the {plural(samples, 'sample')} that it counts",
        "copy it again, or restart the run from its last checkpoint to sample the others anew",
    )


def describe(stored: StoredSurface) -> Mapping[str, Any]:
    """Numbers that describe a stored surface, fit for JSON."""
    return {
        "form": stored.attributes["form"], "places": len(stored.fixed["x"]), "samples": stored.samples,
        "area": float(stored.fixed["area"].sum()), "caps": list(stored.caps), "gaps": list(stored.gaps),
    }  # fmt: skip
