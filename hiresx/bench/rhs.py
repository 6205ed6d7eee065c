"""Times a right-hand side per point, and whole steps."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from statistics import median
from typing import Any

from hiresx.case import Case, load
from hiresx.device.configuration import Configuration
from hiresx.equations.stencil import stencil
from hiresx.errors import HiresxError
from hiresx.solver import Solver
from hiresx.time.step_recording import STEPS

# Number of iterations of the calibration loop (kernels/calibration.h): about 5 ms on a core at 4 GHz.
CALIBRATION_ROUNDS = 5_000_000

LEAST_NODES = stencil(Configuration().interpolation).least_nodes  # of a direction


def flow(points: int, viscous: bool, precision: str) -> Case:
    """Return a case for measurements: the Taylor-Green vortex on `points`^3 nodes of a wavy grid, so that no metric is
    0, inviscid or `viscous`, in `precision`. The scheme is AFWENO5 with Steger-Warming, Jiang-Shu weights and
    characteristic space. Raises HiresxError for too few points."""
    if points < LEAST_NODES:
        raise HiresxError(f"{points} points in a direction are too few", f"take at least {LEAST_NODES}")
    # Lengths come from the case; a displacement of 0.1 in the box of side 2 pi deforms every cell.
    grid = ['grid.generator="wavy"', f"grid.n=[{points}, {points}, {points}]", "grid.amplitude=[0.1, 0.1, 0.1]"]
    gas = [f"gas.prandtl={Configuration.prandtl}", *([] if viscous else ["gas.reynolds=inf"])]
    return load("taylor-green", overrides=[*grid, *gas, f'scheme.precision="{precision}"', "time.steps=1"])


def thread_counts(device: Any, asked: Sequence[int] | None) -> list[int | None]:
    """Return the numbers of threads to measure with on the backend `device`: `asked`, or one and the number of its
    threads (by default all cores) if `asked` is None or empty. The result is [None] for a backend without threads."""
    if not hasattr(device, "threads"):
        return [None]
    return list(asked) if asked else sorted({1, device.threads})


@contextmanager
def only(device: Any, count: int | None) -> Iterator[None]:
    """Return a context manager inside which kernels of the backend `device` run with `count` threads; afterwards with
    as many as before. If `count` is None, nothing changes."""
    if count is None:
        yield
        return
    usual, device.threads = device.threads, count
    try:
        yield
    finally:
        device.threads = usual


def measure(
    device: Any, points: int, viscous: bool, precision: str, repeats: int, counts: Sequence[int | None]
) -> list[dict[str, Any]]:
    """Return the measured times of a right-hand side, one row for each number of threads in `counts`. `device`: the
    backend. `points`: the nodes of the block along each direction. `viscous`: whether the flow is viscous. `precision`:
    the name of the floating-point precision. `repeats`: the number of measurements. A row has the following entries.

    - `precision`, `viscous`, `threads`: the settings of the measurement.
    - `ns_per_point_rhs`: the nanoseconds per node, the median of all measurements; `least` and `most`: the extrema.
    - `bytes_per_point`: the memory per node. `stages`: the nanoseconds per node of each part of the right-hand side.
    - `processor_ns`: on a CPU, the processor time per node of all threads of this process.
    - `calibration_ns`: on a CPU, the time of the calibration loop, which runs before each measurement.
    """
    solver = Solver(flow(points, viscous, precision), device)
    solver.initialize()
    solver.choose_dt()
    rows = []
    for count in counts:
        with only(device, count):
            rows.append({"precision": precision, "viscous": viscous, "threads": count} | time_solver(solver, repeats))
    return rows


def time_solver(solver: Solver, repeats: int) -> dict[str, Any]:
    """Evaluate the right-hand side of `solver` and return the times in nanoseconds per node: the entries of a row of
    `measure` from `ns_per_point_rhs` on. `repeats`: the number of evaluations that are measured. One evaluation before
    them is not measured."""
    device = solver.backend
    solver.right_hand_side()
    device.synchronize()
    solver.stopwatch.reset()
    samples, worked = [], []
    calibration: list[float] = []
    for _ in range(repeats):
        loop = calibrate(solver)
        calibration += [] if loop is None else [loop]
        began = time.process_time()
        samples.append(1e9 * device_seconds(device, solver.right_hand_side) / solver.points)
        worked.append(1e9 * (time.process_time() - began) / solver.points)
    return {
        "ns_per_point_rhs": median(samples),
        "least": min(samples),
        "most": max(samples),
        "processor_ns": median(worked) if hasattr(device, "threads") else None,
        "calibration_ns": median(calibration) if calibration else None,
        "bytes_per_point": solver.bytes / solver.points,
        "stages": {name: 1e9 * s / repeats / solver.points for name, s in solver.stopwatch.seconds.items()},
    }


def device_seconds(device: Any, work: Callable[[], Any]) -> float:
    """Return the seconds that the function `work` takes on the backend `device`, measured by events of the backend."""
    start, stop = device.event(), device.event()
    start.record()
    work()
    stop.record()
    device.synchronize()
    seconds: float = stop.elapsed_time(start)
    return seconds


def step_rate(solver: Solver, seconds: float, clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the measured speed of `solver`: the number of nodes times time steps per second of the `clock`. As many
    complete time steps are measured as take about `seconds`. `clock`: a function that returns the time in seconds."""

    def seconds_of(count: int) -> float:
        began = clock()
        done = 0
        while done < count:
            done += solver.advance(min(STEPS, count - done))
        solver.backend.synchronize()
        return clock() - began

    seconds_of(1)
    count = max(3, min(1000, math.ceil(seconds / seconds_of(1))))
    return count * solver.points / seconds_of(count)


def calibrate(solver: Solver) -> float | None:
    """Return the nanoseconds per iteration of a fixed loop of arithmetic (kernels/calibration.h) on the slowest core, a
    measure of the present speed of the processor. The loop runs on as many cores at once as a kernel has threads. The
    result is None for a backend without such a loop."""
    if "calibrate" not in solver.program.signatures:
        return None
    device: Any = solver.backend
    threads = device.threads
    results = [device.zeros((8,), solver.configuration.real) for _ in range(threads)]

    def loop(result: Any) -> None:
        solver.program.launch("calibrate", None, count=CALIBRATION_ROUNDS, result=result)

    # Python's global lock is released during the loop.
    with ThreadPoolExecutor(threads) as pool:
        began = time.perf_counter()
        list(pool.map(loop, results))
        return 1e9 * (time.perf_counter() - began) / CALIBRATION_ROUNDS
