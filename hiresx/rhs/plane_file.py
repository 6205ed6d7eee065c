"""Files of planes: the samples of a `[[surface]]` on one plane, or a file of another program in the same format."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.base import optional
from hiresx.base.library_lock import LOCK
from hiresx.equations import GAS_PRIMITIVE
from hiresx.errors import HiresxError

# Variables and the units that they must have.
_UNITS = {
    "x": "L", "y": "L", "z": "L", "time": "L / c_ref", "rho": "rho_ref", "u": "c_ref", "v": "c_ref", "w": "c_ref",
    "p": "rho_ref c_ref^2",
}  # fmt: skip
_FORM = "record planes by a [[surface]] of nodes; docs/how-do-i.md says what the file holds"


class PlaneFile:
    """The flow on a plane at several times, which a `[[surface]]` recorded in the file `path`. `places` (points, 3):
    the points, in L. `times` (planes,): increasing times, in L / c_ref. `who`: the beginning of error messages. Raises
    HiresxError for a file that is missing or of another type, that lacks a variable, has other units or a gas with
    another `gamma`, and for times that do not increase."""

    def __init__(self, path: Path, gamma: float, who: str):
        self.path, self._who = path, who
        with self._open() as file:
            for name, units in _UNITS.items():
                self._check_variable(file, name, units)
            self._check_gas(getattr(file, "gamma", None), gamma)
            self.places = np.stack([np.asarray(file[c][...], float) for c in "xyz"], axis=-1)
            self.times = np.asarray(file["time"][...], float)
        if len(self.times) < 2:
            raise HiresxError(f"{who}: {path} holds {len(self.times)} planes", "record 2 or more; 4 for cubics in time")
        wrong = np.flatnonzero(~(np.diff(self.times) > 0))
        if not np.isfinite(self.places).all():
            raise HiresxError(f"{who}: {path}: a place is not finite", _FORM)
        if len(wrong) or not np.isfinite(self.times).all():
            m = int(wrong[0]) if len(wrong) else 0
            raise HiresxError(
                f"{who}: {path}: times do not increase: {self.times[m]:.9g} of plane {m} is followed by "
                f"{self.times[min(m + 1, len(self.times) - 1)]:.9g}",
                "sort the planes, and leave those out that are there twice",
            )

    @contextmanager
    def _open(self) -> Iterator[Any]:
        netCDF4 = optional.import_required("netCDF4", "planes of a precursor need netCDF4", "pip install netCDF4")
        if not self.path.is_file():
            raise HiresxError(f"{self._who}: there is no file {self.path}", "give the path of surfaces/<name>.nc")
        try:
            with LOCK, netCDF4.Dataset(self.path) as file:
                file.set_auto_mask(False)
                yield file
        except (OSError, RuntimeError, IndexError, TypeError, ValueError) as error:
            raise HiresxError(f"{self._who}: {self.path} is no file of planes ({error})", _FORM) from None

    def _check_variable(self, file: Any, name: str, units: str) -> None:
        where = f"{self._who}: {self.path}"
        if name not in file.variables:
            raise HiresxError(f'{where}: there is no variable "{name}"', _FORM)
        wanted = ("point",) if name in "xyz" else ("sample",) if name == "time" else ("sample", "point")
        if file[name].dimensions != wanted:
            raise HiresxError(f"{where}: {name} is over {file[name].dimensions}, not over {wanted}", _FORM)
        found = getattr(file[name], "units", None)
        if found != units:
            raise HiresxError(f'{where}: {name} has the units "{found}", not "{units}"', "convert it to those units")

    def _check_gas(self, found: Any, gamma: float) -> None:
        where = f"{self._who}: {self.path}"
        if found is None:
            raise HiresxError(f"{where} does not say the gamma of its gas", 'give the file the attribute "gamma"')
        if not abs(float(found) - gamma) <= 1e-9:
            raise HiresxError(
                f"{where} is of a gas with gamma = {float(found):g}, this case has gas.gamma = {gamma:g}",
                "take planes of the same gas",
            )

    def read(self, first: int, last: int, points: np.ndarray) -> np.ndarray:
        """Return rho, u, v, w, p of the recorded planes `first` to `last` - 1, an array (planes, 5, n) in the scales of
        the case. `points` (n,): the numbers of the points of the plane that are read. Raises HiresxError for the first
        value that is not finite, and for a density or pressure that is not positive."""
        with self._open() as file:
            values = np.stack([np.asarray(file[v][first:last], float)[:, points] for v in GAS_PRIMITIVE], axis=1)
        bad = ~np.isfinite(values)
        bad[:, [0, 4]] |= ~(values[:, [0, 4]] > 0)
        if bad.any():
            plane, variable, n = (int(m) for m in np.argwhere(bad)[0])
            x, y, z = self.places[points[n]]
            raise HiresxError(
                f"{self._who}: {self.path}: {GAS_PRIMITIVE[variable]} of plane {first + plane} (time "
                f"{self.times[first + plane]:.9g}) is {values[plane, variable, n]:g} at x, y, z = {x:.4g}, {y:.4g}, "
                f"{z:.4g}",
                "record the planes anew, or leave that time out",
            )
        return values
