"""The `[[scalar]]` tables, and the values of scalars in other tables."""

from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import Field
from pydantic_core import PydanticCustomError

from hiresx.case.model import Positive, Table, case_error
from hiresx.equations import RESERVED

ScalarName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9]{0,99}$")]
# A value at a boundary or in the initial flow: a number, or the name of a function of case.py.
ScalarValue = float | str


class Scalar(Table):
    """A passive scalar: a fraction of the mass that is convected with the gas and diffuses with the coefficient
    mu/(Re_c Sc).

    It does not influence the gas. Its values should be of the order 1, such as a concentration from 0 to 1, since
    epsilon of the weights and the treatment of jumps assume this."""

    name: ScalarName = Field(description="its name in tables, files and plots: letters and digits")
    schmidt: Positive = Field(
        0.7, description="Schmidt number, nu / diffusivity; it has no effect without gas.reynolds"
    )
    initial: ScalarValue = Field(
        0.0, description="initial value, or a function of case.py: f(x, y, z, *, <parameters>) -> s"
    )


def scalar_errors(case: Any) -> Iterator[PydanticCustomError]:
    """Yield an error for each invalid name of a passive scalar of `case`, for each value that names an unknown scalar,
    for each inflow that gives no value of a scalar, and for a scheme that does not transport scalars."""
    names = [scalar.name for scalar in case.scalar]
    if names and case.scheme.inviscid != "afweno":
        yield case_error(
            f'scheme.inviscid = "{case.scheme.inviscid}" does not carry passive scalars; take "afweno", or leave '
            "[[scalar]] out"
        )
    for n, name in enumerate(names):
        if name in RESERVED:
            yield case_error(f'scalar.{n}.name = "{name}": that is a name of the gas or of the grid; choose another')
        if names.index(name) != n:
            yield case_error(f'scalar.{n}.name = "{name}": another scalar has this name')
    for place, table in (
        *((f"boundary.{n}", condition) for n, condition in enumerate(case.boundary)),
        *((f"sponge.{n}", sponge) for n, sponge in enumerate(case.sponge)),
    ):
        given = getattr(table, "scalars", {})
        for name in given:
            if name not in names:
                known = f"there are {', '.join(names)}" if names else "the case has no [[scalar]]"
                yield case_error(f'{place}.scalars: there is no scalar "{name}"; {known}')
        kernel = getattr(table, "kernel", None)
        missing = [name for name in names if name not in given]
        if kernel in ("prescribe", "characteristic", "total_inflow", "precursor") and missing:
            yield case_error(
                f'{place} ({table.type}): give the value of "{missing[0]}" that enters: '
                f"scalars = {{ {missing[0]} = 0.0 }}"
            )
