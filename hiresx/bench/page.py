"""The performance page, made from stored results and never typed:

    hiresx bench --backend cpu --json > docs/results/performance-cpu.json
    python -m hiresx.device.nvrtc --json > docs/results/performance-registers.json
    python -m hiresx.bench.page docs/results/performance-*.json --out docs/performance.md

and on a machine with a GPU `python -m hiresx.verify.device --out DIR`, whose files are results too. Of two results of
one kind on one backend and processor the later date counts.
"""

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from hiresx.base.shell import quote
from hiresx.bench import page_ranks, page_ready
from hiresx.bench.markdown import cell, counted, from_results, section, table
from hiresx.device.fields import Layout
from hiresx.equations.storage import STORAGE
from hiresx.errors import HiresxError
from hiresx.output.saved import files
from hiresx.rhs.compact import NAME as COMPACT
from hiresx.solver import PLANS, default_plan, work_variables
from hiresx.time.integrators import integrator

Result = dict[str, Any]

# What this project set itself: ns per point on one core for 64^3 points (FP64, by whether it is viscous), two threads
# over one, first use and later start-ups in seconds; and the reals per point of the paper's code.
GOALS = {False: 110.0, True: 160.0}
GOAL_TWO_THREADS = 1.85
GOAL_FIRST, GOAL_LATER = 30.0, 2.0
PAPER_REALS = 49

NOT_MEASURED = "not measured yet"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns its exit status."""
    return from_results("hiresx.bench.page", __doc__, "the page to write, e.g. docs/performance.md", write, arguments)


def write(paths: Iterable[Path], out: Path) -> None:
    """Write the page `out` from the files `paths`. Raises HiresxError for a file that holds no results and for a page
    that cannot be written."""
    paths = list(paths)
    text = page({path.as_posix(): _read(path) for path in paths}, out)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with files.replacing(out) as temporary:
            temporary.write_text(text, encoding="utf-8")
    except OSError as error:
        raise files.io_error(out, error) from None


def _read(path: Path) -> Result:
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
        result["kind"]
        return result
    except OSError as error:
        raise files.io_error(path, error, "read") from None
    except (ValueError, KeyError, TypeError) as error:
        raise HiresxError(
            f"{path} holds no results: {type(error).__name__}: {error}",
            f"hiresx bench --json > {quote(path)}, or leave the file out",
        ) from None


def page(results: dict[str, Result], out: Path) -> str:
    """The text of the page from results by file name."""
    command = " ".join(["python -m hiresx.bench.page", *results, "--out", out.as_posix()])
    of_kind: dict[str, list[Result]] = {}
    for result in sorted(results.values(), key=lambda result: result.get("date", "")):
        of_kind.setdefault(result["kind"], []).append(result)
    benches = {(r["backend"], r["hardware"]["cpu"]): r for r in of_kind.get("bench", [])}
    codes = next(iter(of_kind.get("public-codes", [])), {})
    on_gpu = {
        kind.removeprefix("device-"): found[-1]
        for kind, made in of_kind.items()
        if kind.startswith("device-") and (found := [result for result in made if result["backend"] == "cuda"])
    }
    sections = [
        f"# Performance\n\nWhat HiResX costs, as measured. This page is made from stored results:\n\n    {command}\n",
        _sources(results),
        *_cpu(list(benches.values()), codes.get("cpu")),
        _memory(list(benches.values())),
        _start_up([*benches.values(), *filter(None, [on_gpu.get("machine")])]),
        *page_ready.sections(of_kind.get("ready", [])),
        _registers(next(iter(of_kind.get("registers", [])[::-1]), None)),
        *map(_counted, of_kind.get("counted", [])[-1:]),
        *_gpu(on_gpu, codes.get("gpu")),
        *page_ranks.sections(of_kind, _place),
    ]
    return "\n".join(sections)


def _place(result: Result) -> str:
    """The machine of a result."""
    machine, versions = result["hardware"], result["versions"]
    simd = "AVX-512" if "avx512f" in machine["simd"] else "AVX2" if "avx2" in machine["simd"] else None
    gpus = counted(gpu["name"] for gpu in machine["gpus"]) if result["backend"] == "cuda" else []
    cores = f"{machine['threads_available']} cores"
    parts = [*gpus, " ".join(filter(None, [machine["cpu"], cores, simd])), versions["compiler"]]
    if result["backend"] == "cuda":
        parts += [f"driver {versions['driver']}", f"NVRTC {versions['nvrtc']}"]
    return ", ".join(filter(None, parts))


def _sources(results: dict[str, Result]) -> str:
    rows = []
    for name, result in results.items():
        where = _place(result) if "hardware" in result else f"NVRTC {result['nvrtc']}" if "nvrtc" in result else ""
        command = f"`{result['command']}`" if "command" in result else "figures of others"
        rows.append([Path(name).name, command, result.get("date"), where])
    return table(["results", "command", "date (UTC)", "machine"], rows)


def _terms(viscous: bool) -> str:
    return "viscous" if viscous else "inviscid"


def _one_thread(result: Result) -> list[Result]:
    return [row for row in result["rhs"] if row["threads"] in (1, None)]


def _cpu(benches: list[Result], codes: Result | None) -> Iterable[str]:
    for result in benches:
        if result["backend"] == "cpu":
            yield _rhs(result)
            yield _kernels(result)
            if codes:
                yield _public(result, codes)


def _rhs(result: Result) -> str:
    single = {(row["precision"], row["viscous"]): row for row in _one_thread(result)}
    rows = []
    for row in result["rhs"]:
        alone = single.get((row["precision"], row["viscous"]))
        goal = None
        if row["precision"] == "fp64" and result["nodes"] == 64:
            if row["threads"] == 1:
                goal = f"at most {GOALS[row['viscous']]:.0f} ns"
            elif row["threads"] == 2:
                goal = f"{GOAL_TWO_THREADS} times one thread"
        rows.append(
            [
                row["precision"].upper(), _terms(row["viscous"]), row["threads"], row["ns_per_point_rhs"],
                f"{cell(row['least'])} to {cell(row['most'])}", row["processor_ns"], row["calibration_ns"],
                None if alone in (None, row) else alone["ns_per_point_rhs"] / row["ns_per_point_rhs"], goal,
            ]
        )  # fmt: skip
    text = (
        f"{_place(result)}, {result['date']}. Nanoseconds per point and right-hand side: the Taylor-Green vortex on "
        f"{result['nodes']}^3 points\nof a wavy grid (no metric is zero), modified AFWENO5, Jiang-Shu weights, "
        f"characteristic, Steger-Warming; median of {result['repeats']}.\nBefore each evaluation the calibration loop "
        "of kernels/calibration.h, a fixed piece of arithmetic, runs on as\nmany cores as the row has threads, in "
        "nanoseconds per round: a row beside which it is slower was measured on\ncores that had other work. "
        "`processor` is the time the processor worked for this, all threads together."
    )
    columns = ["precision", "terms", "threads", "ns", "range", "processor", "calibration", "times one thread", "goal"]
    return section("## The right-hand side on a CPU", text, table(columns, rows))


KERNEL_COLUMNS = ["kernel", "along", "launches", "ns per point", "bytes per point", "GB/s"]
KERNEL_NOTE = '"bytes per point" is what a kernel must move at least: every value it reads or writes, once.'


def _kernel_rows(kernels: Iterable[Result]) -> list[list[Any]]:
    return [
        [f"`{k['kernel']}`", k["direction"], k["launches"], k["ns_per_point"], k["bytes_per_point"], k["gb_per_s"]]
        for k in kernels
    ]


def _kernels(result: Result) -> str:
    text = (
        f"Each kernel of a viscous stage, the time step (once in three stages) and the norms, one thread, FP64.\n"
        f"{KERNEL_NOTE}\nAn array is copied at {result['copy_gb_per_s']:.0f} GB/s. The CPU runs the first plan, "
        "`pencils`: a bundle of grid lines in cache,\nwhich takes the viscous differences along; "
        "`decomposed` is the paper's plan for GPUs, on the same CPU."
    )
    parts = []
    for plan in dict.fromkeys(row["plan"] for row in result["kernels"]):
        chosen = [row for row in result["kernels"] if (row["plan"], row["precision"]) == (plan, "fp64")]
        if chosen:
            loop = f"calibration loop {cell(chosen[0]['calibration_ns'])} ns"
            parts.append(f"Plan `{plan}`, {loop}:\n\n{table(KERNEL_COLUMNS, _kernel_rows(chosen))}")
    return section("### Kernels", text, *parts)


def _public(result: Result, codes: Result) -> str:
    ours = {row["viscous"]: row["ns_per_point_rhs"] for row in _one_thread(result) if row["precision"] == "fp64"}
    rows = [["**HiResX**", "AFWENO5, characteristic, Steger-Warming; curvilinear", ours.get(True), ours.get(False)]]
    rows += [[row["code"], row["set_up"], row["viscous"], row["inviscid"]] for row in codes["rows"]]
    text = (
        f"{_sentence(codes['what'])}\nThe others' figures: {codes['source']}; {codes['machine']}.\n"
        "HiResX: the first table, one thread."
    )
    return section(
        "### Beside other codes", text, table(["code", "set-up", "viscous", "inviscid"], rows), _list(codes["caveats"])
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


def _list(lines: Iterable[str]) -> str:
    return "".join(f"- {line}\n" for line in lines)


def _memory(benches: list[Result]) -> str:
    rows = []
    for plan in (*PLANS, COMPACT):
        for viscous in (False, True):
            work, registers = work_variables(plan, viscous), integrator("ssp_rk3").registers
            reals = Layout(STORAGE["fp64"], work=work, registers=registers).numbers_per_point
            measured = [
                row["bytes_per_point"]
                for result in benches
                for row in _one_thread(result)
                if (row["precision"], row["viscous"]) == ("fp64", viscous) and plan == default_plan(result["backend"])
            ]
            rows.append([f"`{plan}`", _terms(viscous), reals, 8 * reals, 4 * reals, measured[0] if measured else None])
    rows.append(["paper", "viscous", PAPER_REALS, 8 * PAPER_REALS, 4 * PAPER_REALS, None])
    text = (
        "Per point, ghost layers aside; allocated once. Local time steps need one real more. `pencils` is the CPU's\n"
        "plan, `fused` the GPU's, `decomposed` the paper's, `compact` the one of the largest grids."
    )
    nodes = sorted({result["nodes"] for result in benches})
    if nodes:
        text += f" The last column is what a run on {nodes[0]}^3 points holds, ghost layers included."
    columns = ["plan", "terms", "reals", "bytes, FP64", "bytes, FP32", "with ghosts, FP64"]
    return section("## Memory", text, table(columns, rows))


def _start_up(results: list[Result]) -> str:
    rows = []
    for result in results:
        found = result.get("start_up") or next((r["start_up"] for r in result.get("rows", []) if "start_up" in r), None)
        if found:
            goals = f"{GOAL_FIRST:.0f} and {GOAL_LATER:.0f} s"
            rows.append([result["backend"], f"`{found['run']}`", found["first_s"], found["later_s"], goals])
    text = (
        "Wall time of the whole process for one step, fields written: with an empty kernel cache, so that everything\n"
        "is compiled, and later."
    )
    columns = ["backend", "run", "first use, s", "later, s", "goal: below"]
    return section("## First use and start-up", text, table(columns, rows or [[NOT_MEASURED, *[""] * 4]]))


def _registers(result: Result | None) -> str:
    heading = "## CUDA kernels"
    if result is None:
        return section(heading, "Registers per thread.", table(["kernel", "registers"], [[NOT_MEASURED, ""]]))
    # Of one architecture's configurations the one with most kernels has all of the others'.
    entries: dict[str, Result] = {}
    for entry in sorted(result["entries"], key=lambda entry: len(entry["kernels"])):
        entries[entry["architecture"]] = entry
    found: dict[str, dict[str, str]] = {}
    for architecture, entry in entries.items():
        for kernel in entry["kernels"]:
            notes = [
                f"{kernel[key]} B {name}"
                for key, name in (("spill_stores", "spilled"), ("spill_loads", "reloaded"), ("stack", "stack"))
                if kernel[key]
            ]
            text = f"{kernel['registers']}" + (f" ({', '.join(notes)})" if notes else "")
            found.setdefault(kernel["kernel"], {})[architecture] = text
    rows = [[f"`{name}`", *(cells.get(a) for a in entries)] for name, cells in sorted(found.items())]
    chosen = [f"{name} = {value}" for name, value in next(iter(entries.values()))["configuration"].items()]
    seconds = [entry["seconds"] for entry in result["entries"]]
    text = (
        f"Registers per thread, with what is spilled and what stack is used where that is not nothing; NVRTC "
        f"{result['nvrtc']},\n{', '.join(['default choices', *chosen])}. Compiling all for one architecture takes "
        f"{min(seconds):.1f} to {max(seconds):.1f} s.\n`metrics` and `jacobian` run at the start only."
    )
    return section(heading, text, table(["kernel", *entries], rows))


def _counted(result: Result) -> str:
    text = (
        "Of a stage with the time step and the norms, bytes per point; the same on every machine, and not to grow\n"
        "unseen: CI counts them again. Bytes moved are the least that the kernels must, without faces and lists;\n"
        "bytes held are all arrays of the solver, more per point on these small grids than on large ones."
    )
    rows = [
        [row["flow"], row["plan"], row["launches"], round(row["bytes_moved"]), round(row["bytes_held"])]
        for row in result["rows"]
    ]
    return section("## Counted", text, table(["flow", "plan", "launches", "bytes moved", "bytes held"], rows))


def _rows(results: dict[str, Result], part: str) -> list[Result]:
    return results[part]["rows"] if part in results else []


def _gpu(results: dict[str, Result], codes: Result | None) -> Iterable[str]:
    measured = _rows(results, "rhs")
    rows = [
        [
            f"{row['nodes']}^3", row["precision"].upper(), _terms(row["viscous"]), row["ns_per_point_rhs"],
            row["point_steps_per_s"] / 1e6, row["bytes_per_point"],
        ]
        for row in measured
    ]  # fmt: skip
    text = f"{_place(results['rhs'])}, {results['rhs']['date']}. " if measured else ""
    text += "The same flow as on the CPU; whole steps include the time step's reduction."
    columns = ["points", "precision", "terms", "ns per point and right-hand side", RATE, "bytes per point"]
    yield section("## On a GPU", text, table(columns, rows or [[NOT_MEASURED, *[""] * 5]]))
    if codes:
        others = [[row["code"], row["set_up"], row["gpu"], row["rate"]] for row in codes["rows"]]
        best = [row for row in measured if row["precision"] == "fp64" and row["viscous"]]
        if best:
            most = max(best, key=lambda row: row["point_steps_per_s"])
            gpu = ", ".join(gpu["name"] for gpu in results["rhs"]["hardware"]["gpus"])
            set_up = f"AFWENO5, viscous, curvilinear, FP64, {most['nodes']}^3 points"
            others.insert(0, ["**HiResX**", set_up, gpu, most["point_steps_per_s"] / 1e6])
        yield section(
            "### Beside other codes on GPUs",
            f"{_sentence(codes['what'])}\nThe others' figures: {codes['source']}.",
            table(["code", "set-up", "GPU", "rate"], others),
            _list(codes["caveats"]),
        )
    about = {key: value for row in _rows(results, "machine") for key, value in row.items()}
    yield from (_gpu_kernels(row, about.get("copy_gb_per_s")) for row in _rows(results, "stage"))
    yield from _blocks(_rows(results, "blocks"))
    if runs := _rows(results, "jet"):
        yield _jet(runs, about.get("launch"))


RATE = "10^6 points x steps per s"


def _gpu_kernels(row: Result, copied: float | None) -> str:
    text, columns, rows = KERNEL_NOTE, list(KERNEL_COLUMNS), _kernel_rows(row["kernels"])
    if copied:
        text += f" A copy on the GPU runs at {copied:.0f} GB/s."
        columns.append("% of a copy")
        rows = [[*cells, 100 * cells[-1] / copied if cells[-1] else None] for cells in rows]
    heading = f"### Kernels on a GPU, {row['precision'].upper()}, {row['nodes']}^3 points"
    return section(heading, text, table(columns, rows))


def _blocks(tried: list[Result]) -> Iterable[str]:
    for precision in dict.fromkeys(row["precision"] for row in tried):
        shapes = [row for row in tried if row["precision"] == precision]
        taken = shapes[0]["ns_per_point"]
        heavy = sorted(taken, key=taken.get, reverse=True)[:4]
        rows = [["x".join(map(str, row["block"])), *(row["ns_per_point"][name] for name in heavy)] for row in shapes]
        text = "ns per point of the four heaviest kernels, all directions; the first shape is the one in use."
        columns = ["threads", *(f"`{name}`" for name in heavy)]
        yield section(f"### Shapes of thread blocks, {precision.upper()}", text, table(columns, rows))


def _jet(runs: list[Result], launch: Result | None) -> str:
    rows = [[r["preset"], r["points"], r["blocks"], r["steps_per_s"], r["point_steps_per_s"] / 1e6] for r in runs]
    text = "The bundled case, as `hiresx run planar-jet` runs it."
    if launch:
        text += f" A launch takes {launch['launch_us']:.1f} microseconds, which is what small blocks wait for."
    columns = ["preset", "points", "blocks", "steps per s", RATE]
    return section("### The planar jet on a GPU", text, table(columns, rows))


if __name__ == "__main__":
    sys.exit(main())
