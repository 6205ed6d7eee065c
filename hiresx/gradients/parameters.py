"""Keys of a case with respect to which results are differentiated, and the cases with other values of these keys."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hiresx.case import Case, load
from hiresx.case.error_messages import did_you_mean
from hiresx.case.implicit_table import NAME as IMPLICIT
from hiresx.errors import HiresxError


@dataclass(frozen=True)
class CaseFamily:
    """A case with variable keys. `name`: a bundled case or a case file. `preset`: names of its presets. `overrides`:
    values by dotted key."""

    name: str | Path
    preset: Sequence[str]
    overrides: Mapping[str, Any]

    def case(self) -> Case:
        """Return the case with the unchanged values of all keys. Raises HiresxError for a case with errors."""
        return self.with_keys({})

    def with_keys(self, more: Mapping[str, Any]) -> Case:
        """Return a copy of the case in which some keys have other values. `more`: a dictionary from dotted keys such as
        "gas.reynolds" to values. Raises HiresxError for a case with errors."""
        return load(self.name, list(self.preset), {**self.overrides, **more})

    def with_shift(
        self, parameter: "Parameter", by: float, krylov: int | None = None, precision: str | None = None
    ) -> Case:
        """Return the case in which the value of `parameter` is increased by `by`. `krylov`: number of search directions
        of GMRES; None: the number that the case sets. `precision`: a floating-point precision that case files cannot
        set ("extended"); None: that of the case. Raises HiresxError if the case does not allow the value."""
        value = parameter.value + by
        try:
            case = self.with_keys({parameter.key: value, **({} if krylov is None else {"implicit.krylov": krylov})})
        except HiresxError as error:
            raise HiresxError(
                f"{parameter.key} = {value:.10g}, a step {by:.3g} from its value, is not taken: {error.message}",
                "the derivative needs values on both sides: take a smaller --step, or another value of the key",
            ) from error
        if precision is None:
            return case
        return case.model_copy(update={"scheme": case.scheme.model_copy(update={"precision": precision})})


@dataclass(frozen=True)
class Parameter:
    """A number of a case by which results are differentiated. `key`: its dotted key. `value`: its value in the case."""

    key: str
    value: float


def check_steady(case: Case) -> None:
    """Raise HiresxError for a case whose time integrator does not compute steady flow, or which does not use GMRES."""
    if case.time.integrator != IMPLICIT:
        raise HiresxError(
            f'time.integrator = "{case.time.integrator}": derivatives need a steady flow, which only the integrator '
            f'"{IMPLICIT}" computes',
            f"choose it: --set time.integrator={IMPLICIT}",
        )
    if case.implicit.krylov == 0:
        raise HiresxError("implicit.krylov = 0: derivatives are solved for by GMRES", "give 1 or more, or leave it out")


def parameter(case: Case, key: str) -> Parameter:
    """Return the parameter, with its value in `case`, of the dotted key `key`. Raises HiresxError for a key that the
    case does not have, and for one whose value is not a real number."""
    value: Any = case.model_dump(mode="json")
    walked: list[str] = []
    for part in key.split("."):
        if isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        elif isinstance(value, Mapping) and part in value:
            value = value[part]
        else:
            there = list(value) if isinstance(value, Mapping) else []
            before = f"{'.'.join(walked)}." if walked else ""
            keys = [f"{before}{name}" for name in there]
            near = "name a number of the case by its dotted key"
            near = did_you_mean(f"{before}{part}", keys, "keys") if keys else near
            raise HiresxError(f'--by {key}: the case has no "{before}{part}"', near)
        walked.append(part)
    real = isinstance(value, float) or (isinstance(value, int) and walked[0] == "parameters")
    if isinstance(value, bool) or not real:
        raise HiresxError(
            f"--by {key}: its value is {_describe(value)}, by which nothing can be differentiated",
            f"if it takes a real number, give it one: --set {key}=VALUE"
            if value is None
            else "name a real number, e.g. one of [parameters], gas.reynolds, or an angle of the grid",
        )
    return Parameter(key, float(value))


def _describe(value: Any) -> str:
    kinds = {bool: "true or false", int: "a whole number", str: "a text", list: "a list", dict: "a table"}
    return "not given" if value is None else kinds.get(type(value), type(value).__name__)
