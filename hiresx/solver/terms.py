"""The right-hand side put together: the terms of all local blocks as an ordered list of named tasks."""

from collections.abc import Callable, Iterator
from typing import TypeAlias

from hiresx.case import Case
from hiresx.device.interface import Call
from hiresx.grid.blocks import direction
from hiresx.rhs import boundary, compact, viscous
from hiresx.rhs.axisymmetric import Axisymmetric
from hiresx.rhs.plans import PLANS, inviscid_plan
from hiresx.solver.block_states import LocalBlocks
from hiresx.solver.compact_terms import compact_tasks
from hiresx.solver.conditions import Conditions
from hiresx.solver.ghosts import Ghosts
from hiresx.time.integrator import Integrator

# (name, task(stage))
Task: TypeAlias = tuple[str, Callable[[int], None]]


class Terms:
    """The `inviscid`, `viscous` and `axisymmetric` terms of every local block, visited by `plan`. `tasks` is what a
    stage does of them; where it `ends_in_update`, `left` is what they leave to the update."""

    def __init__(
        self,
        case: Case,
        blocks: LocalBlocks,
        ghosts: Ghosts,
        conditions: Conditions,
        plan: str,
        integrator: Integrator,
    ):
        self._blocks, self._ghosts, self._conditions = blocks, ghosts, conditions
        plan_class = PLANS[inviscid_plan(plan, blocks.backend.name)]
        states, reynolds = blocks.states, case.gas.reynolds
        self._compact = reynolds if plan == compact.NAME else None
        self._is_viscous = reynolds is not None and self._compact is None
        # With neighbours there is more to win by overlapping; an outflow and an axis ask for the inviscid terms alone.
        alone = self._is_viscous and not (ghosts.others or conditions.outflow.any or case.axisymmetric)
        carried = plan_class.carried(blocks.configuration.precision) if alone else frozenset()
        self._viscous_first = bool(carried)
        self.viscous = [
            viscous.Viscous(blocks.program, s, reynolds, remote, carried)
            for s, remote in zip(states, ghosts.halo.remote, strict=True)
            if reynolds is not None and self._is_viscous
        ]
        self.inviscid = [
            plan_class(
                blocks.program, s, case.scheme.interpolation, {direction(face) for face in remote},
                conditions.closed(s),
                *([{d: self.viscous[n].fluxes[d] for d in carried}] if carried else []),
            )
            for n, (s, remote) in enumerate(zip(states, ghosts.halo.remote, strict=True))
        ]  # fmt: skip
        self.axisymmetric = [
            Axisymmetric(blocks.backend, blocks.program, s, conditions.axes(s), case.gas.reynolds)
            for s in states
            if case.axisymmetric
        ]
        # What the update can do as well, as nothing but sums comes between: the differences of the viscous fluxes.
        takes = plan == "fused" and integrator.viscous_updates is not None
        self.ends_in_update = takes and self._is_viscous and not (case.axisymmetric or conditions.poles.any)
        self.left: list[Task] = []
        self.tasks = self._task_list()

    def _task_list(self) -> list[Task]:
        """What fills `r` of every part (1/J times dq/dt), in order. Before it nodes on faces are as they must be and
        connected halos on their way. While they are, what needs none of them is computed. The launches of a task, on
        all parts of this rank, are prepared once and made together.
        """
        prepare, conditions, ghosts = self._blocks.program.prepare, self._conditions, self._ghosts
        behind = prepare(conditions.ghost_calls())
        early = ghosts.meanwhile([block.early for block in self.inviscid])
        late = prepare([call for block in self.inviscid for call in block.late])
        rates = prepare(boundary.together(conditions.all, "rate"))
        tasks: list[Task] = [("boundary", lambda stage: behind())]
        if self._viscous_first:
            tasks += self._viscous_tasks()
        tasks.append(("inviscid", lambda stage: early()))
        if ghosts.others:
            tasks += [("exchange", lambda stage: ghosts.finish_state()), ("inviscid", lambda stage: late())]
        if self.axisymmetric:
            sources = prepare([call for a in self.axisymmetric for call in a.source])
            tasks.append(("axisymmetric", lambda stage: sources()))
        tasks.append(("boundary", lambda stage: rates()))
        if conditions.outflow.any:
            tasks.append(("boundary", conditions.outflow_rates))
        # What all ranks do, whether or not they have parts with viscous terms, is the same: exchanges are collective.
        if self._is_viscous:
            tasks += [] if self._viscous_first else self._viscous_tasks()
            differences = self._difference_tasks()
            if self.ends_in_update:
                self.left = differences
            else:
                tasks += differences
            if self.axisymmetric:
                friction = prepare([call for a in self.axisymmetric for call in a.friction])
                tasks.append(("axisymmetric", lambda stage: friction()))
        if self._compact is not None:
            tasks += compact_tasks(self._blocks, ghosts, conditions, self._compact)
        if conditions.sponges:
            sponges = prepare(conditions.sponge_calls())
            tasks.append(("sponge", lambda stage: sponges()))
        if conditions.poles.any:
            rest = prepare(conditions.poles.rest)
            tasks.append(("boundary", lambda stage: rest()))
        return tasks

    def _difference_tasks(self) -> list[Task]:
        inner = self._ghosts.meanwhile([block.inner_difference for block in self.viscous])
        outer = self._blocks.program.prepare([call for block in self.viscous for call in block.outer_difference])
        tasks: list[Task] = [("viscous", lambda stage: inner())]
        if self._ghosts.others:
            tasks += [("exchange", lambda stage: self._ghosts.finish_fluxes()), ("viscous", lambda stage: outer())]
        return tasks

    def _viscous_tasks(self) -> list[Task]:
        """Viscous fluxes and their ghosts, those of other ranks on their way."""
        fluxes = [block.fluxes for block in self.viscous]
        work = [block.all_fluxes for block in self.viscous]
        made = self._blocks.program.prepare([*self._viscous_fluxes()])
        return [
            ("viscous", lambda stage: made()),
            ("exchange", lambda stage: self._ghosts.send_fluxes(fluxes, work)),
        ]

    def _viscous_fluxes(self) -> Iterator[Call | list[Call]]:
        of_patch = [(c, self.viscous[self._blocks.place[c.patch.block]]) for c in self._conditions.all]
        for block in self.viscous:
            yield from block.primitives
        yield [call for c, block in of_patch for call in c.calls("viscous_primitives", block.w)]
        for block in self.viscous:
            yield from block.flux
        for part in self.axisymmetric:
            yield from part.stress
        yield [call for c, block in of_patch for call in c.calls("viscous_flux", block.fluxes)]
