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
# Sound speed of every given state, in c_ref, above which the states are probably in units of their own, such as SI: air
# at rest then has 340. In the scales of the solver it has 1.
SOUND_SPEED = 10.0
# Ratio of Sutherland's temperature to the reference temperature above which it is probably in kelvins: that of gases is
# 70 to 1000 K.
SUTHERLAND = 20.0


def unlikely_values(case: "Case", dt: float) -> Iterator[str]:
    """Yield a warning for each value of the case that is valid, but probably a mistake. `dt`: the time step for the
    initial flow, in L / c_ref; infinite if it is unknown."""
    from hiresx.case.intervals import intervals
    from hiresx.case.schema import monitor_keys

    time = case.time
    if case.gas.gamma > GAMMA:
        yield f"gas.gamma = {case.gas.gamma:g} is above 5/3, the largest value of any gas"
    yield from _units(case)
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
    if time.end is not None and not time.local and case.average and case.average.start >= time.end:
        yield f"average.start = {case.average.start:g} is not before time.end = {time.end:g}: nothing is averaged"
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


def _units(case: "Case") -> Iterator[str]:
    """Yield a line for numbers that seem to be in units other than the scales of the solver."""
    places: dict[str, object] = {"initial": case.initial}
    places |= {f"boundary.{n}": condition for n, condition in enumerate(case.boundary)}
    places |= {f"sponge.{n}": sponge for n, sponge in enumerate(case.sponge)}
    states = {key: state for key, place in places.items() if (state := getattr(place, "state", None)) is not None}
    speeds = {key: math.sqrt(case.gas.gamma * state.p / state.rho) for key, state in states.items()}
    if speeds and min(speeds.values()) > SOUND_SPEED:
        key = min(speeds, key=speeds.__getitem__)
        yield (
            f"{key}.state has the sound speed {speeds[key]:.4g} c_ref, and no other state has a lower one. In the "
            "scales of the solver the ambient gas has the sound speed 1: divide velocities by it, pressures by rho c^2"
        )
    sutherland = getattr(case.gas.viscosity, "sutherland_temperature", 0.0)
    if sutherland > SUTHERLAND:
        yield (
            f"gas.viscosity.sutherland_temperature = {sutherland:g} is a ratio to the reference temperature, not in "
            "kelvins: air at 288.15 K has 110.4 / 288.15 = 0.383"
        )


def _intervals(case: "Case") -> Iterator[tuple[float, str]]:
    """Yield intervals that shorten steps, with their keys."""
    from hiresx.case.intervals import intervals
    from hiresx.case.schema import monitor_keys

    for key, every in intervals(case, monitor_keys()).items():
        if key != "checkpoint":
            yield every, f"steps no longer than {key}.every_time = {every:g}"


def _count(number: float) -> str:
    return f"about {number:.2g}" if math.isfinite(number) else "more than can be counted"
