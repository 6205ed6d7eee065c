"""Flexible GMRES on vectors: Y. Saad, SIAM Journal on Scientific Computing 14 (1993) 461, algorithm 2.2."""

from collections.abc import Callable

import numpy as np

from hiresx.time.ode_system import System, Vector

# A second pass makes vectors orthogonal where the first one leaves less than this share of the square of the norm.
LEFT = 0.5


class FlexibleGmres:
    """Space for `size` directions: `size` + 1 orthogonal vectors and as many preconditioned ones as directions."""

    def __init__(self, system: System, size: int):
        self._system = system
        self._basis = system.basis(size + 1)
        self._directions = system.basis(size)

    def __call__(
        self,
        product: Callable[[Vector, Vector], None],
        precondition: Callable[[Vector, Vector], None],
        right: Vector,
        drop: float,
        into: Vector,
    ) -> tuple[float, int]:
        """Solve A x = `right` from x = 0 until the residual is `drop` of it, or the space is full. `product(x, y)`
        computes y = A x, `precondition(x, y)` a y with A y near x. Returns the residual over that of x = 0 and the
        number of products. Raises FloatingPointError, on all ranks, where a product is not finite."""
        system, basis, size = self._system, self._basis, len(self._basis) - 1
        begin = self._start(precondition, right, into)
        system.scale(0.0, into)
        if begin == 0.0:
            return 0.0, 0
        hessenberg, target = np.zeros((size + 1, size)), np.zeros(size + 1)
        target[0] = begin
        left, count = 1.0, 0
        weights: np.ndarray = np.zeros(0)
        for n in range(size):
            self._product(n, product, precondition)
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

    def _start(self, precondition: Callable[[Vector, Vector], None], right: Vector, work: Vector) -> float:
        """Set the first vector to the residual of x = 0, and return its norm, by which it is divided where it is not
        0."""
        return self._first(right)

    def _first(self, residual: Vector) -> float:
        begin = self._system.norm(residual)
        if begin > 0.0:
            self._system.combine(1 / begin, residual, 0.0, self._basis[0])
        return begin

    def _product(
        self, n: int, product: Callable[[Vector, Vector], None], precondition: Callable[[Vector, Vector], None]
    ) -> None:
        """Set vector n + 1 to the product that makes the space larger."""
        precondition(self._basis[n], self._directions[n])
        product(self._directions[n], self._basis[n + 1])

    def _orthogonalise(self, n: int, hessenberg: np.ndarray) -> None:
        """Make vector n + 1 orthogonal to those before it, of norm 1: Gram and Schmidt's classical method, which needs
        one pass over all vectors at once, and a second one where the first leaves little of the vector (L. Giraud, J.
        Langou & M. Rozloznik, Computers and Mathematics with Applications 50 (2005) 1069)."""
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


class LeftGmres(FlexibleGmres):
    """The same for a linear preconditioner M, of which it lowers the residual M^-1 (`right` - A x), which is about the
    error of x. It needs half of the space."""

    def __init__(self, system: System, size: int):
        self._system = system
        self._basis = system.basis(size + 1)
        self._directions = self._basis

    def _start(self, precondition: Callable[[Vector, Vector], None], right: Vector, work: Vector) -> float:
        precondition(right, work)
        return self._first(work)

    def _product(
        self, n: int, product: Callable[[Vector, Vector], None], precondition: Callable[[Vector, Vector], None]
    ) -> None:
        product(self._basis[n], self._basis[n + 1])
        precondition(self._basis[n + 1], self._basis[n + 1])
