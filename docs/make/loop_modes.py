r"""The page of loop modes, made from stored results and never typed:

    python docs/make/loop_modes.py docs/results/loop-modes-cpu.json docs/results/decomposed-h200-stage.json \
        docs/results/performance-h200-stage.json --out docs/loop-modes.md

from what `python docs/make/loop_times.py --json` gives and, of a GPU, `python docs/make/measure_gpu.py --parts
loops`. Its pictures are those of paper_figures.py, drawn to the folder of the page.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import loop_times
import pages
from loop_forms import DIFFERENCE, FLUX, INTERPOLATION, LOOPS, VISCOUS_DIFFERENCE, VISCOUS_FLUX, WHOLE
from paper_figures import PARTS, gpus_of, read

from hiresx.bench import PRECISIONS
from hiresx.errors import HiresxError

Result = Mapping[str, Any]
NOT_MEASURED = "not measured"
ARCHITECTURE = "sm_90"
CLEARLY = 1.05  # times as fast: less may be chance


class Choice(NamedTuple):
    """The mode of a loop in the decomposed plan, in the plans that fuse (`fused`), and why."""

    decomposed: str
    fused: str
    why: str


CHOSEN = {
    INTERPOLATION: Choice(
        "node",
        "line",
        "The modified scheme has one characteristic space and one set of smoothness indicators per node, for both "
        "values interpolated from it. With a thread per half point the space and the indicators of each node are "
        "computed twice, once for each half point beside the node. No mode needs atomics, since only one thread writes "
        "each value.",
    ),
    FLUX: Choice(
        "half point, then node",
        "line",
        "If a thread per node computes both its half points, all arithmetic is done twice to save a quarter of the "
        "bytes. Atomics save the same bytes, but two threads add to each node in any order. The last bit of a rate "
        "would change from run to run, and restarts would not be bit-identical. A thread per line saves these bytes "
        "too, computes every half point once and is the only one that writes to its nodes. The kernels of the fused "
        "plans (sweeps) go along lines.",
    ),
    DIFFERENCE: Choice(
        "node",
        "line",
        "A thread per node reads two fluxes and writes a rate once. A thread per half point changes two rates: it "
        "moves the same bytes with twice as many additions. In the paper of Weng et al. the fastest mode depends on "
        "the order in which the faces are stored. Here faces have the order of the nodes.",
    ),
    VISCOUS_FLUX: Choice(
        "node",
        "node",
        "A thread that computes the derivatives along all three directions keeps the twelve gradients in registers. "
        "If the directions are computed one after the other, the gradients are stored in memory, and more than four "
        "times as many bytes are moved.",
    ),
    VISCOUS_DIFFERENCE: Choice(
        "node",
        "CPU, and GPU in FP32: line. GPU in FP64: line along i; along j and k node, in the kernel of the update",
        "A thread that computes all directions at once reads and writes the rates once, not three times. A sweep "
        "along a line computes the difference together with the inviscid terms, and so reads no rates again.",
    ),
    WHOLE: Choice(
        "four kernels: interpolation, physical flux, numerical flux, flux difference",
        "line; along i on a GPU: a row of nodes by a warp",
        "The four kernels pass data on through memory. One kernel keeps these data on the chip, and moves a quarter "
        "of the bytes. The nodes of neighbouring lines along i lie far apart in memory, so that neither the threads of "
        "a warp nor the vector lanes of a CPU can load them together. Along i the threads of a warp therefore share "
        "one row.",
    ),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns its exit status."""

    def write(results: Sequence[Path], out: Path) -> None:
        pages.write(page(results, out), out)

    return pages.command_line("loop_modes.py", __doc__, write, arguments)


def page(paths: Sequence[Path], out: Path) -> str:
    """The text of the page. Raises HiresxError where no result of a CPU is among the files."""
    results = read(paths)
    measured = [result for result in results if result["kind"] == loop_times.KIND and result["backend"] == "cpu"]
    if not measured:
        raise HiresxError("no file holds loop modes of a CPU", "python docs/make/loop_times.py --json")
    cpu = measured[-1]
    gpu = next((r for r in results[::-1] if r["kind"] == "device-loops" and r["backend"] == "cuda"), None)
    rows = {precision: _gpu_rows(gpu, precision) for precision in PRECISIONS}
    places = {"core": _of(cpu, "fp64")} | ({"GPU": rows["fp64"]} if gpu else {})
    return pages.fill(
        "loop-modes.md.jinja",
        command=pages.command("loop_modes.py", paths, out),
        agreement=" and ".join(f"{error:.0e} in {name.upper()}" for name, error in cpu["disagreement"].items()),
        cpu=cpu,
        gpu=f"{gpus_of(gpu)} {gpu['date'][:10]}" if gpu else NOT_MEASURED,
        measured_gpu=gpu is not None,
        fastest=[f"fastest on the {place}" for place in places],
        clearly=CLEARLY,
        chosen=[
            [loop, choice.decomposed, choice.fused, *(_fastest(found, loop) for found in places.values()), choice.why]
            for loop, choice in CHOSEN.items()
        ],
        loops=[row["calibration_ns"] for row in cpu["rows"] if row["calibration_ns"]],
        architecture=ARCHITECTURE,
        costs=[(loop, _costs(loop, cpu, rows)) for loop in LOOPS],
        four_bytes=_bytes(cpu, True),
        sweep_bytes=_bytes(cpu, False),
        sweeps=_sweeps(results),
    )


def _gpu_rows(gpu: Result | None, precision: str) -> list[Result]:
    if gpu is None:
        return []
    return [
        row for found in gpu["rows"] if "loops" in found and found["precision"] == precision for row in found["loops"]
    ]


def _times(rows: Iterable[Result], loop: str, mode: str) -> str:
    """Nanoseconds of all directions of a form."""
    return " ".join(f"{_ns(row):#.3g}".rstrip(".") for row in rows if (row["loop"], row["mode"]) == (loop, mode))


def _of(result: Result, precision: str) -> list[Result]:
    return [row for row in result["rows"] if row["precision"] == precision]


def _costs(loop: str, cpu: Result, gpu: Mapping[str, list[Result]]) -> list[list[Any]]:
    """The rows of one loop, one for each mode of its CUDA form."""
    # along j, of those that work along one direction, or along i what works there alone
    forms = {row["mode"]: row for row in cpu["counted"] if row["loop"] == loop and row["direction"] != "k"}
    return [
        [
            mode,
            "yes" if form["atomics"] else "",
            *(_times(_of(cpu, precision), loop, mode) for precision in PRECISIONS),
            *(_times(gpu[precision], loop, mode) or NOT_MEASURED for precision in PRECISIONS),
            form["bytes_per_point"],
            round(form["operations_per_point"]),
            *(_largest_registers(cpu, form["kernels"], precision) for precision in PRECISIONS),
        ]
        for mode, form in forms.items()
    ]


def _largest_registers(cpu: Result, kernels: Iterable[str], precision: str) -> str:
    """Registers of the kernel that takes most, and what they spill together."""
    wanted = set(kernels)
    found = [
        row
        for row in cpu["registers"]
        if (row["precision"], row["architecture"]) == (precision, ARCHITECTURE) and row["kernel"] in wanted
    ]
    if not found:
        return ""
    spilled = sum(row["spill_stores"] + row["spill_loads"] for row in found)
    return f"{max(row['registers'] for row in found)}" + (f", {spilled} B spilled" if spilled else "")


def _fastest(rows: Iterable[Result], loop: str) -> str:
    """The mode that takes the least time in FP64, by direction; the decomposed plan's where none is clearly faster."""
    found: dict[str, list[str]] = {}
    rows = [row for row in rows if row["loop"] == loop]
    for direction in dict.fromkeys(row["direction"] for row in rows):
        these = [row for row in rows if row["direction"] == direction]
        own = next(_ns(row) for row in these if row["solvers"])
        best = min(these, key=_ns)
        if own < CLEARLY * _ns(best):
            best = next(row for row in these if row["solvers"])
        gain = "" if best["solvers"] else f" ({own / _ns(best):.2f})"
        found.setdefault(best["mode"], []).append(f"{direction or ''}{gain}".strip())
    return "; ".join(f"{mode} {', '.join(places)}".strip() for mode, places in found.items())


def _ns(row: Result) -> float:
    """Nanoseconds per point of a form: of a core those that it worked for it, as it may have other work."""
    found: float = row["ns_per_point"] if row["processor_ns"] is None else row["processor_ns"]
    return found


def _bytes(cpu: Result, solvers: bool) -> float:
    """Bytes per node of all inviscid terms of a direction, by the decomposed plan (the `solvers` row) or by a sweep."""
    found: float = next(
        row["bytes_per_point"] for row in _of(cpu, "fp64") if row["loop"] == WHOLE and row["solvers"] == solvers
    )
    return found


def _sweeps(results: Iterable[Result]) -> dict[str, dict[str, str]] | None:
    """What a direction takes a GPU by each of both plans, and on which; None where one of them was not measured."""
    found = {}
    for result in results:
        if result["kind"] != "device-stage" or result["backend"] != "cuda":
            continue
        kernels = next(row["kernels"] for row in result["rows"] if row["precision"] == "fp64")
        inviscid = [row for row in kernels if row["kernel"] in PARTS["inviscid terms"][1]]
        shared = sum(row["ns_per_point"] for row in inviscid if row["direction"] is None) / 3
        each = [shared + sum(r["ns_per_point"] for r in inviscid if r["direction"] == d) for d in "ijk"]
        found[result.get("plan", "fused")] = {
            "range": f"{min(each):.3f} to {max(each):.3f} ns",
            "where": f"{gpus_of(result)}, {result['date'][:10]}",
        }
    return found if found.keys() == {"fused", "decomposed"} else None


if __name__ == "__main__":
    sys.exit(main())
