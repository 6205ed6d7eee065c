"""`[[probe]]`: the flow at any x, y, z."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hiresx.case import Case
from hiresx.case.monitors import Probe as Spec
from hiresx.decomposition import Decomposition
from hiresx.equations import equations
from hiresx.errors import HiresxError
from hiresx.grid import Block
from hiresx.output.fields import derived
from hiresx.output.saved import files
from hiresx.output.watch.gather import Gather
from hiresx.output.watch.history import Column
from hiresx.output.watch.locate import Location, Locator, turned
from hiresx.output.watch.sampling import Monitor
from hiresx.output.watch.watched import WatchedRun
from hiresx.solver import Solver


def build(case: Case, simulation: WatchedRun) -> list[Monitor]:
    if not case.probe:
        return []
    solver = simulation.solver
    # once: looking for them takes a copy of the coordinates
    found = files.once(solver.comm, lambda: _located(case, solver.decomposition))
    return [
        ProbeMonitor(spec, solver, locations, simulation.out) for spec, locations in zip(case.probe, found, strict=True)
    ]


def check(case: Case, decomposition: Decomposition) -> list[list[Location]]:
    """The locations of all places of every table. Raises HiresxError for a place outside the grid and for a variable
    that needs more than the state there."""
    return _located(case, decomposition)


class ProbeMonitor(Monitor):
    """The places of one table, `spec`. `locations`: where they were found."""

    def __init__(self, spec: Spec, solver: Solver, locations: list[Location], out: Path | None):
        places = np.array(spec.places, dtype=float)
        self.spec, self.locations = spec, locations
        described = (derived.about(name) for name in spec.variables)
        columns = [Column(name, v.long_name, v.scale) for name, v in zip(spec.variables, described, strict=True)]
        super().__init__(solver.comm, spec.name, "probe", columns, spec.every, spec.every_time, out, places)
        self._gamma = solver.case.gas.gamma
        self._x, self._y, self._z = places.T
        self._gather = Gather(
            solver,
            np.concatenate([found.blocks for found in self.locations]),
            np.concatenate([found.nodes for found in self.locations], axis=1),
        )
        self._weights = np.stack([found.weights for found in self.locations])
        self._turns = np.concatenate([found.turns for found in self.locations], axis=2)

    def blocks(self, blocks: Sequence[Block]) -> list[str]:
        """Names of those of the whole `blocks` of the grid that its places lie in."""
        return [blocks[found.block].name for found in self.locations]

    def measure(self, solver: Solver) -> dict[str, np.ndarray]:
        state, shape = self._gather(), self._weights.shape
        state |= zip("uvw", turned(self._turns, np.stack([state[name] for name in "uvw"])), strict=True)
        state = {name: (values.reshape(shape) * self._weights).sum(axis=1) for name, values in state.items()}
        return derived.evaluate(
            [column.name for column in self.history.columns],
            derived.FlowState(self._x, self._y, self._z, state, self._gamma),
        )


def _located(case: Case, decomposition: Decomposition) -> list[list[Location]]:
    """The locations of all places of every table."""
    if not case.probe:
        return []
    locator = Locator(decomposition)
    return [
        _locations(f"probe.{n}", spec, locator, decomposition, equations(case).scalars)
        for n, spec in enumerate(case.probe)
    ]


def _locations(
    key: str, spec: Spec, locator: Locator, decomposition: Decomposition, scalars: Sequence[str]
) -> list[Location]:
    derived.check(spec.variables, f"{key}.variables", scalars)
    for name in spec.variables:
        if not derived.about(name).local:
            raise HiresxError(
                f'{key}.variables: "{name}" needs gradients, which a probe does not have',
                f"there are {', '.join(name for name, variable in derived.VARIABLES.items() if variable.local)}",
            )
    found = []
    for place in spec.places:
        location = locator.find(place)
        if location is None:
            b, (i, j, k), distance = locator.nearest(place)
            block = decomposition.blocks[b]
            near = ", ".join(f"{c:.6g}" for c in block.node(i, j, k))
            raise HiresxError(
                f'{key} "{spec.name}": the place ({", ".join(f"{c:.6g}" for c in place)}) lies outside the grid, '
                f"{distance:.3g} from its nearest node, ({near}) in block '{block.name}'",
                "move it inside",
            )
        found.append(location)
    return found
