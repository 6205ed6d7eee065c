"""Sums and extremes over parts: along columns on the device (kernels/statistics.h), over columns on the host."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hiresx.case import Case
from hiresx.device.interface import Calls
from hiresx.device.state import BlockState
from hiresx.grid.blocks import slices
from hiresx.output.watch.quadrature import block_weights
from hiresx.solver import Solver


class Columns:
    """The column kernels of all parts of a solver, each giving `quantities` numbers per column."""

    def __init__(self, solver: Solver, quantities: int):
        self._backend, self._program, self._states = solver.backend, solver.program, solver.states
        self._partial = []
        for state in self._states:
            ni, _, nk = state.size
            self._partial.append(solver.backend.zeros((quantities, nk * ni), state.real))

    def prepare(
        self, kernel: str, arguments: Sequence[Mapping[str, Any]], ahead: Calls = ()
    ) -> Callable[[], list[np.ndarray]]:
        """Prepare the launches `ahead` and `kernel` on every part as one function, which returns float64 (quantities,
        nk, ni) of each part. `arguments`: those of each part that only this kernel has."""
        own = []
        for state, partial, own_arguments in zip(self._states, self._partial, arguments, strict=True):
            ni, nj, nk = state.size
            own.append(
                self._program.call(
                    kernel, (ni, 1, nk), **state.place, height=nj, columns=nk * ni, width=ni, sv=state.variable_stride,
                    q=state.q, **own_arguments, partial=partial,
                )
            )  # fmt: skip
        launch = self._program.prepare([*ahead, own])

        def fetch() -> list[np.ndarray]:
            launch()
            return [
                self._backend.to_host(partial).astype(np.float64, copy=False).reshape(-1, state.size[2], state.size[0])
                for state, partial in zip(self._states, self._partial, strict=True)
            ]

        return fetch


def volumes(solver: Solver, n: int, kept: bool = False) -> np.ndarray:
    """Return the weights of the nodes of part `n` in an integral over its block: quadrature weight (`kept`: as of
    `block_weights`) times cell volume, (nk, nj, ni)."""
    state = solver.states[n]
    jacobian = state.interior(solver.backend.to_host(state.jacobian)).astype(np.float64)
    weights = block_weights(solver.decomposition, state.part.whole, state.part.box, kept) / jacobian
    return weights * circumference(solver.case, state.block.y) * off_poles(solver, state)


def off_poles(solver: Solver, state: BlockState) -> np.ndarray:
    """Return a factor for each node, (nk, nj, ni): 0 at the nodes of poles, which have neither area nor volume, 1
    elsewhere."""
    counted = np.ones(state.block.x.shape)
    for patch in solver.cut.patches:
        if patch.block == state.index and patch.condition.kernel == "pole":
            counted[slices(patch.range)] = 0.0
    return counted


def circumference(case: Case, y: np.ndarray) -> np.ndarray | float:
    """Factor by which nodes at the radii `y` count in integrals: the circumference 2 pi y in axisymmetric flow, else
    1."""
    return 2 * np.pi * y if case.axisymmetric else 1.0


def dimension(solver: Solver) -> int:
    """Number of dimensions of the integrals: 1, 2 or 3."""
    return max(3 if solver.case.axisymmetric else len(block.active) for block in solver.decomposition.blocks)


def pad(solver: Solver, state: BlockState, values: np.ndarray) -> Any:
    """Values (nk, nj, ni) as an array of the solver's type on its device, zero in the ghosts."""
    array = np.zeros(state.shape, dtype=state.real)
    state.interior(array)[...] = values
    return solver.backend.to_device(array)
