"""Verifies and measures a GPU in one call: `python docs/make/measure_gpu.py --out DIR`.

The parts, in order, each a file DIR/<part>.json that is written anew after every figure, so that a run that is stopped
keeps what it did:

  machine   what it is; bandwidth of a copy; what a launch costs; first use and start-up
  kernels   every kernel against the CPU's (the group "kernels" of `hiresx verify`)
  rhs       the right-hand side and whole steps, 64^3 to 384^3 points, FP64 and FP32, inviscid and viscous; memory
  stage     every kernel of a stage with the bandwidth it reaches
  blocks    the same with other shapes of CUDA's thread blocks
  sweeps    sweeps of the implicit integrator over nodes and lines by each storage of its blocks, 128^3, beside a copy
  loops     loops gone through by node, line and half point; whole steps of both plans, 1e6 to 1e8 points
  jet       steps per second of the bundled planar jet
  ranks     halo exchange by every transport and scaling, on two ranks up to one per GPU; needs mpi4py and an mpirun
  hybrid    ranks on GPUs and CPUs together: their answers against those of one rank, and what the CPUs win
  checks    the other groups of `hiresx verify`

After --minutes (8) nothing is begun any more; what is left out is listed. Exit status 0 if every check passed and
nothing was left out. Needs what `hiresx run --backend cuda` needs, and g++ for the comparison with the CPU.
"""

import argparse
import gc
import json
import math
import shutil
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import block_storage
import grid_sizes as sizes
import kernel_times
import loop_times
from gpu_ranks import ranks
from mixtures import hybrid

from hiresx import verify
from hiresx.base.plural import plural
from hiresx.bench import PRECISIONS, rhs
from hiresx.bench.results import header
from hiresx.bench.start_up import start_up
from hiresx.case import load
from hiresx.device import backend as find_backend
from hiresx.device import cuda
from hiresx.device.interface import Backend
from hiresx.errors import HiresxError
from hiresx.grid import build
from hiresx.output.saved import directories, files
from hiresx.simulation import Simulation
from hiresx.solver import Solver
from hiresx.verify import runner

SIZES = (64, 128, 256, 384)
REPEATS = 5
# Nodes in a direction of the block whose kernels are looked at one by one: 17 million points fill any GPU.
STAGE_SIZE = 256
# The same of sweeps, which need more memory.
SWEPT_SIZE = 128
# Threads (x, y, z): along i, which is contiguous, and across, where neighbouring stencils share what they read.
BLOCKS = (
    (64, 2, 2), (32, 1, 1), (64, 1, 1), (128, 1, 1), (256, 1, 1), (32, 2, 1), (32, 4, 1), (32, 8, 1), (64, 4, 1),
    (32, 2, 2), (32, 4, 2), (16, 4, 4), (32, 2, 4), (128, 2, 1),
)  # fmt: skip
# Presets of the planar jet and how many steps of each.
JETS = (("quick", 500), ("three-d", 50))
# Nodes in a direction of blocks of 1e6 to 1e8 points, as in HiResX's paper, Fig. 13, and the plans that run them.
PAPER_SIZES = (100, 160, 215, 320, 464)
PAPER_PLANS = ("decomposed", "fused")
LONGER = 4  # times so many in the longer of two runs
LAUNCHES = 2000
STEPPING = 1.0  # seconds of stepping that a rate is taken from

Row = dict[str, Any]


@dataclass
class Session:
    """The device under test, the sizes to measure at, and the clock at which nothing is begun any more."""

    device: Any
    sizes: tuple[int, ...]
    end: float

    def fits(self, seconds: float) -> bool:
        return time.monotonic() + seconds < self.end


def machine(session: Session) -> Iterator[Row]:
    if shutil.which("nvidia-smi"):
        asked = "name,driver_version,clocks.sm,clocks.max.sm,clocks.mem,power.limit,memory.total,ecc.mode.current"
        command = ["nvidia-smi", f"--query-gpu={asked}", "--format=csv"]
        yield {"nvidia-smi": subprocess.run(command, capture_output=True, text=True).stdout.strip()}
    yield {"copy_gb_per_s": kernel_times.copy_bandwidth(session.device, REPEATS)}
    yield {"launch": launch_cost(session.device)}
    if session.fits(60):
        yield {"start_up": start_up(session.device.name, 2)}


def launch_cost(device: Backend) -> dict[str, float]:
    """Microseconds that a launch of one point keeps the caller, and that one takes when many follow each other."""
    solver, timed = kernel_times.prepare(device, rhs.LEAST_NODES, "fp64")
    timed.launches = []
    kernel_times.stage(solver)
    launch = next(found for found in timed.launches if found.kernel.endswith("update"))
    timed.launches = None
    device.synchronize()
    began = time.perf_counter()
    for _ in range(LAUNCHES):
        solver.program.launch(launch.kernel, (1, 1, 1), **launch.arguments)
    returned = time.perf_counter()
    device.synchronize()
    ended = time.perf_counter()
    return {"call_us": 1e6 * (returned - began) / LAUNCHES, "launch_us": 1e6 * (ended - began) / LAUNCHES}


def check_kernels(session: Session) -> Iterator[Row]:
    yield from verify.run(["kernels"], session.device.name, say=_nothing)


def right_hand_sides(session: Session) -> Iterator[Row]:
    expected = 0.0  # seconds a size takes, from the one before
    for n in session.sizes:
        began = time.monotonic()
        grid = None
        for precision, viscous in product(("fp64", "fp32"), (True, False)):
            if not session.fits(expected):
                yield {"left_out": f"{n}^3 {precision} {'viscous' if viscous else 'inviscid'}: no time left"}
                continue
            case = rhs.flow(n, viscous, precision)
            grid = grid or build(case.grid, case.directory)
            start = time.monotonic()
            solver = Solver(case, session.device, grid=grid)
            solver.initialize()
            solver.choose_dt()
            set_up = time.monotonic() - start
            row = {"nodes": n, "points": solver.points, "precision": precision, "viscous": viscous, "set_up_s": set_up}
            row |= rhs.time_solver(solver, REPEATS)
            row["point_steps_per_s"] = rhs.step_rate(solver, STEPPING)
            row["gpu_bytes_per_point"] = _memory_per_point(session.device, solver)
            yield row
            del solver
            _release(session.device)
        following = next((m for m in session.sizes if m > n), n)
        expected = (time.monotonic() - began) / 4 * (following / n) ** 3


def stage(session: Session) -> Iterator[Row]:
    n = _stage_size(session)
    for precision in ("fp64", "fp32"):
        yield {"nodes": n, "precision": precision, "kernels": _stage_rows(session, n, precision)}


def _stage_size(session: Session) -> int:
    return max((n for n in session.sizes if n <= STAGE_SIZE), default=min(session.sizes))


def _stage_rows(session: Session, n: int, precision: str) -> list[Row]:
    try:
        return kernel_times.stage_rows(*kernel_times.prepare(session.device, n, precision), REPEATS)
    finally:
        _release(session.device)


def blocks(session: Session) -> Iterator[Row]:
    n = _stage_size(session)
    for precision in ("fp64", "fp32"):
        solver, timed = kernel_times.prepare(session.device, n, precision)
        program: Any = solver.program
        for block in BLOCKS if hasattr(program.program, "block") else ():
            if not session.fits(0):
                yield {"left_out": f"block {block} {precision}: no time left"}
                continue
            program.program.block = block
            kernel_times.stage(solver)
            taken: dict[str, float] = {}
            for row in kernel_times.stage_rows(solver, timed, 3):
                taken[row["kernel"]] = taken.get(row["kernel"], 0.0) + row["ns_per_point"]
            yield {"nodes": n, "precision": precision, "block": block, "ns_per_point": taken}
        del solver, timed
        _release(session.device)


def sweeps(session: Session) -> Iterator[Row]:
    n = max((n for n in session.sizes if n <= SWEPT_SIZE), default=min(session.sizes))
    for measured in block_storage.measurements(session.device, n):
        yield measured() if session.fits(10) else {"left_out": f"a sweep on {n}^3 nodes: no time left"}
        _release(session.device)


def loops(session: Session) -> Iterator[Row]:
    device = session.device
    for precision in PRECISIONS:
        worst = max(error for _, error in loop_times.disagreements(device, loop_times.COUNTED, precision))
        yield {"precision": precision, "disagreement": worst}
    for precision in PRECISIONS:
        if not session.fits(10):
            yield {"left_out": f"loop modes {precision}: no time left"}
            continue
        n = _stage_size(session)
        yield {"nodes": n, "precision": precision, "loops": loop_times.measure(device, n, precision, REPEATS)}
        _release(device)
    expected = 0.0  # seconds a size takes, from the one before
    for number, n in enumerate(PAPER_SIZES):
        if not session.fits(expected):
            yield {"left_out": f"{n}^3: no time left"}
            continue
        began = time.monotonic()
        for row in sizes.measure(device, n, "fp64", PAPER_PLANS, STEPPING / 3):
            yield row
            _release(device)
        following = PAPER_SIZES[min(number + 1, len(PAPER_SIZES) - 1)]
        expected = (time.monotonic() - began) * (following / n) ** 3


def jet(session: Session) -> Iterator[Row]:
    for preset, steps in JETS:
        if not session.fits(30):
            yield {"left_out": f"planar-jet {preset}: no time left"}
            continue
        began = time.monotonic()
        simulation = Simulation(load("planar-jet", preset), session.device.name)
        simulation.run(steps=2, progress=False)
        start = time.monotonic() - began
        # A run looks for the places of its probes first: that is no matter of its steps.
        short, done = (simulation.run(steps=number, progress=False) for number in (steps, LONGER * steps))
        steps_done = (LONGER - 1) * steps
        yield {
            "preset": preset,
            "points": simulation.solver.points,
            "blocks": len(simulation.blocks),
            "steps": steps_done,
            "steps_per_s": steps_done / (done["wall_s"] - short["wall_s"]),
            "point_steps_per_s": done["point_steps_per_s"],
            "ns_per_point_rhs": done["ns_per_point_rhs"],
            "stages": done["stages"],
            "set_up_s": start,
        }
        del simulation
        _release(session.device)


def checks(session: Session) -> Iterator[Row]:
    for group in runner.choose_groups([]):
        if group == "kernels":
            continue
        if not session.fits(0):
            yield {"left_out": f"group {group}: no time left"}
            continue
        yield from verify.run([group], session.device.name, say=_nothing)


PARTS: dict[str, Callable[[Session], Iterator[Row]]] = {
    "machine": machine,
    "kernels": check_kernels,
    "rhs": right_hand_sides,
    "stage": stage,
    "blocks": blocks,
    "sweeps": sweeps,
    "loops": loops,
    "jet": jet,
    "ranks": lambda session: ranks(session.device.name, session.sizes, REPEATS, session.fits),
    "hybrid": lambda session: hybrid(session.device.name, len(cuda.devices()), session.sizes, REPEATS, session.fits),
    "checks": checks,
}


def _nothing(line: str) -> None:
    pass


def _memory_per_point(device: Backend, solver: Solver) -> float | None:
    """Bytes per point that this process holds of the GPU's memory; None where there is none."""
    if device.name != "cuda":
        return None
    import cupy

    pool = cupy.get_default_memory_pool()
    pool.free_all_blocks()
    held: float = pool.total_bytes() / solver.points
    return held


def _release(device: Backend) -> None:
    """Gives the memory of arrays that are gone back to the GPU."""
    gc.collect()
    if device.name == "cuda":
        import cupy

        cupy.get_default_memory_pool().free_all_blocks()


def work(session: Session, name: str, folder: Path) -> bool:
    """Works through a part and keeps its rows in `folder`/<name>.json; whether it came to its end, left nothing out and
    all checks in it passed."""
    rows: list[Row] = []
    # as `hiresx verify --json` has it, so that a page made of those takes these too
    key = "checks" if name in ("kernels", "checks") else "rows"
    result = header(f"device-{name}") | {"backend": session.device.name, key: rows, "left_out": [], "error": None}
    began = time.monotonic()
    print(f"--- {name}", flush=True)
    try:
        _write(folder / f"{name}.json", result | {"wall_s": 0.0})
        for row in PARTS[name](session):
            print(_line(row), flush=True)
            if "left_out" in row:
                result["left_out"].append(row["left_out"])
            else:
                rows.append(row)
            _write(folder / f"{name}.json", result | {"wall_s": time.monotonic() - began})
    except Exception as error:
        # One call may be all there is of a machine: the next part goes on, and the file says what happened here.
        result["error"] = str(error) if isinstance(error, HiresxError) else traceback.format_exc()
        print(result["error"], flush=True)
    passed = all(row.get("pass") is not False for row in rows)
    _write(folder / f"{name}.json", result | {"wall_s": time.monotonic() - began, "pass": passed})
    return passed and result["error"] is None and not result["left_out"]


def _write(path: Path, result: dict[str, Any]) -> None:
    try:
        with files.replacing(path) as temporary:
            temporary.write_text(json.dumps(_plain(result), indent=1, allow_nan=False) + "\n")
    except OSError as error:
        raise files.io_error(path, error) from None


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _line(row: Row) -> str:
    """What a row says, shortly."""
    if "check" in row:
        mark, error = "pass" if row["pass"] else "FAIL", row.get("error", "")
        return f"{mark}  {row['group']}: {row['check']}: {row['value']:.4g}  {error}".strip()
    shown = {key: value for key, value in row.items() if not isinstance(value, dict | list) and value is not None}
    texts = [f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}" for key, value in shown.items()]
    for key in ("launch", "start_up", "ns_per_point"):
        figures = {name: v for name, v in row.get(key, {}).items() if isinstance(v, float)}
        most = sorted(figures, key=lambda name: -figures[name])[:4]
        texts += [f"{name} {figures[name]:.4g}" for name in most]
    for found in row.get("kernels", ()):
        speed = "" if found["gb_per_s"] is None else f", {found['gb_per_s']:.0f} GB/s"
        name = f"{found['kernel']} {found['direction'] or ''}".strip()
        texts.append(f"\n  {name}: {found['ns_per_point']:.4g} ns{speed}")
    return "  ".join(texts)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns its exit status."""
    began = time.monotonic()
    parser = argparse.ArgumentParser(
        prog="python docs/make/measure_gpu.py", formatter_class=argparse.RawDescriptionHelpFormatter,
        description=__doc__,
    )  # fmt: skip
    parser.add_argument("--out", type=Path, required=True, help="folder for the results")
    parser.add_argument("--backend", default="cuda", help="default: %(default)s")
    parser.add_argument("--sizes", type=_numbers, default=SIZES, help="nodes in a direction, separated by commas")
    parser.add_argument("--minutes", type=float, default=8.0, help="default: %(default)s")
    parser.add_argument("--parts", default=",".join(PARTS), help="separated by commas; default: %(default)s")
    options = parser.parse_args(arguments)
    parts = options.parts.split(",")
    if unknown := [name for name in parts if name not in PARTS]:
        parser.error(f"no part is called {unknown[0]}: parts are {', '.join(PARTS)}")
    try:
        folder = directories.make_directory(options.out)
        device = find_backend(options.backend)
        session = Session(device, tuple(sorted(options.sizes)), began + 60 * options.minutes)
        done = [work(session, name, folder) for name in parts]
    except HiresxError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(f"{sum(done)} of {plural(len(done), 'part')} in order, {time.monotonic() - began:.0f} s: {folder}")
    return 0 if all(done) else 1


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(","))


if __name__ == "__main__":
    sys.exit(main())
