"""The roofline of a device, its rates of arithmetic and of copying, and where its kernels lie (Williams, Waterman and
Patterson, Communications of the ACM 52 (2009) 65)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import operations

from hiresx.errors import HiresxError
from hiresx.output.show import picture_file

MARKS = "osD^vP*Xh<>pd8"


def rate(result: dict[str, Any]) -> None:
    """Add three numbers to every kernel of a result of `kernel_costs.run`: `operations_per_point`, `gflop_per_s`, and
    `of_ceiling`, its share of the lower of the two ceilings of the roofline (None if its bytes are unknown)."""
    for row in result["kernels"]:
        done = operations.per_point(row["plan"]).get((row["kernel"], row["direction"]))
        known = done is not None and row["bytes_per_point"] is not None
        row["operations_per_point"] = done if known else None
        row["gflop_per_s"] = done / row["ns_per_point"] if known else None
        row["of_ceiling"] = row["gflop_per_s"] / _ceiling(result, row) if known and done else None


def _ceiling(result: Mapping[str, Any], row: Mapping[str, Any]) -> float:
    intensity = row["operations_per_point"] / row["bytes_per_point"]
    return float(min(result["gflop_per_s"][row["precision"]], intensity * result["copy_gb_per_s"]))


def draw(result: Mapping[str, Any], target: Path, precision: str | None = None) -> Path:
    """Draw the kernels of the plan that the device runs, in `precision` (by default the first measured), and write the
    picture. Raises HiresxError for a result without such kernels, without matplotlib, and for a file that cannot be
    written."""
    picture_file.require_matplotlib()
    precision = precision or next(iter(result["gflop_per_s"]), None)
    plan = next((row["plan"] for row in result["kernels"]), None)
    rows = [
        row for row in result["kernels"] if (row["plan"], row["precision"]) == (plan, precision) and row["gflop_per_s"]
    ]
    if not rows or precision is None:
        raise HiresxError(
            "the result has no kernels whose arithmetic is known",
            "run python docs/make/kernel_costs.py --roofline again",
        )
    peak, copied = result["gflop_per_s"][precision], result["copy_gb_per_s"]
    intensities = [row["operations_per_point"] / row["bytes_per_point"] for row in rows]
    low, high = min(*intensities, peak / copied) / 2, max(*intensities, peak / copied) * 2
    with picture_file.style():
        figure = picture_file.figure(4.4)
        axes = figure.subplots()
        axes.loglog([low, peak / copied, high], [low * copied, peak, peak], color="black", lw=1.4)
        for words, x, y, shift, at in (
            (f"copying, {copied:.0f} GB/s", low * 1.6, low * 1.6 * copied, (8, -6), "left"),
            (f"multiply-adds, {peak:.0f} Gflop/s", high, peak, (-4, -12), "right"),
        ):
            axes.annotate(words, (x, y), xytext=shift, textcoords="offset points", fontsize=8, ha=at)
        colours = picture_file.distinct_colours(len(rows))
        for n, (row, intensity) in enumerate(zip(rows, intensities, strict=True)):
            along = f" along {row['direction']}" if row["direction"] else ""
            axes.plot(intensity, row["gflop_per_s"], MARKS[n % len(MARKS)], color=colours[n], ms=5,
                      label=f"{row['kernel']}{along}: {row['of_ceiling']:.0%}")  # fmt: skip
        axes.set(xlabel="operations per byte that must be moved", ylabel="Gflop/s", xlim=(low, high))
        axes.grid(True, which="both", lw=0.3, color="0.85")
        axes.set_title(f"{result['backend']}, plan {plan}, {precision}: share of the nearer ceiling", loc="left")
        figure.legend(loc="outside right center")
        return picture_file.save(figure, target)
