"""LU factors of a sparse matrix that couples nodes of a grid, by dense matrices (fronts) in FP32.

Nested dissection (A. George, SIAM Journal on Numerical Analysis 10 (1973) 345) orders the nodes: a separator divides
the nodes into two parts that do not depend on each other, and each part is divided again. The multifrontal method
(I. S. Duff & J. K. Reid, SIAM Journal on Scientific and Statistical Computing 5 (1984) 633) eliminates first the nodes
of the last parts, then the separators. Each elimination is a factorisation of one dense matrix by LAPACK, with pivots
among the unknowns that are eliminated together.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from hiresx.gradients.sparse_modules import scipy

# Parts of so many nodes are not divided further. Each of the two sides of a separator has at least this share of the
# nodes, if there is such a separator.
LEAF, SIDE = 100, 0.3


class Elimination(NamedTuple):
    """Nodes that are eliminated together. `own` (k,): their numbers. `beside` (m,): the numbers of the nodes that are
    eliminated later and whose equations change. `parts`: the positions, in the list of eliminations, of the
    eliminations whose results are added to this one."""

    own: np.ndarray
    beside: np.ndarray
    parts: tuple[int, ...]


def dissect(pattern: Any) -> list[Elimination]:
    """Return the order in which the nodes of a sparse matrix are eliminated by nested dissection, as groups of nodes.
    `pattern`: a symmetric sparse matrix (nodes, nodes) in CSR form with an entry where two nodes depend on each other.
    Source: A. George, SIAM Journal on Numerical Analysis 10 (1973) 345."""
    found: list[Elimination] = []
    level, eliminated = np.empty(pattern.shape[0], int), np.zeros(pattern.shape[0], bool)

    def eliminate(nodes: np.ndarray) -> int:
        separator, sides = _divide(pattern, nodes, level)
        parts = tuple(eliminate(side) for side in sides)
        eliminated[separator] = True
        near = np.unique(np.concatenate([_beside(pattern, separator), *(found[n].beside for n in parts)]))
        found.append(Elimination(separator, near[~eliminated[near]], parts))
        return len(found) - 1

    eliminate(np.arange(pattern.shape[0]))
    return found


def count_numbers(eliminations: list[Elimination], variables: int) -> int:
    """Return the number of entries of the LU factors of a matrix with `variables` unknowns at each node.
    `eliminations`: the order in which the nodes are eliminated, the result of `dissect`."""
    return variables**2 * sum(len(e.own) * (len(e.own) + 2 * len(e.beside)) for e in eliminations)


class Front(NamedTuple):
    """The factors of one elimination of k unknowns, with m unknowns beside them. `own` (k,) and `beside` (m,): the
    numbers of the unknowns. `factors`: LAPACK's factors of their matrix. `right` (k, m): the inverse of this matrix
    times the matrix of the columns beside. `below` (m, k): the matrix of the rows beside."""

    own: np.ndarray
    beside: np.ndarray
    factors: Any
    right: np.ndarray
    below: np.ndarray


class MultifrontalFactors:
    """The LU factors of a sparse `matrix` (n, n) in the number type `dtype`. The unknowns are ordered by variable: the
    unknown of the variable v at a node is v `nodes` + node. There may be one more unknown at the end. `labels`: the
    variables whose unknowns are solved for, with the number of variables for the last unknown; others must not be
    coupled to them. `eliminations`: the order of the nodes."""

    def __init__(self, matrix: Any, nodes: int, labels: np.ndarray, eliminations: list[Elimination], dtype: Any):
        self._dense, self._dtype = scipy("linalg"), dtype
        rows = np.maximum(abs(matrix).max(axis=1).toarray().ravel(), np.finfo(dtype).tiny)
        scaled = (scipy("sparse").diags_array(1 / rows) @ matrix).tocsc()
        columns = np.maximum(abs(scaled).max(axis=0).toarray().ravel(), np.finfo(dtype).tiny)
        scaled = (scaled @ scipy("sparse").diags_array(1 / columns)).astype(dtype)
        self._rows, self._columns = rows, columns
        self._fronts = list(self._factor(scaled.tocsr(), scaled.tocsc(), nodes, labels, eliminations))

    def _factor(
        self, by_rows: Any, by_columns: Any, nodes: int, labels: np.ndarray, eliminations: list[Elimination]
    ) -> Iterator[Front]:
        """Yield the fronts in the order of the eliminations. `by_rows`, `by_columns`: the matrix in two forms."""
        size = by_rows.shape[0]
        whole = labels[labels * nodes < size - size % nodes]
        last = np.arange(size - size % nodes, size) if len(whole) < len(labels) else np.empty(0, int)
        place = np.full(size, -1)
        left: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        for n, (own_nodes, beside_nodes, parts) in enumerate(eliminations):
            own, beside = ((whole[:, None] * nodes + at).ravel() for at in (own_nodes, beside_nodes))
            own, beside = (
                (np.append(own, last), beside) if n == len(eliminations) - 1 else (own, np.append(beside, last))
            )
            k, here = len(own), np.concatenate([own, beside])
            place[here] = np.arange(len(here))
            front = np.zeros((len(here), len(here)), self._dtype, order="F")
            entries = by_rows[own].tocoo()
            at = place[entries.col]
            front[entries.row[at >= 0], at[at >= 0]] = entries.data[at >= 0]
            entries = by_columns[:, own].tocoo()
            at = place[entries.row]
            front[at[at >= k], entries.col[at >= k]] = entries.data[at >= k]
            for part in parts:
                unknowns, values = left.pop(part)
                at = place[unknowns]
                for column, value in zip(at, values.T, strict=True):
                    front[at, column] += value
            place[here] = -1
            factors = self._dense.lu_factor(front[:k, :k], check_finite=False)
            right = self._dense.lu_solve(factors, front[:k, k:], check_finite=False)
            below = np.asfortranarray(front[k:, :k])
            left[n] = beside, front[k:, k:] - (right.T @ below.T).T
            yield Front(own, beside, factors, right, below)

    def solve(self, values: np.ndarray) -> np.ndarray:
        """Return the solution (n,) of the linear equations with the factorised matrix and the right-hand side `values`
        (n,)."""
        right = (values / self._rows).astype(self._dtype)
        found = np.zeros_like(right)
        for front in self._fronts:
            found[front.own] = self._dense.lu_solve(front.factors, right[front.own], check_finite=False)
            right[front.beside] -= front.below @ found[front.own]
        for front in reversed(self._fronts):
            found[front.own] -= front.right @ found[front.beside]
        solution: np.ndarray = found / self._columns
        return solution

    def solve_transposed(self, values: np.ndarray) -> np.ndarray:
        """Return the solution (n,) of the linear equations with the transpose of the factorised matrix and the
        right-hand side `values` (n,)."""
        right = (values / self._columns).astype(self._dtype)
        found = np.zeros_like(right)
        for front in self._fronts:
            right[front.beside] -= front.right.T @ right[front.own]
        for front in reversed(self._fronts):
            own = right[front.own] - front.below.T @ found[front.beside]
            found[front.own] = self._dense.lu_solve(front.factors, own, trans=1, check_finite=False)
        solution: np.ndarray = found / self._rows
        return solution


def _beside(pattern: Any, nodes: np.ndarray) -> np.ndarray:
    """Return the nodes that depend on one of `nodes`, each once."""
    begin, end = pattern.indptr[nodes], pattern.indptr[nodes + 1]
    first = np.cumsum(end - begin) - (end - begin)
    return np.unique(pattern.indices[np.repeat(begin - first, end - begin) + np.arange((end - begin).sum())])


def _divide(pattern: Any, nodes: np.ndarray, level: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    """Divide `nodes` into a separator, which may be all of them, and sides that do not depend on each other. The
    separator is the smallest set of nodes at one distance from an outer node. `level` (all nodes,): work memory."""
    if len(nodes) <= LEAF:
        return nodes, []
    _find_levels(pattern, nodes, nodes[0], level)
    if (level[nodes] < 0).any():
        return nodes[:0], [nodes[level[nodes] >= 0], nodes[level[nodes] < 0]]
    _find_levels(pattern, nodes, nodes[level[nodes].argmax()], level)
    of = level[nodes]
    sizes = np.bincount(of)
    if len(sizes) < 3:
        return nodes, []
    below = np.cumsum(sizes)[:-2]
    side = np.minimum(below, len(nodes) - below - sizes[1:-1])
    at = 1 + np.where(side >= min(SIDE * len(nodes), side.max()), sizes[1:-1], len(nodes)).argmin()
    return nodes[of == at], [nodes[of < at], nodes[of > at]]


def _find_levels(pattern: Any, nodes: np.ndarray, start: int, level: np.ndarray) -> None:
    """Set `level` to the number of steps in the `pattern` from the node `start`, at `nodes` only; -1 where no path
    leads."""
    inside = np.zeros(len(level), bool)
    inside[nodes] = True
    level[nodes] = -1
    front, n = np.array([start]), 0
    while len(front):
        level[front] = n
        near = _beside(pattern, front)
        near = near[inside[near]]
        front, n = near[level[near] < 0], n + 1
