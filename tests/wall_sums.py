"""What closed walls keep: sums over the nodes of a block that has no connections."""

import numpy as np

from hiresx.grid.blocks import direction, side, slices

# Of the nodes of a line from a no-slip wall on: Gregory's formula with differences up to the third.
GREGORY = (251 / 720, 299 / 240, 211 / 240, 739 / 720)


def counted(solver):
    """What the nodes (nk, nj, ni) of the only block count: `GREGORY` from no-slip walls on, half on other faces."""
    (block,) = solver.decomposition.blocks
    along = [np.ones(block.x.shape) for _ in range(3)]
    for patch in solver.decomposition.patches:
        d, inward = direction(patch.face), -side(patch.face)
        first = patch.range[d][0]
        for layer, weight in enumerate(GREGORY if patch.condition.kernel == "no_slip" else (0.5,)):
            at = first + inward * layer
            along[d][slices([(at, at + 1) if e == d else patch.range[e] for e in range(3)])] += weight - 1
    return np.prod(along, axis=0)


def total(solver, row=0):
    """The sum of conserved variable `row` over what nodes count times their volumes."""
    (state,) = solver.states
    q, jacobian = (state.interior(solver.backend.to_host(a)) for a in (state.q, state.jacobian))
    return (counted(solver) * q[row] / jacobian).sum()
