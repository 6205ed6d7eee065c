"""Coefficients of a force: lift, drag, side force and pitching moment."""

from collections.abc import Sequence

import numpy as np

from hiresx.case import Case
from hiresx.case.monitors import Coefficients as Spec
from hiresx.errors import HiresxError
from hiresx.output.watch.history import Column

# Fraction of the stream's speed below which its component normal to `up` counts as zero.
_ALONG_UP = 1e-6


class ForceCoefficients:
    """Lift, drag, side force and pitching moment coefficients of the force on a body. Forces are divided by rho V^2/2
    and the reference area, the moment also by the reference length. `spec`: the table of the case with these
    references. `key`: the name of this table in error messages.

    Drag is the component along the velocity of the stream. Lift is normal to it, in the plane of the velocity and `up`.
    The side force is along the vector product lift x drag. The moment about this direction through `centre` is positive
    if it turns the upstream side upwards. `dimensions`: number of dimensions of the flow; with less than three there is
    no side force. Raises HiresxError for axisymmetric flow, for a stream at rest, and for a stream parallel to `up`."""

    def __init__(self, key: str, spec: Spec, case: Case, dimensions: int):
        if case.axisymmetric:
            raise HiresxError(f"{key} is of flow around a body, not of axisymmetric flow", "leave it out")
        state = case.initial.state
        stream = spec.velocity or ((state.u, state.v, state.w) if state is not None else (0.0, 0.0, 0.0))
        velocity = np.array(stream, dtype=float)
        speed = float(np.linalg.norm(velocity))
        if not speed > 0:
            raise HiresxError(
                f"{key} has no stream: there is no velocity, and the case has no initial.state that moves",
                "give the velocity of the free stream, e.g. velocity = [0.5, 0.0, 0.0]",
            )
        self._drag = velocity / speed
        up = np.array([float(axis == spec.up) for axis in "xyz"])
        lift = up - (up @ self._drag) * self._drag
        if not np.linalg.norm(lift) > _ALONG_UP:
            raise HiresxError(f'{key}.up = "{spec.up}": the stream is along it', "name another axis")
        self._lift = lift / np.linalg.norm(lift)
        self._side = np.cross(self._lift, self._drag)
        rho = spec.rho if spec.rho is not None else 1.0 if state is None or spec.velocity else state.rho
        # rho V^2/2, in rho_ref c_ref^2, and the direction of the stream
        self.pressure, self.stream = 0.5 * rho * speed**2, self._drag
        self._scale = self.pressure * spec.area
        self._length, self._centre = spec.length, np.reshape(spec.centre, (3, 1))
        self._in_space = dimensions > 2

    @property
    def columns(self) -> Sequence[Column]:
        """Descriptions of the coefficients as columns of a history, in the order of the rows of `values`."""
        side = [("side_coefficient", "side force")] if self._in_space else []
        named = [("lift_coefficient", "lift"), ("drag_coefficient", "drag"), *side]
        return [
            *(Column(name, f"{what} over rho V^2/2 and the reference area", "1") for name, what in named),
            Column("moment_coefficient", "pitching moment over rho V^2/2 and the reference area and length", "1"),
        ]

    def arms(self, nodes: np.ndarray) -> np.ndarray:
        """Return the lever arms (3, n), in units of L, of forces at points: the vectors from the centre of the moment
        to `nodes` (3, n), the coordinates x, y, z of the points."""
        return nodes - self._centre

    def values(self, force: np.ndarray, moment: np.ndarray) -> np.ndarray:
        """Return the coefficients of a force, or of parts of a force such as those at single nodes, as an array
        (columns, ...) in the order of `columns`. `force` (3, ...): x, y and z components, in units of rho_ref c_ref^2
        L^2 (in plane flow rho_ref c_ref^2 L). `moment` (3, ...): the moment of this force about the centre, in the unit
        of the force times L."""
        along = [self._lift, self._drag, *([self._side] if self._in_space else [])]
        return np.stack([*(direction @ force for direction in along), self._side @ moment / self._length]) / self._scale
