"""The `[scheme.regularised]` table: parameters of the regularised inviscid scheme."""

from typing import Annotated, Literal

from pydantic import Field

from hiresx.case.model import Positive, Table


class Regularised(Table):
    """Parameters of `scheme.inviscid = "regularised"` (experimental): linear fluxes, and an entropic pressure that
    spreads shocks over several cells. Weights, space and flux cannot be chosen. The linear fluxes always have a local
    Lax-Friedrichs dissipation, because the entropic pressure is 0 at contacts. The positivity limiter acts if the
    initial flow has discontinuities. The output variable `entropic_pressure` is the entropic pressure."""

    alpha: Positive = Field(
        1.0,
        description="strength in cells squared, on any grid; the width of a shock is proportional to its square root",
    )
    stress: Literal["isotropic", "compressive"] = Field(
        "isotropic",
        description="isotropic: the entropic pressure, in all directions; compressive (experimental): a stress along "
        "the principal directions of compression only",
    )
    sweeps: Annotated[int, Field(ge=1, le=100)] = Field(
        1,
        description="Jacobi sweeps for the entropic pressure in every stage; each starts from the result of the last "
        "one",
    )
