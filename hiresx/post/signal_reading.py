"""Signals of a run for analysis: columns of histories at equal intervals of time."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hiresx.base.plural import plural
from hiresx.case.error_messages import did_you_mean
from hiresx.errors import HiresxError
from hiresx.output.watch.history import NO_FILTER
from hiresx.post.lags import distances
from hiresx.post.result import as_run
from hiresx.results import needs

# Least number of samples for a spectrum or a correlation.
SHORTEST = 16
_NUMBERS = {2: "two", 3: "three", 8: "eight"}


@dataclass(frozen=True, eq=False)
class Signals:
    """Signals that were read from one history, at the times start + n dt, in units of L / c_ref (length scale over
    sound speed). `values` (times, signals): the values. `labels` (signals,): the names of the signals. `places`
    (signals, 3): coordinates of their points in units of the length scale L, or None. `units`: the unit of the column.
    `resampled`: whether the samples were not equidistant in time and were interpolated. `filtered`: whether the samples
    are means over the time steps around them (`hiresx.output.watch.filtered`)."""

    history: str
    column: str
    units: str
    start: float
    dt: float
    values: np.ndarray
    labels: tuple[str, ...]
    places: np.ndarray | None
    resampled: bool
    filtered: bool

    @property
    def time(self) -> np.ndarray:
        """Times of the samples, in units of L / c_ref (length scale over sound speed), an array (times,)."""
        return self.start + self.dt * np.arange(len(self.values))


def read_line(
    run: Any, wanted: str, start: float | None, end: float | None, least: int, hint: str
) -> tuple[Signals, np.ndarray, np.ndarray]:
    """Return the signals of a line probe, the coordinates (signals, 3) of its points in units of the length scale L,
    and their increasing distances (signals,) from the first point. `run`: a folder or an open run. `wanted`:
    "NAME.COLUMN", a history and its column. `start`, `end`: the first and the last time to use, in L / c_ref. `least`:
    the required number of points. `hint`: the advice in the error message if there are fewer points. Raises HiresxError
    if there are too few points, if they do not follow each other along a line, and for signals that are missing or too
    short."""
    taken = read(run, wanted, start, end)
    if taken.places is None or len(taken.labels) < least:
        raise HiresxError(f'"{wanted}" has fewer than {_NUMBERS[least]} places', hint)
    distance = distances(taken.places)
    if not (np.diff(distance) > 0).all():
        raise HiresxError(f'the places of "{wanted}" do not lie one behind the other', "give a line")
    return taken, taken.places, distance


def read(run: Any, wanted: str, start: float | None = None, end: float | None = None) -> Signals:
    """Return the signals `wanted` of a run: "NAME.COLUMN" is a column of the history NAME at all its points,
    "NAME.COLUMN_2" at point number 2, "NAME.COLUMN_0,COLUMN_4" at several points. `run`: a folder or an open run.
    `start`, `end`: the first and the last time to use, in units of L / c_ref (length scale over sound speed). Samples
    at unequal intervals are interpolated to equal ones by cubic splines. Raises HiresxError for a missing history or
    column, for different columns, and for too few samples."""
    run = as_run(run)
    name, _, columns = wanted.partition(".")
    history = run.history(name)
    if history.sizes.get("sample"):
        raise HiresxError(f'the time of history "{name}" stands still: it has no spectrum', "use global time steps")
    quantities = list(map(str, history.data_vars))
    if not columns:
        columns = "p" if "p" in quantities else quantities[0]
    column = ""
    numbers: list[int] = []
    for part in (part.strip().removeprefix(f"{name}.") for part in columns.split(",")):
        stem, _, number = part.rpartition("_")
        of, where = (part, None) if part in quantities else (stem, number)
        if of not in quantities or (where is not None and not where.isdigit()):
            raise HiresxError(f'history "{name}" has no column "{part}"', did_you_mean(part, quantities, "columns"))
        if column not in ("", of):
            raise HiresxError(f'"{wanted}" asks for {column} and {of} at once', "ask for one column")
        column = of
        count = history[column].shape[1] if history[column].ndim > 1 else 1
        if where is not None and int(where) >= count:
            raise HiresxError(f'history "{name}" has {plural(count, "place")}', f"{column}_0 to {column}_{count - 1}")
        numbers += range(count) if where is None else [int(where)]
    chosen = history[column]
    time = np.asarray(chosen["time"].values, dtype=float)
    values = np.asarray(chosen.values, dtype=float).reshape(time.size, -1)[:, numbers]
    if any(end is not None and np.isnan(end) for end in (start, end)):
        raise HiresxError("nan is no time", "give a number, in L / c_ref")
    within = np.ones(time.size, bool)
    within &= time >= (-np.inf if start is None else start)
    within &= time <= (np.inf if end is None else end)
    within &= np.isfinite(values).all(axis=1)
    if within.sum() < SHORTEST:
        there = f"its samples are of t = {time[0]:g} to {time[-1]:g}" if time.size else "it has no samples"
        raise HiresxError(
            f'{plural(int(within.sum()), "sample")} of history "{name}" are too few; {SHORTEST} are needed', there
        )
    even, values, resampled = _resample_evenly(time[within], values[within])
    single = chosen.ndim == 1 or chosen.shape[1] == 1
    labels = tuple(column if single else f"{column}_{n}" for n in numbers)
    places = None
    if "place" in chosen.dims:
        places = np.stack([history[axis].values for axis in "xyz"], axis=1)[numbers]
    units = chosen.attrs.get("units", "")
    filtered = history.attrs.get("filter", NO_FILTER) != NO_FILTER
    return Signals(name, column, units, even[0], even[1] - even[0], values, labels, places, resampled, filtered)


def _resample_evenly(time: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, bool]:
    # the last sample of a run may be closer to the one before it than other samples
    for count in (time.size, time.size - 1):
        even = np.linspace(time[0], time[count - 1], count)
        if np.abs(time[:count] - even).max() <= 1e-6 * (even[1] - even[0]):
            return even, values[:count], False
    even = np.linspace(time[0], time[-1], time.size)
    return even, needs.scipy("interpolate").CubicSpline(time, values, axis=0)(even), True
