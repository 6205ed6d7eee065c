"""What a right-hand side costs on this machine, and the rates that estimates are made with."""

import json
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from hiresx.case import Case
from hiresx.device import backend as find_backend
from hiresx.solver import Solver

# Rounds of the calibration loop (kernels/calibration.h), about 5 ms on a core at 4 GHz.
CALIBRATION_ROUNDS = 2_500_000


def run(backend: str = "auto", points: int = 64, repeats: int = 5, threads: list[int] | None = None) -> dict[str, Any]:
    """Time the right-hand side of a Taylor-Green vortex on `points`^3 nodes of a wavy grid, FP64 and FP32, inviscid and
    viscous (AFWENO5, Steger-Warming, Jiang-Shu weights, characteristic space).

    Every figure is the median of `repeats` evaluations, after one that is not counted; on the CPU for one thread and
    for all of them. `stages`: nanoseconds per point by part. The rates are kept for `hiresx check`.
    """
    device = find_backend(backend)
    on_cpu = device.name == "cpu"
    counts = threads or (sorted({1, device.threads}) if on_cpu else [None])
    rows = []
    for precision in ("fp64", "fp32"):
        for viscous in (False, True):
            began = time.perf_counter()
            solver = Solver(_case(points, viscous, precision), device)
            start_up = time.perf_counter() - began
            solver.initialize()
            solver.choose_dt()
            for count in counts:
                if count is not None:
                    device.threads = count
                rows.append(
                    {"precision": precision, "viscous": viscous, "threads": count, "start_up_s": start_up}
                    | _measure(device, solver, repeats)
                )
    if on_cpu:
        device.threads = counts[-1]
    result = {"backend": device.name, "points": points**3, "rows": rows}
    _keep(result)
    return result


def _measure(device, solver: Solver, repeats: int) -> dict[str, Any]:
    solver.right_hand_side()
    device.synchronize()
    solver.stopwatch.reset()
    samples, calibration = [], []
    for _ in range(repeats):
        if device.name == "cpu":
            calibration.append(_calibrate(solver))
        start, stop = device.event(), device.event()
        start.record()
        solver.right_hand_side()
        stop.record()
        device.synchronize()
        samples.append(1e9 * stop.elapsed(start) / solver.points)
    stages = {name: 1e9 * s / repeats / solver.points for name, s in solver.stopwatch.seconds.items()}
    return {
        "ns_per_point_rhs": median(samples),
        "least": min(samples),
        "most": max(samples),
        "calibration_ns": median(calibration) if calibration else None,
        "bytes_per_point": solver.bytes / solver.points,
        "stages": stages,
    }


def _calibrate(solver: Solver) -> float:
    """Nanoseconds per round of the calibration loop, on one core."""
    result = solver.backend.zeros((8,), solver.configuration.real)
    began = time.perf_counter()
    solver.program.run("calibrate", CALIBRATION_ROUNDS, result)
    return 1e9 * (time.perf_counter() - began) / CALIBRATION_ROUNDS


def _case(points: int, viscous: bool, precision: str) -> Case:
    size = 2 * np.pi
    return Case.from_dict(
        {
            "gas": {"reynolds": 16000.0} if viscous else {},
            "grid": {
                "generator": "wavy",
                "n": [points] * 3,
                "lower": [0.0] * 3,
                "upper": [float(size)] * 3,
                "periodic": ["x", "y", "z"],
                "amplitude": [0.1] * 3,
            },
            "scheme": {"precision": precision},
            "time": {"steps": 1},
            "initial": {"state": {"rho": 1.0, "u": 0.1, "p": 0.7}},
            "boundary": [{"faces": "all", "type": "periodic"}],
        }
    )


def _rates_file() -> Path:
    from hiresx.device.cache import directory

    return directory() / "rates.json"


def _keep(result: dict[str, Any]) -> None:
    path = _rates_file()
    known = _read(path)
    for row in result["rows"]:
        # the last row of a kind is the one with all threads
        key = f"{result['backend']}/{row['precision']}/{'viscous' if row['viscous'] else 'inviscid'}"
        known[key] = {"ns_per_point_rhs": row["ns_per_point_rhs"], "threads": row["threads"], "from": "hiresx bench"}
    path.write_text(json.dumps(known, indent=2) + "\n")


def _read(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return {}


def known_rate(backend: str, viscous: bool, precision: str) -> dict[str, Any] | None:
    """The last rate measured here by `run` for a kind of case: ns_per_point_rhs, threads, from; None without one."""
    return _read(_rates_file()).get(f"{backend}/{precision}/{'viscous' if viscous else 'inviscid'}")
