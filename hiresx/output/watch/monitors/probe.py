"""`[[probe]]`: the flow at points with any coordinates x, y, z."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.case import Case
from hiresx.case.monitors import Probe as Spec
from hiresx.decomposition import Decomposition
from hiresx.device.fields import output_fields
from hiresx.equations import equations
from hiresx.errors import HiresxError
from hiresx.grid import Block
from hiresx.grid.size import refuse_places
from hiresx.output.fields import derived
from hiresx.output.saved import files
from hiresx.output.saved.attachment import Attachment
from hiresx.output.watch.filtered import FilteredNodes
from hiresx.output.watch.gather import Gather, SampledNodes
from hiresx.output.watch.history import NO_FILTER, Column
from hiresx.output.watch.locate import Location, Locator, rotate
from hiresx.output.watch.sampling import Monitor
from hiresx.output.watch.watched import WatchedRun
from hiresx.solver import Solver


def build(case: Case, simulation: WatchedRun) -> list[Attachment]:
    """Return a monitor of the run `simulation` for each table `[[probe]]` of the case, and the filters in time of their
    samples. Raises HiresxError on all ranks for a point outside the grid."""
    if not case.probe:
        return []
    solver = simulation.solver
    found = solver.kept(
        ("places of probes", tuple(case.probe)),
        (solver.decomposition,),
        lambda: files.on_root(solver.comm, lambda: _locate_all(case, solver.decomposition)),
    )
    probes = [
        ProbeMonitor(spec, solver, locations, simulation.out) for spec, locations in zip(case.probe, found, strict=True)
    ]
    return [*_filters(solver, probes), *probes]


def _filters(solver: Solver, probes: Sequence["ProbeMonitor"]) -> Iterator[FilteredNodes]:
    """The filters of the samples of probes, one for all probes that sample at the same times."""
    together: dict[tuple[Any, Any], list[ProbeMonitor]] = {}
    for probe in probes:
        if is_filtered(solver.case, probe.spec):
            together.setdefault((probe.spec.every, probe.spec.every_time), []).append(probe)
    for some in together.values():
        blocks, nodes = (np.concatenate(part, axis=-1) for part in zip(*(probe.nodes for probe in some), strict=True))
        filter_ = FilteredNodes(solver, some[0].spec, SampledNodes(solver, blocks, nodes))
        first = 0
        for probe in some:
            last = first + len(probe.nodes[0])
            probe.take_from(filter_, slice(first, last))
            first = last
        yield filter_


def is_filtered(case: Case, spec: Spec) -> bool:
    """Return whether the samples of a probe are filtered in time against aliasing. `spec`: the table [[probe]] of the
    case. They are not filtered if the filter is switched off, if every step is sampled, or if the run has local time
    steps."""
    return spec.filter != NO_FILTER and spec.every != 1 and not case.time.local


def check(case: Case, decomposition: Decomposition) -> list[list[Location]]:
    """Return for each table [[probe]] of the case a list with the locations of its points in the grid. `decomposition`:
    the blocks of the grid. Raises HiresxError for a point outside the grid, and for a variable that cannot be computed
    from the state at one point."""
    return _locate_all(case, decomposition)


class ProbeMonitor(Monitor):
    """Monitor of the flow at the points of one table [[probe]], `spec`. `locations`: for each point its block, indexes
    and interpolation stencil."""

    def __init__(self, spec: Spec, solver: Solver, locations: list[Location], out: Path | None):
        places = np.array(spec.places, dtype=float)
        self.spec, self.locations = spec, locations
        described = (derived.about(name) for name in spec.variables)
        columns = [Column(name, v.long_name, v.scale) for name, v in zip(spec.variables, described, strict=True)]
        super().__init__(solver.comm, spec.name, "probe", columns, spec.every, spec.every_time, out, places)
        if is_filtered(solver.case, spec):
            self.history.filter = spec.filter
        self._gamma = solver.case.gas.gamma
        self._x, self._y, self._z = places.T
        # Blocks and index triples of the nodes from which the values are interpolated.
        self.nodes = (
            np.concatenate([found.blocks for found in self.locations]),
            np.concatenate([found.nodes for found in self.locations], axis=1),
        )
        self._gather = Gather(solver, *self.nodes)
        self._weights = np.stack([found.weights for found in self.locations])
        turns = np.concatenate([found.turns for found in self.locations], axis=2)
        self._turns = None if np.array_equal(turns, np.broadcast_to(np.eye(3)[..., None], turns.shape)) else turns
        self._filter: FilteredNodes | None = None
        self._columns: dict[str, tuple[int, np.ndarray]] = {}
        # For samples whose values still need later steps: the number of the interval at whose end they are taken, step
        # and time.
        self._awaited: list[tuple[int, int, float]] = []
        # Number of samples that were stored at the end of a run before they were complete.
        self._early = 0

    def take_from(self, filter_: FilteredNodes, own: slice) -> None:
        """Connect this probe with a filter in time, which will call `awaits` and `take`. `filter_`: the filter, which
        may serve several probes. `own`: the slice of the nodes of the filter that belong to this probe."""
        self._filter = filter_
        self._columns = {name: (n, filter_.columns[own]) for n, name in enumerate(filter_.names)}
        filter_.readers.append(self)

    def blocks(self, blocks: Sequence[Block]) -> list[str]:
        """Return for each point of the probe the name of the block that contains it. `blocks`: the blocks of the
        grid."""
        return [blocks[found.block].name for found in self.locations]

    def measure(self, solver: Solver) -> dict[str, np.ndarray]:
        """Return the value of each variable at the points of the probe, an array (points,), for the current state. All
        ranks must call this method."""
        state = self._gather()
        return self._values(_AtPlaces(state.__getitem__, list(state), self._weights, self._turns))

    def _values(self, state: "_AtPlaces") -> dict[str, np.ndarray]:
        return derived.evaluate(
            [column.name for column in self.history.columns],
            derived.FlowState(self._x, self._y, self._z, state, self._gamma),
        )

    # ---- filtered samples, which are complete two intervals later

    def _start(self, restarted: bool) -> None:
        self._early = 0
        if self._filter is not None and not self._filter.continued:
            self._awaited = []
        self.history.anew = (*(step for _, step, _ in self._awaited), *self.history.anew)
        super()._start(restarted)

    def after_step(self, solver: Solver) -> None:
        """Take a sample if one is due after this time step. All ranks must call this method."""
        if self._filter is None:
            super().after_step(solver)
        elif self._clock.due(solver):
            self._filter.sample()
            self._awaited.append((self._filter.samples, solver.steps, solver.time))

    @property
    def next_time(self) -> float:
        """The time, in units of L / c_ref (length scale over sound speed), beyond which the next time step must not go,
        since a sample is due then. Infinite if samples are not taken at an interval of time, or if the device takes
        them without the host."""
        return math.inf if self._filter is not None and self._filter.by_itself else super().next_time

    def awaits(self, number: int, step: int, time: float) -> None:
        """Record that sample `number` was taken at `time` (in units of L / c_ref, length scale over sound speed), after
        `step` steps, and that its values are still on the device."""
        self._clock.mark(step, time)
        self._awaited.append((number, step, time))

    def take(self, first: int, samples: np.ndarray) -> None:
        """Receive complete samples of the filter, and append those whose times `awaits` has recorded to the history.
        `first`: the number of the first sample. `samples`: the flow at the nodes of the filter, an array (samples,
        variables, nodes)."""
        wanted = [awaited for awaited in self._awaited if first <= awaited[0] < first + len(samples)]
        if not wanted:
            return
        self._awaited = [awaited for awaited in self._awaited if awaited not in wanted]

        def at_nodes(name: str) -> np.ndarray:
            number, columns = self._columns[name]
            # a fixed order in memory, so that the order of additions does not depend on the number of samples
            return np.ascontiguousarray(samples[:, number, columns])

        values = self._values(_AtPlaces(at_nodes, list(self._columns), self._weights, self._turns))
        for number, step, time in wanted:
            self._add(step, time, {name: of[number - first] for name, of in values.items()})

    def capture(self) -> dict[str, Any]:
        """Return the data for a checkpoint: the samples so far, and the steps and times of filtered samples whose
        values still need later steps of the flow. All ranks must call this method."""
        if self._filter is not None:
            self._filter.fetch()
        found = super().capture()
        found["samples"] -= self._early
        return found | ({"awaited": np.array(self._awaited, dtype=float)} if self._awaited else {})

    def restore(self, captured: Mapping[str, Any]) -> None:
        """Restore the samples of a checkpoint. If the probe is filtered in time, also restore the steps and times of
        samples that were taken but whose values still need later steps of the flow. `captured`: the result of
        `capture`."""
        super().restore(captured)
        awaited = np.asarray(captured.get("awaited", np.empty((0, 3))), dtype=float)
        self._awaited = [(int(number), int(step), float(time)) for number, step, time in awaited]

    def samples_last_step(self, solver: Solver) -> bool:
        """Return whether the last step of a run is sampled even if no sample is due; never for filtered samples."""
        return self._filter is None and super().samples_last_step(solver)

    def finish(self, solver: Solver) -> None:
        """Store, at the end of a run, the filtered samples whose values need later steps, computed as if the flow
        stayed constant from now on. A restart computes them again."""
        before = self.history.samples
        try:
            if self._filter is not None and self._begun and self._awaited:
                self._filter.fetch()
                before, awaited = self.history.samples, self._awaited
                self.take(self._filter.samples - 1, self._filter.rest())
                self._awaited = awaited
        finally:
            super().finish(solver)
            self._early = self.history.samples - before
            self._kept = before


class _AtPlaces(Mapping[str, np.ndarray]):
    """The flow (..., places) at places, by name. A variable is interpolated when it is asked for. `at_nodes(name)`:
    returns the variable (..., nodes) at the nodes. `names`: the names of the variables. `weights` (places, nodes of
    each): the interpolation weights. `turns`: the rotations of the locations, None if no vector is rotated."""

    def __init__(
        self, at_nodes: Callable[[str], np.ndarray], names: Sequence[str], weights: np.ndarray, turns: np.ndarray | None
    ):
        self._at_nodes, self._names, self._weights, self._turns = at_nodes, names, weights, turns
        self._velocity: np.ndarray | None = None

    def __getitem__(self, name: str) -> np.ndarray:
        rotated = self._turns is not None and name in "uvw"
        values = self._rotated_velocity("uvw".index(name)) if rotated else self._at_nodes(name)
        found: np.ndarray = (values.reshape(*values.shape[:-1], *self._weights.shape) * self._weights).sum(axis=-1)
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def _rotated_velocity(self, component: int) -> np.ndarray:
        if self._velocity is None:
            assert self._turns is not None
            self._velocity = rotate(self._turns, np.stack([self._at_nodes(name) for name in "uvw"]))
        found: np.ndarray = self._velocity[component]
        return found


def _locate_all(case: Case, decomposition: Decomposition) -> list[list[Location]]:
    """The locations of all places of every table."""
    if not case.probe:
        return []
    dimensions = max(len(block.active) for block in decomposition.blocks)
    for n, spec in enumerate(case.probe):
        refuse_places(f"probe.{n}", spec.count, dimensions)
    locator = Locator(decomposition)
    locations = iter(locator.find_all([place for spec in case.probe for place in spec.places]))
    found = []
    for n, spec in enumerate(case.probe):
        key, places = f"probe.{n}", spec.places
        _check_variables(key, spec, equations(case).scalars)
        found.append(
            locator.check_found(places, [*islice(locations, len(places))], f'{key} "{spec.name}"', "move it inside")
        )
    return found


def _check_variables(key: str, spec: Spec, scalars: Sequence[str]) -> None:
    derived.check(spec.variables, f"{key}.variables", scalars)
    for name in spec.variables:
        if name in output_fields():
            raise HiresxError(f'{key}.variables: "{name}" is a field of nodes, which no probe knows', "leave it out")
        if not derived.about(name).local:
            raise HiresxError(
                f'{key}.variables: "{name}" needs gradients, which a probe does not have',
                f"there are {', '.join(name for name, variable in derived.VARIABLES.items() if variable.local)}",
            )
