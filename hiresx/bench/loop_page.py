r"""The page of loop modes, made from stored results and never typed:

    python -m hiresx.bench.loop_page docs/results/loop-modes-cpu.json docs/results/decomposed-h200-stage.json \
        docs/results/performance-h200-stage.json --out docs/loop-modes.md

from what `python -m hiresx.bench.loop_modes --json` gives and, of a GPU, `python -m hiresx.verify.device --parts
loops`. Its pictures are those of `hiresx.bench.paper_figures`, drawn to the folder of the page.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hiresx.bench import PRECISIONS, loop_modes
from hiresx.bench.loop_forms import DIFFERENCE, FLUX, INTERPOLATION, LOOPS, VISCOUS_DIFFERENCE, VISCOUS_FLUX, WHOLE
from hiresx.bench.markdown import from_results, section, table
from hiresx.bench.paper_figures import PARTS, gpus_of, read
from hiresx.errors import HiresxError
from hiresx.output.saved import files

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
        "The modified scheme has one characteristic space and one set of smoothness indicators for both values of a "
        "node: a half point on its own does all of it twice. Every value has one writer: atomics have no part in it.",
    ),
    FLUX: Choice(
        "half point, then node",
        "line",
        "A node that computes both its half points does all arithmetic twice to save a quarter of the bytes. Atomics "
        "save the same bytes, but two half points add to a node in any order, so that the last bit of a rate would "
        "change from run to run: restarts would no longer be bit-identical. A line saves these bytes too, adds to no "
        "node twice and computes every half point once; the sweeps go further along that way.",
    ),
    DIFFERENCE: Choice(
        "node",
        "line",
        "A node reads two fluxes and writes a rate once; a half point changes two rates. Bytes are the same, adds "
        "twice as many. The neighbour's index is known here: the order of the faces, which decides in the paper, is "
        "that of the nodes.",
    ),
    VISCOUS_FLUX: Choice(
        "node",
        "node",
        "All three derivatives at once keep the twelve gradients in registers. Directions one after the other, with "
        "half points or without, leave them in memory: more than four times the bytes.",
    ),
    VISCOUS_DIFFERENCE: Choice(
        "node",
        "line along i, in FP32 and on a CPU along all; else node, with the update",
        "At once the rates are read and written once, not three times. Where a sweep goes along the line anyway it "
        "takes the difference along, and the rates are not read again for it.",
    ),
    WHOLE: Choice(
        "four kernels",
        "line; along i a row by a warp",
        "What the four kernels leave in memory between them stays on the chip: a quarter of the bytes. Lines along i "
        "lie far apart in memory, for neighbouring threads as for the lanes of a pack: there the lanes go along one "
        "row together.",
    ),
}

INTRODUCTION = """# Loop modes

A loop of the right-hand side can be gone through with a thread per node, per grid line, or per half point (the face
between two nodes), and where half points add to the nodes on both their sides, with atomics or without. This page has
what each costs, which one the solver takes, and why. It is made from stored results:

    {command}

which came from `python -m hiresx.bench.loop_modes --json` and, on a GPU, from
`python -m hiresx.verify.device --out DIR --parts loops`. All forms are made from the same point functions
(kernels/loop_modes.h, a program of its own) and their results are compared with the solver's in every run:
{agreement}.

The question, and the words, are those of Weng et al., *Effects of mesh loop modes on performance of unstructured finite
volume GPU simulations*, Advances in Aerodynamics 3:21 (2021), who studied PHengLEI.
"""

CHOICES = """What the solver takes. `decomposed` is the plan of HiResX's paper, one kernel a loop; the plans that fuse
are `fused` on a GPU and `pencils` on a CPU. The reasons are bytes, operations and registers, which are counted, and
times: of a core, of a GPU ({gpu}), and of the solver's own kernels ([Performance](performance.md)).
The fastest form is not taken where it adds in an order that is open."""

MODES = """ns: per node, median of {repeats}; along i, j and k where a form works along one direction. CPU: {place}, one
core, {nodes}^3 points, {date}: the time that the core worked for it, as it had other work too; wall times are in the
result{noise}.
There "adds" are plain adds, as one core has no rival, so that the columns show locality and arithmetic alone. Lines
along i are the only form that a core cannot do with packs. GPU: {gpu}.
Bytes: the least that must move, FP64, one direction. Operations: sums, products, quotients and roots per node, ends of
lines included (24^3 points), along j. Registers: {architecture}, NVRTC, of the kernel that takes most; spilled: bytes.
"""

PAPER = """## What the paper found

Weng et al. measured cells, faces and nodes of tetrahedra and hexahedra on an NVIDIA V100 and a K80 (their tables 5 to
7; time of a form over that of the face loop, for the smallest mesh, 1.05 million cells, and the largest, 8.78 million):

| kernel | loop | atomics | V100 | K80 | here |
|---|---|---|---|---|---|
| q from cells to nodes | cell | yes | 0.27 to 0.39 | 0.32 to 0.33 | no such loop: values stay at nodes |
| | node | no | 0.85 to 0.30 | 0.26 to 0.21 | |
| gradient of q | cell | no | 2.20 to 1.82 | 1.36 to 1.59 | viscous flux: a node that computes both its half points |
| | node | yes | 22.3 to 15.8 | 10.8 to 10.3 | no such loop: there are no corners |
| sum of fluxes | cell | no | 1.51 to 0.94 | 0.74 to 0.77 | flux difference: a node |
| local least and largest p | cell | no | 0.40 to 0.43 | 0.46 to 0.43 | no such loop |

Their conclusions, and what becomes of them on structured grids with high order:

- *Where face data are read, loop over faces, for its locality.* It rests on indices that are looked up: the loop whose
  own data are needed reads them side by side. On a structured grid every neighbour is a stride away, and all loops read
  side by side along i but the lines along i.
- *Where cells and nodes are read but no faces, loop over cells.* Here interpolation is that case: its node loop reads
  nodes and writes half points, each once.
- *Atomics cost much on a K80, little on a V100* (0.122 with and 0.138 s without on the smallest mesh). Their cost
  here is another one: the order of the two adds is open, and with it the last bit.
- *All loops chosen well gave 15 to 20 % of the whole.* Here what is between the loops weighs more: four kernels of a
  direction move {four_bytes:.0f} bytes a node, one sweep {sweep_bytes:.0f}.
- HiResX's paper (section 4.5) splits the flux into kernels of few registers for occupancy and notes that a split costs
  accesses to global memory. Kept on the chip, nothing has to be split{sweeps}.
"""

FIGURES = """## Figures 13 to 15 of HiResX's paper

Drawn from stored results by

    python -m hiresx.bench.paper_figures docs/results/*.json --out docs

One core is one thread of the machine of docs/results/sizes-cpu.json and docs/results/performance-cpu.json with all its
vector instructions, its rate that of the time it worked. The paper's is one core of a Xeon E5-2680v3 with another code:
its speed-ups (about 640 on an RTX 2080 Ti, 1500 on a P100, 1950 predicted for a Titan V) are not to be set beside
these. The decomposed plan was measured on 20 November 2026, before the fused one was there, the fused plan on 22
November.{sizes}

### Fig. 13: the size of the grid

![Rates and speed-ups over the number of points](loop-modes-sizes.png)

The rate of the core beyond its largest grid is taken to be that of its largest.

### Fig. 14: the parts of a step

![Shares of a step and speed-ups by part](loop-modes-parts.png)

FP64, viscous; 64^3 points on the core (wall time, [Performance](performance.md)), 256^3 on the GPU, where a point has a
quarter of the ghosts; three stages, one time step and one residual. A sweep takes viscous differences along (along i on
the GPU, all on the core), and the update of the GPU's fused plan the others: parts of different plans are not the same
work. With the decomposed plan on both they are.

### Fig. 15: several GPUs

![Speed-up over the number of GPUs](loop-modes-gpus.png)

Strong scaling on GPUs of one host, of the decomposed plan on 20 November and the fused one on 22 November: a GPU
that is twice as fast waits for the same exchange. The paper's grid has 25 million points.
"""


def page(paths: Sequence[Path], out: Path) -> str:
    """The text of the page. Raises HiresxError where no result of a CPU is among the files."""
    results = read(paths)
    measured = [result for result in results if result["kind"] == loop_modes.KIND and result["backend"] == "cpu"]
    if not measured:
        raise HiresxError("no file holds loop modes of a CPU", "python -m hiresx.bench.loop_modes --json")
    cpu = measured[-1]
    gpu = next((r for r in results[::-1] if r["kind"] == "device-loops" and r["backend"] == "cuda"), None)
    found = " and ".join(f"{error:.0e} in {precision.upper()}" for precision, error in cpu["disagreement"].items())
    rows = {precision: _gpu_rows(gpu, precision) for precision in PRECISIONS}
    places = {"core": _of(cpu, "fp64")} | ({"GPU": rows["fp64"]} if gpu else {})
    where = gpus_of(gpu) + " " + gpu["date"][:10] if gpu else NOT_MEASURED
    command = " ".join(
        ["python -m hiresx.bench.loop_page", *(path.as_posix() for path in paths), "--out", out.as_posix()]
    )
    parts = [
        INTRODUCTION.format(command=command, agreement=f"the largest difference was {found}"),
        section("## Which mode, and why", CHOICES.format(gpu=where), _chosen(places)),
        section("## What each mode costs", _about(cpu, where), *(_loop(loop, cpu, rows) for loop in LOOPS)),
        PAPER.format(four_bytes=_bytes(cpu, True), sweep_bytes=_bytes(cpu, False), sweeps=_sweeps(results)),
        FIGURES.format(sizes="" if gpu else " Grids of 1.0e8 points are not measured yet."),
    ]
    return "\n".join(parts)


def _about(cpu: Result, where: str) -> str:
    loops = [row["calibration_ns"] for row in cpu["rows"] if row["calibration_ns"]]
    noise = (
        f"; the calibration loop (kernels/calibration.h) took {min(loops):.2f} to {max(loops):.2f} ns" if loops else ""
    )
    return MODES.format(
        repeats=cpu["repeats"], place=cpu["hardware"]["cpu"], nodes=cpu["nodes"], date=cpu["date"][:10], noise=noise,
        gpu=where, architecture=ARCHITECTURE,
    ).rstrip("\n")  # fmt: skip


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


def _loop(loop: str, cpu: Result, gpu: Mapping[str, list[Result]]) -> str:
    """The table of one loop: a row for each mode of its CUDA form."""
    # along j, of those that work along one direction, or along i what works there alone
    forms = {row["mode"]: row for row in cpu["counted"] if row["loop"] == loop and row["direction"] != "k"}
    rows = [
        [
            mode,
            "yes" if form["atomics"] else "",
            *(_times(_of(cpu, precision), loop, mode) for precision in PRECISIONS),
            *(_times(gpu[precision], loop, mode) or NOT_MEASURED for precision in PRECISIONS),
            form["bytes_per_point"],
            round(form["operations_per_point"]),
            *(_taken(cpu, form["kernels"], precision) for precision in PRECISIONS),
        ]
        for mode, form in forms.items()
    ]
    columns = [
        "mode", "atomics", "CPU FP64", "CPU FP32", "GPU FP64", "GPU FP32", "bytes", "operations", "registers FP64",
        "registers FP32",
    ]  # fmt: skip
    return f"### {loop.capitalize()}\n\n{table(columns, rows)}"


def _taken(cpu: Result, kernels: Iterable[str], precision: str) -> str:
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


def _chosen(places: Mapping[str, list[Result]]) -> str:
    """The table of choices; `places` has the FP64 rows of each machine."""
    rows = [
        [loop, choice.decomposed, choice.fused, *(_fastest(found, loop) for found in places.values()), choice.why]
        for loop, choice in CHOSEN.items()
    ]
    fastest = (f"fastest on the {place} (times as fast as `decomposed`)" for place in places)
    return table(["loop", "`decomposed`", "fused plans", *fastest, "why"], rows)


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


def _sweeps(results: Iterable[Result]) -> str:
    """What a direction takes a GPU in both plans, in words; nothing where one of them was not measured."""
    took: dict[str, tuple[str, list[float]]] = {}
    for result in results:
        if result["kind"] != "device-stage" or result["backend"] != "cuda":
            continue
        kernels = next(row["kernels"] for row in result["rows"] if row["precision"] == "fp64")
        inviscid = [row for row in kernels if row["kernel"] in PARTS["inviscid terms"][1]]
        shared = sum(row["ns_per_point"] for row in inviscid if row["direction"] is None) / 3
        plan = result.get("plan", "fused")
        each = [shared + sum(r["ns_per_point"] for r in inviscid if r["direction"] == d) for d in "ijk"]
        took[plan] = f"{gpus_of(result)}, {result['date'][:10]}", each
    if set(took) != {"fused", "decomposed"}:
        return ""
    sweeps, four = (f"{min(took[p][1]):.3f} to {max(took[p][1]):.3f} ns" for p in ("fused", "decomposed"))
    return (
        f": inside stages\n  a sweep takes {sweeps} a node ({took['fused'][0]}; along i with the viscous difference),\n"
        f"  the four kernels of a direction {four} ({took['decomposed'][0]})"
    )


def write(paths: Sequence[Path], out: Path) -> None:
    """Write the page `out` from the files `paths`. Raises HiresxError as `page`, and for a page that cannot be
    written."""
    text = page(paths, out)
    try:
        with files.replacing(out) as temporary:
            temporary.write_text(text, encoding="utf-8")
    except OSError as error:
        raise files.io_error(out, error) from None


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns its exit status."""
    return from_results(
        "hiresx.bench.loop_page", __doc__, "the page to write, e.g. docs/loop-modes.md", write, arguments
    )


if __name__ == "__main__":
    sys.exit(main())
