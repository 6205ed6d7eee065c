"""What ends a stage: the update of the state, which takes the viscous differences along where it can."""

from collections.abc import Sequence

from hiresx.device.interface import Call
from hiresx.device.state import BlockState
from hiresx.solver.blocks import LocalBlocks
from hiresx.solver.ghosts import Ghosts
from hiresx.solver.terms import Task, Terms
from hiresx.time.integrator import Integrator

# Kernels that end a stage, and those that do the viscous differences as well.
WITH_DIFFERENCES = {"update": "viscous_update"}


def takes_differences(integrator: Integrator, states: Sequence[BlockState]) -> bool:
    """Whether the kernels that end its stages have such a form."""
    return all(name in WITH_DIFFERENCES for state in states for name, *_ in integrator.updates(state))


def update_tasks(integrator: Integrator, blocks: LocalBlocks, terms: Terms, ghosts: Ghosts) -> list[Task]:
    """The tasks that update the state of every local block, behind those of `terms`."""
    program, states = blocks.program, blocks.states
    if not terms.ends_in_update:
        return [("update", integrator.prepare(program, states))]
    of_blocks = list(zip(map(integrator.updates, states), terms.viscous, strict=True))
    # Where all differences are somebody else's already, the update is as ever.
    inner_calls = [
        fused(updates, v.inner_difference) if v.inner_difference else [[update] for update in updates]
        for updates, v in of_blocks
    ]
    inner = [ghosts.meanwhile(parts) for parts in zip(*inner_calls, strict=True)]
    tasks: list[Task] = [("update", lambda stage: inner[stage]())]
    if ghosts.others:
        outer_calls = zip(*(fused(updates, v.outer_difference) for updates, v in of_blocks), strict=True)
        outer = [program.prepare([call for calls in parts for call in calls]) for parts in outer_calls]
        tasks += [("exchange", lambda stage: ghosts.finish_fluxes()), ("update", lambda stage: outer[stage]())]
    return tasks


def fused(updates: Sequence[Call], differences: Sequence[Call]) -> list[list[Call]]:
    """By stage, launches that do what its update does, and ahead of it the `differences`. But for the last stage the
    right-hand side is left without them: nobody looks at it."""
    last = len(updates) - 1
    return [
        [
            (WITH_DIFFERENCES[name], extent, *place, fluxes, *fields, int(stage == last))
            for _, extent, *place, fluxes, _ in differences
        ]
        for stage, (name, _, _, _, _, _, *fields) in enumerate(updates)
    ]
