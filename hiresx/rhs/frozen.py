"""Detection of functions of boundary conditions that depend on the time, but are evaluated only once."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from hiresx.case import Case
from hiresx.decomposition import Decomposition
from hiresx.errors import HiresxError
from hiresx.grid.blocks import slices

# Times at which a function is evaluated, without a common period, and the number of nodes of a face along one
# direction.
TIMES, NODES = (0.0, 0.3719, 2.117, 17.63), 64
# Changes beyond this fraction of the largest value are not round-off.
CHANGE = 1e-9

_Function = Callable[..., Any]


def notes(case: Case, decomposition: Decomposition, profiles: Mapping[str, _Function] | None = None) -> Iterator[str]:
    """Yield a warning for each boundary condition whose function changes in time but is evaluated only once, at the
    start. The warning names the parameters that cause the change, and the key of the case by which the function is
    evaluated at every time. `profiles`: functions that replace the functions of case.py with the same names; None for
    no replacement."""
    reported = set()
    for number, name, function, places in condition_functions(case, decomposition, profiles, steady=True):
        if number in reported:
            continue
        try:
            if not _changes(case, function, places):
                continue
        except HiresxError:
            continue  # the error is reported when the run begins
        reported.add(number)
        parameters = ", ".join(f"parameters.{key} = {value:g}" for key, value in _causes(case, function, places))
        hint = (
            "local steps have no common time" if case.time.local else f"boundary.{number}.steady = false lets it change"
        )
        yield (
            f'boundary.{number}: "{name}" changes in time{f" ({parameters})" if parameters else ""}, but is evaluated '
            f"once, at the start, and what enters stays frozen: {hint}"
        )


def condition_functions(
    case: Case, decomposition: Decomposition, profiles: Mapping[str, _Function] | None, steady: bool
) -> Iterator[tuple[int, str, _Function, list[np.ndarray]]]:
    """Yield, for each boundary patch whose condition has a function and the given value of the key `steady`: the number
    of the condition in the case (from 0), the name of the function, the function, and a list of arrays x, y, z of some
    nodes of the patch, all of one shape, in L. `profiles`: functions that replace the functions of case.py with the
    same names; None for no replacement."""
    for number, condition, places in faces(case, decomposition, steady):
        name = getattr(condition, "function", None)
        if name is not None:
            yield number, name, (profiles or {}).get(name) or case.function(name), places


def faces(case: Case, decomposition: Decomposition, steady: bool) -> Iterator[tuple[int, Any, list[np.ndarray]]]:
    """Yield, for each boundary patch whose condition has the given value of the key `steady`: the number of the
    condition in the case (from 0), its table, and a list of arrays x, y, z of some nodes of the patch, all of one
    shape, in L."""
    for patch in decomposition.patches:
        number = next((n for n, condition in enumerate(case.boundary) if condition is patch.condition), None)
        if number is None or getattr(patch.condition, "steady", not steady) != steady:
            continue
        block = decomposition.blocks[patch.block]
        chosen = np.ix_(*(_few(hi - lo) for lo, hi in reversed(patch.range)))
        yield number, patch.condition, [np.asarray(c[slices(patch.range)])[chosen] for c in (block.x, block.y, block.z)]


def _few(count: int) -> np.ndarray:
    """Return a few indexes of `count` nodes, including the first and the last."""
    return np.unique(np.linspace(0, count - 1, min(count, NODES)).round().astype(int))


def _changes(case: Case, function: _Function, places: list[np.ndarray]) -> bool:
    """Return whether the values of a function change in time. Raises HiresxError if the function fails."""
    x, y, z = places
    first, *others = (np.stack(case.evaluate(function, x, y, z, time)) for time in TIMES)
    return any(bool(np.abs(other - first).max() > CHANGE * np.abs(first).max()) for other in others)


def _causes(case: Case, function: _Function, places: list[np.ndarray]) -> Iterator[tuple[str, float]]:
    """Return the parameters without which nothing changes if each of them alone is 0."""
    taken = case.arguments(function)
    for key, value in case.parameters.items():
        if key in taken and isinstance(value, int | float) and value and not isinstance(value, bool):
            without = case.model_copy(update={"parameters": {**case.parameters, key: 0.0}})
            try:
                if not _changes(without, function, places):
                    yield key, value
            except HiresxError:
                continue  # it cannot be 0
