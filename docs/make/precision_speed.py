"""Measures speed and memory of every precision: whole steps of the Taylor-Green vortex on a wavy grid.

python docs/make/precision_speed.py --backend cuda --points 256 --out docs/results/precision-h200.json
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from hiresx.bench import rhs
from hiresx.bench.results import header
from hiresx.device import backend
from hiresx.device.interface import Backend
from hiresx.equations.storage import PRECISIONS
from hiresx.grid import build
from hiresx.solver import Solver

STEPS, REPEATS = 5, 3


def measure(device: Backend, points: int) -> list[dict[str, Any]]:
    """Of every precision, with and without viscous terms: `point_steps_per_s` of whole steps (the median of `rates`),
    `bytes_per_point`, `plan`."""
    case = rhs.flow(points, True, "fp64")
    grid = build(case.grid, case.directory)
    return [
        _measure(Solver(rhs.flow(points, viscous, precision), device, grid=grid), precision, viscous)
        for viscous in (True, False)
        for precision in PRECISIONS
    ]


def _measure(solver: Solver, precision: str, viscous: bool) -> dict[str, Any]:
    solver.initialize()
    solver.choose_dt()
    _advance(solver)
    rates = [solver.points * STEPS / _advance(solver) for _ in range(REPEATS)]
    return {
        "precision": precision,
        "viscous": viscous,
        "point_steps_per_s": median(rates),
        "rates": rates,
        "bytes_per_point": solver.bytes / solver.points,
        "plan": solver.plan,
    }


def _advance(solver: Solver) -> float:
    """Seconds of `STEPS` steps."""
    began, done = time.perf_counter(), 0
    while done < STEPS:
        done += solver.advance(STEPS - done)
    solver.backend.synchronize()
    return time.perf_counter() - began


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns its exit status."""
    parser = argparse.ArgumentParser(prog="python docs/make/precision_speed.py", description=__doc__)
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--points", type=int, default=64)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args(arguments)
    rows = measure(backend(options.backend), options.points)
    result = header("precisions") | {"backend": options.backend, "nodes": options.points, "rows": rows}
    options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
