"""The viscous terms of the compact plan as tasks of a stage."""

from collections.abc import Callable

from hiresx.grid.blocks import direction
from hiresx.rhs.compact import CompactViscous
from hiresx.rhs.terms import Task
from hiresx.solver.block_states import LocalBlocks
from hiresx.solver.conditions import Conditions
from hiresx.solver.ghosts import Ghosts


def compact_tasks(blocks: LocalBlocks, ghosts: Ghosts, conditions: Conditions, reynolds: float) -> list[Task]:
    """Return the tasks that add the viscous terms to the right-hand side of all `blocks` of this rank, in the order of
    computation "compact", which needs the least memory. A task is a pair: its name, and a function of the number of the
    Runge-Kutta stage. `ghosts`: the exchanges of ghost nodes. `conditions`: the boundary conditions, by which the tasks
    overwrite the ghost nodes of physical faces. `reynolds`: the Reynolds number. Every rank executes the tasks of all
    index directions that a block of any rank has."""
    prepare = blocks.program.prepare
    parts = [CompactViscous(blocks.program, state, reynolds) for state in blocks.states]
    fluxes = [(part.along,) * 3 for part in parts]
    work = [part.along for part in parts]
    states = prepare(conditions.calls("viscous_state"))
    tasks: list[Task] = [("viscous", lambda stage: states())]

    def exchange(stage: int) -> None:
        # All faces are sent, though only those of this direction are needed now.
        ghosts.send_fluxes(fluxes, work)
        ghosts.finish_fluxes()

    def task(made: Callable[[], None]) -> Task:
        return "viscous", lambda stage: made()

    for d in sorted({d for block in blocks.cut.blocks for d in block.active}):
        at_faces = [
            [
                call
                for condition in conditions.all
                if direction(condition.patch.face) == d
                for call in condition.calls(method, fluxes[blocks.place[condition.patch.block]])
            ]
            for method in ("viscous_node", "viscous_flux")
        ]
        made = prepare([[part.flux[d] for part in parts if d in part.flux], *at_faces])
        differences = prepare([[part.difference[d] for part in parts if d in part.difference]])
        tasks += [task(made), ("exchange", exchange), task(differences)]
    return tasks
