"""The assembled right-hand side: the terms of all local blocks as an ordered list of named tasks."""

import math
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from functools import partial

from hiresx.case import Case
from hiresx.decomposition.oblique_walls import mirroring_planes
from hiresx.device.batches import LARGE
from hiresx.device.call import Call, Calls
from hiresx.device.dependency_graph import flatten_calls
from hiresx.device.fields import FIELDS
from hiresx.device.state import BlockState
from hiresx.device.wrappers import dynamic_shared_memory
from hiresx.grid.blocks import direction
from hiresx.rhs import boundary, compact, viscous_plan
from hiresx.rhs.axisymmetric import Axisymmetric
from hiresx.rhs.chunks import crowds
from hiresx.rhs.face_condition import FaceCondition
from hiresx.rhs.inviscid import flux_fields
from hiresx.rhs.plans import fluxes_ahead, inviscid_class
from hiresx.rhs.repeated import repeat_at_faces
from hiresx.rhs.terms import (
    EDDY_COEFFICIENT,
    ENTROPIC_STRESS,
    FLUXES,
    GHOSTS,
    HALOS,
    INNER,
    INNER_FLUXES,
    INVISCID,
    RATES,
    SENT,
    SHOCK_SENSOR,
    SOURCES,
    VISCOUS,
    Step,
    Task,
    Term,
    build_terms,
    in_order,
    in_transit,
    with_halos,
)  # fmt: skip
from hiresx.solver.block_states import LocalBlocks
from hiresx.solver.compact_terms import compact_tasks
from hiresx.solver.conditions import Conditions
from hiresx.solver.ghosts import Ghosts
from hiresx.solver.level_conservation import LevelConservation
from hiresx.time.explicit import Explicit
from hiresx.time.integrator import Integrator


class Terms:
    """The `inviscid`, `viscous` and `axisymmetric` terms of every local block, evaluated by `plan`, the order of
    computation. `tasks`: the tasks of a stage, pairs (name, function of its number). `ends_in_update`: whether the
    update includes the viscous differences; `left` are then the tasks that the update replaces. `conservation`: the
    task of conservative levels, else None. `viscous_first`: whether viscous fluxes are computed before the inviscid
    terms. If so, the fluxes of inner nodes are computed during the exchange of the state, and the fluxes are exchanged
    during the inviscid terms. `ghosts`, `conditions`: the exchanges of ghosts and the boundary conditions of the
    `blocks`. `integrator`: the time integrator."""

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
        plan_class = inviscid_class(plan, blocks.backend.name, case.scheme.inviscid)
        states, reynolds = blocks.states, case.gas.reynolds
        self._compact = reynolds if plan == compact.NAME else None
        self._is_viscous = reynolds is not None and self._compact is None
        # Whether the viscous terms overwrite ghosts of the state behind walls.
        self.overwrites_ghosts = self._compact is not None
        self.viscous_first = self._is_viscous and fluxes_ahead(plan)
        # An outflow and an axis need the inviscid terms alone. Along directions in which ghosts come from other ranks,
        # the differences are left to launches of their own, before which the fluxes have had time to arrive.
        alone = self._is_viscous and not (conditions.outflow.any or case.axisymmetric)
        own = {direction(face) for faces in ghosts.halo.remote for face in faces}
        remote_directions = own.union(*blocks.comm.allgather(own))
        possible = frozenset(plan_class.viscous_directions(blocks.configuration.precision) if alone else ())
        carried = possible - remote_directions
        # For blocks that stay, the launches of the previous solver are used again.
        how = plan, carried, self.viscous_first
        reach = case.stencil.difference_reach
        self.viscous = [
            blocks.kept(
                ("viscous", how, remote, marches := self._marches(plan, s, remote)), (s,),
                partial(
                    viscous_plan.Viscous, blocks.program, s, reynolds, reach, remote, carried, self.viscous_first,
                    marches,
                ),
            )
            for s, remote in zip(states, ghosts.halo.remote, strict=True)
            if reynolds is not None and self._is_viscous
        ]  # fmt: skip
        # Only the fused kernels choose the lengths of their lines by the number of nodes of all blocks.
        points = [math.prod(s.size) for s in states]
        crowd = crowds(points, LARGE) if plan == "fused" else [1.0] * len(points)
        self.inviscid = [
            blocks.kept(
                (
                    "inviscid", how, remote, walls := frozenset(conditions.faces_with_flux_sums(s)),
                    plan_class.chunks(s, crowd[n]),
                ),
                (s,),
                partial(
                    plan_class, blocks.program, s, case.scheme.interpolation, {direction(face) for face in remote},
                    walls, {d: self.viscous[n].fluxes[d] for d in carried}, crowd[n],
                ),
            )
            for n, (s, remote) in enumerate(zip(states, ghosts.halo.remote, strict=True))
        ]  # fmt: skip
        beside: Sequence[viscous_plan.Viscous | None] = self.viscous or [None] * len(states)
        self.axisymmetric = [
            Axisymmetric(blocks.backend, blocks.program, s, conditions.axes(s), of_viscous)
            for s, of_viscous in zip(states, beside, strict=True)
            if case.axisymmetric
        ]
        # The update can include the differences of the viscous fluxes if only sums come between them.
        explicit = isinstance(integrator, Explicit) and integrator.viscous_updates is not None
        takes = plan == "fused" and explicit
        conserves = case.refine is not None and case.refine.conservative
        self.ends_in_update = (
            takes and self._is_viscous and not (case.axisymmetric or conditions.poles.any or conserves)
        )
        # The fractions of a step at which stages begin; an integrator that iterates gives the time itself.
        self._begins = [0.0, *integrator.times[:-1]] if isinstance(integrator, Explicit) else [0.0]
        self.left: list[Task] = []
        self.tasks = self._task_list(case)
        self.conservation = LevelConservation(blocks) if conserves else None
        if self.conservation is not None:
            self.tasks.append(self.conservation.task())

    def _marches(self, plan: str, state: BlockState, remote: Set[str]) -> bool:
        """Return whether the viscous fluxes of a block are computed from its state without stored primitives, by a
        plan: on a GPU, in three directions and without a turbulence model, if the ghosts behind all faces are those of
        blocks of this rank (`remote`: the other faces). Stored primitives would have to be as accurate, and the shared
        memory that the kernel needs must be there."""
        blocks, storage = self._blocks, self._blocks.configuration.storage
        if plan != "fused" or min(state.size) == 1 or state.eddy_model or remote or storage.work != storage.real:
            return False
        conditions = any(blocks.states[blocks.place[c.patch.block]] is state for c in self._conditions.all)
        needed = dynamic_shared_memory(blocks.program.signatures["viscous_march"], storage.real)
        return not conditions and needed <= getattr(blocks.backend, "block_memory", 0)

    def _task_list(self, case: Case) -> list[Task]:
        """Return the tasks that fill `r` of every part (1/J times dq/dt), in order. They start with valid nodes on
        faces and with the exchange of connected halos under way, during which they compute everything that needs no
        halo. The launches of a task, on all parts of this rank, are prepared once and made together."""
        conditions, ghosts, others = self._conditions, self._ghosts, self._ghosts.others
        steps = [self._launch_step("boundary", conditions.ghost_calls(), (), [GHOSTS] if others else [GHOSTS, HALOS])]
        # All ranks have the same tasks, with or without parts with viscous terms: exchanges are collective.
        coefficient = [EDDY_COEFFICIENT] * self._blocks.layout.has(EDDY_COEFFICIENT)
        if self._is_viscous:
            steps += self._viscous_steps(coefficient)
        early = ghosts.meanwhile([block.early for block in self.inviscid])
        late = ghosts.meanwhile([block.late for block in self.inviscid])
        # Fields for the flux are computed from the state with all its ghosts: no work overlaps with their exchange.
        read = list(flux_fields(self._blocks.layout).values())
        first = [GHOSTS, *[SENT] * self.viscous_first, *map(in_transit, read)]
        steps.append(Step([("inviscid", lambda stage: early())], first, [INNER] if others else [INVISCID]))
        if others:
            arrival: Task = ("exchange", lambda stage: ghosts.finish_state())
            before = GHOSTS if read or coefficient else INNER_FLUXES if self.viscous_first else INNER
            steps.append(Step([arrival], [before], [HALOS]))
            behind = [HALOS, INNER, *map(with_halos, read)]
            steps.append(Step([("inviscid", lambda stage: late())], behind, [INVISCID]))
        if self.axisymmetric:
            sources = [call for a in self.axisymmetric for call in a.source]
            steps.append(self._launch_step("axisymmetric", sources, [INVISCID], [RATES]))
        steps.append(self._launch_step("boundary", boundary.rates(conditions.all), [INVISCID], [RATES]))
        if conditions.outflow.any:
            steps.append(Step([("boundary", conditions.outflow_rates)], [INVISCID], [RATES]))
        if self._is_viscous:
            differences = self._difference_tasks()
            if self.ends_in_update:
                self.left = differences
            else:
                steps.append(Step(differences, [RATES, SENT], [VISCOUS]))
            if self.axisymmetric:
                friction = [call for a in self.axisymmetric for call in a.friction]
                steps.append(self._launch_step("axisymmetric", friction, [VISCOUS], [SOURCES]))
        if self._compact is not None:
            steps.append(
                Step(compact_tasks(self._blocks, ghosts, conditions, self._compact), [RATES, *coefficient], [VISCOUS])
            )
        if conditions.sponges:
            steps.append(self._launch_step("sponge", conditions.sponge_calls(), [RATES], [SOURCES]))
        exchanged = {field.name for field in FIELDS if field.halo == "term"}
        for term in build_terms(case, self._blocks.program, self._blocks.states):
            steps.append(self._term_step(self._with_rates(term) if SHOCK_SENSOR in term.gives else term))
            steps += [step for name in term.gives if name in exchanged for step in self._halo_steps(name)]
        if conditions.poles.any:
            everything = [what for step in steps for what in step.gives]
            steps.append(self._launch_step("boundary", conditions.poles.rest, everything, ()))
        return [task for step in in_order(steps) for task in step.tasks]

    def _launch_step(self, name: str, calls: Calls, needs: Sequence[str], gives: Sequence[str]) -> Step:
        made = self._blocks.program.prepare(calls)
        return Step([(name, lambda stage: made())], needs, gives)

    def _term_step(self, term: Term) -> Step:
        """Return the step of a term of its own."""
        if term.at is None:
            tasks = list(self._launch_step(term.name, term.calls, term.needs, term.gives).tasks)
            for field, calls in term.then:
                tasks += [task for step in self._halo_steps(field) for task in step.tasks]
                tasks += self._launch_step(term.name, calls, (), ()).tasks
            return Step(tasks, term.needs, term.gives)
        self._conditions.timed = True
        clock, prepare = self._conditions.clock.array, self._blocks.program.prepare
        made = [prepare(term.at(clock, share)) for share in self._begins]
        return Step([(term.name, lambda stage: made[stage]())], term.needs, term.gives)

    def _with_rates(self, term: Term) -> Term:
        """Return the term of the shock sensor with the launches that also set rates, if the plan has them: until then
        `r` may contain primitive variables for the viscous fluxes."""
        blocks = zip(self.inviscid, flatten_calls(term.calls), strict=True)
        calls = [call for block, sensor in blocks if (call := block.with_sensor(sensor))]
        return replace(term, calls=calls, needs=(*term.needs, *[SENT] * self.viscous_first)) if calls else term

    def _halo_steps(self, name: str) -> list[Step]:
        """Return the steps that fill the ghosts of a field that a term has computed."""
        ghosts, program = self._ghosts, self._blocks.program
        states, patches = self._blocks.states, self._blocks.cut.patches
        planes = mirroring_planes(self._blocks.decomposition)
        calls = [call for state in states for call in repeat_at_faces(program, state, name, patches, planes)]
        mirrored = [call for c in self._conditions.all if name == ENTROPIC_STRESS for call in c.calls("stress")]
        repeated = program.prepare([calls, mirrored])
        send: Task = ("exchange", lambda stage: ghosts.send_field(name))
        finish: Task = ("exchange", lambda stage: ghosts.finish_field(name))
        begin = Step([("boundary", lambda stage: repeated()), send], [name], [in_transit(name)])
        return [begin, Step([finish], [in_transit(name)], [with_halos(name)])]

    def _difference_tasks(self) -> list[Task]:
        inner = self._ghosts.meanwhile([block.difference.inner for block in self.viscous])
        outer = self._blocks.program.prepare([[call for block in self.viscous for call in block.difference.outer]])
        return self.around_fluxes(("viscous", lambda stage: inner()), ("viscous", lambda stage: outer()))

    def around_fluxes(self, inner: Task, outer: Task) -> list[Task]:
        """Return, in order, the tasks that compute the differences of viscous fluxes and the task that waits for the
        fluxes of other ranks; a task is a pair (name, function of the stage number). `inner`: the task for the nodes
        that need no fluxes of other ranks. `outer`: the task for the other nodes. The order is `inner`, wait, `outer`.
        If viscous terms are computed before inviscid ones, `inner` computes all nodes, and the order is wait, `inner`.
        With one rank the list is `inner` alone."""
        if not self._ghosts.others:
            return [inner]
        arrival: Task = ("exchange", lambda stage: self._ghosts.finish_fluxes())
        return [arrival, inner] if self.viscous_first else [inner, arrival, outer]

    def _viscous_steps(self, coefficient: Sequence[str]) -> list[Step]:
        """Return the steps of the viscous fluxes and of their exchange. If they precede the inviscid terms, fluxes of
        inner nodes are computed during the exchange of the state, unless they need a `coefficient`. Else they follow
        the inviscid terms and use their memory."""
        ghosts = self._ghosts
        fluxes = [block.fluxes for block in self.viscous]
        work = [block.all_fluxes for block in self.viscous]
        inner, outer = list(self._inner_fluxes()), list(self._outer_fluxes())
        send: Task = ("exchange", lambda stage: ghosts.send_fluxes(fluxes, work))
        if coefficient or not (self.viscous_first and ghosts.others):
            calls = [call for calls in (*inner, *outer) for call in calls]
            needs = [GHOSTS if self.viscous_first else RATES, *coefficient]
            return [self._launch_step("viscous", calls, needs, [FLUXES]), Step([send], [FLUXES], [SENT])]
        early = ghosts.meanwhile(inner)
        return [
            Step([("viscous", lambda stage: early())], [GHOSTS], [INNER_FLUXES]),
            self._launch_step("viscous", [call for calls in outer for call in calls], [HALOS, INNER_FLUXES], [FLUXES]),
            Step([send], [FLUXES], [SENT]),
        ]

    def _inner_fluxes(self) -> Iterator[Calls]:
        yield [*(call for block in self.viscous for call in block.primitives.inner), self._behind_faces(late=False)]
        for block in self.viscous:
            yield block.flux.inner

    def _outer_fluxes(self) -> Iterator[Calls]:
        # The outer boxes share arrays, but no nodes.
        yield [[call for block in self.viscous for call in block.primitives.outer]]
        yield [self._behind_faces(late=True)]
        yield [[call for block in self.viscous for call in block.flux.outer]]
        for part in self.axisymmetric:
            yield part.stress
        for method in ("viscous_node", "viscous_flux"):
            yield [[call for c, block in self._of_patches() for call in c.calls(method, block.fluxes)]]

    def _behind_faces(self, late: bool) -> list[Call]:
        """Return the launches for ghosts of the primitives behind physical faces; `late`: those whose face also has
        ghosts of another rank."""
        return [
            call
            for c, block in self._of_patches()
            if (c.patch.face in block.late) == late
            for call in c.calls("viscous_primitives", block.w)
        ]

    def _of_patches(self) -> list[tuple[FaceCondition, viscous_plan.Viscous]]:
        return [(c, self.viscous[self._blocks.place[c.patch.block]]) for c in self._conditions.all]
