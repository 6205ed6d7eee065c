"""Solvers of the linear equations of the adjoint method: by factors of the whole matrix, or iteratively."""

from collections.abc import Callable
from typing import Any

import numpy as np

from hiresx.errors import HiresxError
from hiresx.gradients.fronts import MultifrontalFactors, count_numbers, dissect
from hiresx.gradients.sparse_modules import scipy
from hiresx.grid.size import host_memory, in_bytes

# Memory while factors are made, over that of the factors in FP32, and the share of the machine's memory for it.
MEMORY, SHARE = 2.0, 0.5
# Variables of which no entry couples one with the other by more than this are solved for separately.
COUPLED = 1e-8
# Solutions by factors are corrected until this share of the right-hand side is left, at most so many times. Factors in
# FP32 that leave more than the last share are replaced by factors in FP64.
REFINED, CORRECTIONS, TOO_MUCH = 1e-11, 10, 1e-6
# Nodes of a part, without those beside it, and from which size on entries of the scaled equations join nodes in a part.
PART, STRONG = 50, 0.1
# In three dimensions factors of more entries are not made. Those of a laminar wing, 140 million, took 18 seconds
# with the adjoint solutions of two forces, and GMRES took some 35.
LARGEST = 2e8
# GMRES: its vectors, how often it is started again, to which share of the right-hand side it solves, and to which share
# where it only preconditions. Above the last number it has not converged.
KRYLOV, STARTS, DROP, ROUGHLY, UNSOLVED = 100, 8, 1e-6, 1e-2, 1e-2


class Factors:
    """The solver that factorises the whole `matrix` (n, n), in FP32, and corrects each solution by the residual in FP64
    (J. H. Wilkinson, Rounding Errors in Algebraic Processes, 1963). Variables that are not coupled with each other,
    such as the momentum across the plane of a plane flow, have factors of their own. The factors are computed when they
    are first needed. `variables`: the number of unknowns at each node. `about`: a description for messages."""

    def __init__(self, matrix: Any, variables: int):
        self._matrix, self._transposed = matrix.tocsr(), matrix.T.tocsr()
        self._nodes = matrix.shape[0] // variables
        self._eliminations = dissect(_pattern(matrix, self._nodes, variables))
        self._groups = _coupled_variables(matrix, self._nodes)
        self.numbers = sum(count_numbers(self._eliminations, len(group)) for group in self._groups)
        self.about = f"factors of {self.numbers / 1e6:.1f} million numbers"
        self._factors: list[MultifrontalFactors] = []

    @property
    def bytes(self) -> int:
        """Estimated memory in bytes while the LU factors are computed."""
        return int(MEMORY * np.dtype(np.float32).itemsize * self.numbers)

    def _factorise(self, dtype: Any) -> None:
        """Compute the factors in the number type `dtype`."""
        self._factors, self._dtype = [], dtype
        for group in self._groups:
            self._factors.append(MultifrontalFactors(self._matrix, self._nodes, group, self._eliminations, dtype))

    def adjoint(self, right: np.ndarray) -> np.ndarray:
        """Return the solution (n,) of the linear equations with the transposed matrix and the right-hand side `right`
        (n,)."""
        return self._solve(right, transposed=True)

    def direct(self, right: np.ndarray) -> np.ndarray:
        """Return the solution (n,) of the linear equations with the matrix itself and the right-hand side `right`
        (n,)."""
        return self._solve(right, transposed=False)

    def roughly(self, right: np.ndarray) -> np.ndarray:
        """Return the solution (n,) of the same equations with a relative error of some 1e-5: it is not corrected. The
        factors must exist: `adjoint` and `direct` compute them."""
        found: np.ndarray = np.sum([factors.solve(right) for factors in self._factors], axis=0)
        return found

    def _solve(self, right: np.ndarray, transposed: bool) -> np.ndarray:
        if not self._factors:
            self._factorise(np.float32)
        matrix = self._transposed if transposed else self._matrix
        found, left, size = np.zeros(len(right)), right, float(np.linalg.norm(right))
        norm = size
        for _ in range(CORRECTIONS):
            if not norm > REFINED * size:
                break
            update = sum(f.solve_transposed(left) if transposed else f.solve(left) for f in self._factors)
            after = left - matrix @ update
            if not np.linalg.norm(after) < 0.5 * norm:
                break
            found, left, norm = found + update, after, float(np.linalg.norm(after))
        if norm > TOO_MUCH * size and self._dtype == np.float32:
            self._factorise(np.float64)
            return self._solve(right, transposed)
        return found


class Iterative:
    """The solver of the equations with the `matrix` (n, n) by GMRES. The preconditioner consists of dense factors of
    small overlapping parts of the matrix; each unknown takes the solution of its own part: X.-C. Cai & M. Sarkis, SIAM
    Journal on Scientific Computing 21 (1999) 792. `variables`: the number of unknowns at each node. `about`: a
    description of the factors for messages."""

    def __init__(self, matrix: Any, variables: int):
        self._linear, self._dense = scipy("sparse.linalg"), scipy("linalg")
        self._matrix, self._transposed = matrix, matrix.T.tocsr()
        self._parts = []
        for unknowns, own in _parts(matrix, variables):
            factors = self._dense.lu_factor(matrix[unknowns][:, unknowns].toarray())
            self._parts.append((unknowns, unknowns[own], own, factors))
        numbers = sum(len(unknowns) ** 2 for unknowns, *_ in self._parts) / 1e6
        self.about = f"factors of {len(self._parts)} overlapping parts, {numbers:.1f} million numbers, for GMRES"

    def adjoint(self, right: np.ndarray) -> np.ndarray:
        """Return the solution (n,) of the linear equations with the transposed matrix and the right-hand side `right`
        (n,), by GMRES. Raises HiresxError if GMRES does not converge."""
        found = self._solve(self._transposed, right, DROP, transposed=True)
        left = float(np.linalg.norm(self._transposed @ found - right) / (np.linalg.norm(right) or 1.0))
        if not left <= UNSOLVED:
            raise HiresxError(
                f"GMRES with the factors of {len(self._parts)} parts leaves {left:.2g} of the adjoint equations in "
                f"{KRYLOV * STARTS} products",
                "leave out --adjoint; in plane flow a machine with more memory holds the factors of the whole",
            )
        return found

    def roughly(self, right: np.ndarray) -> np.ndarray:
        """Return an approximate solution (n,) of the linear equations with the matrix itself and the right-hand side
        `right` (n,), by GMRES."""
        return self._solve(self._matrix, right, ROUGHLY, transposed=False)

    def _solve(self, matrix: Any, right: np.ndarray, drop: float, transposed: bool) -> np.ndarray:
        def precondition(values: np.ndarray) -> np.ndarray:
            return self._precondition(values, transposed)

        operator = self._linear.LinearOperator(matrix.shape, precondition)
        found, _ = self._linear.gmres(matrix, right, rtol=drop, restart=KRYLOV, maxiter=STARTS, M=operator)
        return np.asarray(found)

    def _precondition(self, values: np.ndarray, transposed: bool) -> np.ndarray:
        found = np.zeros(values.size)
        for unknowns, mine, own, factors in self._parts:
            right = values.ravel()[unknowns]
            found[mine] = self._dense.lu_solve(factors, right, trans=int(transposed), check_finite=False)[own]
        return found


def solver_of(matrix: Any, variables: int, dimensions: int, say: Callable[[str], None]) -> Factors | Iterative:
    """Return the solver of the linear equations with the sparse `matrix` (n, n). Its unknowns are ordered by variable,
    of which there are `variables`; there may be one more unknown at the end. The whole matrix is factorised if the
    factors fit into memory and, in three `dimensions`, have no more than `LARGEST` entries. Otherwise the solver is
    iterative, and `say` is called with the reason."""
    factors = Factors(matrix, variables)
    if factors.bytes > SHARE * host_memory():
        needed, there = in_bytes(factors.bytes), in_bytes(host_memory())
        say(f"factors of the whole would take about {needed} of {there}: GMRES instead")
    elif dimensions == 3 and factors.numbers > LARGEST:
        say(f"factors of the whole would have {factors.numbers / 1e6:.0f} million numbers: GMRES instead")
    else:
        return factors
    return Iterative(matrix, variables)


def _coupled_variables(matrix: Any, nodes: int) -> list[np.ndarray]:
    """Return groups of variables that are coupled by the `matrix`, each as an array of the numbers of its variables. An
    unknown that belongs to no node counts as one more variable."""
    entries = matrix.tocoo()
    kept = np.abs(entries.data) > COUPLED
    of = -(-matrix.shape[0] // nodes)
    row, column = entries.row[kept] // nodes, entries.col[kept] // nodes
    coupled = scipy("sparse").coo_array((np.ones(len(row), bool), (row, column)), (of, of))
    count, group = scipy("sparse.csgraph").connected_components(coupled.tocsr(), directed=False)
    return [np.flatnonzero(group == n) for n in range(count)]


def _parts(matrix: Any, variables: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the unknowns of each part, with one layer of nodes beside it, and which are its own. An unknown that
    belongs to no node is in the last part."""
    nodes, parts = matrix.shape[0] // variables, []
    pattern = _pattern(matrix, nodes, variables, STRONG)
    for piece in _pieces(pattern, nodes):
        there, own = np.zeros(nodes, bool), np.zeros(nodes, bool)
        there[pattern[piece].indices] = there[piece] = own[piece] = True
        found = np.flatnonzero(there)
        at = (nodes * np.arange(variables)[:, None] + found).ravel()
        parts.append((at, np.tile(own[found], variables)))
    if matrix.shape[0] > nodes * variables:
        at, own = parts[-1]
        parts[-1] = np.append(at, matrix.shape[0] - 1), np.append(own, True)
    return parts


def _pattern(matrix: Any, nodes: int, variables: int, above: float = 0.0) -> Any:
    """Return which nodes depend on each other by entries of a size `above` the given one, as a symmetric sparse matrix
    (nodes, nodes) in CSR form."""
    sparse, entries = scipy("sparse"), matrix.tocoo()
    kept = (np.abs(entries.data) > above) & (np.maximum(entries.row, entries.col) < nodes * variables)
    row, column = entries.row[kept] % nodes, entries.col[kept] % nodes
    pattern = sparse.coo_array((np.ones(len(row), bool), (row, column)), (nodes, nodes)).tocsr()
    return sparse.csr_array(pattern + pattern.T)


def _pieces(pattern: Any, nodes: int) -> list[list[int]]:
    """Divide the nodes into pieces of at most `PART`, each of which grows from its first node to those beside."""
    taken, pieces = np.zeros(nodes, bool), []
    for first in range(nodes):
        if taken[first]:
            continue
        piece, next_ = [first], 0
        taken[first] = True
        while len(piece) < PART and next_ < len(piece):
            beside = pattern.indices[pattern.indptr[piece[next_]] : pattern.indptr[piece[next_] + 1]]
            new = beside[~taken[beside]][: PART - len(piece)]
            taken[new] = True
            piece.extend(int(node) for node in new)
            next_ += 1
        pieces.append(piece)
    return pieces
