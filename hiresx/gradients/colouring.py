"""Groups of nodes, or of sets of nodes, that may be shifted together, because no result depends on two of them."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from hiresx.gradients.sparse_modules import scipy


class LineNeighbours:
    """The dependences between nodes, for the colouring of tiles, which are sets of adjacent nodes. `neighbours` (nodes,
    m): the nodes beside each node along its grid lines; a node with fewer than m neighbours is listed as its own
    neighbour. `means`: nodes that may all depend on each other, as a mean is taken over them. `tiles` (nodes,): the
    number of the tile of each node, from 0 on."""

    def __init__(self, neighbours: np.ndarray, means: np.ndarray, tiles: np.ndarray):
        self._neighbours, self._means, self._tiles = neighbours, means, tiles
        order = np.argsort(tiles, kind="stable")
        self.members = np.split(order, np.flatnonzero(np.diff(tiles[order])) + 1)

    def distant_groups(self, reach: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Divide the tiles (sets of adjacent nodes) into groups, for finite differences that perturb all nodes of a
        group at once. No node is within `reach` steps along grid lines of two tiles of a group; the nodes over which
        means are taken (`means`) all count as neighbours of each other. Yield for each group the numbers (m,) of its
        tiles, and an array (nodes,) with the tile of the group that influences each node of the grid, or -1."""
        nodes, beside = self._neighbours.shape
        near = _pattern(np.arange(nodes), self._tiles, (nodes, len(self.members)))
        steps = _pattern(np.repeat(np.arange(nodes), beside), self._neighbours.ravel(), (nodes, nodes))
        for _ in range(reach):
            near = near + steps @ near
        pairs = np.repeat(self._means, len(self._means)), np.tile(self._tiles[self._means], len(self._means))
        yield from groups(near + _pattern(*pairs, near.shape))


def groups(depends: Any, first: np.ndarray | None = None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Divide nodes, or sets of nodes, into groups of which no two members influence the same result, for finite
    differences that perturb all members at once. `depends` (results, nodes): a sparse matrix with an entry where a
    result depends on a node. `first` (nodes,): boolean, true for nodes that enter groups before all others, so that few
    groups contain such nodes. Nodes enter groups in the smallest-last order: D. W. Matula & L. L. Beck, Journal of the
    ACM 30 (1983) 417. Yield for each group the numbers (m,) of its members, and an array (results,) with the member
    that influences each result, or -1."""
    meets, by_node = (depends.T @ depends).tocsr(), depends.tocsc()
    group = np.full(depends.shape[1], -1)
    order = _smallest_last(meets)
    for node in order if first is None else np.concatenate([order[first[order]], order[~first[order]]]):
        taken = group[meets.indices[meets.indptr[node] : meets.indptr[node + 1]]]
        free = np.ones(len(taken) + 1, bool)
        free[taken[(taken >= 0) & (taken < len(free))]] = False
        group[node] = free.argmax()
    for n in range(group.max() + 1):
        nodes = np.flatnonzero(group == n)
        influences = by_node[:, nodes].tocoo()
        cause = np.full(depends.shape[0], -1)
        cause[influences.row] = nodes[influences.col]
        yield nodes, cause


def _pattern(rows: np.ndarray, columns: np.ndarray, shape: tuple[int, ...]) -> Any:
    """Return a sparse matrix of Booleans in CSR form, true at the given places."""
    return scipy("sparse").coo_array((np.ones(len(rows), bool), (rows, columns)), shape).tocsr()


def _smallest_last(meets: Any) -> np.ndarray:
    """Return the nodes (nodes,) in the smallest-last order: of a node and those before it, the node meets the fewest of
    the others. `meets`: a symmetric sparse matrix (nodes, nodes) in CSR form with an entry where two nodes meet."""
    left, order = np.diff(meets.indptr).astype(np.int64), np.empty(meets.shape[0], int)
    for place in reversed(range(len(order))):
        order[place] = node = left.argmin()
        left[meets.indices[meets.indptr[node] : meets.indptr[node + 1]]] -= 1
        left[node] = np.iinfo(np.int64).max
    return order
