"""A scaling experiment: several jobs in sequence, each with another number of ranks or another placement."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hiresx.base.plural import plural
from hiresx.case import Case
from hiresx.errors import HiresxError
from hiresx.launch import counts, mpi_library
from hiresx.launch.command import command
from hiresx.output.saved.record import keep_resolved
from hiresx.scaling.weak import refine_for_ranks

PROGRAM = (sys.executable, "-P", "-m", "hiresx.scaling.measure")


@dataclass(frozen=True)
class Job:
    """One run of a scaling experiment. `ranks`: number of ranks. `placement`: the strategy that places them on GPUs;
    None if there are no GPUs, or for the default strategy. `weights`: the relative speed of each rank; None for equal
    speeds or those that were measured."""

    ranks: int
    placement: str | None
    weights: tuple[float, ...] | None = None


def jobs(ranks: Sequence[int], placements: Sequence[str]) -> list[Job]:
    """Return the runs of a scaling experiment: each number in `ranks` with each strategy in `placements`, by which
    ranks are placed on GPUs, such as "optimal" or "paper". A single rank is run once."""
    return [Job(n, name) for n in ranks for name in (placements if n > 1 and placements else (None,))]


def run_jobs(
    case: Case,
    todo: Sequence[Job],
    mode: str,
    steps: int,
    repeats: int,
    backend: str = "auto",
    transport: str = "auto",
    say: Callable[[str], None] = lambda line: None,
    limit: float = 3600.0,
) -> Iterator[dict[str, Any]]:
    """Make the runs `todo` of a scaling experiment one after the other, and yield for each the dictionary of
    `hiresx.scaling.measure`, with the entry "placement": the strategy that placed the ranks on GPUs, or None. `mode`:
    "strong" or "weak"; in weak scaling the number of nodes is proportional to the number of ranks. `steps`: time steps
    of a measurement, which is repeated `repeats` times. `backend`: the name of the backend. `transport`: how ghost
    nodes are sent between ranks, as in the option --transport of `hiresx run`. `say`: a function that is called with
    lines on the progress. `limit`: largest number of seconds of a run. Raises HiresxError in weak scaling for a grid
    without a list `grid.n` of numbers of nodes, if there is no MPI, and with the message of a run that fails."""
    launcher = None
    if any(job.ranks > 1 for job in todo):
        _, launcher = mpi_library.find(None)
    for job in todo:
        now = refine_for_ranks(case, job.ranks) if mode == "weak" else case
        say(f"{plural(job.ranks, 'rank')}" + (f", {job.placement}" if job.placement else ""))
        with tempfile.TemporaryDirectory() as folder:
            yield {"placement": job.placement} | _measure_run(
                Path(folder), now, job, launcher, steps, repeats, backend, transport, limit
            )


def _measure_run(
    folder: Path,
    case: Case,
    job: Job,
    launcher: mpi_library.Mpirun | None,
    steps: int,
    repeats: int,
    backend: str,
    transport: str,
    limit: float,
) -> dict[str, Any]:
    kept = keep_resolved(folder, case)
    result = folder / "result.json"
    arguments = [
        str(kept / "case.toml"), str(result), "--steps", str(steps), "--repeats", str(repeats), "--backend", backend,
        "--transport", transport, *(["--placement", job.placement] if job.placement else []),
        *(["--weights", ",".join(map(str, job.weights))] if job.weights else []),
    ]  # fmt: skip
    line = command(launcher, job.ranks, counts.cores(), arguments, PROGRAM)
    try:
        done = subprocess.run(line, capture_output=True, text=True, timeout=limit, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise HiresxError(
            f"{plural(job.ranks, 'rank')} took more than {limit:g} s for {plural(steps, 'step')}",
            "take fewer --steps, or a smaller case",
        ) from None
    if done.returncode or not result.exists():
        lines = [part for part in done.stderr.splitlines() if part.startswith(("error:", "Error", "RuntimeError"))]
        message = lines[0].removeprefix("error: ") if lines else "\n".join(done.stderr.splitlines()[-5:])
        raise HiresxError(
            f"the run on {plural(job.ranks, 'rank')} failed: {message}", f"try hiresx launch -n {job.ranks} with it"
        )
    found: dict[str, Any] = json.loads(result.read_text())
    return found
