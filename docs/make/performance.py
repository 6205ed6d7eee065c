"""The performance page, made from stored results and never typed:

    python docs/make/kernel_costs.py --backend cpu --json > docs/results/performance-cpu.json
    python docs/make/kernel_registers.py --json > docs/results/performance-registers.json
    python docs/make/performance.py docs/results/performance-*.json --out docs/performance.md

and on a machine with a GPU `python docs/make/measure_gpu.py --out DIR`, whose files are results too. Of two results of
one kind on one backend and processor the later date counts. The text is in templates/performance.md.jinja; this file
makes the rows of the tables.
"""

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import pages
from markdown_tables import cell

from hiresx.base.shell import quote
from hiresx.device.fields import Layout
from hiresx.equations.storage import STORAGE
from hiresx.rhs.compact import NAME as COMPACT
from hiresx.solver import PLANS, default_plan, work_variables
from hiresx.time.integrators import integrator

Result = dict[str, Any]
Rows = list[list[Any]]

# What this project set itself: ns per point on one core for 64^3 points (FP64, by whether it is viscous), two threads
# over one, first use and later start-ups in seconds; and the reals per point of the paper's code.
GOALS = {False: 110.0, True: 160.0}
GOAL_TWO_THREADS = 1.85
GOAL_FIRST, GOAL_LATER = 30.0, 2.0
PAPER_REALS = 49

NOT_MEASURED = "not measured yet"
WORDS = {
    "not_measured": NOT_MEASURED,
    "rate": "10^6 point-steps per s",
    "kernel_columns": ["kernel", "along", "launches", "ns per point", "bytes per point", "GB/s"],
    "kernel_note": 'In "bytes per point" each value that a kernel must read or write counts once.',
}


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns its exit status."""
    return pages.command_line("performance.py", __doc__, write, arguments)


def write(paths: Iterable[Path], out: Path) -> None:
    """Write the page `out` from the files `paths`. Raises HiresxError for a file that holds no results and for a page
    that cannot be written."""
    results = {}
    for path in paths:
        hint = f"python docs/make/kernel_costs.py --json > {quote(path)}, or leave the file out"
        results[path.as_posix()] = pages.read(path, ["kind"], "results", hint)
    pages.write(page(results, out), out)


def page(results: dict[str, Result], out: Path) -> str:
    """The text of the page from results by file name."""
    of_kind: dict[str, list[Result]] = {}
    for result in sorted(results.values(), key=lambda result: result.get("date", "")):
        of_kind.setdefault(result["kind"], []).append(result)
    benches = list({(r["backend"], r["hardware"]["cpu"]): r for r in of_kind.get("bench", [])}.values())
    gpu, *other_gpus = by_gpu(of_kind) or [{}]
    parts = {
        part: gpu[part]["rows"] if part in gpu else [] for part in ("machine", "stage", "blocks", "jet", "batches")
    }
    return pages.fill(
        "performance.md.jinja",
        command=pages.command("performance.py", [Path(name) for name in results], out),
        sources=source_rows(results),
        benches=benches,
        codes=next(iter(of_kind.get("public-codes", [])), {}),
        start_up=start_up_rows([*benches, *filter(None, [gpu.get("machine")])]),
        ready=ready_rows(of_kind.get("ready", [])),
        registers=registers(of_kind["registers"][-1]) if "registers" in of_kind else None,
        counted=of_kind.get("counted", [])[-1:],
        gpu=gpu,
        other_gpus=other_gpus,
        parts=parts,
        about={key: value for row in parts["machine"] for key, value in row.items()},
        scaling=of_kind.get("scaling", []),
        exchange=of_kind.get("exchange", []),
        **WORDS,
        **{make.__name__: make for make in ROW_MAKERS},
    )


def by_gpu(of_kind: dict[str, list[Result]]) -> list[dict[str, Result]]:
    """The latest result of each part that was measured on a GPU, for each model; that of most parts first."""
    found: dict[str, dict[str, Result]] = {}
    for kind, results in of_kind.items():
        for result in results:
            if kind.startswith("device-") and result["backend"] == "cuda":
                found.setdefault(result["hardware"]["gpus"][0]["name"], {})[kind.removeprefix("device-")] = result
    return sorted(found.values(), key=len, reverse=True)


def place(result: Result) -> str:
    """The machine of a result."""
    machine, versions = result["hardware"], result["versions"]
    simd = "AVX-512" if "avx512f" in machine["simd"] else "AVX2" if "avx2" in machine["simd"] else None
    on_gpu = result["backend"] == "cuda"
    gpus = pages.count_each(gpu["name"] for gpu in machine["gpus"]) if on_gpu else []
    cores = f"{machine['threads_available']} cores"
    parts = [*gpus, " ".join(filter(None, [machine["cpu"], cores, simd])), versions["compiler"]]
    if on_gpu:
        parts += [f"driver {versions['driver']}", f"NVRTC {versions['nvrtc']}"]
    return ", ".join(filter(None, parts))


def source_rows(results: dict[str, Result]) -> Rows:
    rows = []
    for name, result in results.items():
        where = place(result) if "hardware" in result else f"NVRTC {result['nvrtc']}" if "nvrtc" in result else ""
        command = f"`{result['command']}`" if "command" in result else "figures of other codes"
        rows.append([Path(name).name, command, result.get("date"), where])
    return rows


def terms(viscous: bool) -> str:
    return "viscous" if viscous else "inviscid"


def one_thread(bench: Result) -> list[Result]:
    return [row for row in bench["rhs"] if row["threads"] in (1, None)]


def cpu_rows(bench: Result) -> Rows:
    """The right-hand side, by precision, terms and threads."""
    single = {(row["precision"], row["viscous"]): row for row in one_thread(bench)}
    rows = []
    for row in bench["rhs"]:
        alone = single.get((row["precision"], row["viscous"]))
        goal = None
        if row["precision"] == "fp64" and bench["nodes"] == 64:
            if row["threads"] == 1:
                goal = f"at most {GOALS[row['viscous']]:.0f} ns"
            elif row["threads"] == 2:
                goal = f"{GOAL_TWO_THREADS} times one thread"
        rows.append(
            [
                row["precision"].upper(), terms(row["viscous"]), row["threads"], row["ns_per_point_rhs"],
                f"{cell(row['least'])} to {cell(row['most'])}", row["processor_ns"], row["calibration_ns"],
                None if alone in (None, row) else alone["ns_per_point_rhs"] / row["ns_per_point_rhs"], goal,
            ]
        )  # fmt: skip
    return rows


def kernel_rows(kernels: Iterable[Result], copied: float | None = None) -> Rows:
    """Kernels; with the bandwidth of a copy also how much of it each reaches."""
    rows = []
    for k in kernels:
        bandwidth = k["gb_per_s"]
        row = [f"`{k['kernel']}`", k["direction"], k["launches"], k["ns_per_point"], k["bytes_per_point"], bandwidth]
        rows.append([*row, 100 * bandwidth / copied if bandwidth else None] if copied else row)
    return rows


def codes_on_cpu(bench: Result, codes: Result) -> Rows:
    ours = {row["viscous"]: row["ns_per_point_rhs"] for row in one_thread(bench) if row["precision"] == "fp64"}
    own = ["**HiResX**", "AFWENO5, characteristic, Steger-Warming; curvilinear", ours.get(True), ours.get(False)]
    return [own, *([row["code"], row["set_up"], row["viscous"], row["inviscid"]] for row in codes["rows"])]


def memory_rows(benches: list[Result]) -> Rows:
    rows: Rows = []
    for plan in (*PLANS, COMPACT):
        for viscous in (False, True):
            work, registers = work_variables(plan, viscous), integrator("ssp_rk3").registers
            reals = Layout(STORAGE["fp64"], needed={"work": work, "registers": registers}).numbers_per_point
            measured = [
                row["bytes_per_point"]
                for bench in benches
                for row in one_thread(bench)
                if (row["precision"], row["viscous"]) == ("fp64", viscous) and plan == default_plan(bench["backend"])
            ]
            rows.append([f"`{plan}`", terms(viscous), reals, 8 * reals, 4 * reals, measured[0] if measured else None])
    return [*rows, ["paper", "viscous", PAPER_REALS, 8 * PAPER_REALS, 4 * PAPER_REALS, None]]


def start_up_rows(results: list[Result]) -> Rows:
    goals = f"{GOAL_FIRST:.0f} and {GOAL_LATER:.0f} s"
    rows = []
    for result in results:
        found = result.get("start_up") or next((r["start_up"] for r in result.get("rows", []) if "start_up" in r), None)
        if found:
            rows.append([result["backend"], f"`{found['run']}`", found["first_s"], found["later_s"], goals])
    return rows or [[NOT_MEASURED, *[""] * 4]]


def ready_rows(results: Sequence[Result]) -> Rows:
    """Results of ready.py."""
    return [
        [
            f"{found['nodes']}^3", found["precision"].upper(), f"`{found['plan']}`", found["reals"],
            round(found["bytes_per_point"]), found["imported_s"], found["ready_s"], found["done_s"],
            found["nodes"] ** 3 / median(found["steps_s"]) / 1e6,
            next((gpu["name"] for gpu in result["hardware"]["gpus"]), result["hardware"]["cpu"]),
            result["hardware"]["threads_available"],
        ]
        for result in results
        for found in sorted(result["rows"], key=lambda found: found["nodes"])
    ]  # fmt: skip


def registers(result: Result) -> Result:
    """What the table of registers says: `architectures`, `rows`, the `choices` of the configuration, the `seconds`."""
    # Of one architecture's configurations the one with most kernels has all of the others'.
    ordered = sorted(result["entries"], key=lambda entry: len(entry["kernels"]))
    entries = {entry["architecture"]: entry for entry in ordered}
    found: dict[str, dict[str, str]] = {}
    for architecture, entry in entries.items():
        for kernel in entry["kernels"]:
            spilled = {"spilled": "spill_stores", "reloaded": "spill_loads", "stack": "stack"}
            notes = ", ".join(f"{kernel[key]} B {name}" for name, key in spilled.items() if kernel[key])
            text = f"{kernel['registers']}" + (f" ({notes})" if notes else "")
            found.setdefault(kernel["kernel"], {})[architecture] = text
    return {
        "nvrtc": result["nvrtc"],
        "architectures": list(entries),
        "rows": [[f"`{name}`", *(cells.get(a) for a in entries)] for name, cells in sorted(found.items())],
        "choices": [f"{name} = {value}" for name, value in next(iter(entries.values()))["configuration"].items()],
        "seconds": [entry["seconds"] for entry in result["entries"]],
    }


def counted_rows(result: Result) -> Rows:
    return [
        [row["flow"], row["plan"], row["launches"], round(row["bytes_moved"]), round(row["bytes_held"])]
        for row in result["rows"]
    ]


def gpu_rows(gpu: dict[str, Result]) -> Rows:
    """The right-hand side and whole steps on a GPU."""
    rows = [
        [
            f"{row['nodes']}^3", row["precision"].upper(), terms(row["viscous"]), row["ns_per_point_rhs"],
            row["point_steps_per_s"] / 1e6, row["bytes_per_point"],
        ]
        for row in (gpu["rhs"]["rows"] if "rhs" in gpu else ())
    ]  # fmt: skip
    return rows or [[NOT_MEASURED, *[""] * 5]]


def codes_on_gpu(gpu: dict[str, Result], codes: Result) -> Rows:
    others = [[row["code"], row["set_up"], row["gpu"], row["rate"]] for row in codes["rows"]]
    rows = gpu["rhs"]["rows"] if "rhs" in gpu else []
    best = [row for row in rows if row["precision"] == "fp64" and row["viscous"]]
    if not best:
        return others
    most = max(best, key=lambda row: row["point_steps_per_s"])
    name = gpu["rhs"]["hardware"]["gpus"][0]["name"]  # the one on which these rows were measured
    set_up = f"AFWENO5, viscous, curvilinear, FP64, {most['nodes']}^3 points"
    return [["**HiResX**", set_up, name, most["point_steps_per_s"] / 1e6], *others]


def block_shapes(shapes: list[Result]) -> tuple[list[str], Rows]:
    """Columns and rows of the four heaviest kernels with blocks of threads of these shapes."""
    times = shapes[0]["ns_per_point"]
    heavy = sorted(times, key=times.get, reverse=True)[:4]
    rows = [["x".join(map(str, row["block"])), *(row["ns_per_point"][name] for name in heavy)] for row in shapes]
    return ["threads", *(f"`{name}`" for name in heavy)], rows


def jet_rows(runs: list[Result]) -> Rows:
    return [[r["preset"], r["points"], r["blocks"], r["steps_per_s"], r["point_steps_per_s"] / 1e6] for r in runs]


def batch_rows(runs: list[Result]) -> Rows:
    return [
        [
            row["flow"], row["points"], row["single_launches"], row["batched_launches"], row["single_steps_per_s"],
            row["batched_steps_per_s"], row["batched_steps_per_s"] / row["single_steps_per_s"],
        ]
        for row in runs
    ]  # fmt: skip


def scaling_rows(result: Result) -> Rows:
    return [
        [
            row["ranks"], row["placement"] or "", row["points"], 1e3 * row["step_s"],
            f"{1e3 * row['least']:.4g} to {1e3 * row['most']:.4g}", row["speedup"], 100 * row["efficiency"],
            row["point_steps_per_s"] / 1e6, row["sssp"] / 1e6,
            None if "signals" in row["transports"] else 100 * row["wait"],
            f"{100 * row['overlap_gain']:.1f}", row["sent_bytes"] / 1e6, ", ".join(row["transports"]),
        ]
        for row in result["rows"]
    ]  # fmt: skip


def predicted_rows(result: Result) -> Rows:
    measured = {row["ranks"]: 1e3 * row["step_s"] for row in result["rows"]}
    return [
        [
            row["ranks"], 1e3 * row["step_s"], 1e3 * row["work_s"], 1e3 * row["exchange_s"], row["speedup"],
            measured.get(row["ranks"]), row["busiest"] or "",
        ]
        for row in result["predicted"]
    ]  # fmt: skip


def several_gpus_rows(result: Result) -> Rows:
    """Steps on several GPUs, of the part `ranks` of docs/make/measure_gpu.py."""
    return [
        [
            row["ranks"], row["points"], 1e3 * row["step_s"], 100 * row["efficiency"], row["point_steps_per_s"] / 1e6,
            ", ".join(row["transports"]),
        ]
        for row in result["rows"]
        if "efficiency" in row
    ]  # fmt: skip


def copy_rows(result: Result) -> Rows:
    return [[r["copy"], r["bytes"] / 1e6, r["gb_per_s"]] for r in result["rows"] if "copy" in r]


def exchange_rows(result: Result) -> Rows:
    return [
        [
            ", ".join(r["ways"]), r["points"], r["bytes"] / 1e6, r["us"], r.get("us_in_a_row"),
            r.get("us_recorded"), r["gb_per_s"], "yes" if r["right"] else "NO",
        ]
        for r in result["rows"]
        if "transport" in r and "us" in r
    ]  # fmt: skip


# What the template calls with the results of a section.
ROW_MAKERS = (
    batch_rows, block_shapes, codes_on_cpu, codes_on_gpu, copy_rows, counted_rows, cpu_rows, exchange_rows, gpu_rows,
    jet_rows, kernel_rows, memory_rows, place, predicted_rows, scaling_rows, several_gpus_rows,
)  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
