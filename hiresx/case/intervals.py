"""Time intervals at which outputs, checkpoints and monitors are due: their key `every_time`."""

import math
from collections.abc import Iterable, Iterator
from typing import Any

from pydantic_core import PydanticCustomError

from hiresx.case.model import case_error

# An interval must be at least this many times the difference of neighbouring floating-point numbers, so that all its
# times are distinct.
LEAST_DIFFERENCES = 8


def _timed_tables(case: Any, sampled: Iterable[str]) -> dict[str, Any]:
    """Return the tables of a case that have an interval `every_time`, by their key. `sampled`: see `intervals`."""
    tables: list[tuple[str, Any]] = [("output", case.output), ("checkpoint", case.checkpoint)]
    tables += [(f"output.subset.{n}", subset) for n, subset in enumerate(case.output.subset)]
    for key in ("probe", "force", "surface"):
        tables += [(f"{key}.{n}", table) for n, table in enumerate(getattr(case, key))]
    tables += [(f"force.{n}.distribution", force.distribution) for n, force in enumerate(case.force)]
    tables += [(name, getattr(case, name)) for name in sampled]
    return {key: table for key, table in tables if getattr(table, "every_time", None) is not None}


def intervals(case: Any, sampled: Iterable[str]) -> dict[str, float]:
    """Return the time intervals, in L / c_ref, at which a case writes fields and checkpoints and calls monitors (all
    keys `every_time`): a dictionary from the name of the table, such as "checkpoint", to its interval. `sampled`: the
    keys of monitors with a single table, such as "average", whose intervals are included. Tables in lists, such as
    [[probe]], are always included, as "probe.0" etc."""
    return {key: table.every_time for key, table in _timed_tables(case, sampled).items()}


def interval_errors(case: Any, sampled: Iterable[str]) -> Iterator[PydanticCustomError]:
    """Yield an error for each time interval (key `every_time`) of a case with local time steps, and for each interval
    that is too small to be resolved in double precision at the end of the run. For a case without `time.end` the end is
    taken as 1. `sampled`: the keys of monitors with a single table, such as "average", whose intervals are checked,
    too. Tables in lists, such as [[probe]], are always checked."""
    apart = math.ulp(1.0 if case.time.end is None else case.time.end)
    for key, table in _timed_tables(case, sampled).items():
        every = table.every_time
        if case.time.local:
            steps = "every" if "every" in type(table).model_fields else "every_steps"
            yield case_error(f"{key}.every_time: with time.local there is no common time; give {key}.{steps} instead")
        if every < LEAST_DIFFERENCES * apart:
            yield case_error(
                f"{key}.every_time = {every:g}: in double precision times lie up to {apart:.2g} apart here; "
                f"take more than {LEAST_DIFFERENCES * apart:.2g}"
            )
