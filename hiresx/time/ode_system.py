"""The interface by which time integrators use the flow: stages, or vectors, right-hand sides, conditions and earlier
states."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple, overload

import numpy as np


class Vector:
    """A vector of the unknowns on the device, with one number for each conservative variable at each node. `arrays`:
    one array (n, nk, nj, ni) for each block of this rank, padded by ghosts as the state is."""

    def __init__(self, arrays: Sequence[Any]):
        self.arrays = tuple(arrays)


class Basis(Sequence[Vector]):
    """A sequence of vectors that are consecutive in memory. `arrays`: one array (count, n, nk, nj, ni) for each block
    of this rank."""

    def __init__(self, arrays: Sequence[Any], vectors: Sequence[Vector]):
        self.arrays, self._vectors = tuple(arrays), tuple(vectors)

    def __len__(self) -> int:
        return len(self._vectors)

    @overload
    def __getitem__(self, n: int) -> Vector: ...

    @overload
    def __getitem__(self, n: slice) -> Sequence[Vector]: ...

    def __getitem__(self, n: int | slice) -> Vector | Sequence[Vector]:
        return self._vectors[n]


class Earlier(NamedTuple):
    """A completed step: the `state` at its start and its size `dt`."""

    state: Vector
    dt: float


class System(ABC):
    """Interface of the discretised flow equations dq/dt = R(q, t) for time integrators, with boundary conditions at the
    nodes of faces. q contains the conservative variables of all blocks of all ranks. `time`: the time at the start of
    the current step, in L / c_ref. `dt`: its size. `epsilon`: the relative rounding error of the stored state.

    Every method is collective and needs the same arguments on all ranks. The memory of the state is also used as work
    memory for R and for the boundary conditions. Before a step ends, `accept` must therefore set the new state.
    """

    time: float
    dt: float
    epsilon: float

    @abstractmethod
    def stage(self, n: int) -> None:
        """Compute stage `n` of an explicit scheme (hiresx.time.explicit): compute the right-hand side of the current
        state, update the state, apply the boundary conditions, and start the exchange of ghost nodes."""

    @property
    @abstractmethod
    def earlier(self) -> Sequence[Earlier]:
        """The previous time steps, each with the state at its start and its size, the latest first: as many as the
        integrator's `history` requires, or fewer at the start of a run and after the state was replaced from
        outside."""

    # ---- vectors

    @abstractmethod
    def vector(self) -> Vector:
        """Return a new vector of zeros of the size of the state. Raises HiresxError if it does not fit in memory."""

    @abstractmethod
    def combine(self, a: float, x: Vector, b: float, y: Vector) -> None:
        """Combine two vectors: y = a x + b y. If b is 0 the old y is ignored, even if it is NaN."""

    def copy(self, x: Vector, y: Vector) -> None:
        """Copy a vector: y = x."""
        self.combine(1.0, x, 0.0, y)

    def axpy(self, a: float, x: Vector, y: Vector) -> None:
        """Add a multiple of a vector: y = a x + y."""
        self.combine(a, x, 1.0, y)

    def scale(self, a: float, x: Vector) -> None:
        """Multiply a vector by a number: x = a x."""
        self.combine(a, x, 0.0, x)

    @abstractmethod
    def dot(self, x: Vector, y: Vector) -> float:
        """Return the scalar product of the vectors x and y: the sum of the products of all variables at all nodes of
        all ranks. The order of summation depends only on the division of the grid; the result is bit-identical on all
        ranks."""

    def norm(self, x: Vector) -> float:
        """Return the Euclidean norm of the vector x over all ranks, the square root of `dot`(x, x)."""
        return float(np.sqrt(self.dot(x, x)))

    def basis(self, count: int) -> Basis:
        """Return `count` new vectors of zeros, each of the size of the state. Raises HiresxError if they do not fit in
        memory."""
        return Basis((), [self.vector() for _ in range(count)])

    def products(self, basis: Basis, count: int, x: Vector) -> np.ndarray:
        """Return the scalar products (`dot`) of x with each of the first `count` vectors of a basis, an array
        (count,)."""
        return np.array([self.dot(vector, x) for vector in basis[:count]])

    def add_sum(self, weights: np.ndarray, basis: Basis, x: Vector) -> None:
        """Add to x the sum of the first n vectors of a basis, multiplied by their `weights` (n,)."""
        for weight, vector in zip(weights, basis, strict=False):
            self.axpy(float(weight), vector, x)

    @abstractmethod
    def gather(self, x: Vector) -> np.ndarray:
        """Return all numbers of the vector x on every rank, as a one-dimensional float64 array. It contains the blocks
        of the grid one after another, each in C order of (variables, nk, nj, ni), whatever the division among ranks.
        For libraries that support a single process only."""

    @abstractmethod
    def scatter(self, values: np.ndarray, x: Vector) -> None:
        """Set the vector x from `values`, the numbers of all ranks in the order of the result of `gather`."""

    # ---- the flow

    @abstractmethod
    def state(self, into: Vector) -> None:
        """Copy the current conservative state to the vector `into`."""

    @abstractmethod
    def accept(self, x: Vector, time: float) -> None:
        """Set the state of the blocks to x, and then the nodes on physical faces by the boundary conditions at
        `time`."""

    @abstractmethod
    def rates(self, x: Vector, time: float, into: Vector) -> None:
        """Compute R(x, time), the right-hand side of the flow equations for the state x after the boundary conditions
        at `time` are applied, and store it in the vector `into`."""

    # ---- boundary conditions

    @abstractmethod
    def impose(self, x: Vector, time: float) -> None:
        """Apply the boundary conditions at `time` to the nodes of x on physical faces."""

    @abstractmethod
    def fill_ghosts(self, x: Vector, time: float) -> None:
        """Set the state of the blocks to x with the boundary conditions at `time`, and fill all ghost nodes that the
        inviscid terms need, of connected and of physical faces."""

    def derivative(
        self,
        function: Callable[[Vector, Vector], None],
        x: Vector,
        value: Vector,
        change: Vector,
        into: Vector,
        size: float | None = None,
    ) -> None:
        """Compute the derivative of `function` at x in the direction `change`, by a one-sided difference, and store it
        in `into`. `function(x, into)`: computes a vector from x. `value`: its result at x. The perturbation of x along
        `change` has the norm of x times the square root of `epsilon`: D. A. Knoll & D. E. Keyes, Journal of
        Computational Physics 193 (2004) 357, eq. (14). `size`: the norm of x if the caller knows it; None to compute it
        here."""
        length = self.norm(change)
        if length == 0.0:
            self.copy(change, into)
            return
        share = np.sqrt(self.epsilon) * max(self.norm(x) if size is None else size, 1.0) / length
        self.copy(x, self._shifted_state)
        self.axpy(share, change, self._shifted_state)
        function(self._shifted_state, into)
        self.combine(-1.0 / share, value, 1.0 / share, into)

    @cached_property
    def _shifted_state(self) -> Vector:
        return self.vector()
