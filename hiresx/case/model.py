"""The base class of all tables of a case file. Unknown keys are errors, values are not converted silently, and a table
cannot be changed after it was read."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from hiresx.case.validation import derived_quantities


class Table(BaseModel):
    """One table of a case file. It is immutable. An unknown key, a string in place of a number, and nan are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False, defer_build=True)

    def needed_fields(self, case: Any) -> Mapping[str, int]:
        """Return the fields (named arrays at the nodes) that every block of `case` must store because of this table: a
        dictionary from the name in hiresx/device/fields.py to the number of arrays or components. A field with the
        number 0 is not needed."""
        return {}


def fields_of_tables(whole: Table, own: Mapping[str, int]) -> dict[str, int]:
    """Return the fields (named arrays at the nodes) that every block of a case must store: a dictionary from the name
    to the number of arrays or components. `whole`: the case, whose tables need fields. `own`: further fields that it
    needs, a dictionary of the same form. If several tables need a field, the largest number is taken."""
    values = (getattr(whole, name) for name in type(whole).model_fields)
    found = dict(own)
    for table in (table for value in values for table in (value if isinstance(value, tuple) else (value,))):
        for name, number in table.needed_fields(whole).items() if isinstance(table, Table) else ():
            found[name] = max(number, found.get(name, 0))
    return found


def case_error(expected: str) -> PydanticCustomError:
    """Return the exception that a validator of a case raises. `expected`: the description of the valid values.
    `describe_validation_error` later adds the key and the wrong value."""
    return PydanticCustomError("case", "{expected}", {"expected": expected})


def _as_tuple(value: Any) -> Any:
    # TOML gives lists, and a frozen case has tuples. Strict validation by pydantic would not accept one for the other.
    return tuple(value) if isinstance(value, list) else value


Listed = BeforeValidator(_as_tuple)
Vector = Annotated[tuple[float, float, float], Listed]
Counts = Annotated[tuple[Annotated[int, Field(ge=1)], Annotated[int, Field(ge=1)], Annotated[int, Field(ge=1)]], Listed]
Positive = Annotated[float, Field(gt=0)]
Points = Annotated[int, Field(ge=1)]
Stencil = Annotated[int, Field(ge=7)]  # number of nodes of a direction that must not be singleton
Axis = Literal["x", "y", "z"]


def choice(listed: Callable[[], list[str]]) -> AfterValidator:
    """Return a pydantic validator that accepts only the strings that the function `listed` returns."""

    def check(value: str) -> str:
        if value not in listed():
            raise PydanticCustomError("choice", "one of {choices}", {"choices": listed()})
        return value

    return AfterValidator(check)


def kernel_choice(folder: str) -> AfterValidator:
    """Return a pydantic validator of a string that must be the name, without suffix, of a header in the folder
    `kernels/<folder>/`."""

    def header_names() -> list[str]:
        from hiresx.kernels import choices

        return choices(folder)

    return choice(header_names)


def integrators() -> list[str]:
    """Return the names of the time integrators."""
    return _file_names("time", "integrators")


def integrators_that(say: str) -> tuple[str, ...]:
    """Return the names of the time integrators whose source file contains the line `say`, such as "UNSTEADY = True", by
    which an integrator declares what it supports."""
    folder = Path(__file__).parents[1] / "time" / "integrators"
    return tuple(name for name in integrators() if say in (folder / f"{name}.py").read_text("utf-8").splitlines())


def field_formats() -> list[str]:
    """Return the names of the file formats in which fields can be written."""
    return _file_names("output", "fields", "formats")


def _file_names(*folder: str) -> list[str]:
    """Return the names of the files in a folder of a package in a higher layer. Nothing is imported from it."""
    path = Path(__file__).parents[1].joinpath(*folder)
    return sorted(path.stem for path in path.glob("*.py") if path.stem != "__init__")


class State(Table):
    """A uniform flow state."""

    rho: float = Field(gt=0, description="density / reference density")
    u: float = Field(0.0, description="velocity along x / reference sound speed")
    v: float = Field(0.0, description="velocity along y / reference sound speed")
    w: float = Field(0.0, description="velocity along z / reference sound speed")
    p: float = Field(gt=0, description="pressure / (reference density x reference sound speed^2); ambient is 1/gamma")

    @model_validator(mode="after")
    def _in_range(self) -> "State":
        for what, found, _ in derived_quantities(self.rho, self.u, self.v, self.w, self.p):
            if not np.isfinite(found):
                raise case_error(f"{what} exceeds the range of double precision")
        return self
