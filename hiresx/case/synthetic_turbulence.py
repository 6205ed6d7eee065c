"""The table `turbulence` of an inflow condition: parameters of synthetic turbulence."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field
from pydantic_core import PydanticCustomError

from hiresx.case.face_formulas import FaceValue
from hiresx.case.model import Listed, Positive, Table, Vector, case_error

Name = Literal["xx", "xy", "yy", "xz", "yz", "zz"]
STRESSES: tuple[Name, ...] = ("xx", "xy", "yy", "xz", "yz", "zz")


class SyntheticTurbulence(Table):
    """Random fluctuations of the velocity with given Reynolds stresses and integral lengths, which are added to the
    flow of the inflow; its density and pressure are not changed. A frozen random field enters with the convection
    velocity. It depends only on place, time and seed, and is the same after a restart and on any number of ranks."""

    stresses: dict[Name, FaceValue] = Field(
        description="Reynolds stresses in c_ref^2; xy is the mean of u' v'. They are numbers, or formulas of x, y, z, "
        "the numeric [parameters] and gamma. xx and yy are required; the others are 0 by default. Their matrix must "
        "be positive semidefinite everywhere on the face"
    )
    length: Positive | Annotated[tuple[Positive, Positive, Positive], Listed] = Field(
        description="integral length of the fluctuations, in L: the integral of their correlation over the distance. "
        "Or three lengths: along the convection velocity and along the two directions across it, which are y and z "
        "for a flow along x, z and x for one along y, x and y for one along z"
    )
    velocity: Vector | None = Field(
        None, description="convection velocity [u, v, w] in c_ref; absent: the velocity of the given state"
    )
    method: Literal["digital-filter", "synthetic-eddies"] = Field(
        "digital-filter",
        description="how the field is computed: from random numbers on a lattice, which are smoothed by B-splines, or "
        "as a sum of eddies at random places. An eddy reaches 4/3 of the integral length from its place",
    )
    period: Annotated[tuple[float, float], Listed] = Field(
        (0.0, 0.0),
        description="lengths after which the fluctuations repeat along the two directions across, 0: never; the "
        "integral length there is changed so that a whole number of lattice spacings fits",
    )
    seed: int = Field(0, ge=0, le=2**31 - 1, description="another number gives another field of the same statistics")


def synthetic_turbulence_errors(case: Any) -> Iterator[PydanticCustomError]:
    """Yield an error for each invalid key of the synthetic turbulence at the inflows of `case`."""
    for n, condition in enumerate(case.boundary):
        given, place = getattr(condition, "turbulence", None), f"boundary.{n}"
        if given is None:
            continue
        if not getattr(condition, "steady", True):
            yield case_error(f"{place}.turbulence is added to a steady flow: leave steady = false out, or turbulence")
        state = getattr(condition, "state", None)
        velocity = given.velocity or (state and (state.u, state.v, state.w))
        if not velocity:
            yield case_error(f"{place}.turbulence.velocity: a profile has many velocities; give that of convection")
        elif not any(velocity):
            yield case_error(f"{place}.turbulence.velocity is zero: nothing would come in; give that of convection")
        if missing := [name for name in ("xx", "yy") if name not in given.stresses]:
            yield case_error(f"{place}.turbulence.stresses: {missing[0]} is required; 0.0 for no fluctuations along it")
        if min(given.period) < 0:
            yield case_error(f"{place}.turbulence.period: lengths are not negative; 0 for none")
