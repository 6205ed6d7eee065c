"""Integrals of the conserved variables, which remain constant when tiles of conservative levels change."""

import numpy as np

from hiresx.output.watch.columns import all_volumes
from hiresx.solver import Solver


def integrals(solver: Solver) -> tuple[np.ndarray, float] | None:
    """Return the integrals (variables,) of the conservative variables over the grid with all its levels of refinement,
    in the scales of the case, and the volume of the grid, in L^3. The result is None unless the case demands
    conservation at the levels (`refine.conservative`). All ranks must call this."""
    conservation, found = solver.terms.conservation, np.zeros(solver.layout.equations.variables + 1)
    if conservation is None:
        return None
    volumes = all_volumes(solver, conservation.weights, kept=True)
    for state, volume in zip(solver.states, volumes, strict=True):
        q = state.interior(solver.backend.to_host(state.q)).astype(float)
        found += [*(volume * q).reshape(len(q), -1).sum(axis=1), volume.sum()]
    found = solver.comm.sum(found)
    return found[:-1], float(found[-1])


def keep(solver: Solver, before: np.ndarray) -> None:
    """Change the state of `solver` such that its integrals equal `before` (variables,), the result of `integrals`
    before a change of the refinement. The state at nodes of finer levels is changed, or the state at all nodes if there
    are no finer levels. All ranks must call this."""
    assert solver.terms.conservation is not None
    dt = solver.step_size.case_step(solver.step_factor)
    solver.step_size.put(dt)
    solver.right_hand_side()
    for _ in range(2):  # volumes are scaled once more, since integrals are scaled to the volume of the grid
        found = integrals(solver)
        assert found is not None
        change = before - found[0]
        if not solver.terms.conservation.add(change, dt):
            for state in solver.states:
                q = solver.backend.to_host(state.q)
                state.interior(q)[...] += (change / found[1]).reshape(-1, 1, 1, 1)
                solver.backend.copy(state.q, solver.backend.to_device(q))
        solver.complete_state(given=False)
