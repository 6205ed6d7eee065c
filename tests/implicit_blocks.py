"""The blocks of the implicit integrator, kept and given."""

import numpy as np

from hiresx.solver import Solver


def blocks_of(solver: Solver, given: list[np.ndarray] | None = None) -> list[np.ndarray]:
    """The blocks that will be assembled, in the order of `solver.states`; those that are given then take their place
    before they are factored."""
    sweeps, found = solver.integrator._linear._sweeps, []
    factor = sweeps.factor

    def keep_and_factor(*of_diagonal: float) -> None:
        for n, s in enumerate(solver.states):
            found.append(s.array("implicit_blocks").copy())
            if given:
                s.array("implicit_blocks")[...] = given[n]
        factor(*of_diagonal)

    sweeps.factor = keep_and_factor
    return found
