"""`hiresx post xt`: the signals at the points of a line probe as a function of position and time."""

from typing import Any

import numpy as np

from hiresx.output.show import colours, picture_file
from hiresx.post import signal_reading
from hiresx.post.result import Result, as_run, dataset, file_stem


def xt(
    run: Any, signals: str, start: float | None = None, end: float | None = None, fluctuations: bool = False
) -> Result:
    """Return the signals at the points of a line probe as a function of position and time. `run`: a folder or the
    result of `hiresx.open`. `signals`: "NAME.COLUMN", the names of the history and of one of its columns. `start` and
    `end`: the first and the last time, in units of L / c_ref (length scale over sound speed). `fluctuations`: whether
    the mean over time is subtracted at each point. Raises HiresxError for fewer than two points, and for signals that
    are missing or too short."""
    run = as_run(run)
    hint = "give a probe with a line or several points"
    taken, places, distance = signal_reading.read_line(run, signals, start, end, 2, hint)
    mean = taken.values.mean(axis=0)
    values = taken.values - mean if fluctuations else taken.values
    # Along an axis the coordinate is drawn instead of the distance from the first place.
    straight = [n for n in range(3) if np.ptp(places[:, n]) > 0]
    along, over = ("xyz"[straight[0]], places[:, straight[0]]) if len(straight) == 1 else ("distance", distance)
    rms = values.std(axis=0)
    summary = {
        "run": str(run.path), "history": taken.history, "column": taken.column, "fluctuations": fluctuations,
        "from": float(taken.time[0]), "to": float(taken.time[-1]), "samples": len(values), "dt": taken.dt,
        "resampled": taken.resampled, "places": len(taken.labels),
        "least": float(values.min()), "greatest": float(values.max()),
        "largest_rms": float(rms.max()), f"largest_rms_at_{along}": float(over[np.argmax(rms)]),
    }  # fmt: skip
    what = f"{'fluctuation of ' if fluctuations else ''}{taken.column}"
    data = dataset(
        {
            taken.column: (("time", "place"), values, what, taken.units),
            "mean": ("place", mean, f"mean of {taken.column}", taken.units),
            "rms": ("place", rms, f"root mean square of the fluctuations of {taken.column}", taken.units),
        },
        {
            "time": ("time", taken.time, "time", "L / c_ref"),
            "distance": ("place", distance, "distance from the first place", "L"),
            **{axis: ("place", places[:, n], axis, "L") for n, axis in enumerate("xyz")},
        },
        title=run.title,
    )

    def draw() -> Any:
        norm, chosen, extend = colours.default_scale(taken.column, values, fluctuations)
        figure = picture_file.figure(5.2)
        ax = figure.subplots()
        drawn = ax.pcolormesh(over, taken.time, values, cmap=chosen, norm=norm, shading="gouraud", rasterized=True)
        bar = figure.colorbar(drawn, ax=ax, pad=0.015, extend=extend, aspect=35)
        name = picture_file.symbol(taken.column)
        bar.set_label(f"{name} less its mean" if fluctuations else name)
        ax.set_xlabel(f"${along}/L$" if along in "xyz" else "distance along the line, $/L$")
        ax.set_ylabel(picture_file.TIME)
        ax.set_title(f"{run.title}\n{taken.history}", fontsize=9)
        return figure

    return Result(file_stem("xt", signals), summary, data, draw, case=run.case)
