"""Which variables of its fields a launch of a kernel reads and writes, found by making it again."""

import numpy as np


def variables(array):
    """The variables of an array of a block."""
    return array if array.ndim == 4 else array[None]


class Again:
    """A launch `call` of `program`, to be made again on made-up values of its fields."""

    def __init__(self, program, call):
        self._program, self._call = program, call
        arrays = [a for a in call.arguments.values() if isinstance(a, np.ndarray) and a.ndim > 2]
        self.fields = [a for a in arrays if a.dtype.kind == "f"]
        self._columns = [a for name, a in call.arguments.items() if name == "partial"]
        self._rng = np.random.default_rng(1)
        self._values = [np.where(a == 0, 1, a) * (1 + 0.01 * self._rng.random(a.shape)) for a in self.fields]

    def __call__(self, changed=None):
        """Fields and columns before and after the launch, the variable `changed` being a little different."""
        for field, value in zip(self.fields, self._values, strict=True):
            field[...] = value
        if changed is not None:
            changed *= 1 + 1e-3 * self._rng.random(changed.shape)
        for column in self._columns:
            column[...] = 0
        before = [a.copy() for a in (*self.fields, *self._columns)]
        self._program.run(self._call)
        return before, [a.copy() for a in (*self.fields, *self._columns)]


def touched(program, call) -> int:
    """The number of variables that the launch changes, and that matter to those, taken together; without marks, which
    matter to no flow as even as the made-up one."""
    again = Again(program, call)
    before, reference = again()
    written = [a != b for a, b in zip(before, reference, strict=True)]
    writes = sum(v.any() for w in written[: len(again.fields)] for v in variables(w))
    reads = 0
    for field in again.fields:
        for variable in variables(field):
            _, after = again(variable)
            reads += any((a != b)[w].any() for a, b, w in zip(after, reference, written, strict=True))
    return reads + writes
