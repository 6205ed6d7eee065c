"""The mean jet: shock cells on its axis, the end of its core, its half-width and how that grows.

Scales: nozzle height h, ambient density and sound speed; the exit at x = 0, the axis at y = 0.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hiresx.errors import HiresxError
from hiresx.output.fields import cut
from hiresx.results import Run, needs

# Prominence of a cell's pressure on the axis, in ambient pressures; and how many velocity ratios end the core.
CELL = 0.03
CORE = 0.95
# What a cell is long, at least and at most, in cells of the vortex sheet. Maxima that lie nearer to each other end one
# cell (a shock that meets the axis before the pressure is highest); a rise that is farther is none of the train.
SHORTEST, LONGEST = 0.5, 1.5
_STATIONS = 40


@dataclass(frozen=True, eq=False)
class Mean:
    """The mean flow on the axis x > 0, (n,) each, and the half-widths at `station` (m,): where the mean u is half of
    that on the axis, the mean of both sides. Empty where only probes told the axis. `source`: where it is from."""

    x: np.ndarray
    p: np.ndarray
    u: np.ndarray
    station: np.ndarray
    half_width: np.ndarray
    end: float
    source: str


def analysed_to(run: Run) -> float:
    """Where the sponge behind the jet begins, or infinity."""
    starts = [
        s["start"]
        for s in run.case.get("sponge") or ()
        if s["axis"] == "x" and s["end"] > s["start"] and s["start"] > 0
    ]
    return float(min(starts, default=np.inf))


def mean(run: Run, start: float | None = None, end: float | None = None) -> Mean:
    """The mean flow of a run: of its averages (in space also over the span, where the grid is the same in all of it,
    else in the plane z = 0),
    or of a probe along the axis from `start` to `end`. Raises HiresxError where it has neither."""
    limit = analysed_to(run)
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
    """Pieces (nk, nj, ni) as (nj, ni): the mean over k, where all planes have the same x and y; else z = 0."""
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
class Cells:
    """Shock cells: `ends`, where the mean pressure on the axis has its maxima; `expansions`, its minima before them;
    `lengths` of the cells, the first from the exit, each other one from maximum to maximum; `depths`, the pressure at
    the maximum less that at the minimum before it."""

    ends: list[float]
    expansions: list[float]
    lengths: list[float]
    depths: list[float]

    @property
    def mean(self) -> float | None:
        """Of the lengths, None without cells."""
        return float(np.mean(self.lengths)) if self.lengths else None

    @property
    def spread(self) -> float | None:
        """Standard deviation of the lengths over the cells, None for fewer than two."""
        return float(np.std(self.lengths, ddof=1)) if len(self.lengths) > 1 else None


def cells(flow: Mean, ambient: float, sheet: float) -> Cells:
    """The cells of a mean flow on the axis; `sheet`: the length of one by the vortex sheet, in L.

    Extrema of less than CELL ambient pressures are none; of maxima less than SHORTEST sheets apart the highest one
    counts; where one lies more than LONGEST sheets behind the one before, the train has ended. Places are those of the
    extrema of a cubic spline.
    """
    fine = np.linspace(flow.x[0], flow.x[-1], max(4000, 8 * flow.x.size))
    p = needs.scipy("interpolate").CubicSpline(flow.x, flow.p)(fine)
    find = needs.scipy("signal").find_peaks
    high, _ = find(p, prominence=CELL * ambient)
    low, _ = find(-p, prominence=CELL * ambient)
    ends: list[int] = []
    for n in high.tolist():
        # A cell is an expansion and the compression that follows it.
        if not (low < n).any():
            continue
        before = fine[ends[-1]] if ends else 0.0
        if fine[n] - before > LONGEST * sheet:
            break
        if ends and fine[n] - before < SHORTEST * sheet:
            ends[-1] = n if p[n] > p[ends[-1]] else ends[-1]
        else:
            ends.append(n)
    expansions, depths = [], []
    for before, n in zip([0, *ends], ends, strict=False):
        within = low[(low > before) & (low < n)]
        deepest = int(within[np.argmin(p[within])])
        expansions.append(float(fine[deepest]))
        depths.append(float(p[n] - p[deepest]))
    places = fine[ends].tolist()
    return Cells(places, expansions, np.diff([0.0, *places]).tolist(), depths)


def core_end(flow: Mean, velocity: float) -> float | None:
    """Where the mean u on the axis falls below CORE of the fully expanded `velocity` for good; None if it does not."""
    above = np.flatnonzero(flow.u >= CORE * velocity)
    if not above.size or above[-1] + 1 >= flow.u.size:
        return None
    n = int(above[-1])
    part = (flow.u[n] - CORE * velocity) / (flow.u[n] - flow.u[n + 1])
    return float(flow.x[n] + part * (flow.x[n + 1] - flow.x[n]))


def spreading(flow: Mean, behind: float | None) -> dict[str, Any] | None:
    """Growth of the half-width with x by least squares over the stations `behind` the core (over all, if it does not
    end); None for fewer than four."""
    kept = flow.station >= (0.0 if behind is None else behind)
    if kept.sum() < 4:
        kept = np.ones(flow.station.size, bool)
    if kept.sum() < 4:
        return None
    rate, at = np.polyfit(flow.station[kept], flow.half_width[kept], 1)
    return {"rate": float(rate), "virtual_origin": float(-at / rate) if rate else None,
            "from": float(flow.station[kept][0]), "to": float(flow.station[kept][-1])}  # fmt: skip
