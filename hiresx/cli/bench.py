"""`hiresx bench`: the time that the right-hand side takes on this machine."""

from typing import Annotated, Any

from hiresx.cli import options, terminal
from hiresx.cli.options import option
from hiresx.errors import HiresxError

Points = Annotated[int, option("--points", "N", "Nodes in each direction of the block.", min=7)]
Repeats = Annotated[int, option("--repeats", "N", "Every figure is the median of N.", min=1)]
Threads = Annotated[str | None, option("--threads", "N[,N...]", "Threads on a CPU; one and all if absent.")]
Precision = Annotated[str | None, option("--precision", "fp64|fp32", "Both if absent.")]


def bench(
    backend: options.Backend = "auto",
    points: Points = 64,
    repeats: Repeats = 5,
    threads: Threads = None,
    precision: Precision = None,
    json: options.Json = False,
) -> int:
    """Measure on this machine the speed of the right-hand side for --points nodes in each direction, and how long a
    first run (with an empty kernel cache) and later runs take.

    Exit status: 0 done; 2 an error to correct."""
    with terminal.only_json(json):
        from hiresx import bench as measurements

        result = measurements.run(backend, points, repeats, thread_counts(threads), precisions(precision))
    if json:
        terminal.print_json(result)
    else:
        show(result)
    return 0


def thread_counts(text: str | None) -> list[int] | None:
    """Return the numbers of threads in `text`, the value of the option --threads, such as "1,2": the measurements are
    repeated with each. Return None if `text` is None. Raises HiresxError for any other text."""
    from hiresx.base.threads import check_threads

    if text is None:
        return None
    counts = [int(part) if part.strip().isdecimal() else 0 for part in text.split(",")]
    if min(counts) < 1:
        raise HiresxError(f'--threads "{text}": not a list of numbers of threads', "write for instance --threads 1,2")
    check_threads(max(counts))
    return counts


def precisions(text: str | None) -> tuple[str, ...]:
    """Return the floating-point precisions to measure: only `text`, the value of the option --precision, or all if it
    is None. Raises HiresxError for an unknown precision."""
    from hiresx.bench import PRECISIONS
    from hiresx.case.error_messages import did_you_mean

    if text is not None and text not in PRECISIONS:
        raise HiresxError(
            f'--precision "{text}": no such precision', did_you_mean(text, list(PRECISIONS), "precisions")
        )
    return PRECISIONS if text is None else (text,)


def show(result: dict[str, Any]) -> None:
    """Print the measurements `result` of `hiresx.bench.run` as a table."""
    nodes = result["nodes"]
    terminal.table(
        f"Right-hand side on {result['backend']}, {nodes} x {nodes} x {nodes} points: ns per point, "
        f"median of {result['repeats']}",
        ["precision", "", "threads", "ns", "least", "most", "processor", "calibration loop", "bytes per point"],
        [
            (
                row["precision"],
                "viscous" if row["viscous"] else "inviscid",
                row["threads"],
                *(digits(row[key]) for key in ("ns_per_point_rhs", "least", "most", "processor_ns", "calibration_ns")),
                round(row["bytes_per_point"]),
            )
            for row in result["rhs"]
        ],
    )
    if "start_up" in result:
        start = result["start_up"]
        terminal.say(
            f"{start['run']}: {start['first_s']:.1f} s with no kernels compiled yet, then {start['later_s']:.1f} s"
        )


def digits(value: float | None) -> str:
    """Format `value` with three significant digits; "" for None."""
    return "" if value is None else f"{value:.3g}" if value < 100 else f"{value:.0f}"
