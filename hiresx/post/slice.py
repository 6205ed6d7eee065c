"""`hiresx post slice`: one variable on a plane of a field or of the averages, in colours, with contour lines and
zoom."""

from typing import Any

import numpy as np

from hiresx.output.show import colours, picture_file
from hiresx.output.show.look import Look
from hiresx.post import plane_view
from hiresx.post.result import Result, as_run, file_stem
from hiresx.results import needs


def slice(
    run: Any,
    variable: str,
    which: int | float = -1,
    averages: bool = False,
    subset: str = "fields",
    look: Look | None = None,
) -> Result:
    """Return `variable` on a plane of a field of `run` (a folder or the result of `hiresx.open`), for a picture in
    colours. `which`: step (0 or more), position from the end (negative) or time (a float, in units of L / c_ref); by
    default the last field. `averages`: whether the time averages with their second moments are used instead. `subset`:
    the name of an `[[output.subset]]`, by default the whole fields. `look`: plane, colours, zoom, contour lines. Raises
    HiresxError for a variable, field or plane that does not exist."""
    run, look = as_run(run), look or Look()
    colours.check_exponent([variable], look)
    names = [variable, *([look.contours] if look.contours not in (None, variable) else [])]
    tree = run.averages if averages else run.fields(which, names, subset)
    horizontal, vertical, pieces, where = plane_view.plane_of_fields(tree, look, *names)
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
    title = look.heading(f"{run.title}\n{when}{', ' + where if where else ''}")

    def draw() -> Any:
        figure = colours.draw([(horizontal, vertical, pieces, "")], [variable], look=look)
        if title:
            figure.suptitle(title)
        return figure

    picture_file.require_matplotlib()
    source = "averages" if averages else f"{int(tree.coords['step']):06d}"
    return Result(
        file_stem("slice", variable, (look.plane or "").replace("=", ""), source),
        summary,
        data,
        draw,
        style=look.style,
        case=run.case,
    )
