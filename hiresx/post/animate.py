"""`hiresx post animate`: one variable of all fields of a run as a film, MP4 or GIF."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.output.fields import derived
from hiresx.output.show import animation, colours, picture_file, raster
from hiresx.output.show.look import Look
from hiresx.post import view
from hiresx.post.result import opened, stem
from hiresx.results import Run

# Frames of which the colours are chosen.
_SAMPLED = 7
# Dots per inch: a page is then 1120 pixels wide.
_DPI = 160


def animate(
    run: Any,
    variable: str,
    out: str | Path | None = None,
    start: float | None = None,
    end: float | None = None,
    every: int = 1,
    fps: float = 15.0,
    subset: str = "fields",
    look: Look | None = None,
) -> Path:
    """Write `variable` of the fields from `start` to `end`, of each `every`-th one, to `out` (.mp4, .gif; RUN/post if
    absent), `fps` pictures a second; colours and frame stay the same. Returns the file, which appears whole or not
    at all. Raises HiresxError for what is not there, and without an encoder."""
    run, look = opened(run), look or Look()
    derived.check([variable], "variable")
    colours.check_shades([variable], look)
    picture_file.require_matplotlib()
    target = run.path / "post" / f"{stem('animate', variable)}.mp4" if out is None else Path(out)
    animation.check(target, fps)
    window = (-np.inf if start is None else start, np.inf if end is None else end)
    series = run.series([variable], *window, every=every, subset=subset)
    times = next(iter(series.children.values()))["time"].values
    one = series.isel(time=0)
    one.attrs = series.attrs
    horizontal, vertical, pieces, where = view.flat(one, look)
    sheets = view.sheets(one, look)
    box = look.box or raster.box_of(pieces, horizontal, vertical)
    mapped = raster.raster(pieces, horizontal, vertical, box, wide=900)

    def picture(n: int) -> np.ndarray:
        held: dict[str, np.ndarray] = {}
        for name, _ in sheets:
            if name not in held:
                held[name] = np.asarray(series[name][variable].isel(time=n).values, dtype=float)
        return mapped([sheet(held[name]) for name, sheet in sheets])

    chosen = np.unique(np.linspace(0, len(times) - 1, min(_SAMPLED, len(times))).astype(int))
    sampled = np.concatenate([picture(int(n)).ravel()[::7] for n in chosen])
    with look.style({"figure.dpi": _DPI}):
        frames = _frames(picture, times, sampled, variable, box, (horizontal, vertical, where), look, run)
        return animation.write(frames, target, fps)


def _frames(
    picture: Any, times: np.ndarray, sampled: np.ndarray, variable: str, box: raster.Box, axes: tuple[str, str, str],
    look: Look, run: Run,
) -> Iterator[np.ndarray]:  # fmt: skip
    """The pixels (height, width, 3) of each frame. The frame around it is drawn once."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    horizontal, vertical, where = axes
    norm, chosen, extend = colours.scale(variable, sampled, look)
    figure, ax = view.frame(box, horizontal, vertical, look)
    drawn = ax.imshow(
        picture(0), origin="lower", extent=box, norm=norm, cmap=chosen, interpolation="bilinear",
        interpolation_stage="data", aspect=ax.get_aspect(),
    )  # fmt: skip
    bar = figure.colorbar(drawn, cax=ax.inset_axes((1.02, 0, 0.022, 1)), extend=extend)
    bar.set_label(picture_file.symbol(variable) + colours.shaded(norm))
    heading = look.title if look.title is not None else run.title
    ax.set_title(f"{heading}{', ' + where if where else ''}", loc="left", fontsize=9)
    clock = ax.text(0.01, 0.98, "", transform=ax.transAxes, va="top", fontsize=9,
                    bbox={"fc": "white", "ec": "none", "alpha": 0.75, "pad": 2})  # fmt: skip
    canvas: Any = FigureCanvasAgg(picture_file.named(figure, run.case))
    drawn.set_animated(True)
    clock.set_animated(True)
    canvas.draw()
    figure.set_layout_engine("none")
    still = canvas.copy_from_bbox(figure.bbox)
    for n, time in enumerate(times):
        canvas.restore_region(still)
        drawn.set_data(picture(n))
        clock.set_text(picture_file.named_text(f"$t = {time:.2f}\\,L/c_\\mathrm{{ref}}$", run.case))
        ax.draw_artist(drawn)
        for spine in ax.spines.values():
            ax.draw_artist(spine)
        ax.draw_artist(clock)
        yield np.asarray(canvas.buffer_rgba())[..., :3].copy()
