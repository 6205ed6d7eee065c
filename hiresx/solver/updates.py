"""The update of the state at the end of a stage, which includes the viscous differences where possible."""

from functools import partial

from hiresx.rhs.terms import Task
from hiresx.solver.block_states import LocalBlocks
from hiresx.solver.ghosts import Ghosts
from hiresx.solver.terms import Terms
from hiresx.time.explicit import Explicit


def update_tasks(blocks: LocalBlocks, terms: Terms, ghosts: Ghosts, integrator: Explicit) -> list[Task]:
    """Return the tasks, pairs (name, function of the stage number), that update the state of all `blocks` of this rank
    at the end of a stage of the explicit `integrator`, after the right-hand side was computed by `terms`. If possible,
    the update includes the differences of the viscous fluxes, and is made while `ghosts` exchanges these fluxes."""
    prepare, states = blocks.program.prepare, blocks.states
    if not (terms.ends_in_update and states):
        of_states = [
            # All blocks use the array `dt` of the first one. The launches hold it, so its number stays its own.
            blocks.kept(("updates", id(state.dt)), (state,), partial(integrator.updates, blocks.program, state))
            for state in states
        ]
        launches = [prepare(list(calls)) for calls in zip(*of_states, strict=True)] or [prepare([])] * integrator.stages
        return [("update", lambda stage: launches[stage]())]
    assert integrator.viscous_updates is not None
    updates, viscous_updates = integrator.updates, integrator.viscous_updates
    of_blocks = list(zip(states, terms.viscous, strict=True))
    # Where a block has no inner differences, its update is the ordinary one.
    inner_calls = [
        viscous_updates(blocks.program, s, v.difference.inner)
        if v.difference.inner
        else [[update] for update in updates(blocks.program, s)]
        for s, v in of_blocks
    ]
    inner = [ghosts.meanwhile(parts) for parts in zip(*inner_calls, strict=True)]
    outer_calls = zip(*(viscous_updates(blocks.program, s, v.difference.outer) for s, v in of_blocks), strict=True)
    outer = [prepare([call for calls in parts for call in calls]) for parts in outer_calls]
    return terms.around_fluxes(("update", lambda stage: inner[stage]()), ("update", lambda stage: outer[stage]()))
