"""Values at the nodes of a face, given by a number or by a formula of position and time
(`hiresx.case.face_formulas`)."""

from collections.abc import Callable
from typing import Any

import numpy as np

from hiresx.case import Case
from hiresx.case.face_formulas import VARIABLES, FaceValue, face_formula, timed_formulas
from hiresx.device.interface import Backend
from hiresx.errors import HiresxError


def values_at(case: Case, value: FaceValue, places: np.ndarray, what: str) -> np.ndarray:
    """Return the values of a number or formula at the points `places`, an array of their coordinates x, y, z with the
    shape (3, ...), as an array of the shape (...). `value`: the number, or the text of a formula of `case` without the
    time. `what`: the beginning of the message of errors. Raises HiresxError for the first point at which the value is
    not finite."""
    if not isinstance(value, str):
        return np.full(places[0].shape, float(value))
    formula, parameters = face_formula(case, value)
    with np.errstate(all="ignore"):
        at = dict(zip(VARIABLES, (*places, np.zeros(places[0].shape)), strict=True))
        found = formula.values(at, parameters)
    if not np.isfinite(found).all():
        n = int(np.flatnonzero(~np.isfinite(found.ravel()))[0])
        raise HiresxError(f'{what}"{value}" is {found.ravel()[n]} at {place_at(places, n)}', "give a finite formula")
    return found


def place_at(places: np.ndarray, n: int) -> str:
    """Return the coordinates of point number `n` as text for messages. `places` (3, ...): x, y and z of all points."""
    return f"x, y, z = {', '.join(f'{c.ravel()[n]:.4g}' for c in places)}"


class FaceValues:
    """Prescribed values at the nodes of a face. `value`: a number or a formula. `places` (3, n2, n1): x, y and z of the
    nodes. `array` (n2, n1): the values on the device. If the formula contains the time, the device computes it
    (`timed`). Otherwise it is constant, and `largest` is its largest value. `what`: the name of the value in messages.
    `real`: NumPy's name of the kernels' real type. Raises HiresxError for the first node at which the value is not
    finite."""

    def __init__(self, backend: Backend, real: str, case: Case, value: FaceValue, places: np.ndarray, what: str):
        self.largest, timed = -np.inf, timed_formulas(case)
        self.timed = value in timed
        if self.timed:
            self.array = backend.zeros(places[0].shape, real)
            self._which = list(timed).index(str(value))
            self._places = backend.to_device(np.ascontiguousarray(places).astype(real))
            return
        found = values_at(case, value, places, f"{what}: ")
        self.largest = float(found.max())
        self.array = backend.to_device(found.astype(real))

    def launch(self, launch: Callable[..., None], clock: Any, share: float) -> None:
        """Compute the values on the device if they depend on time. `launch`: the function that launches a kernel
        (`Program.launch`). The time is the start of the time step plus the fraction `share` of its size, both read from
        the device array `clock`."""
        if self.timed:
            n = self.array.size
            launch(
                "face_formula", (n, 1, 1), n=n, which=self._which, places=self._places, clock=clock, share=share,
                values=self.array,
            )  # fmt: skip
