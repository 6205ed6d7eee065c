"""Verifies the method on this machine and backend.

A group of checks is a file in hiresx/verify/groups/. With `LONG = True` it only runs when it is named.
"""

from collections.abc import Callable, Sequence
from typing import Any


def names(long: bool | None = None) -> list[str]:
    """Return the names of the groups of checks. `long`: True for those that take minutes, False for the others, None
    for all."""
    from hiresx.verify import runner

    return [name for name in runner.names() if long is None or long == runner.group(name).LONG]


def run(
    groups: Sequence[str] = (),
    backend: str = "auto",
    say: Callable[[str], None] | None = None,
    plan: str | None = None,
) -> list[dict[str, Any]]:
    """Run the checks of `groups` on `backend`: by default the groups that take seconds; "long" are those that take
    minutes, "all" is every one. `say` gets a line as each check is done (None: standard error, if it is a terminal).
    `plan`, a value of the case's key of that name, computes the runs (None: the backend's own).

    Returns a dictionary for each check: `group`, `check`, `backend` (its name), `value` (NaN if it failed to run, with
    `error`), `relation` ("<=", ">=" or "in"), `threshold` (a number, or two for "in"), `pass` (None, with `left_out`,
    where the plan does not suit the case), `seconds`, `commands` (the runs it looks at) and `curves` (named lists of
    numbers for pictures). Raises HiresxError for an unknown group, and for a backend or a plan of it that is not there.
    """
    from hiresx.verify import runner

    return runner.run(groups, backend, say, plan)
