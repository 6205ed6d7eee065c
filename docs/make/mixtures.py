"""The part "hybrid" of measure_gpu.py: compares the answers of ranks on GPUs and CPUs together, and times them."""

import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from hiresx.case import load
from hiresx.errors import HiresxError
from hiresx.launch import counts, mpi_library
from hiresx.launch.command import PROGRAM, command
from hiresx.output.saved import checkpoint
from hiresx.output.show.compare import compare
from hiresx.scaling.experiment import Job, run_jobs

# Bundled cases, presets, changes and steps whose answers are compared: periodic, and with outflows and many blocks.
CASES: tuple[tuple[str, str | None, tuple[str, ...], int], ...] = (
    ("taylor-green", None, ("grid.n=[48, 48, 48]",), 10),
    ("planar-jet", "quick", (), 20),
)
# Of values of order one: sums over the ranks are taken in another order.
SAME = 1e-13
# Nodes in a direction of the flow that is timed: a GPU is full, and a CPU's share of it has some layers of nodes.
LARGEST = 256
STEPS = 10
SECONDS = 300.0  # for one job, at most

Row = dict[str, Any]


def mixtures(backend: str, gpus: int) -> list[str]:
    """As `--backend` takes them: with a CPU as the last rank and as the first, on one GPU and on two."""
    found = [f"{backend}:1,cpu:1", f"cpu:1,{backend}:1", f"{backend}:1,cpu:2"]
    return found + ([f"{backend}:2,cpu:1", f"cpu:1,{backend}:2"] if gpus > 1 else [])


def hybrid(
    backend: str, gpus: int, sizes: tuple[int, ...], repeats: int, fits: Callable[[float], bool]
) -> Iterator[Row]:
    """Rows of `case`, `mixture` and `difference`, the greatest between the conservative variables of a rank alone and
    of the mixture after some steps, `pass` if it is at most SAME; then rows of `step_s` of the GPUs alone and of
    mixtures, whose CPU ranks have as many nodes as their speed alone calls for, and of their `gain`: the relative
    increase of the speed over that of the GPUs of the mixture alone. `skipped` where there is no MPI."""
    try:
        _, launcher = mpi_library.find(None)
    except HiresxError as error:
        yield {"skipped": error.message}
        return
    mixed = mixtures(backend, gpus)
    for name, preset, changes, steps in CASES:
        if fits(60):
            yield from _answers(launcher, name, preset, changes, steps, backend, mixed)
        else:
            yield {"left_out": f"answers of {name}: no time left"}
    yield from _gains(min(max(sizes), LARGEST), repeats, backend, mixed, fits)


def _ranks(mixture: str) -> list[str]:
    """The backends of the ranks."""
    parts = [part.split(":") for part in mixture.split(",")]
    return [name for name, count in parts for _ in range(int(count))]


def _answers(
    launcher: Any, name: str, preset: str | None, changes: tuple[str, ...], steps: int, backend: str, mixed: list[str]
) -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        kept: dict[str, Path] = {}
        for mixture in (f"{backend}:1", *mixed):
            out = Path(folder) / mixture.replace(":", "-")
            arguments = [name, "--steps", str(steps), "--backend", mixture, "--out", str(out)]
            arguments += ["--preset", preset] if preset else []
            arguments += [word for change in changes for word in ("--set", change)]
            line = command(launcher, len(_ranks(mixture)), counts.cores(), arguments, PROGRAM)
            row = {"case": name, "mixture": mixture, "steps": steps}
            try:
                done = subprocess.run(line, capture_output=True, text=True, timeout=SECONDS, stdin=subprocess.DEVNULL)
            except subprocess.TimeoutExpired:
                yield row | {"pass": False, "error": f"it did not end within {SECONDS:g} s"}
                continue
            if done.returncode:
                yield row | {"pass": False, "error": "\n".join(done.stderr.splitlines()[-5:])}
                continue
            kept[mixture] = checkpoint.list_checkpoints(out)[0]
            if f"{backend}:1" in kept and len(kept) > 1:
                results = compare(kept[f"{backend}:1"], kept[mixture])["results"]
                greatest = max(found["greatest"] for found in results["variables"])
                yield row | {"difference": greatest, "pass": results["one_time"] and greatest <= SAME}


def _gains(size: int, repeats: int, backend: str, mixed: list[str], fits: Callable[[float], bool]) -> Iterator[Row]:
    case = load("taylor-green", overrides=[f"grid.n=[{size}, {size}, {size}]"])
    taken: dict[str, float] = {}

    def timed(mixture: str, weights: tuple[float, ...] | None = None) -> Row:
        job = Job(len(_ranks(mixture)), None, weights)
        (found,) = run_jobs(case, [job], "strong", STEPS, repeats, mixture, limit=SECONDS)
        taken[mixture] = median(found["step_s"])
        return {
            "nodes": size, "mixture": mixture, "step_s": taken[mixture],
            "points": [seat["points"] for seat in found["by_rank"]],
            "waited_s": [seat["waited_s"] for seat in found["by_rank"]],
            "transports": sorted({name for seat in found["by_rank"] for name in seat["transports"]}),
        }  # fmt: skip

    for mixture in mixed:
        if mixture.startswith("cpu"):
            continue  # only the order of the ranks is another one
        names = _ranks(mixture)
        alone = {name: f"{name}:{names.count(name)}" for name in (backend, "cpu")}
        for each in dict.fromkeys(alone.values()):
            if each not in taken and fits(60):
                yield timed(each)
        if not fits(60) or not set(alone.values()) <= taken.keys():
            yield {"left_out": f"gain of {mixture}: no time left"}
            continue
        # Points per second of a rank of each kind.
        speeds = {name: 1 / (names.count(name) * taken[each]) for name, each in alone.items()}
        fastest = max(speeds.values())
        row = timed(mixture, tuple(speeds[name] / fastest for name in names))
        yield row | {"gain": taken[alone[backend]] / row["step_s"] - 1}
