"""What a time integrator sees of the flow: its stages, or vectors, right-hand sides, conditions and earlier states."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np


class Vector:
    """Numbers of the size of the conservative state on the device, `arrays`: one (n, nk, nj, ni), with the padding of
    the state, for each block of this rank."""

    def __init__(self, arrays: Sequence[Any]):
        self.arrays = tuple(arrays)


class Earlier(NamedTuple):
    """A step that was taken: the `state` with which it began, and its size `dt`."""

    state: Vector
    dt: float


class System(ABC):
    """dq/dt = R(q, t) on all blocks of all ranks, with conditions on the nodes of their faces. `time`: where the step
    under way begins; `dt`: its size. `epsilon`: the relative rounding of the numbers that keep the state.

    Everything is collective, with the same arguments on all ranks. Right-hand sides and conditions are computed in the
    memory of the state: before the step ends, `accept` gives the state that it comes to.
    """

    time: float
    dt: float
    epsilon: float

    @abstractmethod
    def stage(self, n: int) -> None:
        """Stage `n` of an explicit scheme (hiresx.time.explicit): R of the state as it is, the launches that update the
        state, conditions, and halos on their way."""

    @property
    @abstractmethod
    def earlier(self) -> Sequence[Earlier]:
        """The steps before this one, the last one first: as many as the integrator's `history` asks for, or as there
        were since the state was given."""

    # ---- vectors

    @abstractmethod
    def vector(self) -> Vector:
        """A new vector of zeros. Raises HiresxError if it does not fit in memory."""

    @abstractmethod
    def combine(self, a: float, x: Vector, b: float, y: Vector) -> None:
        """y = a x + b y; with b = 0 whatever y held."""

    def copy(self, x: Vector, y: Vector) -> None:
        """y = x"""
        self.combine(1.0, x, 0.0, y)

    def axpy(self, a: float, x: Vector, y: Vector) -> None:
        """y = a x + y"""
        self.combine(a, x, 1.0, y)

    def scale(self, a: float, x: Vector) -> None:
        """x = a x"""
        self.combine(a, x, 0.0, x)

    @abstractmethod
    def dot(self, x: Vector, y: Vector) -> float:
        """Sum of the products of all variables at all nodes of all ranks, in an order that depends on the cut alone;
        the same bits on all ranks."""

    def norm(self, x: Vector) -> float:
        """Root of the sum of squares."""
        return float(np.sqrt(self.dot(x, x)))

    @abstractmethod
    def gather(self, x: Vector) -> np.ndarray:
        """All of a vector on every rank, float64, one after another: whole blocks, in them variables, k, j, i. Does not
        depend on the cut. For libraries that know of one process alone."""

    @abstractmethod
    def scatter(self, values: np.ndarray, x: Vector) -> None:
        """x from what `gather` would give."""

    # ---- the flow

    @abstractmethod
    def state(self, into: Vector) -> None:
        """The conservative state as it is."""

    @abstractmethod
    def accept(self, x: Vector, time: float) -> None:
        """The state becomes x, with the conditions of `time` at its nodes."""

    @abstractmethod
    def rates(self, x: Vector, time: float, into: Vector) -> None:
        """R(x, time), of x with the conditions of `time` at its nodes."""

    # ---- boundary conditions

    @abstractmethod
    def impose(self, x: Vector, time: float) -> None:
        """The conditions of `time` at the nodes of physical faces: x becomes C(x, time)."""

    @abstractmethod
    def fill_ghosts(self, x: Vector, time: float) -> None:
        """x with its conditions goes to `q` of the block states with all ghosts that the inviscid terms ask for: those
        of connected faces and those of conditions."""

    def derivative(
        self, function: Callable[[Vector, Vector], None], x: Vector, value: Vector, change: Vector, into: Vector
    ) -> None:
        """Derivative of `function(x, into)` at x along `change`, by a one-sided difference from its `value` at x. The
        difference in x has the norm of x times the root of `epsilon`: D. A. Knoll & D. E. Keyes, Journal of
        Computational Physics 193 (2004) 357, eq. (14)."""
        length = self.norm(change)
        if length == 0.0:
            self.copy(change, into)
            return
        share = np.sqrt(self.epsilon) * max(self.norm(x), 1.0) / length
        self.copy(x, self._shifted)
        self.axpy(share, change, self._shifted)
        function(self._shifted, into)
        self.combine(-1.0 / share, value, 1.0 / share, into)

    @cached_property
    def _shifted(self) -> Vector:
        return self.vector()

    def impose_derivative(self, x: Vector, value: Vector, time: float, change: Vector, into: Vector) -> None:
        """Derivative of the conditions at the nodes, C of `impose`, at x, where it is `value`, along `change`."""

        def impose_at(at: Vector, found: Vector) -> None:
            self.copy(at, found)
            self.impose(found, time)

        self.derivative(impose_at, x, value, change, into)

    def rates_derivative(self, x: Vector, value: Vector, time: float, change: Vector, into: Vector) -> None:
        """Derivative of R at x, where it is `value`, along `change`: with what conditions do at nodes and in ghosts."""
        self.derivative(lambda at, found: self.rates(at, time, found), x, value, change, into)
