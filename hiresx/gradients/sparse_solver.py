"""Solvers of the transposed linear equations: by factors of the whole matrix, or iteratively."""

from collections.abc import Callable
from typing import Any

import numpy as np

from hiresx.base import optional
from hiresx.errors import HiresxError
from hiresx.grid.size import host_memory, in_bytes

# Bytes of factors over the number of unknowns to the power 1.5 in plane flows, as measured (docs/gradients.md).
BYTES = 110
# The share of the machine's memory that they may take.
SHARE = 0.5
# Nodes of a part, without those beside it, and from which size on entries of the scaled equations join nodes in a part.
PART, STRONG = 50, 0.1
# GMRES: its vectors, how often it is started again, and to which share of the right-hand side it solves. Above the last
# number it has not converged.
KRYLOV, STARTS, DROP, UNSOLVED = 100, 8, 1e-6, 1e-2


def scipy(part: str) -> Any:
    """Return the module scipy.<part>. Raises HiresxError if SciPy is missing or broken."""
    return optional.import_required(f"scipy.{part}", "adjoint derivatives need SciPy", "pip install 'hiresx[post]'")


class Factors:
    """The solver that factorises the whole matrix by SciPy's SuperLU. `about`: a description of the factors for
    messages."""

    def __init__(self, matrix: Any):
        self._factors = scipy("sparse.linalg").splu(matrix.T.tocsc())
        self.about = f"factors of {self._factors.nnz / 1e6:.1f} million numbers"

    def adjoint(self, right: np.ndarray) -> np.ndarray:
        """Return the solution (n,) of the equations of the transposed matrix with the right-hand side `right` (n,),
        where n is the number of unknowns."""
        return np.asarray(self._factors.solve(right))

    def direct(self, right: np.ndarray) -> np.ndarray:
        """Return the solution (n,) of the equations of the matrix itself with the right-hand side `right` (n,)."""
        return np.asarray(self._factors.solve(right, trans="T"))


class Iterative:
    """The solver of the transposed equations by GMRES. The preconditioner consists of dense factors of small
    overlapping parts of the matrix; each unknown takes the solution of its own part: X.-C. Cai & M. Sarkis, SIAM
    Journal on Scientific Computing 21 (1999) 792. `about`: a description of the factors for messages."""

    def __init__(self, matrix: Any, variables: int):
        self._linear, self._dense = scipy("sparse.linalg"), scipy("linalg")
        self._transposed = matrix.T.tocsr()
        self._parts = []
        for unknowns, own in _parts(matrix, variables):
            factors = self._dense.lu_factor(self._transposed[unknowns][:, unknowns].toarray())
            self._parts.append((unknowns, unknowns[own], own, factors))
        numbers = sum(len(unknowns) ** 2 for unknowns, *_ in self._parts) / 1e6
        self.about = f"factors of {len(self._parts)} overlapping parts, {numbers:.1f} million numbers, for GMRES"

    def adjoint(self, right: np.ndarray) -> np.ndarray:
        """Return the solution (n,) of the equations of the transposed matrix with the right-hand side `right` (n,),
        where n is the number of unknowns. Raises HiresxError if GMRES does not converge."""
        matrix = self._transposed
        operator = self._linear.LinearOperator(matrix.shape, self._precondition)
        found, _ = self._linear.gmres(matrix, right, rtol=DROP, restart=KRYLOV, maxiter=STARTS, M=operator)
        left = float(np.linalg.norm(matrix @ found - right) / (np.linalg.norm(right) or 1.0))
        if not left <= UNSOLVED:
            raise HiresxError(
                f"GMRES with the factors of {len(self._parts)} parts leaves {left:.2g} of the adjoint equations in "
                f"{KRYLOV * STARTS} products",
                "leave out --adjoint; in plane flow a machine with more memory holds the factors of the whole",
            )
        return np.asarray(found)

    def _precondition(self, values: np.ndarray) -> np.ndarray:
        found = np.zeros(values.size)
        for unknowns, mine, own, factors in self._parts:
            found[mine] = self._dense.lu_solve(factors, values.ravel()[unknowns], check_finite=False)[own]
        return found


def solver_of(matrix: Any, variables: int, dimensions: int, say: Callable[[str], None]) -> Factors | Iterative:
    """Return the solver for the sparse `matrix`. Its unknowns are ordered by the `variables`; there may be one more
    unknown at the end. In plane flow (`dimensions` below 3) the whole matrix is factored if the factors fit into
    memory. Otherwise the solver is iterative, and `say` prints the reason."""
    needed = BYTES * float(matrix.shape[0]) ** 1.5
    if dimensions < 3 and needed <= SHARE * host_memory():
        return Factors(matrix)
    if dimensions < 3:
        say(
            f"factors of the whole would take about {in_bytes(int(needed))} of {in_bytes(host_memory())}: GMRES instead"
        )
    return Iterative(matrix, variables)


def _parts(matrix: Any, variables: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the unknowns of each part, with one layer of nodes beside it, and which are its own. An unknown that
    belongs to no node is in the last part."""
    nodes, parts = matrix.shape[0] // variables, []
    pattern = _strong(matrix, nodes, nodes * variables)
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


def _strong(matrix: Any, nodes: int, unknowns: int) -> Any:
    """Which nodes depend strongly on each other."""
    sparse, entries = scipy("sparse"), matrix.tocoo()
    strong = (np.abs(entries.data) > STRONG) & (entries.row < unknowns) & (entries.col < unknowns)
    row, column = entries.row[strong] % nodes, entries.col[strong] % nodes
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
