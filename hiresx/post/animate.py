"""`hiresx post animate`: an animation of one variable, MP4 or GIF, from all fields of a run."""

from pathlib import Path
from typing import Any

import numpy as np

from hiresx.output.fields import field_file
from hiresx.output.show import run_plot
from hiresx.output.show.look import Look
from hiresx.post.result import as_run, file_stem

# Number of frames from which the colours are chosen.
_SAMPLED = 7
# Dots per inch: a page is then 1120 pixels wide.
_STYLE = {"figure.dpi": 160}


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
    """Write an animation of `variable`, the name of a stored or derived variable, from the fields of `run` (a folder or
    the result of `hiresx.open`), and return the path of the file. `out`: a .mp4 or .gif file, by default in RUN/post.
    `start` and `end`: the first and the last time, in units of L / c_ref (length scale over sound speed). `every`: if
    it is n, every n-th of the stored fields is used. `fps`: frames per second. `subset`: the name of an
    `[[output.subset]]`, by default the whole fields. `look`: the appearance. All frames have the same colours and axes.
    The file is replaced only when all frames are written. Raises HiresxError for missing fields, and if there is no
    encoder."""
    run, look = as_run(run), look or Look()
    target = run.path / "post" / f"{file_stem('animate', variable)}.mp4" if out is None else Path(out)
    paths = run.files(-np.inf if start is None else start, np.inf if end is None else end, every, subset)
    sizes = field_file.describe(paths[-1])["blocks"].values()
    in_space = any(min(shape) > 1 for shape in sizes)
    chosen = np.unique(np.linspace(0, len(paths) - 1, min(_SAMPLED, len(paths))).astype(int))
    return run_plot.animate_files(
        paths, target, fps, variable, look.plane or ("z" if in_space else None), look=look, style=_STYLE,
        sampled=[paths[n] for n in chosen],
    )  # fmt: skip
