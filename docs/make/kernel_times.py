"""Times each kernel inside a stage, where other kernels run before and after it. Rates at which a device copies and
computes."""

import math
from collections import defaultdict
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
from bytes_moved import reals
from launch_times import Launch, TimingBackend

from hiresx.bench import rhs
from hiresx.bench.rhs import device_seconds
from hiresx.device.configuration import Configuration
from hiresx.device.interface import Backend
from hiresx.solver import Solver, default_plan

# Bytes of each of two arrays whose copying tells the bandwidth: beyond any cache, and little of any memory.
COPIED = 512 * 2**20

# Rounds and points of the chains that tell the rate of arithmetic: some 20 ms of a core, or of a GPU of 30e12 a second.
CHAINS, GPU_CHAINS = (4096, 2**14), (40_000, 2**20)


def plans(device: Backend) -> list[str]:
    """The plan that `device` runs, and the paper's, whose kernels every backend can run."""
    return list(dict.fromkeys([default_plan(device.name), "decomposed"]))


def prepare(device: Backend, points: int, precision: str, plan: str | None = None) -> tuple[Solver, TimingBackend]:
    """Return a solver of the viscous flow of `hiresx.bench.rhs`, whose first stage is done, and the backend that times
    its launches."""
    timed = TimingBackend(device)
    solver = Solver(rhs.flow(points, True, precision), timed, plan=plan)
    solver.initialize()
    stage(solver)
    device.synchronize()
    return solver, timed


def stage_rows(solver: Solver, timed: TimingBackend, repeats: int) -> list[dict[str, Any]]:
    """One row for each kernel and direction of a stage, the time step and the norms:

    `kernel`, `direction` (i, j, k or None), `launches`, `ns_per_point` of all of them together (the median of
    `repeats`), `bytes_per_point` they must move at least and the `gb_per_s` that makes (None where that says nothing,
    see bytes_moved.py), and beside them the median `calibration_ns`.
    """
    samples: dict[tuple[str, str | None], list[float]] = defaultdict(list)
    calibration: list[float] = []
    launches_of_stage: list[Launch] = []
    for _ in range(repeats):
        loop = rhs.calibrate(solver)
        calibration += [] if loop is None else [loop]
        timed.launches = launches_of_stage = []
        stage(solver)
        timed.launches = None
        timed.synchronize()
        for key, launches in _by_kernel(launches_of_stage).items():
            samples[key].append(sum(launch.seconds for launch in launches))
    item = np.dtype(solver.configuration.real).itemsize
    rows = []
    for (kernel, direction), launches in _by_kernel(launches_of_stage).items():
        seconds = median(samples[kernel, direction])
        moved = item * sum(launch.points_visited * reals(kernel, launch.arguments) for launch in launches)
        known = not math.isnan(moved)
        rows.append(
            {
                "kernel": kernel,
                "direction": direction,
                "launches": len(launches),
                "ns_per_point": 1e9 * seconds / solver.points,
                "bytes_per_point": moved / solver.points if known else None,
                "gb_per_s": moved / seconds / 1e9 if known else None,
                "calibration_ns": median(calibration) if calibration else None,
            }
        )
    return rows


def measure(device: Backend, points: int, precision: str, plan: str, repeats: int) -> list[dict[str, Any]]:
    """Measure every kernel of a stage by one plan in one precision. The rows are those of `stage_rows`, each with its
    `plan`, `precision` and `threads`."""
    beside = {"plan": plan, "precision": precision, "threads": getattr(device, "threads", None)}
    return [row | beside for row in stage_rows(*prepare(device, points, precision, plan), repeats)]


def _by_kernel(launches: list[Launch]) -> dict[tuple[str, str | None], list[Launch]]:
    found = defaultdict(list)
    for launch in launches:
        found[launch.kernel, launch.direction].append(launch)
    return found


def stage(solver: Solver) -> None:
    """Compute the time step, the first stage of a step and the norms."""
    solver.choose_dt()
    solver.stage(0)
    solver.norms()


def copy_bandwidth(device: Backend, repeats: int) -> float:
    """GB/s, read and written, of copying an array that no cache holds; on a CPU by one thread. The median of
    `repeats`."""
    source, target = device.zeros((COPIED // 8,)), device.zeros((COPIED // 8,))
    return 2 * COPIED / _median_seconds(device, lambda: device.copy(target, source), repeats) / 1e9


def arithmetic_rate(device: Backend, configuration: Configuration, repeats: int) -> float:
    """10^9 operations a second of independent chains of multiply-adds that wait for no memory (kernels/calibration.h),
    by the whole device, in the precision of the `configuration`. The median of `repeats`."""
    program = device.compile(configuration)
    rounds, points = CHAINS if hasattr(device, "threads") else GPU_CHAINS
    result = device.zeros((points,), configuration.real)

    def work() -> None:
        program.launch("multiply_adds", (points, 1, 1), count=rounds, result=result)

    return 16 * rounds * points / _median_seconds(device, work, repeats) / 1e9


def _median_seconds(device: Backend, work: Callable[[], None], repeats: int) -> float:
    """Seconds that `work` takes the device, after it was done once: the median of `repeats`."""
    work()
    return median(device_seconds(device, work) for _ in range(repeats))
