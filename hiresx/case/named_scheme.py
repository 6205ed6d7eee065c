"""Defaults of [scheme] and [filter] that depend on other keys: on `scheme.choice`, and the epsilon of the weights for
steady flow.

The only choice so far is `low_dissipation`. It is the hybrid scheme with a threshold of the sensor at which weak waves
and turbulence are computed by the split form. At shocks it uses TENO's weights. A filter damps the shortest waves,
which the split form does not damp. docs/schemes.md contains its measured errors.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pydantic_core import PydanticCustomError

from hiresx import kernels
from hiresx.case.hybrid import Hybrid
from hiresx.case.implicit_table import NAME as IMPLICIT
from hiresx.case.implicit_table import STEADY_EPSILON
from hiresx.case.model import Table, case_error
from hiresx.equations.stencil import suited_weights

if TYPE_CHECKING:
    from hiresx.case.schema import Case

NONE, LOW_DISSIPATION = "none", "low_dissipation"

INVISCID = "hybrid"
# The inviscid scheme that interpolates without weights.
REGULARISED = "regularised"
# Interpolations with five or six nodes, and with seven nodes, for which there are no TENO weights.
WEIGHTS = ("teno", "z")
# Default of the sensor `jump`; every other sensor has its own default.
SENSOR, THRESHOLD = "jump", 0.03
FILTER = {"order": 10, "strength": 0.03}
# The share of AFWENO everywhere that replaces the filter where filters are not supported.
FLOOR = 0.01
# Keys of [scheme] in lower layers that are removed, together with their [filter], if a layer gives a choice.
GOVERNED = frozenset({"interpolation", "weights", "cutoff", "inviscid", "hybrid"})


def has_choice(scheme: Any) -> bool:
    """Return whether the table [scheme], given as a dictionary or as a `Scheme`, has `choice = "low_dissipation"`."""
    found = scheme.get("choice") if isinstance(scheme, Mapping) else getattr(scheme, "choice", None)
    return found == LOW_DISSIPATION


def without_governed(path: tuple[str, ...], base: Mapping[str, Any], over: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return `base`, a table of a case, without those keys whose values follow from `scheme.choice =
    "low_dissipation"`, if the table `over`, which the caller merges into it afterwards, makes this choice. Otherwise
    return `base` itself. `path`: the keys that lead to both tables in a case."""
    if path == () and has_choice(over.get("scheme")):
        return {key: value for key, value in base.items() if key != "filter"}
    if path == ("scheme",) and has_choice(over):
        return {key: value for key, value in base.items() if key not in GOVERNED}
    return base


def complete_scheme(cls: Any, data: Any) -> Any:
    """Return `data`, the table [scheme] of a case, completed by the values that follow from `choice =
    "low_dissipation"`. Keys that `data` has are kept. A table without this choice is returned unchanged, and so is a
    value that is not a table, which the validators reject later. `cls` is not used; pydantic passes the class of the
    table."""
    if not (isinstance(data, Mapping) and has_choice(data)):
        return data
    given = {"inviscid": INVISCID, **data}
    interpolation = given.get("interpolation", "modified")
    if interpolation in kernels.choices("interpolation"):
        suited = suited_weights(interpolation)
        given.setdefault("weights", next((name for name in WEIGHTS if name in suited), WEIGHTS[0]))
    hybrid = _keys(given.get("hybrid", {}))
    if isinstance(hybrid, Mapping) and hybrid.get("sensor", SENSOR) == SENSOR and given["inviscid"] == INVISCID:
        given["hybrid"] = {"threshold": THRESHOLD, **hybrid}
    return given


def _keys(table: Any) -> Any:
    """Return the given keys of a table, as a dictionary or a validated table; other values are returned unchanged."""
    return table.model_dump(exclude_unset=True) if isinstance(table, Table) else table


def complete_case(cls: Any, data: Any) -> Any:
    """Return the tables `data` of a case, completed by those defaults that depend on other keys. For steady flow by the
    implicit integrator this is `scheme.epsilon`. `scheme.choice = "low_dissipation"` adds the table [filter] or, with
    the table [refine], which allows no filter, `scheme.hybrid.floor`. A filter of strength 0 is removed. `cls` is not
    used; pydantic passes the class of the table."""
    if not isinstance(data, Mapping):
        return data
    data = _with_epsilon(data)
    scheme, given = _keys(data.get("scheme")), _keys(data.get("filter", {}))
    if has_choice(scheme) and data.get("refine") is not None:
        hybrid = _keys(scheme.get("hybrid", {}))
        if isinstance(hybrid, Mapping):
            data = {**data, "scheme": {**scheme, "hybrid": {"floor": FLOOR, **hybrid}}}
    elif has_choice(scheme) and isinstance(given, Mapping):
        data = {**data, "filter": {**FILTER, **given}}
    made = _keys(data.get("filter"))
    strength = made.get("strength") if isinstance(made, Mapping) else None
    return {**data, "filter": None} if type(strength) in (int, float) and strength == 0 else data


def _with_epsilon(data: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the tables of a case, completed by `scheme.epsilon` if the implicit integrator computes steady flow,
    unless the scheme has no weights. With the epsilon of unsteady flow the weights in smooth flow follow small changes,
    and the residual may stop falling."""
    time, scheme = _keys(data.get("time")), _keys(data.get("scheme", {}))
    steady = isinstance(time, Mapping) and time.get("integrator") == IMPLICIT
    if not steady or not isinstance(scheme, Mapping) or scheme.get("inviscid") == REGULARISED:
        return data
    return {**data, "scheme": {"epsilon": STEADY_EPSILON, **scheme}}


def with_no_filter(document: dict[str, Any]) -> dict[str, Any]:
    """Return the case `document`, nested dictionaries with all defaults, in a form that gives the same case when it is
    read again: a filter of strength 0 is added if the case has no filter although its `scheme.choice` implies one."""
    if has_choice(document.get("scheme")) and document.get("filter") is None and document.get("refine") is None:
        return {**document, "filter": {"strength": 0.0}}
    return document


def named_scheme_errors(case: "Case") -> Iterator[PydanticCustomError]:
    """Yield an error for each setting of `case` that contradicts its `scheme.choice`."""
    scheme = case.scheme
    if scheme.choice == NONE:
        return
    said = f'scheme.choice = "{scheme.choice}"'
    if scheme.inviscid != INVISCID:
        yield case_error(
            f'scheme.inviscid = "{scheme.inviscid}" is not what {said} stands for, "{INVISCID}"; leave it out, or take '
            f'scheme.choice = "{NONE}"'
        )
    if case.time.integrator == IMPLICIT:
        yield case_error(
            f'{said} is for unsteady flow: time.integrator = "{IMPLICIT}" finds no steady one where nothing is damped; '
            f'take scheme.choice = "{NONE}"'
        )


def keys_in_force(case: "Case") -> str:
    """Return, as text for a report, the values of the keys that follow from `scheme.choice` of `case`, or that the case
    gives in their place. Return "" if the choice is "none"."""
    if case.scheme.choice == NONE:
        return ""
    scheme, hybrid = case.scheme, case.scheme.hybrid
    usual = Hybrid()
    changes = [(f"hybrid.{n}", v) for n, v in hybrid if n in ("blending", "floor") and v != getattr(usual, n)]
    pairs: list[tuple[str, Any]] = [
        ("interpolation", scheme.interpolation), ("weights", scheme.weights), ("inviscid", scheme.inviscid),
        ("hybrid.sensor", hybrid.sensor), ("hybrid.threshold", hybrid.least), *changes,
    ]  # fmt: skip
    if case.filter is None:
        return f"{_format_pairs(pairs)}; no filter"
    return f"{_format_pairs(pairs)}; filter.order {case.filter.order}, filter.strength {case.filter.strength:g}"


def _format_pairs(pairs: list[tuple[str, Any]]) -> str:
    return ", ".join(f"{name} {value:g}" if isinstance(value, float) else f"{name} {value}" for name, value in pairs)
