"""Values on faces that a `[[boundary]]` table gives as a number or as a formula of position and time."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic_core import PydanticCustomError

from hiresx.case.formula import Formula, constant_errors, formula_of_case
from hiresx.case.model import case_error

# A number, or a formula of these variables, numeric [parameters] and gamma.
FaceValue = float | str
VARIABLES = ("x", "y", "z", "t")
# Keys of a no-slip wall whose values may be formulas.
_THROUGH_WALLS = ("heat_flux", "normal_velocity", "mass_flux")


def face_formula(case: Any, text: str) -> tuple[Formula, dict[str, float]]:
    """Return the formula that the string `text` in a boundary condition of `case` contains, and the values, by name, of
    the parameters (and gamma) that it uses. Its variables are x, y, z and t. Raises ValueError for a string that is not
    a valid formula."""
    return formula_of_case(case, text, VARIABLES)


def face_formulas(case: Any) -> dict[str, tuple[Formula, dict[str, float]]]:
    """Return all formulas in the boundary conditions of `case`: a dictionary from the dotted key, such as
    "boundary.0.heat_flux", to the formula and the values, by name, of the parameters that it uses. Raises ValueError,
    which names the key, for a string that is not a valid formula."""
    found = {}
    for n, condition in enumerate(case.boundary):
        for key, value in _values(condition):
            if isinstance(value, str):
                try:
                    found[f"boundary.{n}.{key}"] = face_formula(case, value)
                except ValueError as error:
                    raise ValueError(f"boundary.{n}.{key}: {error}") from None
    return found


def _values(condition: Any) -> Iterator[tuple[str, FaceValue | None]]:
    """Yield the key and the value of everything that a condition may define by formulas."""
    if condition.kernel == "no_slip":
        yield from ((key, getattr(condition, key)) for key in _THROUGH_WALLS)
    if (turbulence := getattr(condition, "turbulence", None)) is not None:
        yield from ((f"turbulence.stresses.{key}", value) for key, value in turbulence.stresses.items())


def timed_formulas(case: Any) -> dict[str, Mapping[str, float]]:
    """Return the formulas in the boundary conditions of `case` that contain the time t: a dictionary from the text of
    each formula to the values, by name, of the parameters that it uses. The kernels evaluate these formulas."""
    return {formula.text: values for formula, values in face_formulas(case).values() if "t" in formula.names}


def face_value_errors(case: Any) -> Iterator[PydanticCustomError]:
    """Yield an error for each invalid formula in the boundary conditions of `case`, and for each heat flux, blowing or
    suction at a no-slip wall that the case does not support."""
    try:
        formulas = face_formulas(case)
    except ValueError as error:
        yield case_error(str(error))
        return
    for key, (formula, values) in formulas.items():
        yield from constant_errors({key: formula}, values)
        if "stresses" in key and "t" in formula.names:
            yield case_error(f'{key}: "{formula.text}": stresses do not change in time; give a formula of x, y, z')
    for n, wall in enumerate(case.boundary):
        if wall.kernel != "no_slip":
            continue
        place = f"boundary.{n}"
        if wall.heat_flux is not None and case.gas.reynolds is None:
            yield case_error(f"{place}.heat_flux needs heat conduction: give gas.reynolds, or leave heat_flux out")
        through = getattr(wall, wall.through)
        if through is None:
            continue
        enters = isinstance(through, str) and "t" in formulas[f"{place}.{wall.through}"][0].names
        if wall.temperature is None and (enters or (not isinstance(through, str) and through > 0)):
            yield case_error(f"{place}.{wall.through}: gas that is blown in needs the temperature of the wall; give it")
        if case.scalar:
            yield case_error(f"{place}.{wall.through}: not supported with passive scalars; leave one of them out")
        if case.axisymmetric:
            yield case_error(f"{place}.{wall.through} is not supported in axisymmetric flow; leave it out")
