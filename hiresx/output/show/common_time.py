"""The choice of the fields of several runs at one common time."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from hiresx.base.shell import quote
from hiresx.errors import HiresxError
from hiresx.output.fields import field_file as fields

# Times that agree to this fraction count as equal.
SAME_TIME = 1e-9


def same_time(a: float, b: float) -> bool:
    """Return whether the times `a` and `b` differ by round-off only."""
    return abs(a - b) <= SAME_TIME * max(abs(a), abs(b), SAME_TIME)


def latest_common(runs: Sequence[Mapping[int, Path]]) -> list[Path]:
    """Return the path of one field file of each run, at the latest time that all runs have. `runs`: for each run a
    dictionary of its field files, with the number of the step as the key. The initial time is used only if a run has no
    other time. If time does not advance in any run (local time steps), the latest common step is used, or else the last
    step of each run. Raises HiresxError, with the times of two runs, if they have no time in common."""
    times = [{step: fields.read_time(path) for step, path in frames.items()} for frames in runs]
    if all(max(found) > 0 and not any(found.values()) for found in times):
        steps = set.intersection(*(set(frames) for frames in runs)) - {0}
        return [frames[max(steps or frames)] for frames in runs]
    started = any(not any(found.values()) and max(found) == 0 for found in times)
    for time in sorted(set(times[0].values()), reverse=True):
        matches = [[step for step, t in found.items() if same_time(t, time)] for found in times]
        if all(matches) and (time != 0 or started):
            # A run whose time does not advance has more fields than those at t = 0.
            return [frames[max(steps) if time else min(steps)] for frames, steps in zip(runs, matches, strict=True)]
    other = next((n for n in range(1, len(runs)) if not _have_common(times[0], times[n])), 1)
    (ours, of_ours), (theirs, of_theirs) = ((runs[n][max(runs[n])], format_times(times[n])) for n in (0, other))
    raise HiresxError(
        f"{ours.parent} and {theirs.parent} have no fields of one time: there are {of_ours}, and {of_theirs}",
        f"compare files of different times by their names: hiresx plot {quote(ours)} --against {quote(theirs)}",
    )


def format_times(times: Mapping[int, float]) -> str:
    """Return a text with the times of stored fields, such as "t = 0, 0.1, ... 2"; it is abbreviated if there are more
    than four. `times`: the time at each step, in units of L / c_ref."""
    ordered = sorted(set(times.values()))
    if len(ordered) <= 4:
        return "t = " + ", ".join(f"{t:.6g}" for t in ordered)
    return f"t = {ordered[0]:.6g}, {ordered[1]:.6g}, ... {ordered[-1]:.6g}"


def _have_common(ours: Mapping[int, float], theirs: Mapping[int, float]) -> bool:
    return any(same_time(a, b) for a in ours.values() if a for b in theirs.values())
