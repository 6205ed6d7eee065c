"""What changes of tiles in space cost: the table of spherical shells in "A change of tiles" of docs/refinement.md.

    python docs/make/level_shells.py cuda 160 32 1 0.08 0.05 2
    OMP_NUM_THREADS=1 python docs/make/level_shells.py cpu 48 16 2 0.06 0.05 1

Backend, nodes of the grid along each direction, nodes of a tile, number of levels, half the thickness of a shell, how
far its radius moves, number of changes to and fro. The tiles of the finest level lie within the shell around the
radius 0.6, or that which is larger, in the cube of `sedov`, preset `levels-space`. Prints wall milliseconds of changes,
of the first step after each, of later steps, and of evaluations of the criterion.
"""

import sys
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from hiresx import Simulation, load
from hiresx.base import garbage
from hiresx.decomposition.hierarchy import Hierarchy
from hiresx.decomposition.refinement import Taken
from hiresx.simulation import adapted_run, flow_flags

STEPS = 4  # later steps, of which the mean is printed


def shell(hierarchy: Hierarchy, radius: float, half_width: float) -> list[Taken]:
    """The tiles of the finest level within `half_width` of `radius`, and those that they need."""
    taken = hierarchy.choice.none()
    lattice = hierarchy.lattices[-1][0]
    x, y, z = (1.9 * (np.array(line[:-1]) + line[1:] - 1) / (2 * line[-1] - 2) - 0.95 for line in lattice)
    distance = np.sqrt(x**2 + y[:, None] ** 2 + z[:, None, None] ** 2)
    taken[-1][0] |= np.abs(distance - radius) < half_width
    return hierarchy.choice.choose(taken)


def given(tiles: list[Taken], *_: Any) -> list[Taken]:
    """The tiles that the criterion would select."""
    return tiles


def main(backend: str, n: str, tile: str, levels: str, half_width: str, shift: str, repeats: str) -> None:
    middle = f"[{{level={levels},x=[-0.2,0.2],y=[-0.2,0.2],z=[-0.2,0.2]}}]"
    changed = [f"grid.n=[{n},{n},{n}]", f"refine.tile={tile}", f"refine.levels={levels}", f"refine.region={middle}"]
    case = load("sedov", preset="levels-space", overrides=[*changed, "refine.most_nodes=200_000_000"])
    simulation = Simulation(case, backend=backend)
    hierarchy = simulation._ground.hierarchy
    assert hierarchy is not None
    ends = [shell(hierarchy, 0.6 + more, float(half_width)) for more in (0.0, float(shift))]

    def timed(work: Any) -> float:
        began = time.perf_counter()
        work()
        simulation.backend.synchronize()
        return 1e3 * (time.perf_counter() - began)

    found: dict[str, list[float]] = {"changes": [], "first steps": [], "later steps": []}
    with garbage.repeatedly():  # as in a run
        for change in range(2 * int(repeats) + 2):
            setattr(adapted_run, "tiles_of_flow", partial(given, ends[change % 2]))  # noqa: B010
            found["changes"].append(timed(simulation.adapt))
            found["first steps"].append(timed(partial(simulation.solver.advance, 1)))
            found["later steps"].append(timed(partial(simulation.solver.advance, STEPS)) / STEPS)
        look = partial(flow_flags.tiles_of_flow, simulation._ground, simulation.solver)
        found["evaluations"] = [timed(look) for _ in range(4)]
    print(f"{len(simulation.solver.states)} blocks, {simulation.solver.points:,} nodes")
    for name, values in found.items():
        print(f"{name}, ms: {_text(values)}; median without the first two {np.median(values[2:]):.1f}")


def _text(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.1f}" for value in values)


if __name__ == "__main__":
    main(*sys.argv[1:])
