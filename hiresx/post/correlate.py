"""`hiresx post correlate`: two-point and space-time correlations along the points of a line probe, and the convection
velocity."""

from typing import Any

import numpy as np

from hiresx.errors import HiresxError
from hiresx.output.show import picture_file
from hiresx.post import lags, signal_reading
from hiresx.post.result import Result, as_run, dataset, file_stem


def correlate(
    run: Any,
    signals: str,
    start: float | None = None,
    end: float | None = None,
    at: float | None = None,
    longest: float | None = None,
    reach: float = 1.5,
) -> Result:
    """Return the correlations in space and time between the signals at the points of a line probe, and the convection
    velocity that follows from them. `run`: a folder or the result of `hiresx.open`. `signals`: "NAME.COLUMN", the names
    of the history and of one of its columns. `start`, `end`: first and last time, in units of L / c_ref (length scale
    over sound speed). `at`: the distance of the reference point from the first point, in units of the length scale L;
    by default the middle. `longest`: the largest time lag, in L / c_ref; None: at most a quarter of the time. `reach`:
    the largest distance, in L, between a point and those points downstream of it from which its convection velocity is
    computed. Raises HiresxError for a history with fewer than three points, and for signals that are missing or too
    short."""
    run = as_run(run)
    if reach <= 0 or (longest is not None and longest <= 0):
        raise HiresxError("a reach and a largest lag are above 0", "see --reach and --lag")
    hint = "correlate a probe with a line or several points"
    taken, places, distance = signal_reading.read_line(run, signals, start, end, 3, hint)
    if at is not None and not 0 <= at <= distance[-1]:
        raise HiresxError(f"no place is at the distance {at:g} from the first one", f"they reach to {distance[-1]:g}")
    reference = int(np.argmin(np.abs(distance - (distance[-1] / 2 if at is None else at))))
    span = len(taken.values) * taken.dt
    longest = min(distance[-1] / 0.5, span / 4) if longest is None else longest
    found = lags.space_time(taken.values, taken.dt, distance, reference, longest)
    velocity = lags.convection(taken.values, taken.dt, distance, reach, longest)
    two_point = found.coefficients[:, found.lag.size // 2]
    known = velocity[np.isfinite(velocity)]
    summary = {
        "run": str(run.path), "history": taken.history, "column": taken.column, "places": len(taken.labels),
        "from": float(taken.time[0]), "to": float(taken.time[-1]), "samples": len(taken.values), "dt": taken.dt,
        "resampled": taken.resampled, "reference_distance": float(distance[reference]),
        "reference_place": places[reference].tolist(),
        "integral_length": _integral(two_point, distance, reference),
        "integral_time": _integral(found.coefficients[reference], found.lag, found.lag.size // 2),
        "convection_velocity": float(np.median(known)) if known.size else None,
        "convection_quartiles": np.quantile(known, [0.25, 0.75]).tolist() if known.size else None,
        "convection_places": int(known.size),
    }  # fmt: skip
    data = dataset(
        {
            "correlation": (("place", "lag"), found.coefficients, "correlation coefficient", "1"),
            "two_point": ("place", two_point, "correlation at one time", "1"),
            "convection_velocity": ("place", velocity, "convection velocity", "c_ref"),
        },
        {
            "distance": ("place", distance, "distance from the first place", "L"),
            "lag": ("lag", found.lag, "lag behind the reference place", "L / c_ref"),
            **{axis: ("place", places[:, n], axis, "L") for n, axis in enumerate("xyz")},
        },
        title=run.title,
    )
    return Result(file_stem("correlate", signals), summary, data, lambda: _draw(data, summary), case=run.case)


def _integral(row: np.ndarray, over: np.ndarray, zero: int) -> float:
    """Return the integral of a correlation from 0 to its first zero, averaged over both sides."""
    sides = []
    for side, along in ((row[zero:], over[zero:] - over[zero]), (row[zero::-1], over[zero] - over[zero::-1])):
        if side.size > 1:
            negative = np.flatnonzero(side <= 0)
            last = int(negative[0]) if negative.size else side.size
            sides.append(float(np.trapezoid(np.append(side[:last], 0)[: last + 1], along[: last + 1])
                               if last < side.size else np.trapezoid(side, along)))  # fmt: skip
    return float(np.mean(sides)) if sides else 0.0


def _draw(data: Any, summary: dict[str, Any]) -> Any:
    figure = picture_file.figure(4.2)
    left, right = figure.subplots(1, 2, width_ratios=[1.6, 1])
    distance = data["distance"].values
    drawn = left.pcolormesh(
        data["lag"], distance, data["correlation"], cmap="RdBu_r", vmin=-1, vmax=1, shading="nearest", rasterized=True
    )
    bar = figure.colorbar(drawn, ax=left, pad=0.02)
    bar.set_label("correlation")
    velocity = summary["convection_velocity"]
    at = summary["reference_distance"]
    if velocity:
        lag = np.array([data["lag"].values[0], data["lag"].values[-1]])
        left.plot(lag, at + velocity * lag, color="k", lw=0.9, ls="--")
        left.text(0.03, 0.96, f"$u_c = {velocity:.3g}\\,c_\\mathrm{{ref}}$", transform=left.transAxes, va="top",
                  bbox={"fc": "white", "ec": "none", "alpha": 0.8, "pad": 2})  # fmt: skip
    left.set_ylim(distance[0], distance[-1])
    left.set_xlabel(r"lag $\tau\,c_\mathrm{ref}/L$")
    left.set_ylabel("distance along the line, $/L$")
    right.plot(data["two_point"], distance, color=picture_file.BLUE)
    right.axvline(0, color="0.6", lw=0.6)
    right.axhline(at, color="0.6", lw=0.6)
    right.set_ylim(distance[0], distance[-1])
    right.set_xlabel("correlation at one time")
    right.set_title(f"integral length ${summary['integral_length']:.3g}\\,L$", loc="left")
    right.grid(lw=0.3, color="0.85")
    figure.suptitle(f"{data.attrs.get('title', '')}\n{summary['history']}.{summary['column']}", fontsize=9)
    return figure
