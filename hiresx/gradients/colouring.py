"""Groups of nodes, or of sets of nodes, that may be shifted together, because no result depends on two of them."""

from collections.abc import Iterator
from typing import Any

import numpy as np


class LineNeighbours:
    """The dependences between nodes, for the colouring of tiles, which are sets of adjacent nodes. `neighbours` (nodes,
    m): the nodes beside each node along its grid lines; a node with fewer than m neighbours is listed as its own
    neighbour. `means`: nodes that may all depend on each other, as a mean is taken over them. `tiles` (nodes,): the
    number of the tile of each node, from 0 on."""

    def __init__(self, neighbours: np.ndarray, means: np.ndarray, tiles: np.ndarray):
        self._neighbours, self._means, self._tiles = neighbours, means, tiles
        order = np.argsort(tiles, kind="stable")
        self.members = np.split(order, np.flatnonzero(np.diff(tiles[order])) + 1)
        self._in_means = np.zeros(len(self.members), bool)
        self._in_means[tiles[means]] = True

    def distant_groups(self, reach: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Divide the tiles (sets of adjacent nodes) into groups, for finite differences that perturb all nodes of a
        group at once. No node is within `reach` steps along grid lines of two tiles of a group; the nodes over which
        means are taken (`means`) all count as neighbours of each other. Yield for each group the numbers (m,) of its
        tiles, and an array (nodes,) with the tile of the group that influences each node of the grid, or -1."""
        near_means = self._are_near(self._means, reach)
        left = np.ones(len(self.members), bool)
        while left.any():
            free, group = left.copy(), []
            while free.any():
                tile = int(free.argmax())
                group.append(tile)
                free &= ~self._are_near(self.members[tile], 2 * reach)
                if self._in_means[tile]:
                    free &= ~near_means
                elif near_means[tile]:
                    free &= ~self._in_means
            left[group] = False
            cause = self._causes(np.concatenate([self.members[tile] for tile in group]), reach)
            cause[cause >= 0] = self._tiles[cause[cause >= 0]]
            for tile in group:
                if self._in_means[tile]:
                    cause[self._means] = tile
            yield np.array(group), cause

    def _are_near(self, nodes: np.ndarray, reach: int) -> np.ndarray:
        """Return for each tile whether it has a node that is at most `reach` steps away from one of `nodes`."""
        near = np.zeros(len(self.members), bool)
        near[self._tiles[self._causes(nodes, reach) >= 0]] = True
        return near

    def _causes(self, nodes: np.ndarray, reach: int) -> np.ndarray:
        """For every node the nearest one of `nodes` that is at most `reach` steps away, or -1."""
        cause = np.full(len(self._neighbours), -1)
        cause[nodes] = front = nodes
        for _ in range(reach):
            beside = self._neighbours[front].ravel()
            of = np.repeat(cause[front], self._neighbours.shape[1])
            new = cause[beside] < 0
            cause[beside[new]] = of[new]
            front = np.unique(beside[new])
        return cause


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


def _smallest_last(meets: Any) -> np.ndarray:
    """Return the nodes (nodes,) in the smallest-last order: of a node and those before it, the node meets the fewest of
    the others. `meets`: a symmetric sparse matrix (nodes, nodes) in CSR form with an entry where two nodes meet."""
    left, order = np.diff(meets.indptr).astype(np.int64), np.empty(meets.shape[0], int)
    for place in reversed(range(len(order))):
        order[place] = node = left.argmin()
        left[meets.indices[meets.indptr[node] : meets.indptr[node + 1]]] -= 1
        left[node] = np.iinfo(np.int64).max
    return order
