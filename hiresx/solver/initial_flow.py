"""The flow with which a case begins, as a function of place."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from hiresx.case import Case, functions

# Of nodes x, y, z (any one shape): rho, u, v, w, p and the passive scalars by name, numbers or arrays of that shape.
Flow: TypeAlias = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[Sequence[Any], Mapping[str, Any]]]


def initial_flow(case: Case, initial: str | Callable[..., Any] | None = None) -> Flow:
    """The case's initial state, or that of `initial`: a function f(x, y, z, *, <parameters>) -> (rho, u, v, w, p), or
    the name of one of case.py. Raises HiresxError for a name that is not there and a parameter that is not given; what
    is returned raises as `Case.evaluate`."""
    state = case.initial.state
    if initial is None and state is not None:
        uniform = [state.rho, state.u, state.v, state.w, state.p]
        return lambda x, y, z: (uniform, case.initial_scalars(x, y, z))
    name = initial or case.initial.function or ""
    # Looked up once: the flow is asked for piece by piece, by threads that wait for each other's Python.
    call = case.function(name) if isinstance(name, str) else name
    values = case.arguments(call)
    return lambda x, y, z: (functions.state(call, values, x, y, z, None), case.initial_scalars(x, y, z))
