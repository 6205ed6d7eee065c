"""`[extrema]`: least and largest values, and where they are."""

from pathlib import Path

import numpy as np

from hiresx.case import Case
from hiresx.case.error_messages import did_you_mean
from hiresx.case.monitors import Extrema as Spec
from hiresx.decomposition import Decomposition
from hiresx.equations import GAS_PRIMITIVE
from hiresx.errors import HiresxError
from hiresx.output.fields import derived
from hiresx.output.watch.columns import Columns
from hiresx.output.watch.extreme_columns import ENDS, extreme_columns, extreme_names, place_of
from hiresx.output.watch.history import Column
from hiresx.output.watch.node_numbers import NodeNumbers
from hiresx.output.watch.sampling import Monitor
from hiresx.output.watch.watched import WatchedRun
from hiresx.solver import Solver

# In the order of the kernel.
VARIABLES = (*GAS_PRIMITIVE, "T", "mach")
_SHAPE = (len(VARIABLES), 2)
# The largest value is the least of what has the opposite sign.
_SIGNS = np.array([1.0, -1.0])
# Values that differ from the extreme one by less than this share of the variable's scale count as equal. Otherwise, in
# a uniform or symmetric flow, round-off would choose among them, which depends on the cuts of the blocks.
_TIE = {"float64": 1e-12, "float32": 1e-5}
# Scales besides the extreme values themselves: velocities that vanish are measured by the sound speed.
_SCALES = np.array([[1.0 if name in ("u", "v", "w", "mach") else 0.0] for name in VARIABLES])


def build(case: Case, simulation: WatchedRun) -> list[Monitor]:
    """Build the monitor of extrema, if the case has `[extrema]`. Raises HiresxError on all ranks for a variable that it
    cannot watch."""
    if case.extrema is None:
        return []
    solver = simulation.solver
    with solver.comm.together():
        check(case, solver.decomposition)
    return [ExtremaMonitor(case.extrema, solver, simulation.out)]


def check(case: Case, decomposition: Decomposition) -> None:
    """Raises HiresxError for a variable without extremes."""
    for name in case.extrema.variables if case.extrema is not None else ():
        if name not in VARIABLES:
            raise HiresxError(
                f'extrema.variables: "{name}" is none of them', did_you_mean(name, VARIABLES, "variables")
            )


# A number above that of any node.
_NOWHERE = np.iinfo(np.int64).max


class ExtremaMonitor(Monitor):
    """Least and largest value of each variable of `[extrema]`, with the block, node and coordinates where it is."""

    def __init__(self, spec: Spec, solver: Solver, out: Path | None):
        self._variables = spec.variables
        columns = []
        for name in spec.variables:
            variable = derived.VARIABLES[name]
            for end in ENDS:
                columns += extreme_columns(Column(name, variable.long_name, variable.scale), end)
        super().__init__(solver.comm, "extrema", "extrema", columns, spec.every, spec.every_time, out)
        self._backend, self._real = solver.backend, solver.configuration.real
        self._bounds = solver.backend.zeros((2 * len(VARIABLES),), self._real)
        columns_of, parts = Columns(solver, 2 * len(VARIABLES)), len(solver.states)
        self._extremes = columns_of.prepare("column_extrema", [{}] * parts)
        self._heights = columns_of.prepare("column_places", [{"bounds": self._bounds}] * parts)
        self._numbers = NodeNumbers(solver.decomposition.blocks)

    def measure(self, solver: Solver) -> dict[str, float]:
        # least and largest of each variable, (variables, 2)
        columns = [found.reshape(*_SHAPE, -1) for found in self._extremes()]
        of_parts = [(_SIGNS[:, None] * values).min(axis=2) for values in columns]
        best = self._comm.min(np.min([np.full(_SHAPE, np.inf), *of_parts], axis=0))
        scale = np.maximum(np.abs(best).max(axis=1, keepdims=True), _SCALES)
        bounds = _SIGNS * (best + _TIE[self._real] * scale)
        self._backend.copy(self._bounds, self._backend.to_device(bounds.ravel().astype(self._real)))
        heights = self._heights()
        first = [self._of_part(solver, n, height) for n, height in enumerate(heights)]
        numbers = self._comm.min(np.min([np.full(_SHAPE, _NOWHERE), *first], axis=0))
        nodes = self._numbers.nodes(numbers.astype(np.int64))
        measured: dict[str, float] = {}
        for e, (end, row) in enumerate(zip(ENDS, (_SIGNS * best).T, strict=True)):
            for name in self._variables:
                n = VARIABLES.index(name)
                place = place_of(solver.decomposition, nodes[:, n, e])
                measured.update(zip(extreme_names(name, end), (row[n], *place), strict=True))
        return measured

    def _of_part(self, solver: Solver, n: int, height: np.ndarray) -> np.ndarray:
        """The least number among all nodes of those of part `n` that are beyond the bounds, (variables, 2), from the
        first such node of each column."""
        part = solver.states[n].part
        mk, mi = height.shape[1:]
        own = (np.arange(mi), height.astype(np.int64), np.arange(mk)[:, None])
        numbers = self._numbers.of(part.whole, [first + m for first, m in zip(part.first, own, strict=True)])
        there = height < solver.states[n].size[1]
        return np.where(there, numbers, _NOWHERE).min(axis=(1, 2)).reshape(_SHAPE)
