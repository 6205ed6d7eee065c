"""The key `distribution` of a table `[[force]]`: samples of pressure, friction, heat flux and y+ along the walls."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from hiresx.case.monitors import Distribution
from hiresx.output.watch.columns import dimension
from hiresx.output.watch.sampling import Monitor
from hiresx.output.watch.wall_file import KIND, WallFile
from hiresx.output.watch.wall_nodes import COLUMNS, WallNodes
from hiresx.solver import Solver


class WallDistribution(Monitor):
    """Monitor of the flow at the `nodes` of the walls on which the force `name` acts. `values()`: returns pressure,
    friction, heat flux and y+ at the nodes of this rank, by name. `folder`: the folder of the files. Only rank 0 has
    the samples. `spec`: the table of the distribution."""

    def __init__(
        self,
        spec: Distribution,
        name: str,
        nodes: WallNodes,
        values: Callable[[], dict[str, np.ndarray]],
        solver: Solver,
        folder: Path,
    ):
        super().__init__(solver.comm, name, KIND.name, COLUMNS, spec.every, spec.every_time)
        self.name, self._values = f"walls.{name}", values
        own = (nodes.numbers, nodes.where, nodes.places, nodes.normals, nodes.areas)
        of_ranks = self._comm.gather(own) or [own]
        numbers, *fixed = (np.concatenate(part, axis=-1) for part in zip(*of_ranks, strict=True))
        self._order = np.argsort(numbers)
        unit = ("1", "L", "L^2")[dimension(solver) - 1]
        blocks = [block.name for block in solver.decomposition.blocks]
        where, places, normals, areas = (values[..., self._order] for values in fixed)
        self.history = WallFile(name, where, places, normals, areas, unit, blocks, spec.precision, folder)

    def measure(self, solver: Solver) -> dict[str, np.ndarray]:
        """Return pressure, friction, heat flux and y+ at the wall nodes of all ranks on rank 0, each an array (nodes,);
        an empty dictionary on other ranks. All ranks must call this method."""
        rows = self._comm.gather(np.stack(list(self._values().values())))
        if rows is None:
            return {}
        found = np.concatenate(rows, axis=1)[:, self._order]
        return dict(zip((column.name for column in COLUMNS), found, strict=True))
