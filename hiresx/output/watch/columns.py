"""Sums and extremes over parts: the column kernels on the device (kernels/statistics.h), the rest here."""

from typing import Any

import numpy as np

from hiresx.case import Case
from hiresx.device.state import BlockState
from hiresx.grid.blocks import slices
from hiresx.output.watch.quadrature import block_weights
from hiresx.solver import Solver


class Columns:
    """The column kernels of all parts of a solver, each giving `quantities` numbers per column."""

    def __init__(self, solver: Solver, quantities: int):
        self._backend, self._program = solver.backend, solver.program
        self._parts = []
        for state in solver.states:
            ni, _, nk = state.size
            partial = solver.backend.zeros((quantities, nk * ni), state.real)
            self._parts.append((state, partial))

    def __call__(self, n: int, kernel: str, /, **arguments: Any) -> np.ndarray:
        """Launch `kernel` on part `n`: `arguments` are those that only this kernel has. Returns float64 (quantities,
        nk, ni)."""
        state, partial = self._parts[n]
        ni, nj, nk = state.size
        self._program.launch(
            kernel, (ni, 1, nk), **state.place, height=nj, columns=nk * ni, width=ni, sv=state.variable_stride,
            q=state.q, **arguments, partial=partial,
        )  # fmt: skip
        return self._backend.to_host(partial).astype(np.float64, copy=False).reshape(-1, nk, ni)

    def sums(self, n: int, kernel: str, /, **arguments: Any) -> np.ndarray:
        """Sums (quantities,) over part `n`, in an order that does not depend on threads."""
        return self(n, kernel, **arguments).sum(axis=(1, 2))


def volumes(solver: Solver, n: int) -> np.ndarray:
    """What the nodes of part `n` count in an integral over its block: quadrature weight times cell volume,
    (nk, nj, ni)."""
    state = solver.states[n]
    jacobian = state.interior(solver.backend.to_host(state.jacobian)).astype(np.float64)
    weights = block_weights(solver.decomposition, state.part.whole, state.part.box) / jacobian
    return weights * circumference(solver.case, state.block.y) * off_poles(solver, state)


def off_poles(solver: Solver, state: BlockState) -> np.ndarray:
    """0 at the nodes of poles, which have neither area nor volume, 1 elsewhere: (nk, nj, ni)."""
    counted = np.ones(state.block.x.shape)
    for patch in solver.cut.patches:
        if patch.block == state.index and patch.condition.kernel == "pole":
            counted[slices(patch.range)] = 0.0
    return counted


def circumference(case: Case, y: np.ndarray) -> np.ndarray | float:
    """What nodes at the radii `y` count more often than on a plane grid: the circumference in axisymmetric flow."""
    return 2 * np.pi * y if case.axisymmetric else 1.0


def dimension(solver: Solver) -> int:
    """Of what is integrated over: 1, 2 or 3."""
    return max(3 if solver.case.axisymmetric else len(block.active) for block in solver.decomposition.blocks)


def padded(solver: Solver, state: BlockState, values: np.ndarray) -> Any:
    """Values (nk, nj, ni) as an array of the solver's type on its device, zero in the ghosts."""
    array = np.zeros(state.shape, dtype=state.real)
    state.interior(array)[...] = values
    return solver.backend.to_device(array)
