"""The number of bytes that ranks exchange in each stage of a time step."""

from math import prod

import numpy as np

from hiresx.decomposition.patches import Decomposition


def halo_bytes(cut: Decomposition, node_bytes: int) -> np.ndarray:
    """Return the number of bytes that each rank (row) sends to each rank (column) in a Runge-Kutta stage, int64 (ranks,
    ranks): the ghost layers behind every connected face node. `cut`: the blocks after their division among the ranks
    (`split`). `node_bytes`: bytes sent for each ghost (`Layout.exchanged_bytes`). The diagonal is 0, since boxes of one
    rank send no messages to each other."""
    rank = [part.rank for part in cut.parts]
    matrix = np.zeros((max(rank) + 1, max(rank) + 1), dtype=np.int64)
    per_node = cut.stencil.halo * node_bytes
    for c in cut.connections:
        matrix[rank[c.donor], rank[c.block]] += per_node * prod(hi - lo for lo, hi in c.range)
    np.fill_diagonal(matrix, 0)
    return matrix
