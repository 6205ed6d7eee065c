"""Vectors of the size of the state on the local blocks, and their operations."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from hiresx.device.interface import Program
from hiresx.device.state import BlockState
from hiresx.equations import GAS_CONSERVED
from hiresx.grid.blocks import slices
from hiresx.solver.block_states import LocalBlocks
from hiresx.time.ode_system import Basis, Vector
from hiresx.time.reduction import THREADS, pieces

# Number of products that are summed together, as in kernels/vectors.h.
AT_ONCE = 8


class Vectors:
    """Operations on vectors of unknowns. The kernels (kernels/vectors.h) are compiled when the first vector is made.
    Collective. `count`: the number of vectors. `of_last`: the weights of the last variables in the scalar product
    `dot`; the weights of the other variables are 1. `blocks`: the blocks of this rank, whose state gives the size of a
    vector."""

    def __init__(self, blocks: LocalBlocks, of_last: Sequence[float] = ()):
        self._blocks, self._real, self._of_last = blocks, blocks.configuration.real, tuple(of_last)
        self.count = 0

    @cached_property
    def _program(self) -> Program:
        chosen, plain = self._blocks.configuration, type(self._blocks.configuration)()
        return self._blocks.compile_kernels(
            replace(
                plain, precision=chosen.precision, reference=chosen.reference, schmidt=chosen.schmidt, program="vectors"
            )
        )

    @cached_property
    def _weights(self) -> Any:
        """Return the weights of the scalars in products, on the device."""
        scalars = len(self._blocks.gas.scalars)
        weights = np.array([*[1.0] * (scalars - len(self._of_last)), *self._of_last, *[1.0] * (scalars == 0)])
        return self._blocks.backend.to_device(weights.astype(self._real))

    def new(self) -> Vector:
        """Return a new vector of zeros of the size of the state. Raises HiresxError if it does not fit in memory."""
        self.count += 1
        with self._blocks.comm.together():
            return Vector([self._blocks.backend.zeros(s.q.shape, self._real) for s in self._blocks.states])

    def basis(self, count: int) -> Basis:
        """Return `count` vectors of zeros, each of the size of the state, that are consecutive in memory. Raises
        HiresxError if they do not fit in memory."""
        self.count += count
        with self._blocks.comm.together():
            arrays = [self._blocks.backend.zeros((count, *s.q.shape), self._real) for s in self._blocks.states]
            return Basis(arrays, [Vector([array[n] for array in arrays]) for n in range(count)])

    @property
    def bytes(self) -> int:
        """Number of bytes of all vectors of this rank."""
        of_one = sum(s.q.size for s in self._blocks.states) * np.dtype(self._real).itemsize
        return self.count * of_one

    def combine(self, a: float, x: Vector, b: float, y: Vector) -> None:
        """Combine two vectors: y = a x + b y, in place. If b is 0, the old y is ignored."""
        for s, own, to in zip(self._blocks.states, x.arrays, y.arrays, strict=True):
            self._launch(s, "add_vectors", x=own, y=to, a=float(a), b=float(b))

    def from_rates(self, x: Vector) -> None:
        """Set the vector x to dq/dt, computed from the right-hand side (the array `r`) and the Jacobian of the
        blocks."""
        for s, own in zip(self._blocks.states, x.arrays, strict=True):
            self._launch(s, "rates_to_vector", r=s.r, jacobian=s.jacobian, x=own)

    def from_state(self, x: Vector) -> None:
        """Copy the state of the blocks to the vector x."""
        for s, own in zip(self._blocks.states, x.arrays, strict=True):
            self._launch(s, *_compensated_kernel(s, "state_to_vector"), q=s.q, x=own)

    def to_state(self, x: Vector) -> None:
        """Copy the vector x to the state of the blocks."""
        for s, own in zip(self._blocks.states, x.arrays, strict=True):
            self._launch(s, *_compensated_kernel(s, "vector_to_state"), q=s.q, x=own)

    def dot(self, x: Vector, y: Vector) -> float:
        """Return the scalar product of the vectors x and y over all variables and nodes of all ranks. Products of the
        last variables, those of a turbulence model, are multiplied by the weights with which this object was made. All
        ranks must call this."""
        found = 0.0
        for s, one, other in zip(self._blocks.states, x.arrays, y.arrays, strict=True):
            extent, columns, cut = _columns(s)
            backend, threads = self._blocks.backend, min(THREADS, columns)
            partial, result = backend.zeros((columns,), self._real), backend.zeros((threads,), self._real)
            self._program.launch(
                "column_products", extent, **cut, sv=s.variable_stride, x=one, y=other, weights=self._weights,
                partial=partial,
            )  # fmt: skip
            self._program.launch(
                "reduce", (threads, 1, 1), count=columns, threads=threads, how=0, values=partial, result=result
            )
            found += float(backend.to_host(result).sum(dtype=float))
        return float(self._blocks.comm.sum([found])[0])

    def products(self, basis: Basis, count: int, x: Vector) -> np.ndarray:
        """Return the scalar products (see `dot`) of the vector x with each of the first `count` vectors of a basis, an
        array (count,). All ranks must call this."""
        found = np.zeros(count)
        for s, many, one in zip(self._blocks.states, basis.arrays, x.arrays, strict=True):
            extent, columns, cut = _columns(s)
            backend, threads = self._blocks.backend, min(THREADS, columns)
            partial = backend.zeros((AT_ONCE, columns), self._real)
            rounds = -(-count // AT_ONCE)
            result = backend.zeros((rounds, AT_ONCE, threads), self._real)
            for n in range(rounds):
                self._program.launch(
                    "basis_products", extent, **cut, sv=s.variable_stride, apart=one.size, first=n * AT_ONCE,
                    count=count, basis=many, x=one, weights=self._weights, columns=columns, partial=partial,
                )  # fmt: skip
                self._program.launch(
                    "reduce", (threads, AT_ONCE, 1), count=columns, threads=threads, how=0, values=partial,
                    result=result[n],
                )  # fmt: skip
            found += backend.to_host(result).reshape(-1, threads)[:count].sum(axis=1, dtype=float)
        return self._blocks.comm.sum(found)

    def add_sum(self, weights: np.ndarray, basis: Basis, x: Vector) -> None:
        """Add to x the sum of the first n vectors of a basis, multiplied by their `weights` (n,)."""
        for s, many, to in zip(self._blocks.states, basis.arrays, x.arrays, strict=True):
            self._launch(
                s, "add_basis", apart=to.size, count=len(weights), basis=many,
                weights=self._blocks.backend.to_device(np.array(weights, self._real)), x=to,
            )  # fmt: skip

    def gather(self, x: Vector) -> np.ndarray:
        """Return all numbers of the vector x on every rank, as a one-dimensional float64 array: the blocks of the grid
        one after another, each in C order of (variables, nk, nj, ni), whatever the division among ranks. All ranks must
        call this."""
        pairs = zip(self._blocks.states, x.arrays, strict=True)
        own = [(s.part.whole, s.part.box, self._blocks.host_values(s, array)) for s, array in pairs]
        wholes = self._wholes(np.zeros(self._size))
        for whole, box, values in (piece for theirs in self._blocks.comm.allgather(own) for piece in theirs):
            wholes[whole][:, *slices(box)] = values
        return np.concatenate([values.ravel() for values in wholes])

    def scatter(self, values: np.ndarray, x: Vector) -> None:
        """Set the vector x from `values`, the numbers of all ranks in the order of the result of `gather`."""
        wholes = self._wholes(np.asarray(values, float))
        for s, own in zip(self._blocks.states, x.arrays, strict=True):
            self.fill(s, own, wholes[s.part.whole][:, *slices(s.part.box)])

    def fill(self, state: BlockState, array: Any, values: np.ndarray) -> None:
        """Set the nodes, without ghosts, of the device array `array` of the block `state` from the host array `values`
        (variables, nk, nj, ni)."""
        backend = self._blocks.backend
        backend.copy(state.interior(array), backend.to_device(np.ascontiguousarray(values, self._real)))

    @cached_property
    def _shapes(self) -> list[tuple[int, ...]]:
        """Return the shapes of all whole blocks."""
        blocks, conserved = self._blocks.decomposition.blocks, len(GAS_CONSERVED) + len(self._blocks.gas.scalars)
        return [(conserved, *reversed(block.size)) for block in blocks]

    @property
    def _size(self) -> int:
        return sum(int(np.prod(shape)) for shape in self._shapes)

    def _wholes(self, values: np.ndarray) -> list[np.ndarray]:
        """Return views of the whole blocks."""
        ends = np.cumsum([0, *(int(np.prod(shape)) for shape in self._shapes)])
        spans = zip(ends[:-1], ends[1:], self._shapes, strict=True)
        return [values[begin:end].reshape(shape) for begin, end, shape in spans]

    def _launch(self, s: BlockState, kernel: str, beside: dict[str, Any] | None = None, /, **arguments: Any) -> None:
        self._program.launch(kernel, s.size, **s.place, sv=s.variable_stride, **(beside or {}), **arguments)


def _columns(s: BlockState) -> tuple[tuple[int, int, int], int, dict[str, Any]]:
    """Return how kernels sum over the nodes of a block: the extent of a launch, with a thread for each segment of each
    column along k, so that a GPU is filled; the number of these threads; and arguments that describe the segments."""
    (ni, nj, nk), count = s.size, pieces(s.size)
    return (
        (ni, nj, count),
        ni * nj * count,
        {**s.place, "rows": nj, "nodes": nk, "height": -(-nk // count), "width": ni},
    )


def _compensated_kernel(state: BlockState, kernel: str) -> tuple[str, dict[str, Any]]:
    """Return the form of a kernel that also takes the rounding errors, where they are kept, and its further
    arguments."""
    return (kernel, {}) if state.carry is None else (f"carried_{kernel}", {"carry": state.carry})
