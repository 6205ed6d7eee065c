"""The `[scheme.regularised]` table: how much the regularised inviscid scheme regularises."""

from typing import Annotated

from pydantic import Field

from hiresx.case.model import Positive, Table


class Regularised(Table):
    """Of `scheme.inviscid = "regularised"` (experimental): linear fluxes, and an entropic pressure that gives shocks a
    width of some cells. There are no weights, space or flux to choose; the positivity limiter acts where a flow starts
    with jumps. Output has the entropic pressure as the variable `entropic_pressure`."""

    alpha: Positive = Field(
        1.0, description="strength in cells squared, on any grid; the width of a shock grows with its root"
    )
    sweeps: Annotated[int, Field(ge=1, le=100)] = Field(
        1,
        description="Jacobi sweeps for the entropic pressure in every stage, each from what the last one has left",
    )
