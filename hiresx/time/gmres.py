"""GMRES: Y. Saad & M. H. Schultz, SIAM Journal on Scientific and Statistical Computing 7 (1986) 856. Also a substitute
for it that only applies the preconditioner."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, TypeAlias

import numpy as np

from hiresx.time.ode_system import System, Vector

# Vectors are orthogonalised a second time if the first pass leaves less than this fraction of the square of the norm.
LEFT = 0.5

Operator = Callable[[Vector, Vector], None]


class Gmres(ABC):
    """Base class of the GMRES methods, with memory for `size` search directions. Each direction needs
    `vectors_of_direction` vectors: the next orthogonal vector, and the direction itself if it differs from this vector.
    """

    vectors_of_direction: ClassVar[int]

    def __init__(self, system: System, size: int):
        self._system = system
        self._basis = system.basis(size + 1)
        self._directions = self._basis if self.vectors_of_direction == 1 else system.basis(size)

    @abstractmethod
    def _begin(self, precondition: Operator, right: Vector, work: Vector) -> Vector:
        """Return the initial residual, that of x = 0: `right`, or an array that is computed into `work`."""

    @abstractmethod
    def _extend(self, n: int, product: Operator, precondition: Operator) -> None:
        """Set direction n, and vector n + 1 to its product."""

    def __call__(
        self, product: Operator, precondition: Operator, right: Vector, drop: float, into: Vector
    ) -> tuple[float, int]:
        """Solve A x = `right` from x = 0 until the residual has fallen by the factor `drop`, or the memory for
        directions is full. `product(x, y)` computes y = A x. `precondition(x, y)` computes a y with A y near x. Returns
        the residual divided by that of x = 0, and the number of products. Raises FloatingPointError, on all ranks, if a
        product is not finite."""
        system, basis, size = self._system, self._basis, len(self._basis) - 1
        residual = self._begin(precondition, right, into)
        begin = system.norm(residual)
        if not np.isfinite(begin):
            raise FloatingPointError("the residual of the linear equations is not finite")
        if begin > 0.0:
            system.combine(1 / begin, residual, 0.0, basis[0])
        system.scale(0.0, into)
        if begin == 0.0:
            return 0.0, 0
        hessenberg, target = np.zeros((size + 1, size)), np.zeros(size + 1)
        target[0] = begin
        left, count = 1.0, 0
        weights: np.ndarray = np.zeros(0)
        for n in range(size):
            self._extend(n, product, precondition)
            self._orthogonalise(n, hessenberg)
            if not np.isfinite(hessenberg[: n + 2, n]).all():
                raise FloatingPointError("a product with the Jacobian is not finite")
            count = n + 1
            rows = hessenberg[: count + 1, :count]
            weights = np.linalg.lstsq(rows, target[: count + 1], rcond=None)[0]
            left = float(np.linalg.norm(rows @ weights - target[: count + 1])) / begin
            if left <= drop or hessenberg[count, n] <= 1e-14 * begin:
                break
        system.add_sum(weights, self._directions, into)
        return left, count

    def _orthogonalise(self, n: int, hessenberg: np.ndarray) -> None:
        """Make vector n + 1 orthogonal to those before it, with norm 1, by the classical Gram-Schmidt method. It needs
        one pass over all vectors, and a second one if the first leaves little of the vector (L. Giraud, J. Langou & M.
        Rozloznik, Computers and Mathematics with Applications 50 (2005) 1069)."""
        system, basis = self._system, self._basis
        *found, whole = system.products(basis, n + 2, basis[n + 1])
        weights = np.array(found)
        system.add_sum(-weights, basis, basis[n + 1])
        if not whole - weights @ weights > LEFT * whole:
            again = system.products(basis, n + 1, basis[n + 1])
            system.add_sum(-again, basis, basis[n + 1])
            weights += again
        hessenberg[: n + 1, n] = weights
        hessenberg[n + 1, n] = length = system.norm(basis[n + 1])
        if length > 0:
            system.scale(1 / length, basis[n + 1])


class PreconditionerAlone:
    """The linear solver whose solution is M^-1 `right`, where M is the preconditioner. With the matrix blocks of a
    first-order scheme this is a step of defect correction (W. A. Mulder & B. van Leer, Journal of Computational Physics
    59 (1985) 232, section 2)."""

    vectors_of_direction = 0

    def __init__(self, system: System, size: int):
        self._system = system

    def __call__(
        self, product: Operator, precondition: Operator, right: Vector, drop: float, into: Vector
    ) -> tuple[float, int]:
        """Solve as `Gmres` does, but without a product. The final residual is therefore not known and returned as nan.
        Raises FloatingPointError, on all ranks, for a solution that is not finite."""
        precondition(right, into)
        if not math.isfinite(self._system.norm(into)):
            raise FloatingPointError("the update is not finite")
        return math.nan, 0


class FlexibleGmres(Gmres):
    """The flexible GMRES method, which minimises the residual `right` - A x. Source: Y. Saad, SIAM Journal on
    Scientific Computing 14 (1993) 461, algorithm 2.2."""

    vectors_of_direction = 2

    def _begin(self, precondition: Operator, right: Vector, work: Vector) -> Vector:
        return right

    def _extend(self, n: int, product: Operator, precondition: Operator) -> None:
        precondition(self._basis[n], self._directions[n])
        product(self._directions[n], self._basis[n + 1])


class PreconditionedGmres(Gmres):
    """The GMRES method with left preconditioning. It minimises the preconditioned residual M^-1 (`right` - A x), which
    approximates the error of x. `precondition` must be linear and may compute in place."""

    vectors_of_direction = 1

    def _begin(self, precondition: Operator, right: Vector, work: Vector) -> Vector:
        precondition(right, work)
        return work

    def _extend(self, n: int, product: Operator, precondition: Operator) -> None:
        product(self._basis[n], self._basis[n + 1])
        precondition(self._basis[n + 1], self._basis[n + 1])


LinearSolver: TypeAlias = Gmres | PreconditionerAlone
