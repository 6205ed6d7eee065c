"""The right-hand side put together: the terms of all local blocks as an ordered list of named tasks."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from hiresx.case import Case
from hiresx.device.call import Call, Calls
from hiresx.grid.blocks import direction
from hiresx.rhs import boundary, compact, viscous
from hiresx.rhs.axisymmetric import Axisymmetric
from hiresx.rhs.plans import PLANS, fluxes_ahead, inviscid_plan
from hiresx.solver.block_states import LocalBlocks
from hiresx.solver.compact_terms import compact_tasks
from hiresx.solver.conditions import Conditions
from hiresx.solver.ghosts import Ghosts
from hiresx.time.explicit import Explicit
from hiresx.time.integrator import Integrator

# (name, task(stage))
Task: TypeAlias = tuple[str, Callable[[int], None]]


class Terms:
    """The `inviscid`, `viscous` and `axisymmetric` terms of every local block, visited by `plan`. `tasks` is what a
    stage does of them; where it `ends_in_update`, `left` is what they leave to the update. `viscous_first`: viscous
    fluxes come ahead of the inviscid terms, the halos of the state on their way while the fluxes of inner nodes are
    computed, those of the fluxes all through the inviscid terms."""

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
        self.viscous_first = self._is_viscous and fluxes_ahead(plan)
        self.viscous = [
            viscous.Viscous(blocks.program, s, reynolds, remote, carried, self.viscous_first)
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
        beside: Sequence[viscous.Viscous | None] = self.viscous or [None] * len(states)
        self.axisymmetric = [
            Axisymmetric(blocks.backend, blocks.program, s, conditions.axes(s), of_viscous)
            for s, of_viscous in zip(states, beside, strict=True)
            if case.axisymmetric
        ]
        # What the update can do as well, as nothing but sums comes between: the differences of the viscous fluxes.
        explicit = isinstance(integrator, Explicit) and integrator.viscous_updates is not None
        takes = plan == "fused" and explicit
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
        late = ghosts.meanwhile([block.late for block in self.inviscid])
        rates = prepare(boundary.together(conditions.all, "rate"))
        arrival: Task = ("exchange", lambda stage: ghosts.finish_state())
        tasks: list[Task] = [("boundary", lambda stage: behind())]
        if self.viscous_first:
            tasks += self._viscous_tasks(arrival)
        tasks.append(("inviscid", lambda stage: early()))
        if ghosts.others:
            tasks += [arrival] * (not self.viscous_first) + [("inviscid", lambda stage: late())]
        if self.axisymmetric:
            sources = prepare([call for a in self.axisymmetric for call in a.source])
            tasks.append(("axisymmetric", lambda stage: sources()))
        tasks.append(("boundary", lambda stage: rates()))
        if conditions.outflow.any:
            tasks.append(("boundary", conditions.outflow_rates))
        # What all ranks do, whether or not they have parts with viscous terms, is the same: exchanges are collective.
        if self._is_viscous:
            tasks += [] if self.viscous_first else self._viscous_tasks()
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
        inner = self._ghosts.meanwhile([block.difference.inner for block in self.viscous])
        outer = self._blocks.program.prepare([[call for block in self.viscous for call in block.difference.outer]])
        return self.around_fluxes(("viscous", lambda stage: inner()), ("viscous", lambda stage: outer()))

    def around_fluxes(self, inner: Task, outer: Task) -> list[Task]:
        """What takes the viscous differences, with the wait for the fluxes of other ranks where it belongs."""
        if not self._ghosts.others:
            return [inner]
        arrival: Task = ("exchange", lambda stage: self._ghosts.finish_fluxes())
        return [arrival, inner] if self.viscous_first else [inner, arrival, outer]

    def _viscous_tasks(self, arrival: Task | None = None) -> list[Task]:
        """Viscous fluxes and their ghosts, those of other ranks on their way. `arrival`: waits for the ghosts of the
        state, where they may still be."""
        ghosts = self._ghosts
        fluxes = [block.fluxes for block in self.viscous]
        work = [block.all_fluxes for block in self.viscous]
        inner, outer = list(self._inner_fluxes()), list(self._outer_fluxes())
        send: Task = ("exchange", lambda stage: ghosts.send_fluxes(fluxes, work))
        if arrival is None or not ghosts.others:
            made = self._blocks.program.prepare([call for calls in (*inner, *outer) for call in calls])
            return [("viscous", lambda stage: made()), send]
        early = ghosts.meanwhile(inner)
        late = self._blocks.program.prepare([call for calls in outer for call in calls])
        return [("viscous", lambda stage: early()), arrival, ("viscous", lambda stage: late()), send]

    def _inner_fluxes(self) -> Iterator[Calls]:
        yield [*(call for block in self.viscous for call in block.primitives.inner), self._behind_faces(late=False)]
        for block in self.viscous:
            yield block.flux.inner

    def _outer_fluxes(self) -> Iterator[Calls]:
        # The boxes that cover what is outer share arrays, but no nodes.
        yield [[call for block in self.viscous for call in block.primitives.outer]]
        yield [self._behind_faces(late=True)]
        yield [[call for block in self.viscous for call in block.flux.outer]]
        for part in self.axisymmetric:
            yield part.stress
        yield [[call for c, block in self._of_patches() for call in c.calls("viscous_flux", block.fluxes)]]

    def _behind_faces(self, late: bool) -> list[Call]:
        """Ghosts of the primitives behind physical faces; `late` ones share their face with ghosts of another rank."""
        return [
            call
            for c, block in self._of_patches()
            if (c.patch.face in block.late) == late
            for call in c.calls("viscous_primitives", block.w)
        ]

    def _of_patches(self) -> list[tuple[boundary.FaceCondition, viscous.Viscous]]:
        return [(c, self.viscous[self._blocks.place[c.patch.block]]) for c in self._conditions.all]
