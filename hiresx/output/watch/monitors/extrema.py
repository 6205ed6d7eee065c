"""`[extrema]`: the smallest and largest values of variables, and their positions."""

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.case import Case
from hiresx.case.error_messages import did_you_mean
from hiresx.case.monitors import Extrema as Spec
from hiresx.decomposition import Decomposition
from hiresx.device.interface import Call, Calls
from hiresx.equations import GAS_PRIMITIVE
from hiresx.equations.storage import LONGEST
from hiresx.errors import HiresxError
from hiresx.output.fields import derived
from hiresx.output.watch.columns import column_call, column_count
from hiresx.output.watch.device_samples import DeviceMonitor
from hiresx.output.watch.extreme_columns import ENDS, extreme_columns, extreme_names, place_of
from hiresx.output.watch.history import Column
from hiresx.output.watch.node_numbers import NodeNumbers
from hiresx.output.watch.sampling import Monitor
from hiresx.output.watch.watched import WatchedRun
from hiresx.solver import Solver

# In the order of the kernel.
VARIABLES = (*GAS_PRIMITIVE, "T", "mach")
QUANTITIES = 2 * len(VARIABLES)  # the least of all, then the largest of all
# The largest value is computed as the least of the values with the opposite sign.
_SIGNS = np.array([[1.0], [-1.0]])
# Number of extremes of a part after each of two passes, as in hiresx/time/reduction.py, and the least numbers of its
# nodes.
FEWER, LANES, NUMBERS = 1024, 32, 256
# Values that differ from the extreme one by less than this fraction of the variable's scale count as equal. Otherwise,
# in a uniform or symmetric flow, round-off would determine the place, and round-off depends on the cuts of the blocks.
_TIE = {"float64": 1e-12, LONGEST: 1e-12, "float32": 1e-5}
# Scales besides the extreme values themselves: velocities that vanish are compared with the sound speed.
_SCALES = np.array([1.0 if name in ("u", "v", "w", "mach") else 0.0 for name in VARIABLES])


def build(case: Case, simulation: WatchedRun) -> list[Monitor]:
    """Return the monitor of extreme values in a list, which is empty if the case has no table `[extrema]`. Raises
    HiresxError on all ranks for a variable whose extrema are not available."""
    if case.extrema is None:
        return []
    solver = simulation.solver
    with solver.comm.together():
        check(case, solver.decomposition)
    return [ExtremaMonitor(case.extrema, solver, simulation.out)]


def check(case: Case, decomposition: Decomposition) -> None:
    """Raise HiresxError if the table [extrema] of `case` names a variable whose extrema are not available."""
    for name in case.extrema.variables if case.extrema is not None else ():
        if name not in VARIABLES:
            raise HiresxError(
                f'extrema.variables: "{name}" is not available', did_you_mean(name, VARIABLES, "variables")
            )


# A number larger than that of any node.
_NOWHERE = 1e300


class ExtremaMonitor(DeviceMonitor):
    """Monitor of the smallest and the largest value of each variable of the table [extrema], `spec`, with block, node
    and coordinates of its position."""

    def __init__(self, spec: Spec, solver: Solver, out: Path | None):
        self._variables = spec.variables
        columns = []
        for name in spec.variables:
            variable = derived.VARIABLES[name]
            for end in ENDS:
                columns += extreme_columns(Column(name, variable.long_name, variable.scale), end)
        super().__init__(solver.comm, "extrema", "extrema", columns, spec.every, spec.every_time, out)
        self._solver, self._numbering = solver, NodeNumbers(solver.decomposition.blocks)
        real, parts = solver.configuration.real, len(solver.states)
        self._tie = _TIE[real]
        self._lanes = [min(LANES, column_count(state)) for state in solver.states]
        self._found = solver.backend.zeros((parts, QUANTITIES * LANES), real)
        self._bounds = solver.backend.zeros((QUANTITIES,), real)
        # for the pieces of columns of each part: the extremes, then the places
        self._columns = [solver.backend.zeros((2, len(VARIABLES) * column_count(s)), real) for s in solver.states]
        self.count = QUANTITIES + parts * QUANTITIES * NUMBERS
        # On several ranks the bounds include the values of all ranks.
        self.deferred = solver.comm.size == 1

    def _extreme_calls(self) -> Calls:
        """The launches that leave extremes of each part in `_found`."""
        solver, rows, stages = self._solver, len(VARIABLES), tuple(list[Call]() for _ in range(3))
        for state, columns, found, lanes in zip(solver.states, self._columns, self._found, self._lanes, strict=True):
            count = column_count(state)
            threads = min(FEWER, count)
            fewer = solver.backend.zeros((2, rows * threads), state.real)
            stages[0].append(column_call(solver, state, "column_extrema", columns))
            for end, how in enumerate((2, 1)):  # least and largest, of kernels/reduce.h
                last = found[end * rows * lanes : (end + 1) * rows * lanes]
                first_pass = {"count": count, "threads": threads, "values": columns[end], "result": fewer[end]}
                second_pass = {"count": threads, "threads": lanes, "values": fewer[end], "result": last}
                for stage, given in ((1, first_pass), (2, second_pass)):
                    stages[stage].append(solver.program.call("reduce", (given["threads"], rows, 1), how=how, **given))
        return list(stages)

    def _place_calls(self, numbers: Any) -> Calls:
        """The launches that leave numbers of nodes that reach the bounds in `numbers` (parts, 2, variables, NUMBERS),
        the least ones among them."""
        solver, size, stages = self._solver, QUANTITIES * NUMBERS, tuple(list[Call]() for _ in range(2))
        for n, (state, places) in enumerate(zip(solver.states, self._columns, strict=True)):
            count, part = column_count(state), state.part
            stages[0].append(column_call(solver, state, "column_places", places, bounds=self._bounds))
            whole_i, whole_j, _ = solver.decomposition.blocks[part.whole].size
            first = float(self._numbering.of(part.whole, part.first))
            stages[1].append(
                solver.program.call(
                    "least_numbers", (NUMBERS, QUANTITIES, 1), columns=count, threads=NUMBERS, nodes=state.size[1],
                    rows=state.size[2], width=state.size[0], origin=first, whole_i=whole_i, whole_j=whole_j,
                    nowhere=_NOWHERE, places=places, numbers=numbers[n * size : (n + 1) * size],
                )
            )  # fmt: skip
        return list(stages)

    def calls(self, numbers: Any) -> Calls:
        """Return the kernel launches that compute the extreme values at this rank's nodes and the nodes where they lie,
        and write them to the device array `numbers`."""
        put, solver = self._solver.backend.to_device, self._solver
        bounds = solver.program.call(
            "extreme_bounds", (len(VARIABLES), 1, 1), parts=len(solver.states), tie=self._tie, scales=put(_SCALES),
            counts=put(np.array(self._lanes, np.int32)), found=self._found, best=numbers[:QUANTITIES],
            bounds=self._bounds,
        )  # fmt: skip
        return [*self._extreme_calls(), bounds, *self._place_calls(numbers[QUANTITIES:])]

    def values(self, numbers: np.ndarray, time: float) -> dict[str, float]:
        """Return the extreme values and their positions by column. `numbers` (count,): the results of the launches
        `calls`. `time` is not used. On several ranks `measure` is used instead."""
        return self._of(numbers[:QUANTITIES].reshape(2, -1), self._least(numbers[QUANTITIES:]))

    def measure(self, solver: Solver) -> Mapping[str, float]:
        """Return the extreme values over all ranks and their positions, by column, for the current state. All ranks
        must call this method."""
        if self.deferred:
            return super().measure(solver)
        backend, (seek, find, numbers) = solver.backend, self._by_ranks
        seek()
        own = [np.full((2, len(VARIABLES)), np.inf)]
        for found, lanes in zip(backend.to_host(self._found).astype(float), self._lanes, strict=True):
            own.append((_SIGNS[..., None] * found[: QUANTITIES * lanes].reshape(2, -1, lanes)).min(axis=2))
        best = self._comm.min(np.min(own, axis=0))
        bounds = _SIGNS * (best + self._tie * np.maximum(np.abs(best).max(axis=0), _SCALES))
        backend.copy(self._bounds, backend.to_device(bounds.ravel().astype(self._bounds.dtype)))
        find()
        return self._of(_SIGNS * best, self._comm.min(self._least(backend.to_host(numbers))))

    @cached_property
    def _by_ranks(self) -> tuple[Callable[[], None], Callable[[], None], Any]:
        """What finds the extremes of this rank, and what leaves numbers of nodes that reach the bounds, and where."""
        prepare = self._solver.program.prepare
        numbers = self._solver.backend.zeros((self.count - QUANTITIES,), "float64")
        return prepare(self._extreme_calls()), prepare(self._place_calls(numbers)), numbers

    def _least(self, numbers: np.ndarray) -> np.ndarray:
        """The least number of a node of this rank for each extreme, (2, variables)."""
        return np.asarray(numbers.reshape(-1, 2, len(VARIABLES), NUMBERS).min(axis=(0, 3), initial=_NOWHERE))

    def _of(self, extremes: np.ndarray, numbers: np.ndarray) -> dict[str, float]:
        """The columns, of extremes (2, variables) and the numbers of their nodes."""
        nodes = self._numbering.nodes(numbers.astype(np.int64))
        measured: dict[str, float] = {}
        for e, end in enumerate(ENDS):
            for name in self._variables:
                n = VARIABLES.index(name)
                place = place_of(self._solver.decomposition, nodes[:, e, n])
                measured.update(zip(extreme_names(name, end), (float(extremes[e, n]), *place), strict=True))
        return measured
