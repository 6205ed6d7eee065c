"""Detection of waves in boundary conditions whose period is too short for the time step."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from hiresx.case import Case
from hiresx.case.functions import evaluate_profile, evaluate_scalar_profile
from hiresx.case.wave_sums import Waves
from hiresx.decomposition import Decomposition
from hiresx.errors import HiresxError
from hiresx.rhs.frozen import condition_functions, faces

# Number of steps that resolve a period. With 8 steps a Runge-Kutta method of third order loses 1.3 % of a wave in each
# step, 10 % in a period; with 16 steps it loses 0.7 % in a period. Waves with fewer than 2 steps per period are
# aliased.
STEPS, LEAST = 8.0, 2.0


def notes(
    case: Case, decomposition: Decomposition, dt: float, profiles: Mapping[str, Callable[..., Any]] | None = None
) -> Iterator[str]:
    """Yield a warning for each boundary condition whose function returns `Waves` (sums of waves in time) with a period
    shorter than 8 time steps `dt` (in L / c_ref). `profiles`: functions that replace the functions of case.py with the
    same names; None for no replacement."""
    for number, name, values in _start_values(case, decomposition, profiles):
        try:
            fastest = _fastest(values())
        except HiresxError:
            continue  # the error is reported when the run begins
        if fastest * dt * STEPS > 1:
            steps = 1 / (fastest * dt)
            seen = ", as fewer than 2 do not: it enters as a slower one" if steps < LEAST else ""
            yield (
                f'boundary.{number}: "{name}" gives a wave of f L / c_ref = {fastest:.4g}, of which {steps:.2g} time '
                f"steps of {dt:.3g} make a period; {STEPS:g} resolve it{seen}: take shorter steps (time.dt, time.cfl), "
                "or leave it out"
            )


def _start_values(
    case: Case, decomposition: Decomposition, profiles: Mapping[str, Callable[..., Any]] | None
) -> Iterator[tuple[int, str, Callable[[], Any]]]:
    """Yield the number of the condition, the name of the function, and a function that returns its values at the
    start."""
    for number, name, function, (x, y, z) in condition_functions(case, decomposition, profiles, steady=False):
        yield number, name, partial(evaluate_profile, case, function, x, y, z, 0.0)
    for number, condition, places in faces(case, decomposition, steady=False):
        for scalar, name in getattr(condition, "scalars", {}).items():
            if isinstance(name, str):
                function = (profiles or {}).get(name) or case.function(name)
                yield number, name, partial(_of_scalar, case, scalar, function, places)


def _of_scalar(case: Case, scalar: str, function: Callable[..., Any], places: list[np.ndarray]) -> list[Any]:
    x, y, z = places
    return [evaluate_scalar_profile(case, scalar, function, x, y, z, 0.0)]


def _fastest(values: Any) -> float:
    """Return the highest frequency with a nonzero amplitude anywhere."""
    found = [
        abs(float(frequency))
        for value in values
        if isinstance(value, Waves)
        for frequency, *of in zip(value.frequency, value.cos, value.sin, strict=True)
        if any(np.any(amplitude) for amplitude in of)
    ]
    return max(found, default=0.0)
