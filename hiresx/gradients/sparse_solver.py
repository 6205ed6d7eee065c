"""Solvers of sparse linear equations with a matrix and with its transpose: by factors of the whole, or iteratively."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from hiresx.base import optional
from hiresx.errors import HiresxError
from hiresx.grid.size import host_memory, in_bytes

# Bytes of factors over the number of unknowns to the power 1.5, by dimensions of the grid, as measured
# (docs/gradients.md).
BYTES = (110, 110, 350)
# The share of the machine's memory that factors may take.
SHARE = 0.5
# Numbers of parts that are tried where the factors of the whole do not fit.
PARTS = (4, 8, 16, 32, 64, 128)
# Entries of the scaled equations above this size couple a part with the nodes beside it.
STRONG = 1e-3
# GMRES: its vectors, how often it is started again, and to which share of the right-hand side it solves for the adjoint
# solution and for a correction of the derivative of the flow. Above the last number it has not converged.
KRYLOV, STARTS, ADJOINT, CORRECTION, UNSOLVED = 100, 6, 1e-8, 1e-3, 1e-1


def scipy(part: str) -> Any:
    """scipy.`part`. Raises HiresxError where SciPy is missing or broken."""
    return optional.import_required(f"scipy.{part}", "adjoint derivatives need SciPy", "pip install 'hiresx[post]'")


class SparseSolver(ABC):
    """`about`: what it is, in words. `left`: what is left of the adjoint equations at most, over their right-hand
    side."""

    about: str
    left = 0.0

    @abstractmethod
    def adjoint(self, right: np.ndarray) -> np.ndarray:
        """Solve with the transposed matrix."""

    @abstractmethod
    def direct(self, right: np.ndarray) -> np.ndarray:
        """Solve with the matrix."""


class Factors(SparseSolver):
    """By SuperLU."""

    def __init__(self, matrix: Any):
        self._factors = scipy("sparse.linalg").splu(matrix.T.tocsc())
        self.about = f"factors of {self._factors.nnz / 1e6:.1f} million numbers"

    def adjoint(self, right: np.ndarray) -> np.ndarray:
        return np.asarray(self._factors.solve(right))

    def direct(self, right: np.ndarray) -> np.ndarray:
        return np.asarray(self._factors.solve(right, trans="T"))


class Iterative(SparseSolver):
    """By GMRES, preconditioned by the factors of overlapping parts of the matrix, of whose solutions each unknown takes
    that of its own part: X.-C. Cai & M. Sarkis, SIAM Journal on Scientific Computing 21 (1999) 792."""

    def __init__(self, matrix: Any, parts: list[tuple[np.ndarray, np.ndarray]]):
        """`parts`: unknowns of each part with those beside it, and which of them are its own."""
        self._linear = scipy("sparse.linalg")
        self._matrix, self._transposed = matrix, matrix.T.tocsr()
        self._parts = [(u, u[own], own, self._linear.splu(self._transposed[u][:, u].tocsc())) for u, own in parts]
        numbers = sum(factors.nnz for *_, factors in self._parts) / 1e6
        self.about = f"factors of {len(parts)} overlapping parts, {numbers:.1f} million numbers, for GMRES"

    def adjoint(self, right: np.ndarray) -> np.ndarray:
        found, left = self._gmres(self._transposed, right, "N", ADJOINT)
        self.left = max(self.left, left)
        return found

    def direct(self, right: np.ndarray) -> np.ndarray:
        return self._gmres(self._matrix, right, "T", CORRECTION)[0]

    def _gmres(self, matrix: Any, right: np.ndarray, trans: str, drop: float) -> tuple[np.ndarray, float]:
        """Return the solution and what is left of the equations. Raises HiresxError where this is much."""

        def precondition(values: np.ndarray) -> np.ndarray:
            found = np.zeros(values.size)
            for unknowns, mine, own, factors in self._parts:
                found[mine] = factors.solve(values.ravel()[unknowns], trans=trans)[own]
            return found

        operator = self._linear.LinearOperator(matrix.shape, precondition)
        solution, _ = self._linear.gmres(matrix, right, rtol=drop, restart=KRYLOV, maxiter=STARTS, M=operator)
        left = float(np.linalg.norm(matrix @ solution - right) / (np.linalg.norm(right) or 1.0))
        if not left <= UNSOLVED:
            raise HiresxError(
                f"GMRES with the factors of {len(self._parts)} parts leaves {left:.2g} of the sparse equations in "
                f"{KRYLOV * STARTS} products",
                "leave out --adjoint, or take a machine with more memory, on which the parts are fewer",
            )
        return solution, left


def solver_of(matrix: Any, variables: int, dimensions: int, say: Callable[[str], None]) -> SparseSolver:
    """Return the solver for a `matrix` of unknowns ordered by variable, with perhaps one more at its end: by factors of
    the whole where the estimate of their memory allows it, else by those of as few parts as fit. Raises HiresxError
    where nothing fits."""
    room = SHARE * host_memory()
    needed = _bytes([matrix.shape[0]], dimensions)
    if needed <= room:
        return Factors(matrix)
    say(f"factors of the whole would take about {in_bytes(int(needed))} of {in_bytes(host_memory())}: GMRES instead")
    order, pattern = _ordered_nodes(matrix, variables)
    for count in PARTS:
        parts = _parts(order, pattern, count, variables, matrix.shape[0])
        needed = _bytes([len(unknowns) for unknowns, _ in parts], dimensions)
        if needed <= room:
            return Iterative(matrix, parts)
    raise HiresxError(
        f"the factors of {matrix.shape[0]:,} adjoint equations in {count} parts take about {in_bytes(int(needed))}, "
        f"this machine has {in_bytes(host_memory())} of memory",
        "leave out --adjoint, or take a grid with fewer nodes",
    )


def _bytes(sizes: list[int], dimensions: int) -> float:
    return sum((BYTES[dimensions - 1] * float(size) ** 1.5 for size in sizes), 0.0)


def _ordered_nodes(matrix: Any, variables: int) -> tuple[np.ndarray, Any]:
    """Return all nodes in the reverse order of Cuthill and McKee, and which depend strongly on each other."""
    sparse, nodes = scipy("sparse"), matrix.shape[0] // variables
    entries = matrix.tocoo()
    strong = (np.abs(entries.data) > STRONG) & (entries.row < nodes * variables) & (entries.col < nodes * variables)
    row, column = entries.row[strong] % nodes, entries.col[strong] % nodes
    pattern = sparse.coo_array((np.ones(len(row), bool), (row, column)), (nodes, nodes)).tocsr()
    pattern = sparse.csr_array(pattern + pattern.T)
    return scipy("sparse.csgraph").reverse_cuthill_mckee(pattern, symmetric_mode=True), pattern


def _parts(
    order: np.ndarray, pattern: Any, count: int, variables: int, unknowns: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the unknowns of `count` parts, with one layer of nodes beside each, and which are the part's own. An
    unknown that belongs to no node is in the last part."""
    nodes, parts = len(order), []
    for piece in np.array_split(order, count):
        own = np.zeros(nodes, bool)
        own[piece] = True
        there = own.copy()
        there[pattern[piece].indices] = True
        found = np.flatnonzero(there)
        at = (nodes * np.arange(variables)[:, None] + found).ravel()
        parts.append((at, np.tile(own[found], variables)))
    if unknowns > nodes * variables:
        at, own = parts[-1]
        parts[-1] = np.append(at, unknowns - 1), np.append(own, True)
    return parts
