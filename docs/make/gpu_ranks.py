"""The part "ranks" of measure_gpu.py: halo exchange by every transport, and scaling, on two ranks and more."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hiresx.case import load
from hiresx.device import cuda
from hiresx.errors import HiresxError
from hiresx.launch import counts, mpi_library
from hiresx.launch.command import command
from hiresx.scaling.experiment import jobs, run_jobs
from hiresx.scaling.scaling_table import rows

EXCHANGE = (sys.executable, "-P", str(Path(__file__).with_name("exchange_times.py")))
# Two ranks have at least 7 nodes each.
LEAST = 16
# Nodes in a direction: beyond them nothing new is seen, and host memory is short.
LARGEST = 256
STEPS = 10
SECONDS = 300.0  # for one job, at most


def ranks(
    backend: str, sizes: tuple[int, ...], repeats: int, fits: Callable[[float], bool]
) -> Iterator[dict[str, Any]]:
    """Rows of `exchange_times.py` on 2, 4, ... ranks up to the number of GPUs (2, which share it, if there is one),
    `pass` if every ghost was right; then rows of `hiresx.scaling.scaling_table` on as many, on GPUs also by "ipc".
    `skipped` where there is no MPI."""
    try:
        _, launcher = mpi_library.find(None)
    except HiresxError as error:
        yield {"skipped": error.message}
        return
    sizes = tuple(sorted({min(max(size, LEAST), LARGEST) for size in sizes}))
    size = sizes[-1]
    most = max(2, len(cuda.devices())) if backend == "cuda" else 2
    numbers = [n for n in (2, 4, 8, 16) if n <= most]
    for n in numbers:
        if not fits(40):
            yield {"left_out": f"exchange on {n} ranks: no time left"}
            continue
        yield from _exchange(launcher, n, backend, sizes, repeats)
    case = load("taylor-green", overrides=[f"grid.n=[{size}, {size}, {size}]"])
    alone: list[dict[str, Any]] = []
    for transport in ("auto", "ipc") if backend == "cuda" and len(cuda.devices()) > 1 else ("auto",):
        found = alone[:1]
        for job in jobs(numbers if alone else [1, *numbers], []):
            if not fits(60):
                yield {"left_out": f"scaling on {job.ranks} ranks by {transport}: no time left"}
                continue
            found += run_jobs(case, [job], "strong", STEPS, repeats, backend, transport, limit=SECONDS)
        yield from (row | {"nodes": size} for row in rows(found)[len(alone[:1]) :])
        alone = found


def _exchange(launcher: Any, n: int, backend: str, sizes: tuple[int, ...], repeats: int) -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "exchange.json"
        points = ",".join(map(str, sizes))
        arguments = ["--backend", backend, "--points", points, "--repeats", str(repeats), "--out", str(out)]
        line = command(launcher, n, counts.cores(), arguments, EXCHANGE)
        try:
            done = subprocess.run(line, capture_output=True, text=True, timeout=SECONDS, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            yield {"ranks": n, "pass": False, "error": f"the exchange did not end within {SECONDS:g} s"}
            return
        if not out.exists():
            yield {"ranks": n, "pass": False, "error": "\n".join(done.stderr.splitlines()[-5:])}
            return
        for row in json.loads(out.read_text())["rows"]:
            yield {"ranks": n, "pass": row.get("right", True)} | row
