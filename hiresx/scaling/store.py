"""A scaling experiment in files: JSON with everything, netCDF with the figures, a picture."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hiresx import optional
from hiresx.output.saved import files
from hiresx.output.saved.netcdf import LOCK, library

# name -> (what it is, unit)
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
    """The stages of a step that any row has."""
    return list(dict.fromkeys(name for row in rows for name in row["stages"]))


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Raises HiresxError when `path` cannot be written."""
    try:
        with files.replacing(path) as temporary:
            temporary.write_text(json.dumps(document, indent=1), encoding="utf-8")
    except OSError as error:
        raise files.fault(path, error) from None


def write_netcdf(path: Path, document: dict[str, Any]) -> None:
    """One dimension `run`; `ranks`, `placement` and the COLUMNS of every row. Raises HiresxError as above."""
    netCDF4 = library()

    rows = document["rows"]
    try:
        with files.replacing(path) as temporary, LOCK, netCDF4.Dataset(temporary, "w") as file:
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
    except OSError as error:
        raise files.fault(path, error) from None


def draw(path: Path, document: dict[str, Any]) -> None:
    """Step time and efficiency over ranks, measured and predicted, and the stages of the step. Raises HiresxError
    without matplotlib."""
    for name in ("matplotlib.backends.backend_agg", "matplotlib.figure"):
        optional.needed(name, "the picture needs matplotlib", "pip install 'hiresx[plot]'")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 4), layout="constrained")
    FigureCanvasAgg(figure)
    time, efficiency, parts = figure.subplots(1, 3)
    rows, predicted = document["rows"], document.get("predicted") or []
    for placement in dict.fromkeys(row["placement"] for row in rows):
        mine = [row for row in rows if row["placement"] == placement]
        ranks = [row["ranks"] for row in mine]
        label = "measured" if placement is None else placement
        middle = [1e3 * row["step_s"] for row in mine]
        spread = [
            [m - 1e3 * row["least"] for m, row in zip(middle, mine, strict=True)],
            [1e3 * row["most"] - m for m, row in zip(middle, mine, strict=True)],
        ]
        time.errorbar(ranks, middle, yerr=spread, marker="o", capsize=3, label=label)
        efficiency.plot(ranks, [100 * row["efficiency"] for row in mine], marker="o", label=label)
    if predicted:
        ranks = [row["ranks"] for row in predicted]
        time.plot(ranks, [1e3 * row["step_s"] for row in predicted], "--", marker="x", label="predicted")
        efficiency.plot(ranks, [100 * row["efficiency"] for row in predicted], "--", marker="x", label="predicted")
    for axes, what in ((time, "ms per step"), (efficiency, "efficiency / %")):
        axes.set_xlabel("ranks")
        axes.set_ylabel(what)
        axes.set_xscale("log", base=2)
        axes.grid(alpha=0.3)
        axes.legend(frameon=False)
        all_ranks = sorted({row["ranks"] for row in [*rows, *predicted]})
        axes.set_xticks(all_ranks, [str(r) for r in all_ranks])
    time.set_yscale("log")
    efficiency.set_ylim(bottom=0)
    bottom = [0.0] * len(rows)
    for name in stages(rows):
        heights = [1e3 * row["stages"].get(name, 0.0) for row in rows]
        parts.bar(range(len(rows)), heights, bottom=bottom, label=name)
        bottom = [b + h for b, h in zip(bottom, heights, strict=True)]
    parts.set_xticks(range(len(rows)), ["\n".join([str(r["ranks"]), *([r["placement"] or ""])]) for r in rows])
    parts.set_xlabel("ranks")
    parts.set_ylabel("ms per step, by stage")
    if rows:
        parts.legend(frameon=False)
    figure.suptitle(f"{document['mode']} scaling of {document['case']}")
    try:
        with files.replacing(path) as temporary:
            figure.savefig(temporary, format=path.suffix.lstrip(".") or "png", dpi=150)
    except OSError as error:
        raise files.fault(path, error) from None
