"""The `[source]` table: sources of the conserved variables, given as formulas of position, time and state."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import Field
from pydantic_core import PydanticCustomError

from hiresx.case.formula import FUNCTIONS, Formula, constant_errors, formula_of_case
from hiresx.case.model import Table, case_error
from hiresx.case.scalars import ScalarName
from hiresx.equations import GAS_CONSERVED, GAS_PRIMITIVE

# Variables that a formula may contain besides parameters, functions and scalars.
VARIABLES = ("x", "y", "z", "t", *GAS_PRIMITIVE, "T")


class Source(Table):
    """Source terms of the conserved variables: formulas of x, y, z, t, rho, u, v, w, p, T, the case's passive scalars,
    its numeric [parameters] and gamma, in the scales of the solver. They may contain + - * / **, numbers, sqrt, exp,
    log, sin, cos, minimum, maximum and where(a < b, c, d), and are compiled into the kernels. A force per volume rho a
    along x is rho_u = "rho * a", and its power is e = "rho * u * a". A source does not limit the time step."""

    rho: str | None = Field(None, description="source of the density, in rho_ref c_ref / L")
    rho_u: str | None = Field(None, description="source of the momentum along x, in rho_ref c_ref^2 / L")
    rho_v: str | None = Field(None, description="source of the momentum along y")
    rho_w: str | None = Field(None, description="source of the momentum along z")
    e: str | None = Field(None, description="source of the total energy, in rho_ref c_ref^3 / L")
    scalars: dict[ScalarName, str] = Field({}, description="sources of rho s of passive scalars, by name")

    def needed_fields(self, case: Any) -> Mapping[str, int]:
        """Return {"coordinates": 1}: every block stores the coordinates of its nodes, on which the sources depend."""
        return {"coordinates": 1}

    def texts(self) -> dict[str, str]:
        """Return the texts of the given formulas by key: "rho", "rho_u", "rho_v", "rho_w", "e", and "scalars.<name>"
        for a passive scalar."""
        given = {name: getattr(self, name) for name in GAS_CONSERVED}
        of_scalars = {f"scalars.{name}": text for name, text in self.scalars.items()}
        return {name: text for name, text in given.items() if text is not None} | of_scalars


def source_formulas(case: Any) -> tuple[dict[str, Formula], dict[str, float]]:
    """Return two dictionaries: the formulas of the table [source] of `case` by the keys of `Source.texts`, and the
    values of the parameters that they use by name. Raises ValueError, which names the key, for a text that is not a
    valid formula."""
    found: dict[str, Formula] = {}
    values: dict[str, float] = {}
    variables = (*VARIABLES, *(scalar.name for scalar in case.scalar))
    for key, text in case.source.texts().items() if case.source else ():
        try:
            found[key], own = formula_of_case(case, text, variables)
        except ValueError as error:
            raise ValueError(f"source.{key}: {error}") from None
        values |= own
    return found, dict(sorted(values.items()))


def source_errors(case: Any) -> Iterator[PydanticCustomError]:
    """Yield an error for each invalid formula, unknown scalar or ambiguous name in the table [source] of `case`."""
    if case.source is None:
        return
    if not case.source.texts():
        yield case_error("source does nothing: give a formula of rho, rho_u, rho_v, rho_w, e or scalars")
    for name in case.source.scalars:
        if all(scalar.name != name for scalar in case.scalar):
            yield case_error(f'source.scalars: the case has no [[scalar]] "{name}"')
            return
    for scalar in case.scalar:
        if scalar.name in FUNCTIONS:
            yield case_error(f'source: scalar "{scalar.name}" is called like a function; choose another name')
            return
    try:
        formulas, values = source_formulas(case)
    except ValueError as error:
        yield case_error(str(error))
        return
    yield from constant_errors({f"source.{key}": formula for key, formula in formulas.items()}, values)
