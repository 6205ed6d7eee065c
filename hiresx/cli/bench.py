"""`hiresx bench`: what the kernels and the right-hand side cost here."""

from pathlib import Path
from typing import Annotated, Any

from hiresx.cli import options, terminal
from hiresx.cli.options import option

Points = Annotated[int, option("--points", "N", "Nodes in each direction of the block.", min=7)]
Repeats = Annotated[int, option("--repeats", "N", "Every figure is the median of N.", min=1)]
Threads = Annotated[str | None, option("--threads", "N[,N...]", "Threads on a CPU; one and all if absent.")]
Precision = Annotated[str | None, option("--precision", "fp64|fp32", "Both if absent.")]
Compare = Annotated[
    Path | None, option("--compare", "OLD.json", "Beside an earlier result of --json: ratios, figure by figure.")
]
Roofline = Annotated[
    Path | None, option("--roofline", "FILE.png", "Draw the kernels beside the ceilings of this device.")
]


def bench(
    backend: options.Backend = "auto",
    points: Points = 64,
    repeats: Repeats = 5,
    threads: Threads = None,
    precision: Precision = None,
    compare: Compare = None,
    roofline: Roofline = None,
    json: options.Json = False,
) -> int:
    """Time the right-hand side, each kernel, first use and start-up on this machine."""
    with terminal.only_json(json):
        from hiresx import bench as measurements
        from hiresx.bench import comparison as comparison

        before = None if compare is None else comparison.read(compare)
        result = measurements.run(
            backend=backend,
            points=points,
            repeats=repeats,
            threads=_counts(threads),
            precisions=_precisions(precision, measurements.PRECISIONS),
        )
    if before is not None:
        result["compared"] = {
            "with": before["date"],
            "unlike": comparison.differences(before, result),
            "pairs": [pair._asdict() | {"ratio": pair.ratio} for pair in comparison.pairs(before, result)],
        }
    if json:
        terminal.print_json(result)
    else:
        show(result)
    if roofline is not None:
        from hiresx.bench import roofline as pictures

        terminal.say(f"wrote {pictures.draw(result, roofline)}")
    return 0


def _counts(text: str | None) -> list[int] | None:
    from hiresx.base.threads import check_threads
    from hiresx.errors import HiresxError

    if text is None:
        return None
    counts = [int(part) if part.strip().isdecimal() else 0 for part in text.split(",")]
    if min(counts) < 1:
        raise HiresxError(f'--threads "{text}": not a list of numbers of threads', "write for instance --threads 1,2")
    check_threads(max(counts))
    return counts


def _precisions(text: str | None, known: tuple[str, ...]) -> tuple[str, ...]:
    from hiresx.case.error_messages import did_you_mean
    from hiresx.errors import HiresxError

    if text is not None and text not in known:
        raise HiresxError(f'--precision "{text}": no such precision', did_you_mean(text, list(known), "precisions"))
    return known if text is None else (text,)


def show(result: dict[str, Any]) -> None:
    """Prints a result of `hiresx.bench.run` as tables."""
    nodes, copied = result["nodes"], result["copy_gb_per_s"]
    terminal.table(
        f"Right-hand side on {result['backend']}, {nodes} x {nodes} x {nodes} points: ns per point, "
        f"median of {result['repeats']}",
        ["precision", "", "threads", "ns", "least", "most", "processor", "calibration loop", "bytes per point"],
        [
            (
                row["precision"],
                "viscous" if row["viscous"] else "inviscid",
                row["threads"],
                *(_digits(row[key]) for key in ("ns_per_point_rhs", "least", "most", "processor_ns", "calibration_ns")),
                round(row["bytes_per_point"]),
            )
            for row in result["rhs"]
        ],
    )
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
                    _digits(row["ns_per_point"]),
                    "" if row["bytes_per_point"] is None else round(row["bytes_per_point"]),
                    _digits(row["gb_per_s"]),
                    "" if row["gb_per_s"] is None else f"{row['gb_per_s'] / copied:.0%}",
                    "" if row["operations_per_point"] is None else round(row["operations_per_point"]),
                    _digits(row["gflop_per_s"]),
                    ""
                    if row["gflop_per_s"] is None
                    else f"{row['gflop_per_s'] / result['gflop_per_s'][precision]:.0%}",
                )
                for row in rows
            ],
        )
    if "compared" in result:
        _show_compared(result["compared"])
    if "start_up" in result:
        start = result["start_up"]
        terminal.say(
            f"{start['run']}: {start['first_s']:.1f} s with no kernels compiled yet, then {start['later_s']:.1f} s"
        )


def _show_compared(compared: dict[str, Any]) -> None:
    for line in compared["unlike"]:
        terminal.say(f"different: {line}")
    terminal.table(
        f"Beside the result of {compared['with']}: time now over time then, below 1 is faster",
        ["", "ns then", "ns now", "ratio", "calibration loop", ""],
        [
            (
                pair["name"],
                _digits(pair["before"]),
                _digits(pair["now"]),
                f"{pair['ratio']:.3f}",
                f"{pair['loop']:.3f}",
                {None: "", True: "samples apart", False: "samples overlap"}[pair["apart"]],
            )
            for pair in compared["pairs"]
        ],
    )


def _digits(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}" if value < 100 else f"{value:.0f}"
