"""Sums over the nodes of a rank, computed on the device: each thread adds up a segment of a grid line along j, a column
(kernels/statistics.h)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hiresx.case import Case
from hiresx.decomposition.level_quadrature import LevelWeights
from hiresx.decomposition.quadrature import block_weights
from hiresx.device.interface import Call, Calls
from hiresx.device.state import BlockState
from hiresx.grid.blocks import slices
from hiresx.solver import Solver

# Number of nodes of a column that one thread sums: small enough that a GPU has work for all its threads.
HEIGHT = 16
# Number of threads that add the sums of all columns, with at least FEWEST each; and the number of sums of each quantity
# that remain for the host.
THREADS, FEWEST, LANES = 2048, 16, 32


def column_count(state: BlockState) -> int:
    """Return the number of partial sums that the device computes for a box of nodes: one for each segment, of at most
    16 nodes, of a grid line along j. `state`: the device state of the box."""
    ni, nj, nk = state.size
    return -(-nj // HEIGHT) * nk * ni


def column_call(solver: Solver, state: BlockState, kernel: str, partial: Any, **own: Any) -> Call:
    """Return the launch of a kernel that adds up a quantity over segments of grid lines along j. `state`: the device
    state of a box of nodes. `kernel`: name of the kernel. `partial` (quantities, segments): device array for the sums,
    with as many segments as `column_count` returns. `own`: further arguments of the kernel by name."""
    ni, nj, nk = state.size
    return solver.program.call(
        kernel, (ni, -(-nj // HEIGHT), nk), **state.place, height=HEIGHT, nodes=nj, rows=nk,
        columns=column_count(state), width=ni, sv=state.variable_stride, q=state.q, **own, partial=partial,
    )  # fmt: skip


class ColumnSums:
    """Sums of `quantities` quantities over the nodes of each box of nodes that this rank computes. `count`: the number
    of partial sums, float64, that the device computes; the host adds them. The order of the additions is fixed, so that
    results are reproducible."""

    def __init__(self, solver: Solver, quantities: int):
        self._solver, self._shape = solver, (len(solver.states), quantities, LANES)
        self.count = len(solver.states) * quantities * LANES

    def calls(self, kernel: str, arguments: Sequence[Mapping[str, Any]], numbers: Any) -> Calls:
        """Return the launches by which a kernel writes its partial sums to the device array `numbers`, float64 (count,)
        with the attribute `count`. `kernel`: name of the kernel, which computes the summands at a node. `arguments`:
        for each box of nodes of this rank further arguments of the kernel by name."""
        call, zeros = self._solver.program.call, self._solver.backend.zeros
        _, quantities, lanes = self._shape
        stages: tuple[list[Call], ...] = [], [], []
        for n, (state, own) in enumerate(zip(self._solver.states, arguments, strict=True)):
            columns, found = column_count(state), numbers[n * quantities * lanes : (n + 1) * quantities * lanes]
            threads = max(LANES, min(THREADS, columns // FEWEST))
            partial, fewer = zeros((quantities, columns), state.real), zeros((quantities, threads))
            stages[0].append(column_call(self._solver, state, kernel, partial, **own))
            all_columns = {"count": columns, "threads": threads, "values": partial, "result": fewer}
            stages[1].append(call("sum_reals", (threads, quantities, 1), **all_columns))
            left = {"count": threads, "threads": lanes, "values": fewer, "result": found}
            stages[2].append(call("sum_columns", (lanes, quantities, 1), **left))
        return list(stages)

    def by_part(self, numbers: np.ndarray) -> np.ndarray:
        """Return the sums of each quantity over each box of nodes of this rank, an array (boxes, quantities). `numbers`
        (count,): the partial sums that the device has computed, on the host."""
        found: np.ndarray = numbers.reshape(self._shape).sum(axis=2)
        return found


def volumes(solver: Solver, n: int, kept: bool = False) -> np.ndarray:
    """Return the weights of nodes in volume integrals, an array (nk, nj, ni): quadrature weight times cell volume, in
    units of L^3 with the length scale L (L^2 in plane flow, L in one dimension). `n`: index in `solver.states` of the
    box of nodes. `kept`: whether to use the quadrature weights with which no-slip walls conserve mass."""
    state = solver.states[n]
    weights = block_weights(solver.decomposition, state.part.whole, state.part.box, kept) / _jacobian(solver, state)
    return weights * circumference(solver.case, state.block.y) * off_poles(solver, state)


def all_volumes(solver: Solver, weights: LevelWeights | None, kept: bool = False) -> list[np.ndarray]:
    """Return the weights of nodes in integrals over the whole grid, in L^3 (L^2 in plane flow, L in one dimension), as
    a list with an array (nk, nj, ni) for each box of nodes that this rank computes. `weights`: the quadrature weights
    with levels of refinement, computed with the same `kept`; None without levels. With levels the result is scaled so
    that its sum is the volume of the unrefined grid, which does not change when the refinement changes. `kept`: whether
    to use the weights with which no-slip walls conserve mass. All ranks must call this function."""
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
    """Return the quadrature weights of the nodes on all levels of a refined grid; None for a grid without levels.
    `kept`: whether to use the quadrature weights with which no-slip walls conserve mass."""
    return None if solver.decomposition.levels is None else LevelWeights(solver.decomposition, kept)


def _jacobian(solver: Solver, state: BlockState) -> np.ndarray:
    return state.interior(solver.backend.to_host(state.jacobian)).astype(np.float64)


def off_poles(solver: Solver, state: BlockState) -> np.ndarray:
    """Return a factor for the nodes of a box, an array (nk, nj, ni): 0 at nodes on a pole of the grid (a face that is
    collapsed to a line), which have neither area nor volume, and 1 elsewhere. `state`: the device state of the box."""
    here = [patch for patch in solver.cut.patches if patch.block == state.index and patch.condition.kernel == "pole"]
    counted = np.broadcast_to(1.0, state.block.x.shape)
    if here:
        counted = counted.copy()
    for patch in here:
        counted[slices(patch.range)] = 0.0
    return counted


def circumference(case: Case, y: np.ndarray) -> np.ndarray | float:
    """Return the factor of nodes at the radii `y` (in units of L) in integrals, of the shape of `y`: the circumference
    2 pi y in axisymmetric flow. In other flow it is the number 1."""
    return 2 * np.pi * y if case.axisymmetric else 1.0


def dimension(solver: Solver) -> int:
    """Return the number of dimensions of integrals over the grid: 1, 2 or 3; it is 3 in axisymmetric flow."""
    return max(3 if solver.case.axisymmetric else len(block.active) for block in solver.decomposition.blocks)


def pad(solver: Solver, state: BlockState, values: np.ndarray) -> Any:
    """Return a device array of the shape with ghost nodes, with `values` (nk, nj, ni) in its interior and zeros in the
    ghost nodes. Its type is the floating-point type of work arrays. `state`: the device state of the box of
    nodes."""
    array = np.zeros(state.shape, dtype=state.real)
    state.interior(array)[...] = values
    return solver.backend.to_device(array)
