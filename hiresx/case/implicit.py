"""The `[implicit]` table, and what the implicit integrator does not take."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field
from pydantic_core import PydanticCustomError

from hiresx.case.model import Points, Table, case_error

if TYPE_CHECKING:
    from hiresx.case.schema import Case

NAME = "implicit"
# Of a case that says nothing of them.
STEPS, FIRST_CFL = 500, 2.0


class Implicit(Table):
    """Steady flow with `time.integrator = "implicit"`: Newton's method with pseudo-time steps of each node. Its linear
    equations are solved by flexible GMRES with sweeps over grid lines or nodes in two colours (docs/implicit.md).

    The CFL number begins at `time.cfl` (2 where it is not given) and grows as the residual falls. A step is one of
    `time.steps` (500 where they are not given), at most; the run ends when the residual has fallen by `drop`.
    """

    drop: Annotated[float, Field(gt=1)] = Field(
        1e10, description="the run ends when the residual is that of its first step over this"
    )
    largest_cfl: Annotated[float, Field(gt=0)] = Field(1e4, description="the CFL number does not grow beyond it")
    krylov: Annotated[int, Field(ge=1, le=200)] = Field(
        40, description="directions of GMRES: products with the Jacobian in a step, at most"
    )
    linear_drop: Annotated[float, Field(gt=0, lt=1)] = Field(
        0.01, description="residual of the linear equations, over that at the start, at which GMRES ends"
    )
    lines: Literal["auto", "none", "i", "j", "k"] = Field(
        "auto",
        description="grid lines whose nodes are solved for at once: those along an index direction, or auto: in "
        "every block, in turn, those along each direction in which a tenth of its cells are thin",
    )
    sweeps: Points = Field(10, description="sweeps over both colours that make one preconditioning")

    @property
    def directions(self) -> int:
        """The directions in which a block may have lines at once."""
        return {"none": 0, "auto": 3}.get(self.lines, 1)


def implicit_errors(case: "Case") -> Iterator[PydanticCustomError]:
    """Yield the errors of settings that the implicit integrator does not support."""
    if case.time.integrator != NAME:
        if case.implicit != Implicit():
            yield case_error(
                f'implicit: says how time.integrator = "{NAME}" iterates; "{case.time.integrator}" does not: leave the '
                "table out, or take that integrator"
            )
        return
    why = f'time.integrator = "{NAME}" is for steady flow'
    if case.time.retries:
        yield case_error(f"time.retries: {why}, whose steps are shortened by themselves; leave it out")
    if case.scheme.precision != "fp64":
        yield case_error(
            f'scheme.precision = "{case.scheme.precision}": time.integrator = "{NAME}" computes products with the '
            'Jacobian from differences of right-hand sides; take "fp64"'
        )
    if case.scheme.inviscid == "regularised":
        yield case_error(f'scheme.inviscid = "regularised" does not go with time.integrator = "{NAME}"; take "afweno"')
    without = f'is not for time.integrator = "{NAME}"'
    if case.filter is not None:
        yield case_error(f"filter: {without}; leave it out")
    if case.scalar:
        yield case_error(f"scalar: passive scalars are not for {NAME}; leave them out, or take an explicit integrator")
    if case.axisymmetric:
        yield case_error(f"axisymmetric {without}; take an explicit integrator")
    if case.turbulence.model != "none" and not case.turbulence.transported:
        yield case_error(
            f'turbulence.model = "{case.turbulence.model}" {without}, whose Jacobian has the terms of '
            '"spalart_allmaras" alone: large eddies are not steady; take that model, "none", or an explicit integrator'
        )
    if case.average is not None:
        yield case_error(f"average {without}, whose steps are not times of one flow; leave it out")
    if case.time.cfl is not None and case.time.cfl > case.implicit.largest_cfl:
        yield case_error(
            f"time.cfl = {case.time.cfl:g} is above implicit.largest_cfl = {case.implicit.largest_cfl:g}, beyond which "
            "it does not grow: lower the one or raise the other"
        )
