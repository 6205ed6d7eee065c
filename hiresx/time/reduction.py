"""Sums, maxima and minima over a block, in an order that does not depend on the number of threads."""

from functools import cached_property
from typing import Any

import numpy as np

from hiresx.device.interface import Backend, Call, Program
from hiresx.device.state import BlockState
from hiresx.equations import GAS_CONSERVED

# Threads of the last pass on the device: few enough for the host to finish the reduction at no cost.
THREADS = 1024

# Threads of a further pass, used where the results of all blocks go to the host in one copy.
FEW = 32

# The number of threads that search for radii in a large block, and the smallest number of nodes per thread.
SEEKERS, FEWEST = 262144, 4

# Number of results of the largest reduction: a sum of every variable of the gas and two minima.
_SUMS = len(GAS_CONSERVED)
QUANTITIES = _SUMS + 2
# Largest number of its values that are copied to the host.
NORMS = QUANTITIES * THREADS


def scratch_reals(size: tuple[int, int, int], work_reals: int) -> int:
    """Return the number of reals that a block must allocate for its reductions (sums and extrema over nodes): 0 if they
    fit into its temporary array. `size`: the numbers of nodes (ni, nj, nk). `work_reals`: the number of reals in the
    temporary array."""
    needed = max(QUANTITIES, 2 * pieces(size)) * size[0] * size[1]
    return 0 if work_reals >= needed else needed


def pieces(size: tuple[int, int, int]) -> int:
    """Return the number of segments into which each column of nodes along k is divided for the computation of the
    largest spectral radii of a block. `size`: the numbers of nodes (ni, nj, nk)."""
    ni, nj, nk = size
    height = max(FEWEST, -(-nk * ni * nj // SEEKERS))
    return -(-nk // height)


def _share(work: Any, real: str) -> int:
    """Return how many numbers of a work array hold one real."""
    return np.dtype(real).itemsize // int(work.itemsize)


class Reduction:
    """Computes extrema and norms over the nodes of one block on the device. A first kernel reduces each column of nodes
    to one number, and further kernels reduce these numbers. `radii`: an array (2, FEW) for the results of
    `radii_calls`: the largest inviscid and viscous spectral radii of each of the last threads, of which there are
    `few`, at most FEW. `norms`: an array (NORMS,) for the results of `norm_calls`.

    The work array of the block is used as memory for partial results if it is large enough, since no reduction runs
    while a right-hand side is computed.
    """

    def __init__(self, backend: Backend, program: Program, state: BlockState, radii: Any, norms: Any):
        self._program, self._state = program, state
        self._flow = {"sv": state.variable_stride, "q": state.q, "m": state.metrics, "jacobian": state.jacobian}
        ni, nj, _ = state.size
        self._columns = ni * nj
        self._extent = (ni, nj, 1)
        real = state.real
        self._threads = min(THREADS, self._columns)
        extra = scratch_reals(state.size, 0 if state.work is None else int(state.work.size) // _share(state.work, real))
        self.bytes = extra * np.dtype(real).itemsize
        needed = max(QUANTITIES, 2 * pieces(state.size)) * self._columns
        if extra:
            self._partial = backend.zeros((extra,), real)
        else:
            assert state.work is not None  # otherwise the fractions would have no effect
            self._partial = state.work.reshape(-1)[: needed * _share(state.work, real)].view(real)
        self._result = backend.zeros((2, self._threads), real)
        self._found = norms[: QUANTITIES * self._threads].reshape(QUANTITIES, self._threads)
        self._radii, self.few = radii, min(FEW, self._threads)
        self._active = sum(1 << d for d in state.active)
        self._known: dict[float | None, list[Call]] = {}  # launches for the radii, by the Reynolds number

    def radii_calls(self, reynolds: float | None) -> list[Call]:
        """Return the kernel launches that compute the largest inviscid and viscous spectral radii of the block, in
        c_ref / L, and store them in the array `radii` that was passed to the constructor. `reynolds`: the Reynolds
        number, None in inviscid flow."""
        if reynolds in self._known:
            return self._known[reynolds]
        s, few, count = self._state, self.few, pieces(self._state.size)
        height = -(-s.size[2] // count)
        inverse_reynolds = 0.0 if reynolds is None else 1.0 / reynolds
        calls: list[Call] = [
            self._program.call(
                "column_radii", (*s.size[:2], count), **s.place, columns=count * self._columns, rows=s.size[1],
                nodes=s.size[2], height=height, **self._flow, **s.eddy_arguments, active=self._active,
                inverse_reynolds=inverse_reynolds, width=s.size[0], partial=self._partial,
            )
        ]  # fmt: skip
        if s.inverse_radius is not None:
            calls.append(
                self._program.call(
                    "axisymmetric_radii", self._extent, **s.place, columns=self._columns, **self._flow,
                    inverse=s.inverse_radius, inverse_reynolds=inverse_reynolds, width=s.size[0],
                    partial=self._partial,
                )
            )  # fmt: skip
        calls.append(self._reduce(2, 1, self._partial, count * self._columns, self._result))
        calls.append(
            self._program.call(
                "reduce", (few, 2, 1), count=self._threads, threads=few, how=1, values=self._result,
                result=self._radii,
            )
        )  # fmt: skip
        self._known[reynolds] = calls
        return calls

    def local_steps(self, reynolds: float | None, cfl: float, viscous_cfl: float, longest: float) -> None:
        """Compute the local time step of each node of the block by the inviscid and the viscous CFL number `cfl` and
        `viscous_cfl`, but at most `longest`, and store it in the array `dt` of the block state, in L / c_ref.
        `reynolds`: the Reynolds number, None in inviscid flow."""
        s = self._state
        inverse_reynolds = 0.0 if reynolds is None else 1.0 / reynolds
        limits = {"inverse_reynolds": inverse_reynolds, "cfl": cfl, "viscous_cfl": viscous_cfl}
        self._program.launch(
            "local_step", s.size, **s.place, **self._flow, **s.eddy_arguments, active=self._active, **limits,
            longest=longest, dt=s.dt,
        )  # fmt: skip
        if s.inverse_radius is not None:
            self._program.launch(
                "axisymmetric_step", s.size, **s.place, **self._flow, inverse=s.inverse_radius, **limits, dt=s.dt
            )  # fmt: skip

    @cached_property
    def norm_calls(self) -> list[Call]:
        """Return the kernel launches that compute, over the nodes of the block, the sums of (dq/dt)^2 and the least
        density and pressure, and store them in the array `norms` that was passed to the constructor. The method `norms`
        evaluates a host copy of this array."""
        s, count = self._state, self._columns
        return [
            self._program.call(
                "column_norms", self._extent, **s.place, columns=count, height=s.size[2], sv=s.variable_stride, q=s.q,
                r=s.r, jacobian=s.jacobian, width=s.size[0], partial=self._partial,
            ),
            self._reduce(_SUMS, 0, self._partial, count, self._found[:_SUMS]),
            self._reduce(2, 2, self._partial[_SUMS * count : QUANTITIES * count], count, self._found[_SUMS:]),
        ]  # fmt: skip

    def norms(self, found: np.ndarray) -> tuple[np.ndarray, float, float]:
        """Return the sums of (dq/dt)^2 over the nodes of the block for each variable of the gas, the least density and
        the least pressure. The sums are NaN if any summand is NaN. `found` (NORMS,): the result of the launches
        `norm_calls`, copied to the host."""
        found = found[: QUANTITIES * self._threads].reshape(QUANTITIES, self._threads)
        density, pressure = found[_SUMS:].min(axis=1)
        return found[:_SUMS].sum(axis=1), float(density), float(pressure)

    def _reduce(self, quantities: int, how: int, partial: Any, count: int, result: Any) -> Call:
        return self._program.call(
            "reduce", (self._threads, quantities, 1), count=count, threads=self._threads, how=how, values=partial,
            result=result,
        )  # fmt: skip
