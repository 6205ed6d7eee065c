"""What steps of many blocks cost on a GPU: the tables "Steps of many blocks" of docs/refinement.md.

    python docs/make/block_steps.py 128 4
    python docs/make/block_steps.py sedov levels-space 300 'grid.n=[40,40,40]' 'refine.tile=16'

Either the number of nodes of a cube along each direction and of blocks into which each direction is cut, for the flow
of `sedov` without levels; or the name of a case, its preset ("-": none), the number of steps before the measurement,
and overrides. Prints the blocks, nodes, launches and the longest chain of launches that wait for each other;
milliseconds of a step by the wall, the least of three times 32 steps, and of its recorded launches, by CUDA events; and
of each kernel, one launch after the other, the launches, milliseconds and nanoseconds a node.
"""

import itertools
import sys
import time
from collections import Counter
from functools import partial
from typing import Any

import numpy as np

from hiresx import Simulation, load
from hiresx.decomposition import Part, domain
from hiresx.device import cuda
from hiresx.device.call import Call
from hiresx.solver import Solver
from hiresx.solver.initial_flow import initial_flow

# Step of launches that are timed one by one: the state stays as it is.
SMALL = 1e-13
# Launches that are timed together, behind others that keep the device busy until they are all there.
TOGETHER = 50


def solver_of_cube(nodes: int, pieces: int) -> Solver:
    """A solver of a blast on a cube that is cut into pieces^3 blocks."""
    case = load("sedov", preset="levels-space", overrides=[f"grid.n=[{nodes},{nodes},{nodes}]"])
    case = case.model_copy(update={"refine": None})
    ends = list(itertools.pairwise(np.linspace(0, nodes, pieces + 1).astype(int).tolist()))
    boxes = [(i, j, k) for k in ends for j in ends for i in ends]
    ground = domain(case, parts=lambda whole: [Part(0, box) for box in boxes])
    return Solver(case, cuda.CudaBackend(), domain=ground, flow=initial_flow(case))


def measure(solver: Solver) -> None:
    """Print what the steps of `solver` cost."""
    import cupy

    solver.advance(16)
    walls = []
    for _ in range(3):
        began = time.perf_counter()
        taken = solver.advance(32)
        walls.append(1e3 * (time.perf_counter() - began) / taken)
    recorded = next(iter(solver.device_resident_steps._recorded.values()))
    graph: Any = recorded._step
    launches, waits = graph._launches
    chain: list[int] = []
    for of_one in waits:
        chain.append(1 + max((chain[n] for n in of_one), default=0))
    recorded._dt.fill(SMALL)
    stream, program = cupy.cuda.get_current_stream(), solver.program
    assert isinstance(program, cuda.CudaProgram)

    def timed(run: Any) -> tuple[Any, Any]:
        ends = cupy.cuda.Event(), cupy.cuda.Event()
        ends[0].record(stream)
        run()
        ends[1].record(stream)
        return ends

    def milliseconds(ends: tuple[Any, Any]) -> float:
        ends[1].synchronize()
        return float(cupy.cuda.get_elapsed_time(*ends))

    alone = min(milliseconds(timed(lambda: graph._graph.launch(stream))) for _ in range(10))
    nodes = sum(int(np.prod(state.size)) for state in solver.states)
    print(
        f"{len(solver.states)} blocks, {nodes:,} nodes; {len(launches)} launches, chain of {max(chain)}; a step "
        f"{min(walls):.3f} ms, {1e6 * min(walls) / nodes:.2f} ns a node; its launches {alone:.3f} ms"
    )
    make: dict[Any, Any] = {Call: program.launch_on, cuda.LoadedBatch: program.launch_batch}
    spent, count = dict[str, float](), Counter[str]()
    for first in range(0, len(launches), TOGETHER):
        for _ in range(1 + int(2 / alone)):
            graph._graph.launch(stream)
        some = launches[first : first + TOGETHER]
        ends = [timed(partial(make[type(one)], stream, None, one)) for one in some]
        for one, between in zip(some, ends, strict=True):
            name = one.name if isinstance(one, Call) else one.entry.name
            spent[name] = spent.get(name, 0.0) + milliseconds(between)
            count[name] += 1
    for name, took in sorted(spent.items(), key=lambda item: -item[1]):
        print(f"{name:32s} {count[name]:5d} {took:9.3f} {1e6 * took / nodes:9.3f}")


def main(name: str, second: str, *rest: str) -> None:
    if name.isdigit():
        measure(solver_of_cube(int(name), int(second)))
        return
    steps, *overrides = rest
    simulation = Simulation(load(name, preset=None if second == "-" else second, overrides=overrides), backend="cuda")
    simulation.run(int(steps), progress=False, write_last=False)
    measure(simulation.solver)


if __name__ == "__main__":
    main(*sys.argv[1:])
