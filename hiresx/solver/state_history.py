"""The states at the start of the last steps, stored for integrators that do not keep them."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from hiresx.decomposition.held_arrays import LazyArray, Piece
from hiresx.grid.blocks import Range
from hiresx.solver.block_states import LocalBlocks
from hiresx.solver.vectors import Vectors
from hiresx.time.ode_system import Earlier, Vector


class StateHistory:
    """The states at the start of the last steps. `earlier`: at most `depth` steps before the current one, the last one
    first. The state at the start of the current step (between steps, of the last one) is also stored, so that this step
    can be undone. `blocks`: the blocks of this rank. `vectors`: the operations on vectors of their size."""

    def __init__(self, blocks: LocalBlocks, vectors: Vectors, depth: int):
        self._blocks, self._vectors, self._depth = blocks, vectors, depth
        self._states: list[Vector] = [vectors.new() for _ in range(depth + 1)]  # the first: the start of the step
        self._steps: list[float] = []  # the sizes of the steps that started from the other states
        self._last: float | None = None  # the size of the step from the first state, once completed

    def begin(self) -> None:
        """Store the current state as the start of a time step. The initial states of as many earlier steps as the
        integrator needs are kept."""
        if self._last is not None:
            self._steps = [self._last, *self._steps][: self._depth]
            self._states.insert(0, self._states.pop())
            self._last = None
        self._vectors.from_state(self._states[0])

    def end(self, dt: float) -> None:
        """Complete the time step that `begin` started. `dt`: its size in L / c_ref."""
        self._last = dt

    def back(self) -> None:
        """Undo the last time step: restore the state at its start."""
        self._vectors.to_state(self._states[0])
        self._last = None

    def forget(self) -> None:
        """Discard all earlier steps, because a new state was set."""
        self._steps, self._last = [], None

    @property
    def earlier(self) -> list[Earlier]:
        """The earlier time steps, the latest first, each with the state at its start and its size in L / c_ref."""
        return [Earlier(*step) for step in zip(self._states[1:], self._steps, strict=False)]

    @property
    def start(self) -> list[np.ndarray]:
        """The state of every block of this rank at the start of the last step, as host arrays (variables, nk, nj,
        ni)."""
        return [
            self._blocks.host_values(s, a) for s, a in zip(self._blocks.states, self._states[0].arrays, strict=True)
        ]

    # ---- in checkpoints

    @property
    def _steps_to_store(self) -> list[Earlier]:
        """Return the steps that the next step will have as `earlier`."""
        if self._last is None:
            return self.earlier
        steps = zip(self._states, [self._last, *self._steps], strict=False)
        return [Earlier(*step) for step in steps][: self._depth]

    @property
    def steps(self) -> list[float]:
        """The sizes, in L / c_ref, of those earlier steps whose initial states the method `pieces` yields for a
        checkpoint."""
        return [step.dt for step in self._steps_to_store]

    def pieces(self) -> Iterator[Piece]:
        """Yield the states of earlier steps for a checkpoint: for each earlier step and each block of this rank an
        array (n, nk, nj, ni) of its n variables, with the name history.<number of the step>.<number of the block in the
        grid>."""
        for n, step in enumerate(self._steps_to_store):
            for s, array in zip(self._blocks.states, step.state.arrays, strict=True):
                values = LazyArray(
                    (len(array), *reversed(s.size)), array.dtype, partial(self._blocks.host_values, s, array)
                )
                yield Piece(f"history.{n}.{s.part.whole}", s.part.box, values)

    def read(self, steps: Sequence[Any], read: Callable[[str, Range], np.ndarray]) -> None:
        """Restore the sizes `steps` and the initial states of earlier steps from a checkpoint. `read(name, box)`:
        returns the nodes in the half-open index ranges `box` (i, j, k) of an array that `pieces` has written. Raises
        ValueError for values that no run can have had."""
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
