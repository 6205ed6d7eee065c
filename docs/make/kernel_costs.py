"""Times each kernel inside a stage, where other kernels run before and after it, beside the ceilings of the device.

    python docs/make/kernel_costs.py --backend cpu --json > docs/results/performance-cpu.json
    python docs/make/kernel_costs.py --compare old.json --roofline kernels.png

The result is that of `hiresx bench`, with the kernels of a stage by every plan, their least bytes and their operations,
and the rates at which the device copies and computes. --compare puts it beside an earlier one, figure by figure.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import comparison
import kernel_times
import roofline

from hiresx import bench
from hiresx.bench import PRECISIONS, rhs
from hiresx.cli import bench as command
from hiresx.cli import terminal
from hiresx.device import backend as find_backend
from hiresx.errors import HiresxError
from hiresx.solver.case_configuration import configuration


def run(
    backend: str = "auto",
    points: int = 64,
    repeats: int = 5,
    threads: Sequence[int] | None = None,
    precisions: Sequence[str] = PRECISIONS,
    start_up: bool = True,
) -> dict[str, Any]:
    """The result of `hiresx.bench.run` with `kernels` (see `kernel_times.measure` and `roofline.rate`) and the device's
    ceilings `copy_gb_per_s` and, by precision, `gflop_per_s`. Raises HiresxError as `hiresx.bench.run`."""
    result = bench.run(backend, points, repeats, threads, precisions, start_up)
    device = find_backend(backend)
    result["copy_gb_per_s"] = kernel_times.copy_bandwidth(device, repeats)
    with rhs.only(device, rhs.thread_counts(device, threads)[0]):
        result["kernels"] = [
            row
            for precision in precisions
            for plan in kernel_times.plans(device)
            for row in kernel_times.measure(device, points, precision, plan, repeats)
        ]
        # As many threads as the kernels had.
        result["gflop_per_s"] = {
            name: kernel_times.arithmetic_rate(device, configuration(rhs.flow(points, True, name)), repeats)
            for name in precisions
        }
    roofline.rate(result)
    return result


def show(result: dict[str, Any]) -> None:
    """Print a result of `run` as tables."""
    command.show(result)
    copied = result["copy_gb_per_s"]
    for plan, precision in dict.fromkeys((row["plan"], row["precision"]) for row in result["kernels"]):
        rows = [row for row in result["kernels"] if (row["plan"], row["precision"]) == (plan, precision)]
        thread = "" if rows[0]["threads"] is None else f", {rows[0]['threads']} thread(s)"
        terminal.table(
            f"Kernels of a viscous stage, plan {plan}, {precision}{thread}; copying runs at {copied:.0f} GB/s, "
            f"multiply-adds at {result['gflop_per_s'][precision]:.0f} Gflop/s",
            [
                "kernel",
                "along",
                "launches",
                "ns per point",
                "least bytes per point",
                "GB/s",
                "of copying",
                "operations per point",
                "Gflop/s",
                "of arithmetic",
            ],
            [
                (
                    row["kernel"],
                    row["direction"] or "",
                    row["launches"],
                    command.digits(row["ns_per_point"]),
                    "" if row["bytes_per_point"] is None else round(row["bytes_per_point"]),
                    command.digits(row["gb_per_s"]),
                    "" if row["gb_per_s"] is None else f"{row['gb_per_s'] / copied:.0%}",
                    "" if row["operations_per_point"] is None else round(row["operations_per_point"]),
                    command.digits(row["gflop_per_s"]),
                    ""
                    if row["gflop_per_s"] is None
                    else f"{row['gflop_per_s'] / result['gflop_per_s'][precision]:.0%}",
                )
                for row in rows
            ],
        )
    if "compared" in result:
        _show_compared(result["compared"])


def _show_compared(compared: dict[str, Any]) -> None:
    for line in compared["unlike"]:
        terminal.say(f"different: {line}")
    terminal.table(
        f"Beside the result of {compared['with']}: time now over time then, below 1 is faster",
        ["", "ns then", "ns now", "ratio", "calibration loop", ""],
        [
            (
                pair["name"],
                command.digits(pair["before"]),
                command.digits(pair["now"]),
                f"{pair['ratio']:.3f}",
                f"{pair['loop']:.3f}",
                {None: "", True: "samples apart", False: "samples overlap"}[pair["apart"]],
            )
            for pair in compared["pairs"]
        ],
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns its exit status."""
    parser = argparse.ArgumentParser(prog="python docs/make/kernel_costs.py", description=__doc__.partition("\n")[0])
    parser.add_argument("--backend", default="auto", help="as in hiresx bench")
    parser.add_argument("--points", type=int, default=64, metavar="N", help="nodes in each direction of the block")
    parser.add_argument("--repeats", type=int, default=5, metavar="N", help="every figure is the median of N")
    parser.add_argument("--threads", metavar="N[,N...]", help="threads on a CPU; one and all if absent")
    parser.add_argument("--precision", metavar="fp64|fp32", help="both if absent")
    parser.add_argument("--compare", type=Path, metavar="OLD.json", help="beside an earlier result of --json")
    parser.add_argument("--roofline", type=Path, metavar="FILE.png", help="draw the kernels beside the ceilings")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args(arguments)
    try:
        before = None if options.compare is None else comparison.read(options.compare)
        threads, precisions = command.thread_counts(options.threads), command.precisions(options.precision)
        result = run(options.backend, options.points, options.repeats, threads, precisions)
        if before is not None:
            result["compared"] = {
                "with": before["date"],
                "unlike": comparison.differences(before, result),
                "pairs": [pair._asdict() | {"ratio": pair.ratio} for pair in comparison.pairs(before, result)],
            }
        if options.roofline is not None:
            roofline.draw(result, options.roofline)
    except HiresxError as error:
        print(error, file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps(result, indent=1))
    else:
        show(result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
