"""Measures the solver on this machine: the right-hand side, first use and start-up."""

from collections.abc import Sequence
from typing import Any

from hiresx.device.rates import known_rate

__all__ = ["known_rate", "run"]

PRECISIONS = ("fp64", "fp32")


def run(
    backend: str = "auto",
    points: int = 64,
    repeats: int = 5,
    threads: Sequence[int] | None = None,
    precisions: Sequence[str] = PRECISIONS,
    start_up: bool = True,
) -> dict[str, Any]:
    """Measure the speed of the right-hand side on `backend`, for blocks of `points`^3 nodes, and return the results.
    Every time is a median of `repeats` measurements.

    `threads`: numbers of threads to measure with on a CPU, None: one, and as many as there are cores. `precisions`: the
    names of the floating-point precisions. `start_up`: whether to measure also the times of a first run with an empty
    kernel cache, and of later runs. The result is a dictionary with `rhs` (a dictionary for each measurement),
    `start_up` (seconds), and facts about software and machine. The rates are stored for the estimates of `hiresx
    check`. Raises HiresxError for too few points, and for a backend that is unknown or not available.
    """
    from hiresx.bench import rhs
    from hiresx.bench.results import header
    from hiresx.bench.start_up import start_up as measured_start_up
    from hiresx.device import backend as find_backend
    from hiresx.device import rates

    device = find_backend(backend)
    counts = rhs.thread_counts(device, threads)
    result = header("bench") | {"backend": device.name, "nodes": points, "points": points**3, "repeats": repeats}
    result["rhs"] = [
        row
        for precision in precisions
        for viscous in (False, True)
        for row in rhs.measure(device, points, viscous, precision, repeats, counts)
    ]
    if start_up:
        result["start_up"] = measured_start_up(device.name, repeats)
    rates.store_rates(result)
    return result
