"""Figures 13 to 15 of HiResX's paper (Ye et al., Advances in Aerodynamics 4:7 (2022)) from stored results:

    python docs/make/paper_figures.py docs/results/*.json --out docs

writes loop-modes-sizes.png, a GPU against one core over the size of the grid (Fig. 13); loop-modes-parts.png, the
parts of a step (Fig. 14); and loop-modes-gpus.png, one grid on several GPUs (Fig. 15). Results of other kinds are
passed over.
"""

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import grid_sizes
import numpy as np
import pages

from hiresx.errors import HiresxError
from hiresx.output.show import picture_file
from hiresx.solver import default_plan

Result = Mapping[str, Any]
# Points and their rates, in order of the points.
Curve = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]

CORE = "one core"
STAGES = 3
# What a kernel is part of, and how often a step runs it.
PARTS = {
    "inviscid terms": (
        STAGES,
        ("inviscid_sweep", "sweep_along", "sweep_across", "interpolate", "physical_flux", "numerical_flux",
         "flux_difference"),
    ),
    "viscous terms": (STAGES, ("viscous_primitives", "viscous_flux", "viscous_difference")),
    "time advance": (STAGES, ("update", "viscous_update")),
    "ghosts": (STAGES, ("copy_halo", "copy_halo_rows")),
    "time step": (1, ("column_radii", "reduce")),
    "residual": (1, ("column_norms",)),
}  # fmt: skip


def rates(results: Iterable[Result]) -> dict[str, Curve]:
    """Points x steps per second, FP64 and viscous, over the number of points, by plan on a GPU and of one core."""
    found: dict[str, dict[int, float]] = {}
    for result in results:
        if result["kind"] not in (grid_sizes.KIND, "device-rhs", "device-loops"):
            continue
        on_core = result["backend"] == "cpu"
        if not on_core and result["backend"] != "cuda":
            continue
        for row in result["rows"]:
            if row.get("precision") != "fp64" or not row.get("viscous", True) or "point_steps_per_s" not in row:
                continue
            plan = row.get("plan") or result.get("plan") or default_plan(result["backend"])
            name = CORE if on_core else f"{gpus_of(result)}, plan {plan}"
            found.setdefault(name, {})[row["points"]] = row["point_steps_per_s"]
    return {
        name: (np.array(sorted(curve), float), np.array([curve[points] for points in sorted(curve)]))
        for name, curve in found.items()
    }


def gpus_of(result: Result) -> str:
    """The GPU of a result in words."""
    return (
        ", ".join(pages.count_each(gpu["name"].removeprefix("NVIDIA ") for gpu in result["hardware"]["gpus"][:1]))
        or "GPU"
    )


def speedups(curves: Mapping[str, Curve]) -> dict[str, Curve]:
    """Of the curves of a GPU: how many times the rate of one core at as many points; beyond what a core was measured
    at, that of its nearest size."""
    points, core = curves[CORE]
    return {
        name: (at, rate / np.exp(np.interp(np.log(at), np.log(points), np.log(core))))
        for name, (at, rate) in curves.items()
        if name != CORE
    }


def parts(kernels: Iterable[Result]) -> dict[str, float]:
    """Nanoseconds per point of each part of a step, of the rows of `kernel_times.measure` of one plan."""
    took = dict.fromkeys(PARTS, 0.0)
    for row in kernels:
        for part, (times, names) in PARTS.items():
            if row["kernel"] in names:
                took[part] += times * row["ns_per_point"]
    return took


def steps_by_part(results: Iterable[Result]) -> dict[str, dict[str, float]]:
    """`parts` in FP64 of what was measured, by device and plan."""
    found = {}
    for result in results:
        if result["kind"] == "bench" and result["backend"] == "cpu":
            for plan in dict.fromkeys(row["plan"] for row in result["kernels"]):
                rows = [row for row in result["kernels"] if (row["plan"], row["precision"]) == (plan, "fp64")]
                found[f"{CORE}, {plan}"] = parts(rows)
        if result["kind"] == "device-stage" and result["backend"] == "cuda":
            plan = result.get("plan") or default_plan("cuda")
            for row in result["rows"]:
                if row["precision"] == "fp64":
                    found[f"{gpus_of(result)}, {plan}"] = parts(row["kernels"])
    return found


def strong(results: Iterable[Result]) -> list[tuple[str, list[int], list[float]]]:
    """Name, numbers of GPUs and speed-ups of each stored strong scaling in FP64 on more than one size of job."""
    found = []
    for result in results:
        if result["kind"] != "scaling" or result["mode"] != "strong" or result["backend"] != "cuda":
            continue
        rows = result["rows"]
        if len({row["ranks"] for row in rows}) < 2 or "fp32" in result["case"]:
            continue
        day = result["date"][:10]
        name = f"{rows[0]['points'] / 1e6:.1f}e6 points, {day}"
        found.append((name, [row["ranks"] for row in rows], [row["speedup"] for row in rows]))
    return found


def draw_sizes(results: Sequence[Result]) -> Any:
    """Fig. 13: rates and speed-ups over the number of points."""
    curves = rates(results)
    if CORE not in curves or len(curves) < 2:
        raise HiresxError(
            "there is no rate of one core, or of a GPU, over the size of the grid",
            "python docs/make/grid_sizes.py --json, python docs/make/measure_gpu.py --parts rhs,loops",
        )
    figure = picture_file.figure(3.0)
    left, right = figure.subplots(1, 2)
    colours = picture_file.distinct_colours(len(curves))
    faster = speedups(curves)
    for (name, (points, rate)), colour in zip(sorted(curves.items()), colours, strict=True):
        left.loglog(points, rate / 1e6, "o-", ms=3, color=colour, label=name)
        if name in faster:
            right.semilogx(*faster[name], "o-", ms=3, color=colour, label=name)
    left.set_ylabel("$10^6$ points x steps per s")
    right.set_ylabel("times one core")
    right.set_ylim(0)
    for ax in (left, right):
        ax.set_xlabel("points")
        ax.grid(True, lw=0.3, color="0.85")
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)
    return figure


def draw_parts(results: Sequence[Result]) -> Any:
    """Fig. 14: what share of a step each part is, and how many times faster a GPU is at it."""
    steps = steps_by_part(results)
    cores = [name for name in steps if name.startswith(CORE)]
    if not cores or len(cores) == len(steps):
        raise HiresxError(
            "there are no kernels of one core, or of a GPU",
            "python docs/make/kernel_costs.py --backend cpu --json, python docs/make/measure_gpu.py --parts stage",
        )
    figure = picture_file.figure(3.4)
    left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
    colours = dict(zip(PARTS, picture_file.distinct_colours(len(PARTS)), strict=True))
    for place, took in enumerate(steps.values()):
        begin, total = 0.0, sum(took.values())
        for part, ns in took.items():
            share = 100 * ns / total
            left.barh(place, share, left=begin, color=colours[part], label=part if place == 0 else None)
            if share > 6:
                left.text(begin + share / 2, place, f"{share:.0f}", ha="center", va="center", color="white", fontsize=7)
            begin += share
    left.set_yticks(range(len(steps)), [name.replace(", ", "\n") for name in steps])
    left.invert_yaxis()
    left.set_xlabel("share of a step, %")
    left.set_xlim(0, 100)
    pairs = _pairs(steps)
    height = 0.8 / len(pairs)
    for number, (name, gpu, core) in enumerate(pairs):
        at = np.arange(len(PARTS)) + height * (number - (len(pairs) - 1) / 2)
        times = [core[part] / gpu[part] if gpu[part] else 0.0 for part in PARTS]
        right.barh(at, times, height, color=picture_file.distinct_colours(len(pairs))[number], label=name)
    right.set_yticks(range(len(PARTS)), list(PARTS))
    right.invert_yaxis()
    right.set_xlabel("times one core")
    right.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2)
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=6, columnspacing=1.0)
    return figure


def _pairs(steps: Mapping[str, Mapping[str, float]]) -> list[tuple[str, Mapping[str, float], Mapping[str, float]]]:
    """Of every plan of a GPU: its name, its parts, and those of the core's plan of that name or else of its own."""
    found = []
    for name, took in steps.items():
        if not name.startswith(CORE):
            plan = name.rpartition(", ")[2]
            core = plan if f"{CORE}, {plan}" in steps else default_plan("cpu")
            if f"{CORE}, {core}" in steps:
                found.append((f"{plan} / {core}", took, steps[f"{CORE}, {core}"]))
    return found


def draw_gpus(results: Sequence[Result]) -> Any:
    """Fig. 15: speed-ups of a grid on several GPUs."""
    curves = strong(results)
    if not curves:
        raise HiresxError(
            "there is no strong scaling on GPUs", "hiresx scaling CASE --backend cuda --ranks 1,2,4 --json"
        )
    figure = picture_file.figure(2.8, width=4.6)
    ax = figure.subplots()
    most = max(max(ranks) for _, ranks, _ in curves)
    ax.plot([1, most], [1, most], "k:", label="ideal")
    for (name, ranks, speedup), colour in zip(curves, picture_file.distinct_colours(len(curves)), strict=True):
        ax.plot(ranks, speedup, "o-", ms=3, color=colour, label=name)
    ax.set_xlabel("GPUs")
    ax.set_ylabel("speed-up")
    ax.grid(True, lw=0.3, color="0.85")
    picture_file.legend_beside(ax)
    return figure


FIGURES: dict[str, Callable[[Sequence[Result]], Any]] = {
    "loop-modes-sizes": draw_sizes,
    "loop-modes-parts": draw_parts,
    "loop-modes-gpus": draw_gpus,
}


def read(paths: Iterable[Path]) -> list[Result]:
    """The results in the files that have a kind, oldest first. Raises HiresxError for a file that is no JSON."""
    found = []
    for path in paths:
        try:
            result = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise HiresxError(f"{path} cannot be read: {error}", "name files of results") from None
        if isinstance(result, dict) and "kind" in result:
            found.append(result)
    return sorted(found, key=lambda result: result.get("date") or "")


def draw(paths: Iterable[Path], folder: Path) -> list[Path]:
    """Draw all figures from the results `paths` and write them to `folder`. Raises HiresxError where results are
    missing, for want of matplotlib and for what cannot be written."""
    picture_file.require_matplotlib()
    results = read(paths)
    written = []
    with picture_file.style():
        for name, make in FIGURES.items():
            written.append(picture_file.save(make(results), folder / f"{name}.png"))
    return written


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns its exit status."""

    def make(results: Sequence[Path], out: Path) -> None:
        for path in draw(results, out):
            print(path)

    return pages.command_line("paper_figures.py", __doc__, make, arguments, "folder for the pictures")


if __name__ == "__main__":
    sys.exit(main())
