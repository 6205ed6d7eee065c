"""`[extrema]`: least and largest values, and where they are."""

import numpy as np

from hiresx.case.faults import did_you_mean
from hiresx.errors import HiresxError
from hiresx.output import derived
from hiresx.output.columns import Columns
from hiresx.output.history import Column
from hiresx.output.sampling import Monitor

# In the order of the kernel.
VARIABLES = ("rho", "u", "v", "w", "p", "T", "mach")
# The largest value is the least of what has the opposite sign.
_SIGNS = np.array([[1.0], [-1.0]])
PLACE = ("x", "y", "z", "block", "i", "j", "k")


def build(case, simulation) -> list[Monitor]:
    if case.extrema is None:
        return []
    solver = simulation.solver
    with solver.team.together():
        check(case, solver.decomposition)
    return [Extrema(case.extrema, solver, simulation.out)]


def check(case, decomposition) -> None:
    """Raises HiresxError for a variable whose extremes are not looked for."""
    for name in case.extrema.variables if case.extrema is not None else ():
        if name not in VARIABLES:
            raise HiresxError(
                f'extrema.variables: "{name}" is none of them', did_you_mean(name, VARIABLES, "variables")
            )


class Extrema(Monitor):
    def __init__(self, spec, solver, out):
        self._variables = spec.variables
        columns, self._names = [], {}
        for name in spec.variables:
            variable = derived.VARIABLES[name]
            for end, word in (("min", "least"), ("max", "largest")):
                columns.append(Column(f"{name}_{end}", f"{word} {variable.long_name}", variable.scale))
                for part in PLACE:
                    what = f"{part} of the {word} {variable.long_name}"
                    columns.append(Column(f"{name}_{end}_{part}", what, "L" if part in "xyz" else "1"))
                self._names[name, end] = [f"{name}_{end}", *(f"{name}_{end}_{part}" for part in PLACE)]
        super().__init__(solver.team, "extrema", "extrema", columns, spec.every, spec.every_time, out)
        self._columns = Columns(solver, 4 * len(VARIABLES))
        self._sizes = [block.size for block in solver.decomposition.blocks]
        self._first = np.cumsum([0, *(ni * nj * nk for ni, nj, nk in self._sizes)])

    def measure(self, solver) -> dict[str, float]:
        # Of equal values that of the first node counts, however the blocks are cut.
        found = [self._of_part(solver, n) for n in range(len(solver.states))]
        values, numbers = (np.stack(entries) for entries in zip(*found, strict=True))
        best = self._team.min(values.min(axis=0))
        same = (values == best) | (np.isnan(values) & np.isnan(best))
        numbers = self._team.min(np.where(same, numbers, np.iinfo(np.int64).max).min(axis=0))
        measured = {}
        for end, sign, least, nodes in zip(("min", "max"), _SIGNS.flat, best, numbers, strict=True):
            for name in self._variables:
                n = VARIABLES.index(name)
                b, i, j, k = self._node(int(nodes[n]))
                block = solver.decomposition.blocks[b]
                place = (block.x[k, j, i], block.y[k, j, i], block.z[k, j, i], b, i, j, k)
                measured |= zip(self._names[name, end], (sign * least[n], *place), strict=True)
        return measured

    def _of_part(self, solver, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Least values of the variables and of their negatives, (2, variables), in part `n`, and their nodes' numbers
        among those of all blocks."""
        part = solver.states[n].part
        partial = self._columns(n, "column_extrema")
        width = partial.shape[2]
        columns = partial.reshape(len(VARIABLES), 2, 2, -1)
        values = _SIGNS[..., None] * columns[:, :, 0].swapaxes(0, 1)
        at = values.argmin(axis=2)
        rows = np.arange(len(VARIABLES)), np.arange(2)[:, None]
        height = columns[*rows, 1, at].astype(np.int64)
        i, j, k = (lo + m for lo, m in zip(part.first, (at % width, height, at // width), strict=True))
        ni, nj, _ = self._sizes[part.whole]
        numbers = self._first[part.whole] + (k * ni + i) * nj + j
        return np.take_along_axis(values, at[..., None], axis=2)[..., 0], numbers

    def _node(self, number: int) -> tuple[int, int, int, int]:
        """Block and i, j, k of a node by its number: blocks in their order, columns along j within them."""
        b = int(np.searchsorted(self._first, number, side="right")) - 1
        ni, nj, _ = self._sizes[b]
        column, j = divmod(number - int(self._first[b]), nj)
        k, i = divmod(column, ni)
        return b, i, j, k
