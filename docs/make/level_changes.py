"""What a change of tiles costs: the tables "A change of tiles" of docs/refinement.md.

    OMP_NUM_THREADS=1 python docs/make/level_changes.py shock-diffraction - 20 cpu 10
    OMP_NUM_THREADS=1 python docs/make/level_changes.py sedov levels-space 5 emulated 2 'grid.n=[24,24,24]'

Name of a case, its preset ("-": none), number of changes that are made in the run, backend, number of changes to and
fro between the tiles before and after the last of these, overrides. Prints for each direction the blocks before and
after, those that stay, the copies between host and device with their bytes, the copies and allocations on the device,
the prepared lists of launches, and the least and the median of the processor seconds of a change. Copies of CuPy beside
the backend, such as the arguments of batches in a graph, are not counted.
"""

import sys
import time
from collections import Counter
from functools import partial
from typing import Any

import numpy as np

from hiresx import Simulation, load
from hiresx.base import garbage
from hiresx.decomposition import Domain
from hiresx.decomposition.refinement import Taken
from hiresx.simulation import adapted_run
from hiresx.solver import Solver


def counted(backend: Any, program: Any) -> Counter[str]:
    """A counter of what is asked of a backend and its program from now on."""
    found: Counter[str] = Counter()

    def wrap(owner: Any, name: str, size: Any) -> None:
        original = getattr(owner, name)

        def call(*given: Any, **named: Any) -> Any:
            made = original(*given, **named)
            found[name] += 1
            found[f"{name} bytes"] += size(given, made)
            return made

        setattr(owner, name, call)

    wrap(backend, "to_device", lambda given, made: made.nbytes)
    wrap(backend, "to_host", lambda given, made: made.nbytes)
    wrap(backend, "fetch", lambda given, made: given[0].nbytes)
    wrap(backend, "copy", lambda given, made: given[0].nbytes)
    for name in ("empty", "zeros"):
        wrap(backend, name, lambda given, made: made.nbytes)
    wrap(program, "prepare", lambda given, made: 0)
    return found


def _given(taken: list[Taken], ground: Domain, solver: Solver) -> list[Taken]:
    return taken


def main(name: str, preset: str, changes: str, backend: str, repeats: str, *overrides: str) -> None:
    case = load(name, preset=None if preset == "-" else preset, overrides=[*overrides])
    assert case.refine is not None
    simulation = Simulation(case, backend=backend)
    record = simulation.adaptations
    assert record is not None
    taken = None
    while record.changes < int(changes):
        hierarchy, levels = simulation._ground.hierarchy, simulation.solver.decomposition.levels
        assert hierarchy is not None and levels is not None
        taken = hierarchy.of(levels.tiles)
        simulation.run(case.refine.every, progress=False, write_last=False)
    assert taken is not None
    hierarchy, levels = simulation._ground.hierarchy, simulation.solver.decomposition.levels
    assert hierarchy is not None and levels is not None
    ends = [taken, hierarchy.of(levels.tiles)]
    counts = counted(simulation.backend, simulation.solver.program)
    seconds: list[list[float]] = [[], []]
    shown: list[str] = ["", ""]
    with garbage.repeatedly():  # as in a run
        for n in range(2 * int(repeats) + 2):
            setattr(adapted_run, "tiles_of_flow", partial(_given, ends[n % 2]))  # noqa: B010
            before = set(simulation.solver.decomposition.levels.tiles)  # type: ignore[union-attr]
            counts.clear()
            began = time.process_time()
            assert simulation.adapt()
            seconds[n % 2].append(time.process_time() - began)
            after = set(simulation.solver.decomposition.levels.tiles)  # type: ignore[union-attr]
            across = ", ".join(
                f"{key} {counts[key]} ({counts[f'{key} bytes'] / 1e6:.3f} MB)"
                for key in ("to_device", "to_host", "fetch")
            )
            shown[n % 2] = (
                f"{len(before)} to {len(after)} blocks, {len(before & after)} stay, {simulation.solver.points:,} nodes"
                f": {across}; on the device copies {counts['copy']} ({counts['copy bytes'] / 1e6:.3f} MB), allocations "
                f"{counts['empty'] + counts['zeros']}; lists {counts['prepare']}"
            )
    for text, some in zip(shown, seconds, strict=True):
        print(
            f"{text}; processor milliseconds {1e3 * min(some[1:]):.1f}, median {1e3 * float(np.median(some[1:])):.1f}"
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
