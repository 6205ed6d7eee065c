"""The rate of whole steps against the size of the grid, on one core or a GPU:

    python docs/make/grid_sizes.py --json > docs/results/sizes-cpu.json

paper_figures.py draws it as Ye et al., Advances in Aerodynamics 4:7 (2022), have it in Fig. 13. On a GPU
`python docs/make/measure_gpu.py --parts loops` measures it.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

from hiresx.bench import PRECISIONS, rhs
from hiresx.bench.results import header
from hiresx.device import backend as find_backend
from hiresx.device.interface import Backend
from hiresx.errors import HiresxError
from hiresx.grid import build
from hiresx.solver import Solver, default_plan

KIND = "sizes"
# Nodes in a direction, 1.0e6 to 9.9e6 points: as many as a core steps through in a minute.
SIZES = (100, 160, 215)
STEPPING = 1.0  # seconds of stepping that a rate is taken from, at least three steps


def measure(
    device: Backend, n: int, precision: str, plans: Sequence[str], seconds: float = STEPPING
) -> Iterator[dict[str, Any]]:
    """One row for each plan: `nodes`, `points`, `precision`, `plan`, `threads` (one on a CPU), `set_up_s` and
    `point_steps_per_s` of the viscous flow of `hiresx.bench.rhs`, steps for about so many `seconds`, of wall time or of
    one core's work for this process, as `clock` says. Raises HiresxError for too few points and too little memory."""
    case = rhs.flow(n, True, precision)
    grid = build(case.grid, case.directory)
    threads = 1 if hasattr(device, "threads") else None
    for plan in plans:
        with rhs.only(device, threads):
            began = time.perf_counter()
            solver = Solver(case, device, plan=plan, grid=grid)
            solver.initialize()
            device.synchronize()
            taken = time.perf_counter() - began
            row = {"nodes": n, "points": solver.points, "precision": precision, "plan": plan, "threads": threads}
            # A core may have other work: what it does for this process is its rate.
            clock = time.perf_counter if threads is None else time.process_time
            row |= {"set_up_s": taken, "clock": "wall" if threads is None else "processor"}
            row["point_steps_per_s"] = rhs.step_rate(solver, seconds, clock)
        del solver  # what follows has its memory
        yield row


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns its exit status."""
    parser = argparse.ArgumentParser(prog="python docs/make/grid_sizes.py", description=__doc__.partition("\n")[0])
    parser.add_argument("--backend", default="cpu", help="cpu (one core), cuda or emulated; default: %(default)s")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="nodes in a direction; default: %(default)s")
    parser.add_argument("--precision", choices=PRECISIONS, default="fp64", help="default: %(default)s")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    asked = parser.parse_args(arguments)
    try:
        sizes = [int(size) for size in asked.sizes.split(",")]
    except ValueError:
        parser.error(f"--sizes {asked.sizes}: whole numbers separated by commas are wanted")
    rows = []
    try:
        device = find_backend(asked.backend)
        for n in sizes:
            for row in measure(device, n, asked.precision, [default_plan(device.name)]):
                print(
                    f"{n}^3, {row['plan']}: {row['point_steps_per_s'] / 1e6:.4g}e6 points x steps per s",
                    file=sys.stderr,
                )
                rows.append(row)
    except HiresxError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if asked.json:
        print(json.dumps(header(KIND) | {"backend": device.name, "rows": rows}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
