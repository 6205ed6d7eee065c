"""Files of a scaling experiment: JSON with all data, netCDF with the results, and a picture."""

import json
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

from hiresx.output.saved import files, library_files
from hiresx.output.saved.netcdf_library import LOCK, library
from hiresx.output.show import picture_file

# name -> (description, unit)
COLUMNS = {
    "points": ("grid points", "1"),
    "step_s": ("seconds per step, median", "s"),
    "least": ("seconds per step, least", "s"),
    "most": ("seconds per step, most", "s"),
    "speedup": ("speed-up over the fewest ranks", "1"),
    "efficiency": ("parallel efficiency", "1"),
    "point_steps_per_s": ("grid points times steps per second", "s-1"),
    "sssp": ("size times steps per second and rank", "s-1"),
    "wait": ("share of the step that ranks waited for others, mean", "1"),
    "wait_most": ("share of the step that the most waiting rank waited", "1"),
    "overlap_gain": ("longer step without overlap", "1"),
    "imbalance": ("most points of a rank over the mean", "1"),
    "sent_bytes": ("bytes to other ranks per step", "byte"),
}


def stages(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return the names of the parts of a time step (such as "boundary") that occur in any of the `rows` of a scaling
    experiment, which `scaling_table.rows` returns."""
    return list(dict.fromkeys(name for row in rows for name in row["stages"]))


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Write the result `document` of a scaling experiment as JSON to the file `path`. Raises HiresxError if it cannot
    be written."""
    files.write_text(path, json.dumps(document, indent=1))


def write_netcdf(path: Path, document: dict[str, Any]) -> None:
    """Write the rows of `document`, the result of a scaling experiment, as netCDF to the file `path`, with the
    dimension `run` and the variables `ranks`, `placement` and COLUMNS. Raises HiresxError if it cannot be written."""
    netCDF4 = library()

    rows = document["rows"]
    with library_files.replacing(path) as temporary, LOCK, netCDF4.Dataset(temporary, "w") as file:
        file.title = f"{document['mode']} scaling of {document['case']}"
        file.hardware = json.dumps(document["hardware"])
        file.createDimension("run", len(rows))
        file.createVariable("ranks", "i4", ("run",))[:] = [row["ranks"] for row in rows]
        placement = file.createVariable("placement", str, ("run",))
        for n, row in enumerate(rows):
            placement[n] = row["placement"] or ""
        for name, (meaning, unit) in COLUMNS.items():
            variable = file.createVariable(name, "f8", ("run",))
            variable.long_name, variable.units = meaning, unit
            variable[:] = [row[name] for row in rows]
        for name in stages(rows):
            variable = file.createVariable(f"stage_{name.replace(' ', '_')}_s", "f8", ("run",))
            variable.long_name, variable.units = f"seconds per step in the stage {name}, most of any rank", "s"
            variable[:] = [row["stages"].get(name, 0.0) for row in rows]


def draw(path: Path, document: dict[str, Any]) -> None:
    """Draw step time and efficiency over the number of ranks, measured and predicted, and the parts of a step, and
    write the picture to the file `path`. `document`: the result of a scaling experiment. Raises HiresxError if
    matplotlib is missing, and if the file cannot be written."""
    picture_file.require_matplotlib()
    with picture_file.style():
        picture_file.save(_figure(document), path)


def _figure(document: dict[str, Any]) -> Any:
    rows, predicted = document["rows"], document.get("predicted") or []
    figure = picture_file.figure(6.0)
    grid = figure.add_gridspec(2, 2)
    time, efficiency, parts = (
        figure.add_subplot(grid[0, 0]),
        figure.add_subplot(grid[0, 1]),
        figure.add_subplot(grid[1, :]),
    )
    colours = cycle((picture_file.BLUE, *picture_file.OTHERS))
    for placement in dict.fromkeys(row["placement"] for row in rows):
        mine = [row for row in rows if row["placement"] == placement]
        ranks, colour = [row["ranks"] for row in mine], next(colours)
        label = "measured" if placement is None else placement
        middle = [1e3 * row["step_s"] for row in mine]
        spread = [
            [m - 1e3 * row["least"] for m, row in zip(middle, mine, strict=True)],
            [1e3 * row["most"] - m for m, row in zip(middle, mine, strict=True)],
        ]
        time.errorbar(ranks, middle, yerr=spread, marker="o", ms=4, capsize=3, color=colour, label=label)
        efficiency.plot(ranks, [100 * row["efficiency"] for row in mine], marker="o", ms=4, color=colour)
    if predicted:
        ranks, how = [row["ranks"] for row in predicted], {"ls": "--", "marker": "x", "ms": 4, "color": "0.4"}
        time.plot(ranks, [1e3 * row["step_s"] for row in predicted], label="predicted", **how)
        efficiency.plot(ranks, [100 * row["efficiency"] for row in predicted], **how)
    all_ranks = sorted({row["ranks"] for row in [*rows, *predicted]})
    if all_ranks:
        # Ideal scaling, from the fewest ranks.
        first = min([*rows, *predicted], key=lambda row: row["ranks"])
        ideal = [1e3 * first["step_s"] * (first["ranks"] / r if document["mode"] == "strong" else 1) for r in all_ranks]
        time.plot(all_ranks, ideal, color="0.7", lw=0.8, zorder=0, label="without loss")
        efficiency.axhline(100, color="0.7", lw=0.8, zorder=0)
    for axes, what in ((time, "ms per step"), (efficiency, "efficiency / %")):
        axes.set_xlabel("ranks")
        axes.set_ylabel(what)
        axes.set_xscale("log", base=2)
        axes.grid(lw=0.3, color="0.85")
        axes.set_xticks(all_ranks, [str(r) for r in all_ranks])
        axes.minorticks_off()
    time.set_yscale("log")
    efficiency.set_ylim(bottom=0)
    bottom = [0.0] * len(rows)
    shades = cycle((picture_file.BLUE, *picture_file.OTHERS, "#4d8fb0", "#b0417a", "#6b8e23", "0.55", "0.75"))
    for name in stages(rows):
        heights = [1e3 * row["stages"].get(name, 0.0) for row in rows]
        parts.bar(range(len(rows)), heights, width=0.6, bottom=bottom, color=next(shades), label=name)
        bottom = [b + h for b, h in zip(bottom, heights, strict=True)]
    parts.set_xticks(range(len(rows)), ["\n".join([str(r["ranks"]), *([r["placement"] or ""])]) for r in rows])
    parts.set_xlabel("ranks")
    parts.set_ylabel("ms per step, by stage")
    if rows:
        handles, labels = parts.get_legend_handles_labels()
        # In the order in which they are stacked.
        parts.legend(handles[::-1], labels[::-1], loc="upper left", bbox_to_anchor=(1.01, 1.02), borderaxespad=0)
    figure.legend(*time.get_legend_handles_labels(), loc="outside lower center", ncols=4)
    figure.suptitle(f"{document['mode']} scaling of {document['case']}")
    return figure
