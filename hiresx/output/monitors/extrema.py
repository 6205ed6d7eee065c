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
PLACE = ("x", "y", "z", "block", "i", "j", "k")


def build(case, simulation) -> list[Monitor]:
    if case.extrema is None:
        return []
    check(case, simulation.solver.decomposition)
    return [Extrema(case.extrema, simulation.solver, simulation.out)]


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
        super().__init__("extrema", "extrema", columns, spec.every, spec.every_time, out)
        self._columns = Columns(solver, 4 * len(VARIABLES))

    def measure(self, solver) -> dict[str, float]:
        rows = np.arange(len(VARIABLES))
        least, most = [], []
        for b in range(len(solver.states)):
            partial = self._columns(b, "column_extrema")
            columns = partial.reshape(len(VARIABLES), 4, -1)
            for found, first, best in ((least, 0, np.argmin), (most, 2, np.argmax)):
                at = best(columns[:, first], axis=1)
                k, i = np.divmod(at, partial.shape[2])
                j = columns[rows, first + 1, at].astype(np.int64)
                found.append((columns[rows, first, at], i.tolist(), j.tolist(), k.tolist()))
        values = {}
        for end, found, best in (("min", least, np.argmin), ("max", most, np.argmax)):
            blocks = best([block[0] for block in found], axis=0).tolist()
            for name in self._variables:
                n = VARIABLES.index(name)
                value, i, j, k = (entry[n] for entry in found[blocks[n]])
                block = solver.decomposition.blocks[blocks[n]]
                place = (block.x[k, j, i], block.y[k, j, i], block.z[k, j, i], blocks[n], i, j, k)
                values |= zip(self._names[name, end], (value, *place), strict=True)
        return values
