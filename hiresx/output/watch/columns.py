"""Sums and extremes over parts: along columns on the device (kernels/statistics.h), over columns on the host."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hiresx.case import Case
from hiresx.decomposition.level_quadrature import LevelWeights
from hiresx.decomposition.quadrature import block_weights
from hiresx.device.interface import Calls
from hiresx.device.state import BlockState
from hiresx.grid.blocks import slices
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
    """Return the weights (nk, nj, ni) of the nodes of part `n` in an integral over its block: quadrature weight times
    cell volume. `kept`: as for `block_weights`."""
    state = solver.states[n]
    weights = block_weights(solver.decomposition, state.part.whole, state.part.box, kept) / _jacobian(solver, state)
    return weights * circumference(solver.case, state.block.y) * off_poles(solver, state)


def all_volumes(solver: Solver, weights: LevelWeights | None, kept: bool = False) -> list[np.ndarray]:
    """Return the weights of the nodes of all parts of this rank in an integral over the whole grid. `weights`: the
    weights of levels, made with the same `kept`; None without levels. With levels they are scaled so that their sum is
    the volume of the grid, which then stays constant when tiles change. Collective."""
    if weights is None:
        return [volumes(solver, n, kept) for n in range(len(solver.states))]
    levels = solver.decomposition.levels
    assert levels is not None
    found, grid = [], 0.0
    for n, state in enumerate(solver.states):
        found.append(weights.nodes[state.part.whole][slices(state.part.box)] / _jacobian(solver, state))
        if levels.tiles[state.part.whole].level == 0:
            grid += float(volumes(solver, n, kept).sum())
    wanted, total = solver.comm.sum(np.array([grid, sum(float(volume.sum()) for volume in found)]))
    return [volume * (wanted / total) for volume in found]


def level_weights(solver: Solver, kept: bool = False) -> LevelWeights | None:
    """Return the weights of the levels of a refined grid; None for a grid without levels."""
    return None if solver.decomposition.levels is None else LevelWeights(solver.decomposition, kept)


def _jacobian(solver: Solver, state: BlockState) -> np.ndarray:
    return state.interior(solver.backend.to_host(state.jacobian)).astype(np.float64)


def off_poles(solver: Solver, state: BlockState) -> np.ndarray:
    """Return a factor for each node, (nk, nj, ni): 0 at the nodes of poles, which have neither area nor volume, 1
    elsewhere."""
    counted = np.ones(state.block.x.shape)
    for patch in solver.cut.patches:
        if patch.block == state.index and patch.condition.kernel == "pole":
            counted[slices(patch.range)] = 0.0
    return counted


def circumference(case: Case, y: np.ndarray) -> np.ndarray | float:
    """Return the factor of nodes at the radii `y` in integrals: the circumference 2 pi y in axisymmetric flow, and 1 in
    other flow."""
    return 2 * np.pi * y if case.axisymmetric else 1.0


def dimension(solver: Solver) -> int:
    """Number of dimensions of the integrals: 1, 2 or 3."""
    return max(3 if solver.case.axisymmetric else len(block.active) for block in solver.decomposition.blocks)


def pad(solver: Solver, state: BlockState, values: np.ndarray) -> Any:
    """Copy values (nk, nj, ni) to an array on the solver's device, with its number type and zeros in the ghosts."""
    array = np.zeros(state.shape, dtype=state.real)
    state.interior(array)[...] = values
    return solver.backend.to_device(array)
