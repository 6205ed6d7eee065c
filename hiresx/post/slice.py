"""`hiresx post slice`: one variable on a plane of fields or averages, with contour lines, zoom and colours as asked."""

from typing import Any

import numpy as np

from hiresx.errors import HiresxError
from hiresx.output.fields import derived
from hiresx.output.show import page
from hiresx.post import raster, view
from hiresx.post.result import Result, opened, stem
from hiresx.results import needs


def slice(
    run: Any,
    variable: str,
    which: int | float = -1,
    averages: bool = False,
    subset: str = "fields",
    contours: str | None = None,
    levels: int | tuple[float, ...] = 10,
    look: view.Look | None = None,
) -> Result:
    """`variable` of the fields `which` (see `Run.fields`), or of the `averages`, then moments too. `contours`:
    a variable whose lines are drawn over it, `levels` their number or their values. `look`: plane, colours, zoom.

    Raises HiresxError for what is not there.
    """
    run, look = opened(run), look or view.Look()
    names = [variable, *([contours] if contours not in (None, variable) else [])]
    if averages:
        tree = run.averages
    else:
        derived.check(names, "variable")
        tree = run.fields(which, names, subset)
    horizontal, vertical, pieces, where = view.flat(tree, look, *names)
    xarray = needs.xarray()
    blocks = list(tree.children)
    held = {}
    for n, piece in enumerate(pieces):
        name = blocks[n] if len(pieces) == len(blocks) else f"piece_{n}"
        made = {key: (("j", "i"), piece[key]) for key in names}
        held[f"/{name}"] = xarray.Dataset(made, {axis: (("j", "i"), piece[axis]) for axis in "xyz"})
    time = float(np.asarray(tree.coords["time"]))
    data = xarray.DataTree.from_dict(held)
    data.attrs = {"title": run.title, "time": time, "plane": where}
    values = np.concatenate([piece[variable].ravel() for piece in pieces])
    known = values[np.isfinite(values)]
    summary = {
        "run": str(run.path), "variable": variable, "plane": look.plane or "", "time": time,
        "step": int(tree.coords["step"]), "least": float(known.min()), "greatest": float(known.max()),
        "of": "averages" if averages else subset,
    }  # fmt: skip
    when = f"averaged over {tree.attrs['averaged_over']:.4g}" if averages else f"$t = {time:.4g}\\,L/c_\\mathrm{{ref}}$"
    title = look.title if look.title is not None else f"{run.title}\n{when}{', ' + where if where else ''}"

    def draw() -> Any:
        box = look.zoom or raster.box_of(pieces, horizontal, vertical)
        if not (box[0] < box[1] and box[2] < box[3]):
            raise HiresxError(f"a zoom to {box} shows nothing", "give least and greatest, horizontal, then vertical")
        mapped = raster.raster(pieces, horizontal, vertical, box)
        picture = mapped([piece[variable] for piece in pieces])
        if not np.isfinite(picture).any():
            raise HiresxError(f"there is no flow in {box}", "see hiresx check for where the grid is")
        norm, chosen, extend = view.scale(variable, picture, look)
        figure, ax = view.frame(box, horizontal, vertical, look)
        drawn = ax.imshow(
            picture, origin="lower", extent=box, norm=norm, cmap=chosen, interpolation="nearest", aspect=ax.get_aspect()
        )
        bar = figure.colorbar(drawn, cax=ax.inset_axes((1.02, 0, 0.022, 1)), extend=extend)
        bar.set_label(view.label(variable))
        if contours is not None:
            lines = mapped([piece[contours] for piece in pieces])
            rows, columns = lines.shape
            a = box[0] + (np.arange(columns) + 0.5) / columns * (box[1] - box[0])
            b = box[2] + (np.arange(rows) + 0.5) / rows * (box[3] - box[2])
            at = levels if isinstance(levels, int) else sorted(levels)
            ax.contour(a, b, lines, at, colors="k", linewidths=0.5, alpha=0.8)
        ax.set_xlim(box[0], box[1])
        ax.set_ylim(box[2], box[3])
        if title:
            ax.set_title(title, fontsize=9)
        return figure

    page.require_matplotlib()
    said = "averages" if averages else f"{int(tree.coords['step']):06d}"
    return Result(stem("slice", variable, (look.plane or "").replace("=", ""), said), summary, data, draw)
