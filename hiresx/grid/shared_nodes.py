"""Nodes that belong to several blocks, or to one block twice. Sums over nodes count each position once, so that they do
not depend on how a grid is cut into blocks."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from hiresx.grid.blocks import direction
from hiresx.grid.connections import Connection


def of_blocks(nodes: np.ndarray, starts: np.ndarray) -> list[np.ndarray]:
    """Return for each block those of `nodes` (n,) that it contains, as indexes into its flattened arrays [k, j, i].
    `nodes`, `starts`: numbers as those that `coincident_nodes` returns."""
    return [nodes[(nodes >= lo) & (nodes < hi)] - lo for lo, hi in pairwise(starts)]


def coincident_nodes(
    sizes: Sequence[tuple[int, int, int]], connections: Sequence[Connection]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the n nodes of a grid that coincide with others, so that sums over a grid can count each position once.
    Nodes coincide across connections, including periodic ones, for which both sides contain the nodes of the face.
    `sizes`: (ni, nj, nk) of the blocks. The result consists of three arrays:

    - the sorted numbers (n,) of these nodes, which count the flattened arrays [k, j, i] of one block after the other;
    - for each of them the position (n,) in this array of the first node that coincides with it, which may be itself;
    - the number of the first node of each block, and the number of all nodes: (blocks + 1,)."""
    starts = np.cumsum([0, *(ni * nj * nk for ni, nj, nk in sizes)])
    pairs = [_pairs(c, sizes, starts) for c in connections if not c.over_a_pole]
    nodes, at = np.unique(np.concatenate([np.empty((2, 0), np.int64), *pairs], axis=1), return_inverse=True)
    one, other = at.reshape(2, -1)
    first, before = np.arange(len(nodes)), None
    while before is None or (first != before).any():
        before = first.copy()
        np.minimum.at(first, one, before[other])
        np.minimum.at(first, other, before[one])
    return nodes, first, starts


def _pairs(c: Connection, sizes: Sequence[tuple[int, int, int]], starts: np.ndarray) -> np.ndarray:
    """Return (2, n): the numbers of the nodes on the face of `c`, and of the coincident nodes of its donor, if both
    have these; otherwise n = 0."""
    own = np.stack(np.meshgrid(*(np.arange(lo, hi) for lo, hi in c.range), indexing="ij")).reshape(3, -1)
    there = c.donors(own)
    e = c.donor_direction
    last = sizes[c.donor][e] - 1
    if last == 0 or sizes[c.block][direction(c.face)] == 1 or not ((there[e] == 0) | (there[e] == last)).all():
        return np.empty((2, 0), np.int64)
    return np.stack([_numbers(own, c.block, sizes, starts), _numbers(there, c.donor, sizes, starts)])


def _numbers(index: np.ndarray, block: int, sizes: Sequence[tuple[int, int, int]], starts: np.ndarray) -> np.ndarray:
    ni, nj, _ = sizes[block]
    numbers: np.ndarray = starts[block] + (index[2] * nj + index[1]) * ni + index[0]
    return numbers
