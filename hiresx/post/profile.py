"""`hiresx post profile`: variables of the averages, or of the fields of one time, along lines."""

from collections.abc import Sequence
from itertools import cycle
from typing import Any

import numpy as np

from hiresx.errors import HiresxError
from hiresx.output.fields import derived, field_file
from hiresx.output.show import common_time, picture_file
from hiresx.post.result import Result, as_run, dataset, file_stem
from hiresx.results import Run

_LINES = 8


def profile(
    run: Any,
    lines: Sequence[str],
    variables: Sequence[str] = ("u",),
    which: int | float | None = None,
    others: Sequence[Any] = (),
) -> Result:
    """Return `variables` along straight `lines`, texts such as "y=0" (in three dimensions "y=0,z=0", in units of L),
    from the time averages and second moments of `run`, or from the fields of one time. `run`: a folder or the result of
    `hiresx.open`. `which`: step (0 or more), position from the end (negative) or time (a float, in units of L / c_ref);
    None for the averages. `others`: runs to compare, with fields of the same time. Values are interpolated along grid
    lines; each intersection of the line with a grid line gives one point. Raises HiresxError for unknown variables, for
    lines along different coordinates, and for fields of runs without a common time."""
    run, runs = as_run(run), [as_run(other) for other in others]
    steps: Sequence[int | float | None] = [which] * len(runs)
    if which is not None and runs:
        found = _at_one_time([run, *runs], which)
        which, steps = found[0], found[1:]
    lines = [lines] if isinstance(lines, str) else list(lines)
    if not lines or not variables:
        raise HiresxError("no line or no variable was asked for", "e.g. y=0 --variable u,rms_u")
    ours = [_of(run, line, variables, which) for line in lines]
    (along,) = {str(found.attrs["along"]) for found in ours} if len({f.attrs["along"] for f in ours}) == 1 else (None,)
    if along is None:
        raise HiresxError("the lines run along different coordinates", "ask for them one by one")
    beside = [
        (other, [_of(other, line, variables, step) for line in lines]) for other, step in zip(runs, steps, strict=True)
    ]
    longest = max(found.sizes[along] for found in ours)

    def pad(values: np.ndarray) -> np.ndarray:
        return np.concatenate([values, np.full(longest - values.size, np.nan)])

    one = len(lines) == 1
    over = along if one else ("line", "point")
    held = {}
    for name in variables:
        text = ours[0][name].attrs
        stacked = ours[0][name].values if one else np.stack([pad(found[name].values) for found in ours])
        held[name] = (over, stacked, text.get("long_name", name), text.get("units", ""))
    place = ours[0][along].values if one else np.stack([pad(found[along].values) for found in ours])
    coordinates = {along: (over, place, f"{along} coordinate", "L")}
    if not one:
        coordinates["line"] = ("line", lines, "line", "1")
    data = dataset(held, coordinates, title=run.title)
    extremes = [
        {"line": line, "variable": name, **_extremes(found[name].values, found[along].values, along)}
        for line, found in zip(lines, ours, strict=True)
        for name in variables
    ]
    source = "averages"
    if which is not None:
        tree = run.fields(which, [])
        source = f"fields of t = {float(tree.coords['time']):.6g}, step {int(tree.coords['step'])}"
    summary = {"run": str(run.path), "of": source, "along": along, "extremes": extremes}

    def draw() -> Any:
        figure = picture_file.figure(0.9 + 2.0 * len(variables))
        axes = figure.subplots(len(variables), 1, sharex=True, squeeze=False)[:, 0]
        for ax, name in zip(axes, variables, strict=True):
            for n, (line, found, colour) in enumerate(
                zip(lines, ours, cycle((picture_file.BLUE, *picture_file.OTHERS)), strict=False)
            ):
                if n >= _LINES:
                    break
                label = line if not beside else f"{run.path.resolve().name}: {line}"
                ax.plot(found[along], found[name], color=colour, label=label)
                for (other, theirs), style in zip(beside, cycle(("--", ":", "-.")), strict=False):
                    ax.plot(theirs[n][along], theirs[n][name], style, color=colour,
                            label=f"{other.path.resolve().name}: {line}")  # fmt: skip
            text = held[name]
            ax.set_ylabel(
                picture_file.symbol(name) if name in derived.VARIABLES else f"{name} [{picture_file.unit(text[3])}]"
            )
            ax.margins(x=0)
            picture_file.add_grid(ax)
        if len(axes[0].lines) > 1:
            title = f"{_LINES} of {len(lines)} lines" if len(lines) > _LINES else None
            figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, title=title)
        axes[-1].set_xlabel(f"${along}/L$" + (f"   at ${lines[0]}$" if one else ""))
        figure.suptitle(f"{run.title}\n{source}", fontsize=9)
        return figure

    return Result(file_stem("profile", *lines, *variables), summary, data, draw, case=run.case)


def _at_one_time(runs: Sequence[Run], which: int | float) -> list[int]:
    """Return the steps of fields of one time. For the first run it is the one that `which` selects; -1 means the latest
    that all runs have."""
    frames = [field_file.frames(run.path) for run in runs]
    if which != -1:
        chosen = runs[0].file(which)
        frames[0] = {step: path for step, path in frames[0].items() if path == chosen}
    latest = common_time.latest_common(frames)
    return [next(s for s, p in found.items() if p == path) for found, path in zip(frames, latest, strict=True)]


def _extremes(values: np.ndarray, place: np.ndarray, along: str) -> dict[str, float]:
    greatest = int(np.nanargmax(values))
    return {
        "least": float(np.nanmin(values)),
        "greatest": float(values[greatest]),
        f"greatest_at_{along}": float(place[greatest]),
    }


def _of(run: Any, line: str, variables: Sequence[str], which: int | float | None) -> Any:
    tree = run.averages if which is None else run.fields(which, variables)
    found = tree.hiresx.line(line, *variables)
    (along,) = found.sizes
    return found.assign_attrs(along=along)
