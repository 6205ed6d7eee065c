"""Timed steps of one rank in a scaling experiment; all ranks measure together.

    mpirun -n N python -m hiresx.scaling.measure CASE.toml RESULT.json [options]

Rank 0 writes RESULT.json.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from hiresx.case import load
from hiresx.errors import HiresxError
from hiresx.mpi.communicator import end_process, world
from hiresx.simulation import Simulation
from hiresx.solver import Solver

# Steps before the measurement: caches are filled, and processors and GPUs reach their clock rates.
WARM_UP = 2


def _advance(solver: Solver, steps: int) -> None:
    """Make steps as a run does: without the host if the device does not need it."""
    while steps > 0:
        steps -= solver.advance(steps)


def measure(simulation: Simulation, steps: int, repeats: int) -> dict[str, Any]:
    """Return the measured time of a step of `simulation` with and without overlap of the exchange of ghost nodes with
    computation. Runs of `steps` steps with and without overlap alternate, `repeats` times. All ranks must call this.

    The result contains `step_s` and `step_without_overlap_s`: seconds per step of every repeat, on the slowest rank.
    With overlap it also has, per step and rank: `stages`, the seconds of each part, and `waited_s`, the seconds of
    waiting for other ranks.
    """
    solver, comm = simulation.solver, simulation.comm
    _advance(solver, WARM_UP)
    taken: dict[bool, list[float]] = {True: [], False: []}
    stages: list[dict[str, float]] = []
    waited = []
    for n in range(2 * repeats):
        solver.overlap = n % 2 == 0
        solver.settle()
        solver.backend.synchronize()
        solver.stopwatch.reset()
        waited_before = solver.halo.seconds_waited
        comm.barrier()
        began = time.perf_counter()
        _advance(solver, steps)
        solver.settle()
        solver.backend.synchronize()
        taken[solver.overlap].append(float(comm.max(time.perf_counter() - began)) / steps)
        if solver.overlap:
            stages.append({name: seconds / steps for name, seconds in solver.stopwatch.seconds.items()})
            waited.append((solver.halo.seconds_waited - waited_before) / steps)
    solver.overlap = True
    own = {
        "stages": {name: median(s[name] for s in stages) for name in stages[0]},
        "waited_s": median(waited),
        "points": sum(state.block.points for state in solver.states),
        "neighbours": len(solver.halo.neighbours),
        "transports": sorted({neighbour.transport for neighbour in solver.halo.neighbours}),
        "sent_bytes": solver.integrator.stages * sum(n.state_bytes + n.flux_bytes for n in solver.halo.neighbours),
    }
    seats = simulation.placement.document()["ranks"]
    return {
        "ranks": comm.size,
        "hosts": len(set(comm.hosts)),
        "points": solver.points,
        "viscous": solver.configuration.viscous,
        "precision": simulation.case.scheme.precision,
        "steps": steps,
        "step_s": taken[True],
        "step_without_overlap_s": taken[False],
        "by_rank": [seat | some for seat, some in zip(seats, comm.allgather(own), strict=True)],
    }


def main(arguments: list[str] | None = None) -> int:
    """Measure the speed of a case on the ranks of this run, write the result of `measure` as JSON to a file, and return
    the exit status: 0, or 2 after an error, which is printed. `arguments`: the words of the command line, among them
    the case file and the file to write; None: those of this process. All ranks must call this."""
    parser = argparse.ArgumentParser(prog="python -m hiresx.scaling.measure", description=__doc__.splitlines()[0])
    parser.add_argument("case", help="a case file")
    parser.add_argument("result", type=Path, help="file to write")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--backend", default="auto")
    parser.add_argument("--transport", default="auto")
    parser.add_argument("--placement", default=None)
    parser.add_argument("--weights", default=None, help="speeds of the ranks, separated by commas")
    asked = parser.parse_args(arguments)
    comm = world()
    try:
        with comm.together():
            case = load(asked.case)
            weights = None if asked.weights is None else [float(part) for part in asked.weights.split(",")]
        simulation = Simulation(
            case, asked.backend, comm=comm, transport=asked.transport, placement=asked.placement, weights=weights
        )
        found = measure(simulation, asked.steps, asked.repeats)
        if comm.root:
            asked.result.write_text(json.dumps(found))
    except HiresxError as error:
        text = str(error)
        return end_process(error, 2, lambda prefix: print(f"error: {prefix}{text}", file=sys.stderr))
    return 0


if __name__ == "__main__":
    sys.exit(main())
