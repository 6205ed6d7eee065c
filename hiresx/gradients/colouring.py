"""Groups of nodes that may be shifted together, because no result depends on two of them."""

from collections.abc import Iterator
from typing import Any

import numpy as np


class LineNeighbours:
    """The dependences between nodes, for the colouring of the nodes. `neighbours` (nodes, m): the nodes beside each
    node along its grid lines; a node with fewer than m neighbours is listed as its own neighbour. `means`: nodes that
    may all depend on each other, as a mean is taken over them."""

    def __init__(self, neighbours: np.ndarray, means: np.ndarray):
        self._neighbours, self._means = neighbours, means
        self._in_means = np.zeros(len(neighbours), bool)
        self._in_means[means] = True

    def distant_groups(self, reach: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Divide the nodes into groups, for finite differences that perturb all nodes of a group at once. No node is
        within `reach` steps of two nodes of a group; all nodes of `means` count as neighbours of each other. Yields for
        each group the numbers (m,) of its nodes, and an array (nodes,) with the node of the group that influences each
        node of the grid, or -1."""
        near_means = self._causes(self._means, reach) >= 0
        left = np.ones(len(self._neighbours), bool)
        while left.any():
            free, group = left.copy(), []
            while free.any():
                node = int(free.argmax())
                group.append(node)
                free[self._causes(np.array([node]), 2 * reach) >= 0] = False
                if self._in_means[node]:
                    free &= ~near_means
                elif near_means[node]:
                    free &= ~self._in_means
            nodes = np.array(group)
            left[nodes] = False
            cause = self._causes(nodes, reach)
            for node in nodes[self._in_means[nodes]]:
                cause[self._means] = node
            yield nodes, cause

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


def groups(depends: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Divide the nodes into groups of which no two nodes influence the same result. Yields each group (its nodes), and
    for every result the node of the group that influences it, or -1. `depends` (results, nodes): nonzero where a result
    depends on a node."""
    meets, by_node = (depends.T @ depends).tocsr(), depends.tocsc()
    group = np.full(depends.shape[1], -1)
    for node in range(len(group)):
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
