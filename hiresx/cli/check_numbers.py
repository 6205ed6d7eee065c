"""Remarks of `hiresx check` on numbers that are valid but implausible."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hiresx.case import Case

# At one microsecond per step, which is a lower bound, this many steps take a quarter of an hour; on any useful grid
# they take a year.
STEPS = 1e9
# Number of files in one folder from which on file systems become slow.
FILES = 1e6
# Largest plausible ratio of specific heats: that of molecules that move along a line only. Real gases have 5/3 at most.
GAMMA = 3.0


def unlikely_values(case: "Case", dt: float) -> Iterator[str]:
    """Yield a warning for each value of the case that is valid, but probably a mistake. `dt`: the time step for the
    initial flow, in L / c_ref; infinite if it is unknown."""
    from hiresx.case.intervals import intervals
    from hiresx.case.schema import monitor_keys

    time = case.time
    if case.gas.gamma > GAMMA:
        yield f"gas.gamma = {case.gas.gamma:g} is above 5/3, the largest value of any gas"
    # the steps of each limit alone; the run ends at the first limit
    wanted = [] if time.steps is None else [(float(time.steps), f"time.steps = {time.steps:g}")]
    if time.end is not None and not time.local:
        step, of = min(((dt, f"steps of {dt:.3g}"), *_intervals(case)))
        wanted.append((time.end / step, f"time.end = {time.end:g} in {of}"))
    steps, why = min(wanted)
    if steps > STEPS:
        yield f"more than {STEPS:.0e} steps, {_count(steps)} of them: {why}".replace("e+0", "e")
    for key, every in intervals(case, monitor_keys()).items():
        if (
            time.end is not None
            and not time.local
            and every > time.end
            and not key.startswith(("output", "checkpoint"))
        ):
            yield f"{key}.every_time = {every:g} is beyond time.end = {time.end:g}: only the first sample is taken"
    for key, clock in (("output", case.output), *((f"output.subset.{n}", s) for n, s in enumerate(case.output.subset))):
        files, given = 0.0, ""
        if clock.every_time is not None:
            # unknown if only steps of unknown length end the run
            span = min(math.inf if time.end is None else time.end, math.inf if time.steps is None else time.steps * dt)
            if math.isfinite(span) and not time.local:
                files, given = span / clock.every_time, f"{key}.every_time = {clock.every_time:g}"
        elif clock.every_steps is not None:
            files, given = steps / clock.every_steps, f"{key}.every_steps = {clock.every_steps}"
        if files > FILES:
            yield f"{given} writes the fields {_count(files)} times"


def _intervals(case: "Case") -> Iterator[tuple[float, str]]:
    """Yield intervals that shorten steps, with their keys."""
    from hiresx.case.intervals import intervals
    from hiresx.case.schema import monitor_keys

    for key, every in intervals(case, monitor_keys()).items():
        if key != "checkpoint":
            yield every, f"steps no longer than {key}.every_time = {every:g}"


def _count(number: float) -> str:
    return f"about {number:.2g}" if math.isfinite(number) else "more than can be counted"
