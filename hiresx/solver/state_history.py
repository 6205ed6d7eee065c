"""The states with which the last steps began, kept for integrators that do not keep them themselves."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from hiresx.decomposition.held_arrays import Later, Piece
from hiresx.grid.blocks import Range
from hiresx.solver.block_states import LocalBlocks
from hiresx.solver.vectors import Vectors
from hiresx.time.ode_system import Earlier, Vector


class StateHistory:
    """`earlier`: of the step under way, at most `depth` steps before it, the last one first. The state with which the
    step under way began, or the last one if none is, is kept as well, so that either can be taken back."""

    def __init__(self, blocks: LocalBlocks, vectors: Vectors, depth: int):
        self._blocks, self._vectors, self._depth = blocks, vectors, depth
        self._states: list[Vector] = [vectors.new() for _ in range(depth + 1)]  # the first: where a step began
        self._steps: list[float] = []  # those that began with the others
        self._last: float | None = None  # the step that began with the first, once it is taken

    def begin(self) -> None:
        """A step begins with the state as it is."""
        if self._last is not None:
            self._steps = [self._last, *self._steps][: self._depth]
            self._states.insert(0, self._states.pop())
            self._last = None
        self._vectors.from_state(self._states[0])

    def end(self, dt: float) -> None:
        """The step was taken."""
        self._last = dt

    def back(self) -> None:
        """The state becomes the one with which the last step began."""
        self._vectors.to_state(self._states[0])
        self._last = None

    def forget(self) -> None:
        """Another state is given: no step led to it."""
        self._steps, self._last = [], None

    @property
    def earlier(self) -> list[Earlier]:
        return [Earlier(*step) for step in zip(self._states[1:], self._steps, strict=False)]

    @property
    def start(self) -> list[np.ndarray]:
        """Of every block the state with which the last step began, on the host."""
        return [
            self._blocks.host_values(s, a) for s, a in zip(self._blocks.states, self._states[0].arrays, strict=True)
        ]

    # ---- in checkpoints

    @property
    def _steps_to_store(self) -> list[Earlier]:
        """What the next step finds as `earlier`."""
        if self._last is None:
            return self.earlier
        steps = zip(self._states, [self._last, *self._steps], strict=False)
        return [Earlier(*step) for step in steps][: self._depth]

    @property
    def steps(self) -> list[float]:
        """The sizes of the steps whose states `pieces` gives."""
        return [step.dt for step in self._steps_to_store]

    def pieces(self) -> Iterator[Piece]:
        """Of each part each earlier state (n, nk, nj, ni) as a piece of history.<number>.<whole block>."""
        for n, step in enumerate(self._steps_to_store):
            for s, array in zip(self._blocks.states, step.state.arrays, strict=True):
                values = Later(
                    (len(array), *reversed(s.size)), array.dtype, partial(self._blocks.host_values, s, array)
                )
                yield Piece(f"history.{n}.{s.part.whole}", s.part.box, values)

    def read(self, steps: Sequence[Any], read: Callable[[str, Range], np.ndarray]) -> None:
        """What `steps` and `pieces` gave. Raises ValueError for what no run can have had."""
        self.forget()
        sizes = [float(dt) for dt in steps][: self._depth]
        if not all(0 < dt < np.inf for dt in sizes):
            raise ValueError(f"earlier steps of {sizes}")
        for n in range(len(sizes)):
            for s, array in zip(self._blocks.states, self._states[n + 1].arrays, strict=True):
                values = read(f"history.{n}.{s.part.whole}", s.part.box)
                if values.shape != (len(array), *reversed(s.size)) or values.dtype != array.dtype:
                    raise ValueError(f"history.{n} is {values.dtype} {values.shape}")
                self._vectors.fill(s, array, values)
        self._steps = sizes
