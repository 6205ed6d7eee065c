"""The `[body_force]` table: an acceleration of the gas, which is given, or controlled such that it keeps the mass flow
constant."""

from collections.abc import Iterator, Mapping
from math import hypot
from typing import Any, Literal

from pydantic import Field
from pydantic_core import PydanticCustomError

from hiresx.case.boundaries import Condition, ModelledWall, NoSlipWall, SlipWall, Symmetry
from hiresx.case.grids import Box, Wavy
from hiresx.case.model import Axis, Points, Positive, Table, Vector, case_error


class BodyForce(Table):
    """The same acceleration a of the gas everywhere: the source is rho a in the momentum and rho u . a in the energy.
    It drives a channel or a pipe that is periodic along the flow. With `keep`, a changes from step to step so that the
    mean of rho u along `axis` stays constant. The history `body_force` has this mean, a along `axis`, and the force per
    volume, which is the mean density times a. The time average of the force balances the friction: tau_w = force x
    volume / area of the walls. A slip wall supports a force normal to it, a plane of symmetry does not."""

    acceleration: Vector = Field(
        (0.0, 0.0, 0.0),
        description="acceleration [x, y, z], in c_ref^2 / L; along `axis`, with `keep`, it is the initial one",
    )
    keep: Literal["mass_flow"] | None = Field(
        None, description="quantity that is kept constant by the acceleration along `axis`, which changes in time"
    )
    axis: Axis = Field("x", description="direction of the flow that is kept, and of the history")
    mass_flow: float | None = Field(
        None, description="mean of rho u along `axis` that is kept, in rho_ref c_ref; absent: that of the initial flow"
    )
    response: Positive = Field(
        0.1, description="time in which a deviation of the mass flow is removed, in L / c_ref; at least a time step"
    )
    every: Points = Field(10, description="steps between samples of the history")

    def needed_fields(self, case: Any) -> Mapping[str, int]:
        """Return {"kept_acceleration": 1}: every block stores one array with the acceleration of the force, which
        changes in time if the mass flow is kept constant."""
        return {"kept_acceleration": 1}

    @property
    def directions(self) -> tuple[Vector, ...]:
        """The unit vectors [x, y, z] along which the force may act: the direction of `acceleration` unless it is zero,
        and the direction of `axis` if `keep` is set."""
        size = hypot(*self.acceleration)
        x, y, z = (a / size for a in self.acceleration) if size else (0.0, 0.0, 0.0)
        along = (float(self.axis == "x"), float(self.axis == "y"), float(self.axis == "z"))
        return ((x, y, z),) * bool(size) + (along,) * (self.keep is not None)


def body_force_errors(case: Any) -> Iterator[PydanticCustomError]:
    """Yield an error for each key of the table `[body_force]` of `case` that is contradictory, has no effect, or is not
    supported by the case."""
    force = case.body_force
    if force is None:
        return
    if force.keep is None and not any(force.acceleration):
        yield case_error("body_force does nothing: give an acceleration, or keep")
    if force.keep is None and force.mass_flow is not None:
        yield case_error('body_force.mass_flow has no effect without body_force.keep = "mass_flow"')
    if force.keep is not None and case.time.local:
        yield case_error("body_force.keep: with time.local there is no common time; give an acceleration alone")
    if force.keep is not None and _single(case, force.axis):
        yield case_error(
            f"body_force.keep: the grid has one node along {force.axis}, along which nothing can flow; name the "
            "direction of the flow by body_force.axis"
        )
    if force.keep is not None and (closed := _closed_by(case, force.axis)) is not None:
        face, condition = closed
        yield case_error(
            f"body_force.keep: no mass flow along {force.axis} can be kept, as a {condition.type} closes the "
            f"face {face}; make {force.axis} periodic, open both its faces, or name the direction of the flow by "
            "body_force.axis"
        )
    if case.axisymmetric and (any(force.acceleration[1:]) or force.axis != "x"):
        yield case_error("body_force: in axisymmetric flow it acts along x alone")


def _single(case: Any, axis: str) -> bool:
    """Return whether a generated grid has one node along `axis`. Along z these are the grids whose last count is 1."""
    count = getattr(case.grid, "n", None)
    if not isinstance(count, tuple):
        count = (0, 0, getattr(case.grid, "n_span", getattr(case.grid, "nk", 0)))
    is_known = isinstance(case.grid, Box | Wavy) or axis == "z"
    return bool(is_known and count["xyz".index(axis)] == 1)


# Types of walls; gas can pass through them if the case gives a velocity there (blowing or suction).
_WALLS = (NoSlipWall, ModelledWall, SlipWall, Symmetry)


def _closed_by(case: Any, axis: str) -> tuple[str, Condition] | None:
    """Return the first face normal to `axis` that is a wall as a whole, with its condition. The result is None for
    grids whose index directions are not x, y and z: there a wall normal to the flow, such as a step, may cover only a
    part of the cross-section."""
    if not isinstance(case.grid, Box | Wavy):
        return None
    d = "xyz".index(axis)
    faces = [f"{'ijk'[d]}{end}" for end in ("min", "max")]
    named = {face for item in case.boundary if item.faces != "all" for face in item.faces}
    for item in case.boundary:
        blown = isinstance(item, NoSlipWall) and (
            item.normal_velocity is not None or item.mass_flux is not None or item.velocity[d] != 0
        )
        if not isinstance(item, _WALLS) or item.range or blown or case.grid.n[d] == 1:
            continue
        for face in faces:
            if face in item.faces or (item.faces == "all" and face not in named):
                return face, item
    return None
