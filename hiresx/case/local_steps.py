"""Errors for keys of a case that need a common time, and therefore cannot be used with `time.local`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pydantic_core import PydanticCustomError

from hiresx.case.face_formulas import face_formulas
from hiresx.case.model import case_error
from hiresx.case.source_table import source_formulas

if TYPE_CHECKING:
    from hiresx.case.schema import Case


def local_step_errors(case: "Case") -> Iterator[PydanticCustomError]:
    """Yield an error for each input of `case` that depends on the time, if the case uses local time steps. With them
    there is no common time. The formulas of the case must be valid."""
    if not case.time.local:
        return
    no_time = "with time.local there is no common time"
    for n, condition in enumerate(case.boundary):
        place = f"boundary.{n}"
        if not getattr(condition, "steady", True):
            yield case_error(f"{place}.steady = false: {no_time}; leave it out, and give a function that is steady")
        if getattr(condition, "turbulence", None) is not None:
            yield case_error(f"{place}.turbulence: {no_time}; leave it out")
        if condition.kernel == "precursor":
            yield case_error(f"{place}: {no_time} for the planes of a {condition.type}; take another inflow")
    if case.turbulence.spacings:
        yield case_error(f"turbulence.detached_eddies: {no_time} for resolved eddies; leave one of them out")
    for key, (formula, _) in face_formulas(case).items():
        if "t" in formula.names:
            yield case_error(f'{key} = "{formula.text}": {no_time}; give a formula without t')
    for key, formula in source_formulas(case)[0].items():
        if "t" in formula.names:
            yield case_error(f'source.{key} = "{formula.text}": {no_time}; give a formula without t')
