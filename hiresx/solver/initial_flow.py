"""The initial flow of a case as a function of position."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from hiresx.case import Case, functions

# A function of nodes x, y, z (all of one shape): rho, u, v, w, p, and the passive scalars by name, each a number or an
# array of that shape.
Flow: TypeAlias = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[Sequence[Any], Mapping[str, Any]]]
# The name of the initial flow in messages.
INITIAL = "initial.state or the initial function"


def initial_flow(
    case: Case, initial: str | Callable[..., Any] | None = None, scalars: Mapping[str, Callable[..., Any]] | None = None
) -> Flow:
    """Return a function of the coordinates x, y, z of nodes that computes the initial state of `case`, or the state
    that `initial` gives: a function f(x, y, z, *, <parameters>) -> (rho, u, v, w, p), or the name of a function of
    case.py. `scalars`: functions that replace the initial values of scalars (see `Case.initial_scalars`). The returned
    function takes arrays of one shape, in L, and returns the values of rho, u, v, w, p and a
    dictionary of the passive scalars. It raises HiresxError if the function fails or returns something else.
    `initial_flow` itself raises HiresxError for an unknown name and a missing parameter."""
    state = case.initial.state
    if initial is None and state is not None:
        uniform = [state.rho, state.u, state.v, state.w, state.p]
        return lambda x, y, z: (uniform, case.initial_scalars(x, y, z, scalars))
    name = initial or case.initial.function or ""
    # Found once: threads evaluate the flow piece by piece and compete for the Python interpreter.
    call = case.function(name) if isinstance(name, str) else name
    values = case.arguments(call)
    return lambda x, y, z: (functions.state(call, values, x, y, z, None), case.initial_scalars(x, y, z, scalars))
