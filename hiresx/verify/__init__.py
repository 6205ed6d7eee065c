"""Verifies the method on this machine and backend.

A group of checks is a file in hiresx/verify/groups/. With `LONG = True` it only runs when it is named.
"""

from collections.abc import Callable, Sequence
from typing import Any


def names(long: bool | None = None) -> list[str]:
    """Return the names of the groups of checks of `hiresx verify`. `long`: True for the groups that take minutes, False
    for the others, None for all."""
    from hiresx.verify import runner

    return [name for name in runner.names() if long is None or long == runner.group(name).LONG]


def run(
    groups: Sequence[str] = (),
    backend: str = "auto",
    say: Callable[[str], None] | None = None,
    plan: str | None = None,
) -> list[dict[str, Any]]:
    """Run the checks of `groups` on `backend` and return their results. `groups`: names of groups, or "long" for those
    that take minutes, or "all"; by default the groups that take seconds. `say`: a function that is called with a line
    after each check; by default the lines are printed to standard error if it is a terminal. `plan`: the order of
    computation, as in the key `plan` of a case; by default that of the backend.

    Each result is a dictionary.

    - `group`, `check` and `backend`: names.
    - `value`: the number that was measured, NaN if the check failed to run; `error` then has the reason.
    - `relation`: "<=", ">=" or "in". `threshold`: a number, or two numbers for "in".
    - `pass`: whether `value` is within the limit, or None if the plan does not support the case; `left_out` then has
      the reason.
    - `seconds`: the wall time.
    - `commands`: commands that make the same runs.
    - `curves`: named lists of numbers for pictures.

    Raises HiresxError for an unknown group, and for a backend or a plan that is not available.
    """
    from hiresx.verify import runner

    return runner.run(groups, backend, say, plan)
