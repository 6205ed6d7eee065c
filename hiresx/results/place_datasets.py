"""Samples of a run at many points of a surface, as an xarray.Dataset whose values are read when they are used."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hiresx.output.watch.place_file import StoredPlaces
from hiresx.results import needs
from hiresx.results.stored import lazy


@dataclass(frozen=True, eq=False)
class PlaceVariable:
    """One variable of a file with samples of the flow at many points, as an array (samples, points). `records`: the
    records of the file, one for each sample. `name`: the variable."""

    records: np.ndarray
    name: str

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the variable: (samples, points), or (samples,) for the step and the time."""
        return self.records[self.name].shape

    @property
    def dtype(self) -> np.dtype:
        """The NumPy type of one value, in the byte order of this machine."""
        return self.records.dtype[self.name].base.newbyteorder("=")

    def read(self, key: tuple[Any, ...]) -> np.ndarray:
        """Read a section of this variable, whose shape must be (samples, points), and return it. `key`: the selection
        in each of the two dimensions, a number, a slice or an array of indexes."""
        return np.array(self.records[self.name][key[0]][..., key[1]], dtype=self.dtype)


def dataset(stored: StoredPlaces, title: str, described: Mapping[str, Any]) -> Any:
    """Return the stored samples of the flow at points of a surface or wall as an xarray.Dataset with the dimensions
    `time` and `place` (the points). `stored`: the opened file. `title`: the title of the run. `described`: further
    attributes of the dataset. In a run with local time steps the first dimension is called `sample`, because the time
    does not advance."""
    xarray = needs.xarray()
    about = {name: {"long_name": c.long_name, "units": c.units} for name, c in stored.columns.items()}
    time = np.array(stored.records["time"], dtype=float)
    step = np.array(stored.records["step"], dtype=np.int64)
    clock = "time" if (np.diff(time) > 0).all() else "sample"
    held = {
        name: xarray.Variable((clock, "place"), lazy(PlaceVariable(stored.records, name)), about[name])
        for name in stored.quantities
    }
    coordinates = {"time": (clock, time, about["time"]), "step": (clock, step, about["step"])}
    coordinates |= {name: ("place", values, about[name]) for name, values in stored.fixed.items()}
    attributes = {"name": stored.name, "title": title, **described, "file": str(stored.path)}
    return xarray.Dataset(held, coordinates, attributes)
