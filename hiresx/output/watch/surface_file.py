"""Files of surfaces: samples of the flow at the points of a surface, with their normals and areas."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.output.watch import place_file
from hiresx.output.watch.history import Column
from hiresx.output.watch.place_file import Kind, PlaceFile, StoredPlaces, normal_columns
from hiresx.output.watch.surface_places import Places

KIND = Kind(
    "surface",
    "surfaces",
    (
        Column("rho", "density", "rho_ref"),
        Column("u", "velocity along x", "c_ref"),
        Column("v", "velocity along y", "c_ref"),
        Column("w", "velocity along z", "c_ref"),
        Column("p", "pressure", "rho_ref c_ref^2"),
    ),
    ("normal_x", "normal_y", "normal_z", "area", "first", "last"),
    ("form", "caps", "gaps"),
)
_PLANE, _SPACE = "L", "L^2"


class SurfaceFile(PlaceFile):
    """Writer of the samples of a surface to the file <folder>/<name>.nc. `places`: the points of the surface. `plane`:
    whether the flow is plane, so that the surface is a line. `precision`: "fp64" or "fp32". `form`: the shape of the
    surface. `sampled`: a description of the times of samples. `gamma`: ratio of specific heats."""

    _kind_of_change = "places, precision or times of sampling"

    def __init__(
        self, name: str, places: Places, plane: bool, precision: str, form: str, sampled: str, folder: Path,
        gamma: float,
    ):  # fmt: skip
        areas = np.linalg.norm(places.areas, axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            normals = np.where(areas[:, None] > 0, places.areas / areas[:, None], 0.0)
        fixed = [
            *normal_columns(normals, "outward normal"),
            (Column("area", "area", _PLANE if plane else _SPACE), areas),
            (Column("first", "number of the first end cap to whose surface it belongs", "1"), places.first),
            (Column("last", "number of the last end cap to whose surface it belongs", "1"), places.last),
        ]
        attributes = {
            "form": form, "sampled": sampled, "gamma": repr(float(gamma)),
            "caps": ", ".join(f"{x!r}" for x in places.caps if x == x), "gaps": "; ".join(places.gaps),
        }  # fmt: skip
        super().__init__(KIND, name, places.at, fixed, attributes, precision, folder)


@dataclass(frozen=True, eq=False)
class StoredSurface(StoredPlaces):
    """The samples of a surface that were read from its file. `records` have rho, u, v, w, p, and `fixed` has normal_x,
    ..., area, first, last."""

    @property
    def plane(self) -> bool:
        """True if the flow is plane, so that the surface is a line."""
        return self.columns["area"].units == _PLANE

    @property
    def caps(self) -> tuple[float, ...]:
        """The coordinates x of the end caps of a closed surface, in units of the length scale L. Empty if the surface
        does not have several end caps."""
        return tuple(float(x) for x in self.attributes["caps"].split(",") if x.strip())

    @property
    def gaps(self) -> tuple[str, ...]:
        """Descriptions, for the user, of the openings of a surface that is not closed."""
        return tuple(filter(None, self.attributes["gaps"].split("; ")))


def surfaces(run: str | Path) -> dict[str, Path]:
    """Return the paths of the files with samples on surfaces in a run directory, by the name of the surface, in
    alphabetical order."""
    return KIND.files(run)


def read(path: str | Path) -> StoredSurface:
    """Open the file `path` with samples on a surface. A run may still be writing to it. The samples are read when they
    are used. Raises HiresxError if the file is missing, truncated, or of another type."""
    return place_file.read(path, KIND, StoredSurface)


def describe(stored: StoredSurface) -> Mapping[str, Any]:
    """Return a summary of the samples on a surface as JSON data: "form" (the shape of the surface), "places" and
    "samples" (their numbers), "area" (in L^2; L in plane flow), "caps" (x of the end caps) and "gaps" (texts)."""
    return {
        "form": stored.attributes["form"], "places": len(stored.fixed["x"]), "samples": stored.samples,
        "area": float(stored.fixed["area"].sum()), "caps": list(stored.caps), "gaps": list(stored.gaps),
    }  # fmt: skip
