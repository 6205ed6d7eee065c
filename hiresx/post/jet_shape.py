"""The mean flow of a jet: shock cells on its axis, the end of its potential core, its half-width and spreading.

Scales: nozzle height h, ambient density and sound speed; the exit at x = 0, the axis at y = 0."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hiresx.errors import HiresxError
from hiresx.output.fields import cut
from hiresx.results import Run, needs

# Least prominence of a pressure maximum of a shock cell, divided by the ambient pressure; and the velocity on the axis,
# divided by the fully expanded one, at which the core ends.
CELL = 0.03
CORE = 0.95
# Least and largest length of a cell, in cells of the vortex sheet. Maxima closer to each other belong to one cell (a
# shock meets the axis before the maximum of the pressure). A rise farther away does not belong to the cells.
SHORTEST, LONGEST = 0.5, 1.5
# Bounds for the decrease from cell to cell: in the jets of docs/jets.md a rise is at least 0.29 of the one before, and
# the first rise is 1.4 to 1.6 times the difference between exit and ambient pressure. Lengths decrease by some per
# cent.
FADES, FIRST, STEADY = 0.2, 0.2, 1.4
_STATIONS = 40
# Least length over which the growth of the half-width is fitted, in half-widths: over shorter lengths, shock cells and
# the largest eddies of a finite average change it as much. Largest relative uncertainty of a result; number of groups
# of stations of the jackknife.
REACHES, SURE, _GROUPS = 4, 0.5, 5


@dataclass(frozen=True, eq=False)
class Mean:
    """The mean flow of a jet. `x`, `p` and `u` (n,): coordinates x > 0 of points on the axis, pressure and velocity
    there. `station` (m,): coordinates x at which there is a half-width. `half_width` (m,): the distance from the axis
    at which the mean u is half of its value on the axis, averaged over both sides. `end`: the last `x`. Without
    averages, `station` and `half_width` are empty. Lengths are in units of the length scale L, pressures in rho_ref
    c_ref^2, velocities in c_ref. `source`: the file or the probe with the data."""

    x: np.ndarray
    p: np.ndarray
    u: np.ndarray
    station: np.ndarray
    half_width: np.ndarray
    end: float
    source: str


def sponge_start(run: Run) -> float:
    """Return the coordinate x, in units of the length scale L, at which the sponge downstream of the jet begins;
    infinity if the case has none."""
    starts = [
        s["start"]
        for s in run.case.get("sponge") or ()
        if s["axis"] == "x" and s["end"] > s["start"] and s["start"] > 0
    ]
    return float(min(starts, default=np.inf))


def mean(run: Run, start: float | None = None, end: float | None = None) -> Mean:
    """Return the mean flow of the jet in a run. It is taken from the averages or, if there are none, from a probe along
    the axis between the times `start` and `end` (in units of L / c_ref, length scale over sound speed).
    Three-dimensional averages are also averaged over the span if the grid is uniform along it; if not, the plane z = 0
    is used. Raises HiresxError for a run with neither averages nor such a probe."""
    limit = sponge_start(run)
    if (run.path / "averages.nc").is_file():
        return _of_averages(run, limit)
    for name in run.histories:
        history = run.history(name)
        if "place" not in history.dims or not {"p", "u"} <= set(history.data_vars):
            continue
        x, y = history["x"].values, history["y"].values
        on = np.flatnonzero((np.abs(y) < 1e-9) & (x > 0) & (x <= limit))
        if on.size >= 16:
            on = on[np.argsort(x[on])]
            time = history["time"].values
            kept = (time >= (-np.inf if start is None else start)) & (time <= (np.inf if end is None else end))
            if not kept.any():
                raise HiresxError(
                    f"{run.path}: {name} has no sample from t = {time[0] if start is None else start:g} to "
                    f"{time[-1] if end is None else end:g}",
                    f"its samples are from t = {time[0]:g} to {time[-1]:g}: give --from and --to within these",
                )
            p, u = (history[key].values[kept][:, on].mean(axis=0) for key in ("p", "u"))
            nothing = np.empty(0)
            return Mean(x[on], p, u, nothing, nothing, float(x[on][-1]), f"probe {name}")
    raise HiresxError(
        f"{run.path} has neither averages nor a probe of p and u along the axis",
        "add [average] to the case, with a start after the flow has developed, and run it again",
    )


def _of_averages(run: Run, limit: float) -> Mean:
    tree = run.averages
    pieces = _flat(tree.hiresx.pieces("p", "u"))
    axis, _ = cut.line(pieces, "y", 0.0)
    behind = (axis["x"] > 0) & (axis["x"] <= limit)
    x, p, u = (axis[name][behind] for name in ("x", "p", "u"))
    stations, widths = [], []
    for at in np.linspace(0.5, x[-1], _STATIONS):
        across, _ = cut.line(pieces, "x", float(at))
        width = _half_width(across["y"], across["u"])
        if width is not None:
            stations.append(float(at))
            widths.append(width)
    return Mean(x, p, u, np.array(stations), np.array(widths), float(x[-1]), "averages")


def _flat(pieces: list[cut.Piece]) -> list[cut.Piece]:
    """Return pieces (nk, nj, ni) as (nj, ni): the mean over k if all planes have the same x and y, otherwise the plane
    z = 0."""
    if all(np.ptp(piece[axis], axis=0).max() < 1e-9 for piece in pieces for axis in "xy"):
        return [{name: values.mean(axis=0) for name, values in piece.items()} for piece in pieces]
    return cut.plane(pieces, "z", 0.0)


def _half_width(y: np.ndarray, u: np.ndarray) -> float | None:
    if not y[0] < 0 < y[-1]:
        return None
    half, sides = 0.5 * np.interp(0.0, y, u), []
    for side in (y >= 0, y <= 0):
        distance, values = np.abs(y[side]), u[side]
        order = np.argsort(distance)
        distance, values = distance[order], values[order]
        below = np.flatnonzero(values < half)
        if not below.size or below[0] == 0:
            return None
        n = below[0]
        part = (values[n - 1] - half) / (values[n - 1] - values[n])
        sides.append(distance[n - 1] + part * (distance[n] - distance[n - 1]))
    return float(np.mean(sides))


@dataclass(frozen=True)
class DiscardedMaximum:
    """A maximum of the pressure on the axis of a jet that does not end a shock cell. `at`: its x. `length`: its
    distance from the preceding maximum that ends a cell. `rise`: the rise of the pressure to this maximum. `why`: the
    reason, as text."""

    at: float
    length: float
    rise: float
    why: str


@dataclass(frozen=True)
class Cells:
    """The shock cells of a jet, from the mean pressure on the axis. `ends`: the positions of the maxima of the pressure
    at which cells end. `expansions`: the positions of the minima before these maxima. `lengths`: the lengths of the
    cells; the first cell begins at the exit, and each later cell at the end of the cell before it. `depths`: the
    pressure at each end minus the pressure at the minimum before it. `discarded`: maxima at which no cell ends."""

    ends: list[float]
    expansions: list[float]
    lengths: list[float]
    depths: list[float]
    discarded: list[DiscardedMaximum]

    @property
    def mean(self) -> float | None:
        """Mean length of the shock cells, in units of the length scale L; None if there are no cells."""
        return float(np.mean(self.lengths)) if self.lengths else None

    @property
    def deviation(self) -> float | None:
        """Standard deviation of the lengths of the shock cells, in units of the length scale L; None for fewer than two
        cells."""
        return float(np.std(self.lengths, ddof=1)) if len(self.lengths) > 1 else None


def cells(flow: Mean, ambient: float, sheet: float, exit_pressure: float | None = None) -> Cells:
    """Return the shock cells of a jet, from the mean pressure on the axis. `flow`: the mean flow. `ambient`: ambient
    pressure, in rho_ref c_ref^2. `sheet`: length of a cell by the vortex-sheet model, in units of the length scale L.
    `exit_pressure`: pressure at the nozzle exit, in rho_ref c_ref^2; by default `ambient`.

    Positions are the extrema of a cubic spline. Extrema smaller than 3 % of the ambient pressure are ignored. Of maxima
    closer than 0.5 `sheet` the highest is used. The pressure must rise in the first cell by at least 0.2 times the
    difference between exit and ambient pressure, and in each later cell by at least 0.2 times the rise in the cell
    before it. A cell must not be longer than 1.5 `sheet`, and its length must be within a factor of 1.4 of that of the
    cell before it. A maximum whose cell does not satisfy these conditions ends no cell, nor does any maximum behind
    it."""
    fine = np.linspace(flow.x[0], flow.x[-1], max(4000, 8 * flow.x.size))
    p = needs.scipy("interpolate").CubicSpline(flow.x, flow.p)(fine)
    find = needs.scipy("signal").find_peaks
    high, _ = find(p, prominence=CELL * ambient)
    low, _ = find(-p, prominence=CELL * ambient)
    maxima: list[int] = []
    for n in high.tolist():
        # A cell is an expansion and the compression that follows it.
        if not (low < n).any():
            continue
        before = fine[maxima[-1]] if maxima else 0.0
        if maxima and fine[n] - before < SHORTEST * sheet:
            maxima[-1] = n if p[n] > p[maxima[-1]] else maxima[-1]
        else:
            maxima.append(n)
    ends: list[float] = []
    expansions: list[float] = []
    lengths: list[float] = []
    depths: list[float] = []
    discarded: list[DiscardedMaximum] = []
    least, before = FIRST * abs((exit_pressure or ambient) - ambient), 0
    for n in maxima:
        within = low[(low > before) & (low < n)]
        deepest = int(within[np.argmin(p[within])]) if within.size else before
        at, rise = float(fine[n]), float(p[n] - p[deepest])
        length = at - (ends[-1] if ends else 0.0)
        why = "it lies behind the last shock cell" if discarded else _mismatch(length, rise, lengths, least, sheet)
        if why:
            discarded.append(DiscardedMaximum(at, length, rise, why))
            continue
        ends.append(at)
        expansions.append(float(fine[deepest]))
        lengths.append(length)
        depths.append(rise)
        least, before = FADES * rise, n
    return Cells(ends, expansions, lengths, depths, discarded)


def _mismatch(length: float, rise: float, lengths: Sequence[float], least: float, sheet: float) -> str:
    """Return the reason why a maximum with a cell of this length and rise, behind others of the `lengths`, does not end
    a shock cell; "" if it does."""
    if rise < least:
        of = "of the cell before it" if lengths else "of a cell of this exit pressure"
        return f"its rise {rise:.3g} is less than {least:.3g}, {FADES if lengths else FIRST:g} {of}"
    if length > LONGEST * sheet:
        return f"it is {length:.3g} long, more than {LONGEST:g} times the {sheet:.3g} of the vortex sheet"
    if lengths and not 1 / STEADY <= length / lengths[-1] <= STEADY:
        return f"it is {length:.3g} long, the cell before it {lengths[-1]:.3g}"
    return ""


def core_end(flow: Mean, velocity: float) -> float | None:
    """Return the coordinate x of the end of the potential core, in units of the length scale L: beyond it the mean u on
    the axis stays below 0.95 times `velocity`, the velocity of the fully expanded jet. None if there is no such x.
    `flow`: the mean flow."""
    above = np.flatnonzero(flow.u >= CORE * velocity)
    if not above.size or above[-1] + 1 >= flow.u.size:
        return None
    n = int(above[-1])
    part = (flow.u[n] - CORE * velocity) / (flow.u[n] - flow.u[n + 1])
    return float(flow.x[n] + part * (flow.x[n + 1] - flow.x[n]))


def spreading(flow: Mean, behind: float | None) -> dict[str, Any] | None:
    """Return the spreading rate and the virtual origin of a jet, from a fit of its half-width by rate (x - virtual
    origin). The fit is by least squares over the stations downstream of x = `behind`, the end of the core (None if it
    has no end). Uncertainties are half of the 95 % interval of the jackknife over five groups of neighbouring stations,
    one group left out at a time (Kuensch, Ann. Stat. 17 (1989) 1217), because errors of neighbours are correlated.
    `flow`: the mean flow. The result is None without half-widths, otherwise a dictionary: `rate`, `virtual_origin` (in
    L), their uncertainties `rate_uncertainty` and `virtual_origin_uncertainty`, the range of the fit `from` and `to`,
    and the fitted `half_widths` at these two x.

    A value that the fit does not determine is None, and `why` gives the reason. The rate is None if the core does not
    end, if there are fewer than two stations in a group, if the stations extend over less than four half-widths, and if
    its uncertainty exceeds half of the rate. The origin is None in these cases, and if its uncertainty exceeds the
    length over which there are stations."""
    if not flow.station.size:
        return None
    found: dict[str, Any] = dict.fromkeys(("rate", "rate_uncertainty", "virtual_origin", "virtual_origin_uncertainty"))
    kept = flow.station >= (flow.station[-1] if behind is None else behind)
    x, width = flow.station[kept], flow.half_width[kept]
    if behind is None or x.size < 2 * _GROUPS:
        why = "the core does not end" if behind is None else f"there are {x.size} half-widths behind the core"
        return {**found, "from": behind, "to": float(flow.station[-1]), "half_widths": [], "why": why}
    reach, mean = float(x[-1] - x[0]), float(width.mean())
    runs = np.array_split(np.arange(x.size), _GROUPS)
    fits = [np.polyfit(x, width, 1), *(np.polyfit(np.delete(x, run), np.delete(width, run), 1) for run in runs)]
    (rate, at), *others = fits
    apart = float(needs.scipy("stats").t.ppf(0.975, _GROUPS - 1)) * np.sqrt((_GROUPS - 1) ** 2 / _GROUPS)
    sure = found["rate_uncertainty"] = float(apart * np.std([one[0] for one in others], ddof=1))
    found |= {"from": float(x[0]), "to": float(x[-1]),
              "half_widths": [float(rate * end + at) for end in (x[0], x[-1])]}  # fmt: skip
    if reach < REACHES * mean:
        return {**found, "why": f"the stations reach over {reach / mean:.2g} half-widths, {REACHES} are needed"}
    if not sure <= SURE * abs(rate):
        return {**found, "why": f"it grows by {rate:.2g}, uncertain by {sure:.2g}"}
    found["rate"] = float(rate)
    origins = [-one[1] / one[0] for one in others]
    unsure = found["virtual_origin_uncertainty"] = float(apart * np.std(origins, ddof=1))
    if unsure > reach:
        return {**found, "why": f"the virtual origin is uncertain by {unsure:.2g}, the stations reach over {reach:.2g}"}
    return {**found, "virtual_origin": float(-at / rate), "why": ""}
