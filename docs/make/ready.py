"""How long a large flow takes until it is ready to step, and its first steps:

    python docs/make/ready.py --points 512 --backend cuda --json > docs/results/performance-h200-ready-512.json

The Taylor-Green vortex of `hiresx bench` on a bent box, nothing written, in one process that ends afterwards.
"""

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def process_age() -> float:
    """Seconds since this process began, to a hundredth."""
    begun = float(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
    return time.clock_gettime(time.CLOCK_BOOTTIME) - begun


def ready(points: int, backend: str, precision: str, plan: str, steps: int) -> dict[str, Any]:
    """Of the viscous flow on `points`^3 nodes: `imported_s`, `ready_s` and `done_s` since the process began, the `plan`
    that was taken, `bytes_per_point` of its fields, `reals` a node with ghosts, `steps_s` of each step."""
    from hiresx.bench import rhs
    from hiresx.simulation import Simulation

    imported = process_age()
    case = rhs.flow(points, True, precision).model_copy(update={"plan": plan})
    simulation = Simulation(case, backend=backend)
    solver, device = simulation.solver, simulation.backend
    device.synchronize()
    found: dict[str, Any] = {"imported_s": imported, "ready_s": process_age(), "steps_s": []}
    for _ in range(steps):
        began = time.perf_counter()
        solver.advance(1)
        device.synchronize()
        found["steps_s"].append(time.perf_counter() - began)
    padded = sum(state.variable_stride * state.q.itemsize for state in solver.states)
    return found | {
        "done_s": process_age(),
        "backend": device.name,
        "nodes": points,
        "precision": precision,
        "plan": solver.plan,
        "bytes_per_point": solver.bytes / solver.points,
        "reals": round(solver.bytes / padded),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="python docs/make/ready.py",
        description="Seconds from the start of the process until a flow is ready to step.",
    )
    parser.add_argument("--points", type=int, default=128, help="nodes in each direction (default: %(default)s)")
    parser.add_argument("--backend", default="auto", help="auto, cpu, cuda, emulated (default: %(default)s)")
    parser.add_argument("--precision", default="fp64", choices=("fp64", "fp32"))
    parser.add_argument("--plan", default="auto", help="as the key plan of a case (default: %(default)s)")
    parser.add_argument("--steps", type=int, default=3, help="steps that are taken (default: %(default)s)")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    asked = parser.parse_args(arguments)
    from hiresx.errors import HiresxError

    try:
        found = ready(asked.points, asked.backend, asked.precision, asked.plan, asked.steps)
    except HiresxError as error:
        print(error, file=sys.stderr)
        return 2
    if not asked.json:
        print("{nodes}^3 nodes, plan {plan}: ready to step after {ready_s:.2f} s".format(**found))
        print(f"steps of {', '.join(f'{seconds:.3f}' for seconds in found['steps_s'])} s")
        return 0
    from hiresx.bench.results import header

    print(json.dumps(header("ready") | {"backend": found["backend"], "rows": [found]}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
