"""How many bytes the ranks send each other in a stage of a time step."""

from math import prod

import numpy as np

from hiresx.decomposition.patches import Decomposition
from hiresx.equations import GAS, GHOSTS, Equations


def halo_bytes(
    cut: Decomposition, is_viscous: bool = True, item_bytes: int | tuple[int, int] = 8, equations: Equations = GAS
) -> np.ndarray:
    """Bytes per stage from rank (row) to rank (column), int64 (ranks, ranks): the ghost layers behind every connected
    face node, of the state and, with viscous terms, of the normal fluxes (of the gas 5 and 4 variables). `cut`: see
    `split`; `item_bytes`: of a number, or of one of the state and one of the fluxes.

    The diagonal is 0: parts of one rank are no neighbours in this sense.
    """
    rank = [part.rank for part in cut.parts]
    matrix = np.zeros((max(rank) + 1, max(rank) + 1), dtype=np.int64)
    of_state, of_flux = (item_bytes, item_bytes) if isinstance(item_bytes, int) else item_bytes
    per_node = GHOSTS * (equations.variables * of_state + len(equations.gradients) * is_viscous * of_flux)
    for c in cut.connections:
        matrix[rank[c.donor], rank[c.block]] += per_node * prod(hi - lo for lo, hi in c.range)
    np.fill_diagonal(matrix, 0)
    return matrix
