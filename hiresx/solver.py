"""The solver proper: blocks on a device and one time step as an ordered list of named tasks."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from hiresx.case import Case
from hiresx.decomposition import Domain
from hiresx.decomposition import domain as make_domain
from hiresx.device.configuration import Configuration
from hiresx.device.interface import Call
from hiresx.device.state import BlockState
from hiresx.equations import GAS, GAS_CONSERVED, Equations, equations
from hiresx.equations.gas import Gas, conservative
from hiresx.exchange.halo import HaloExchange
from hiresx.exchange.patched import PatchedExchange
from hiresx.grid import Grid
from hiresx.grid.blocks import Range, direction
from hiresx.output.saved.pieces import Later, Piece
from hiresx.rhs import boundary, inviscid, scalars, viscous
from hiresx.rhs.axisymmetric import Axisymmetric
from hiresx.rhs.fused import Fused
from hiresx.rhs.metrics import compute_metrics
from hiresx.rhs.outflow import Outflow
from hiresx.rhs.pole import Poles
from hiresx.rhs.sponge import SpongeLayer, moments
from hiresx.time.reduction import FEW, Reduction
from hiresx.time.rk3 import STAGES, updates
from hiresx.time.stopwatch import Stopwatch


def configuration(case: Case) -> Configuration:
    """The compile-time choices of a case."""
    scheme, gas = case.scheme, case.gas
    return Configuration(
        interpolation=scheme.interpolation,
        weights=scheme.weights,
        space=scheme.space,
        flux=scheme.flux,
        flux_smoothing=scheme.flux_smoothing,
        epsilon=scheme.epsilon,
        positivity=scheme.positivity,
        precision=scheme.precision,
        viscosity="none" if gas.reynolds is None else gas.viscosity.law,
        viscosity_parameters=() if gas.reynolds is None else gas.viscosity.parameters,
        gamma=gas.gamma,
        prandtl=gas.prandtl,
        schmidt=tuple(scalar.schmidt for scalar in case.scalar),
    )


# A step that fails is taken again with these shares of it.
STEP_SHARES = (1.0, 0.5, 0.25)

PLANS = {"pencils": inviscid.Pencils, "decomposed": inviscid.Decomposed, "fused": Fused}


def default_plan(backend_name: str, equations: Equations = GAS) -> str:
    """Pencils on the CPU; on a GPU and where one is emulated the fused kernels, or the decomposed ones, which carry
    passive scalars."""
    if backend_name == "cpu":
        return "pencils"
    return "fused" if not equations.scalars or PLANS["fused"].carries_scalars else "decomposed"


def work_variables(plan: str, is_viscous: bool, equations: Equations = GAS) -> int:
    """Reals of work memory per padded point: the inviscid and the viscous terms use the same, one after the other."""
    return max(PLANS[plan].work(equations), equations.viscous_variables if is_viscous else 0)


class Solver:
    """A case on a device: the parts of it that this rank computes.

    `domain`: the grid, cut among the ranks; without it all of the case's grid, or of `grid`, in this process. `plan`:
    "pencils" (CPU), "fused" (GPUs, and emulated) or "decomposed" (any backend); None takes what suits the backend.
    `profiles` replaces functions of case.py by name. `transport`: how halos go to other ranks (see `HaloExchange`).
    `overlap` false waits for them at once, to measure what is won by computing meanwhile. Collective. Raises
    HiresxError for a grid that is not right-handed everywhere, for boundary conditions that leave a node out, and for
    what the backend and the compiler have to say.

    `decomposition` are the whole blocks of the grid, `cut` the parts of all ranks, `states` the fields of this rank's.
    """

    def __init__(
        self,
        case: Case,
        backend,
        grid: Grid | None = None,
        plan: str | None = None,
        profiles: dict[str, Callable] | None = None,
        domain: Domain | None = None,
        transport: str = "auto",
        overlap: bool = True,
    ):
        self.case, self.backend = case, backend
        self._profiles = profiles or {}
        domain = make_domain(case, grid=grid) if domain is None else domain
        self.team, self.grid = domain.team, domain.grid
        self.decomposition, self.cut = domain.whole, domain.cut
        self.configuration = configuration(case)
        self.program = self._compiled()
        self.time, self.steps = 0.0, 0
        # Times the case's dt or CFL numbers; lowered when a run goes back after a blow-up.
        self.step_factor = 1.0
        system = equations(case)
        self._gas = Gas.of(case)
        self.plan = plan or default_plan(backend.name, system)
        plan_class = PLANS[self.plan]
        is_viscous = self.configuration.viscous
        scalars.check(case, domain.cut.patches, plan_class.carries_scalars, self.plan)
        work = work_variables(self.plan, is_viscous, system)

        real, names = self.configuration.real, [block.name for block in self.grid.blocks]
        with self.team.together():
            self.states = [
                BlockState(backend, self.cut, n, names[self.cut.parts[n].whole], real, work, case.time.local, system)
                for n in domain.mine
            ]
            extended = {s.index: domain.coordinates(s.part) for s in self.states}
            for state in self.states:
                compute_metrics(backend, self.program, state, extended[state.index], self.cut.patches)

        self.halo = HaloExchange(backend, self.program, self.team, self.cut, self.states, transport)
        self.halo.values([state.jacobian for state in self.states])
        self.patched = PatchedExchange(backend, self.program, self.team, domain, self.states)
        # Where a state is in `states`, by its index among the parts of all ranks.
        self._place = {state.index: n for n, state in enumerate(self.states)}
        with self.team.together():
            own = [(self.states[self._place[p.block]], p) for p in self.cut.patches if p.block in self._place]
            gas = [
                boundary.condition(
                    backend, self.program, state, p, case.gas.gamma, self._profile, extended[p.block]
                )
                for state, p in own
            ]  # fmt: skip
            carried_along = [
                condition
                for state, p in own
                for condition in scalars.conditions(
                    backend, self.program, case, state, p, extended[p.block],
                    lambda name: self._profiles.get(name) or name,
                )
            ]  # fmt: skip
            self.conditions = sorted([*gas, *carried_along], key=lambda c: c.rank)
            self.sponges = self._sponge_layers()
            self._outflow = Outflow(
                backend, self.program, self.team, self.grid, self.decomposition, self.cut, self.states
            )
        self._outflow.meet()
        self._poles = Poles(backend, self.program, self.team, self.decomposition, self.cut, self.states, case.gas.gamma)
        closed = {s.index: {c.patch.face for c in self.conditions if c.closed and c.state is s} for s in self.states}
        # With neighbours there is more to win by overlapping; an outflow and an axis ask for the inviscid terms alone.
        alone = is_viscous and not (self.halo.neighbours or self._outflow.any or case.axisymmetric)
        carried = plan_class.carried(self.configuration.precision) if alone else frozenset()
        self._viscous_first = bool(carried)
        self._viscous = [
            viscous.Viscous(s, case.gas.reynolds, remote, carried)
            for s, remote in zip(self.states, self.halo.remote, strict=True)
            if is_viscous
        ]
        self._inviscid = [
            plan_class(
                s, case.scheme.interpolation, {direction(face) for face in remote}, closed[s.index],
                *([{d: self._viscous[n].fluxes[d] for d in carried}] if carried else []),
            )
            for n, (s, remote) in enumerate(zip(self.states, self.halo.remote, strict=True))
        ]  # fmt: skip
        axes = [c for c in self.conditions if isinstance(c, boundary.Axis)]
        self._axisymmetric = [
            Axisymmetric(backend, s, [c for c in axes if c.state is s], case.gas.reynolds)
            for s in self.states
            if case.axisymmetric
        ]
        self._limit_steps = self.program.prepare([call for a in self._axisymmetric for call in a.steps])
        self._changing = [c for c in self.conditions if type(c).prepare is not boundary.Condition.prepare]
        self._nodes = self.program.prepare([call for c in self.conditions for call in c.calls("node")])
        self._found_radii = backend.zeros((len(self.states), 2, FEW), real)
        self._reductions = [
            Reduction(backend, self.program, s, self._found_radii[n]) for n, s in enumerate(self.states)
        ]
        self._launch_radii = self.program.prepare(
            [call for r in self._reductions for call in r.radii_calls(case.gas.reynolds)]
        )
        self.stopwatch = Stopwatch(backend)
        self.dt = case.time.dt or 0.0
        self._set_dt_value = None
        # Radii of the state as it is, where they are known.
        self._known_radii: np.ndarray | None = None
        # Time and steps at which the step began whose first state is in q0.
        self._began: tuple[float, int] | None = None
        # How often a step was taken again with a smaller dt.
        self.retaken = 0
        self.overlap = overlap
        self.tasks = self._task_list()

    # ---- set-up

    def _compiled(self):
        """The kernels. One rank of each host compiles them, the others then find them in the cache."""
        program = None
        for turn in (True, False):
            with self.team.together():
                if self.team.local.root == turn:
                    program = self.backend.compile(self.configuration)
        return program

    def _profile(self, name: str) -> Callable:
        function = self._profiles.get(name) or name
        return lambda x, y, z, t: self.case.evaluate(function, x, y, z, t)

    def _sponge_layers(self) -> list[SpongeLayer]:
        layers = []
        for number, spec in enumerate(self.case.sponge):
            reference = None
            if spec.function is not None:
                reference = self._steady(self._profiles.get(spec.function) or spec.function)
            for state in self.states:
                if spec.blocks is None or state.name in spec.blocks:
                    layer = SpongeLayer(self.backend, state, spec, number, self.case.gas.gamma, reference)
                    if not layer.empty:
                        layers.append(layer)
        return layers

    def _steady(self, function) -> Callable:
        return lambda x, y, z: self.case.evaluate(function, x, y, z)

    def _task_list(self) -> list[tuple[str, Callable[[int], None]]]:
        """What one stage does, in order: (name, task(stage)).

        A stage leaves nodes on faces as they must be and connected halos on their way (see `settle`), so that between
        steps the state can be looked at without touching it; the ghosts of physical faces, which nobody else sees, are
        filled when they are needed. While halos are on their way, what needs none of them is computed. The launches of
        a task, on all parts of this rank, are prepared once and made together.
        """
        ghosts = self.program.prepare([call for c in self.conditions for call in c.calls("ghost")])
        early = self._meanwhile([block.early for block in self._inviscid])
        late = self.program.prepare([call for block in self._inviscid for call in block.late])
        rates = self.program.prepare([call for c in self.conditions for call in c.calls("rate")])
        hold, follow = (
            self.program.prepare([call for c in self.conditions for call in c.calls(method)])
            for method in ("hold", "follow")
        )
        tasks = [("boundary", lambda stage: ghosts())]
        if self._viscous_first:
            tasks += self._viscous_tasks()
        tasks.append(("inviscid", lambda stage: early()))
        others = bool(self.halo.neighbours)
        if others:
            tasks += [("exchange", lambda stage: self.halo.finish_state()), ("inviscid", lambda stage: late())]
        if self._axisymmetric:
            sources = self.program.prepare([call for a in self._axisymmetric for call in a.source])
            tasks.append(("axisymmetric", lambda stage: sources()))
        tasks.append(("boundary", lambda stage: rates()))
        if self._outflow.any:
            tasks.append(("boundary", lambda stage: hold()))
            tasks.append(("boundary", self._outflow_rates))
            tasks.append(("boundary", lambda stage: follow()))
        # What all ranks do, whether or not they have parts with viscous terms, is the same: exchanges are collective.
        if self.configuration.viscous:
            inner = self._meanwhile([block.inner_difference for block in self._viscous])
            outer = self.program.prepare([call for block in self._viscous for call in block.outer_difference])
            tasks += [*([] if self._viscous_first else self._viscous_tasks()), ("viscous", lambda stage: inner())]
            if others:
                tasks += [("exchange", lambda stage: self.halo.finish_fluxes()), ("viscous", lambda stage: outer())]
            if self._axisymmetric:
                friction = self.program.prepare([call for a in self._axisymmetric for call in a.friction])
                tasks.append(("axisymmetric", lambda stage: friction()))
        if self.sponges:
            calls = [call for layer in self.sponges for call in (layer.call, *scalars.sponge_calls(self.case, layer))]
            sponges = self.program.prepare(calls)
            tasks.append(("sponge", lambda stage: sponges()))
        if self._poles.any:
            rest = self.program.prepare(self._poles.rest)
            tasks.append(("boundary", lambda stage: rest()))
        advance = [self.program.prepare(calls) for calls in zip(*map(updates, self.states), strict=True)]
        return [
            *tasks,
            ("update", lambda stage: advance[stage]()),
            ("boundary", lambda stage: self._boundary_nodes(self.time + STAGES[stage][2] * self.dt)),
            ("exchange", lambda stage: self._send_state()),
        ]

    def _viscous_tasks(self) -> list[tuple[str, Callable[[int], None]]]:
        """Viscous fluxes and their ghosts, those of other ranks on their way."""
        fluxes = [block.fluxes for block in self._viscous]
        self._viscous_work = [block.all_fluxes for block in self._viscous]
        made = self.program.prepare(self._viscous_fluxes())
        return [("viscous", lambda stage: made()), ("exchange", lambda stage: self._send_fluxes(fluxes))]

    # ---- tasks

    def _start_state(self) -> None:
        """Ghosts of patched faces, and connected halos on their way."""
        self.halo.start_state()
        self.patched.state()

    def _meanwhile(self, parts: Sequence[Sequence[Call]]) -> Callable[[], None]:
        """Launches of all parts, made while halos are on their way: what has come is taken in between."""
        if not self.halo.neighbours:
            return self.program.prepare([call for calls in parts for call in calls])
        prepared = [self.program.prepare(calls) for calls in parts]

        def make() -> None:
            for launch in prepared:
                launch()
                self.halo.progress()

        return make

    def _boundary_nodes(self, time: float) -> None:
        for c in self._changing:
            c.prepare(time)
        self._nodes()
        if self._poles.any:
            self._poles()

    def _outflow_rates(self, stage: int) -> None:
        if stage == 0:
            self._outflow.convection()
        self._outflow()

    def _viscous_fluxes(self) -> Iterator[Call]:
        for block in self._viscous:
            yield from block.primitives
        for c in self.conditions:
            yield from c.calls("viscous_primitives", self._viscous[self._place[c.patch.block]].w)
        for block in self._viscous:
            yield from block.flux
        for part in self._axisymmetric:
            yield from part.stress
        for c in self.conditions:
            yield from c.calls("viscous_flux", self._viscous[self._place[c.patch.block]].fluxes)

    def _send_state(self) -> None:
        self._start_state()
        if not self.overlap:
            self.halo.finish_state()

    def _send_fluxes(self, fluxes: list[tuple]) -> None:
        self.halo.start_fluxes(fluxes)
        self.patched.fluxes(fluxes, self._viscous_work)
        if not self.overlap:
            self.halo.finish_fluxes()

    # ---- the step

    def stage(self, stage: int) -> None:
        """One Runge-Kutta stage: every task in order."""
        self._known_radii = None
        for name, task in self.tasks:
            with self.stopwatch(name):
                task(stage)

    def right_hand_side(self) -> None:
        """The halo exchange and everything of a stage up to the update: fills `r` of every block (1/J times dq/dt)."""
        self.settle()
        with self.stopwatch("exchange"):
            self._start_state()
        for name, task in self.tasks:
            if name == "update":
                return
            with self.stopwatch(name):
                task(0)

    def choose_dt(self, largest: float = np.inf) -> float:
        """Set the step from the case (fixed, or CFL limits over all blocks of all ranks), no larger than `largest`;
        with local steps every point gets its own and the returned value is 0."""
        time, factor = self.case.time, self.step_factor
        with self.stopwatch("time step"):
            if time.local:
                for reduction in self._reductions:
                    reduction.local_steps(self.case.gas.reynolds, factor * time.cfl, factor * time.viscous_cfl)
                self._limit_steps()
                self.dt = 0.0
                return self.dt
            if time.dt is not None:
                wanted = factor * time.dt
            else:
                inviscid_radius, viscous_radius = self._radii() if self._known_radii is None else self._known_radii
                wanted = factor * time.cfl / inviscid_radius
                if viscous_radius > 0:
                    wanted = min(wanted, factor * time.viscous_cfl / viscous_radius)
            self._set_dt(float(min(wanted, largest)))
        return self.dt

    def _radii(self) -> np.ndarray:
        """Largest inviscid and viscous spectral radius of all blocks of all ranks. Collective."""
        self._launch_radii()
        # a NaN must not lose against a number
        radii = zip(self._reductions, self.backend.to_host(self._found_radii), strict=True)
        return self.team.max(np.max([reduction.found_radii(found) for reduction, found in radii], axis=0))

    def _set_dt(self, dt: float) -> None:
        self.dt = dt
        if self.dt != self._set_dt_value:
            value = self.backend.to_device(np.full(1, self.dt, self.configuration.real))
            for state in self.states:
                self.backend.copy(state.dt, value)
            self._set_dt_value = self.dt

    def step(self, largest: float = np.inf) -> float:
        """One time step, no longer than `largest`. Returns dt (0 with local steps).

        A step by CFL number that the flow does not survive, as an impulsive start may when wave speeds grow within it,
        is taken again with half of it, and a quarter.

        Raises FloatingPointError, the state left as it was, when the flow allows no step: the rates of change are not
        finite, or so large that time would stand still, or it survives no quarter of the step.
        """
        self.choose_dt(largest)
        if not np.isfinite(self.dt) or (0 <= self.dt < largest and self.time + self.dt == self.time and not self.local):
            raise FloatingPointError(f"time step {self.dt:.4g}")
        whole, self._began = self.dt, (self.time, self.steps)
        for share in STEP_SHARES:
            if not self.local:
                self._set_dt(share * whole)
            for stage in range(len(STAGES)):
                self.stage(stage)
            self.halo.flush()
            if self._survived():
                break
            self.rewind()
            self.retaken += 1
        else:
            raise FloatingPointError(f"time step {self.dt:.4g}")
        self.time += self.dt
        self.steps += 1
        self.stopwatch.collect()
        return self.dt

    def _survived(self) -> bool:
        """Whether the flow allows another step: known at no cost where the next one is chosen by CFL number."""
        if self.local or self.case.time.dt is not None:
            return True
        with self.stopwatch("time step"):
            self._known_radii = self._radii()
        return bool(np.isfinite(self._known_radii).all())

    def watched_step(self, watch: Callable[[int, str], bool]) -> bool:
        """One time step as the case wants it. `watch(stage, task)` is called as each task is done, and says whether to
        go on; if not, the solver is left there, in the midst of the step. Returns whether the step was taken."""
        self.choose_dt()
        if not np.isfinite(self.dt):
            return False
        self._known_radii, self._began = None, (self.time, self.steps)
        for stage in range(len(STAGES)):
            for name, task in self.tasks:
                task(stage)
                if not watch(stage, name):
                    return False
        self.halo.flush()
        self.time += self.dt
        self.steps += 1
        return True

    @property
    def can_rewind(self) -> bool:
        """Whether the state with which the last step began is still there, and was one. Collective."""
        alive = self._began is not None
        for state in self.states if alive else ():
            rho, *momentum, e = state.interior(self.backend.to_host(state.q0))[: len(GAS_CONSERVED)]
            with np.errstate(all="ignore"):
                alive = alive and bool((rho > 0).all() and (e - sum(m * m for m in momentum) / (2 * rho) > 0).all())
        return bool(self.team.min([float(alive)])[0])

    def rewind(self) -> None:
        """Go back to where the last step began. Collective."""
        self.time, self.steps = self._began
        self.settle()
        with self.team.together():
            for state in self.states:
                q = self.backend.to_host(state.q)
                state.interior(q)[...] = state.interior(self.backend.to_host(state.q0))
                self.backend.copy(state.q, self.backend.to_device(q))
        self.complete_state()

    @property
    def local(self) -> bool:
        """Whether each point takes its own step."""
        return self.case.time.local

    # ---- the state

    def set_state(self, block: int, rho, u, v, w, p, scalars: Mapping[str, Any] | None = None) -> None:
        """Set `states[block]` from primitive arrays broadcastable to its (nk, nj, ni). Passive `scalars` that are not
        named keep their values. When all are set, `complete_state` brings the rest up to them."""
        self.settle()
        self._known_radii = self._began = None
        state = self.states[block]
        shape = state.block.x.shape
        q = self.backend.to_host(state.q)
        interior = state.interior(q)
        kept = interior[state.equations.scalar_rows] / interior[0]
        given = [(scalars or {}).get(name, old) for name, old in zip(state.equations.scalars, kept, strict=True)]
        values = [np.broadcast_to(np.asarray(a, float), shape) for a in (rho, u, v, w, p, *given)]
        interior[...] = np.stack(conservative(self.case.gas.gamma, *values))
        self.backend.copy(state.q, self.backend.to_device(q))

    def initialize(self, initial=None) -> None:
        """The case's initial state, or `initial`: a function f(x, y, z, *, <parameters>) -> (rho, u, v, w, p)."""
        spec = self.case.initial
        with self.team.together():
            for n, state in enumerate(self.states):
                places = state.block.x, state.block.y, state.block.z
                carried = {
                    s.name: self.case.evaluate_scalar(s.name, s.initial, *places) if isinstance(s.initial, str)
                    else s.initial
                    for s in self.case.scalar
                }  # fmt: skip
                if initial is None and spec.state is not None:
                    s = spec.state
                    self.set_state(n, s.rho, s.u, s.v, s.w, s.p, carried)
                else:
                    self.set_state(n, *self.case.evaluate(initial or spec.function, *places), carried)
        self.time, self.steps = 0.0, 0
        self.complete_state()

    def complete_state(self) -> None:
        """Impose the conditions on the nodes of physical faces and fill the connected halos. Collective."""
        self.settle()
        self._known_radii = None
        with self.team.together():
            self._boundary_nodes(self.time)
        self._start_state()
        self.settle()

    def settle(self) -> None:
        """Wait for the halos that are on their way: what reads ghosts between steps calls this first."""
        self.halo.finish_state()

    def values(self) -> dict[str, Any]:
        """With `arrays`, all that the next step depends on: time, steps, dt, step_factor."""
        return {"time": self.time, "steps": self.steps, "dt": float(self.dt), "step_factor": self.step_factor}

    def pieces(self) -> Iterator[Piece]:
        """Of each part its conservative state (n, nk, nj, ni) as a piece of q.<whole block>, in the run's precision."""
        for state in self.states:
            shape = (len(state.q), *reversed(state.size))
            q = Later(shape, state.q.dtype, partial(self._held, state))
            yield Piece(f"q.{state.part.whole}", state.part.box, q)

    def _held(self, state: BlockState) -> np.ndarray:
        return np.ascontiguousarray(state.interior(self.backend.to_host(state.q)))

    def restore(self, values: Mapping[str, Any], read: Callable[[str, Range], np.ndarray]) -> None:
        """Go on from what `values` and `pieces` gave, to the last bit on the same backend and cut. `read(name, box)`
        gives the nodes `box` of an array that was written in pieces. Collective; raises ValueError for numbers that no
        run can have had, and for an array of another shape or type."""
        time, dt, factor = (float(values[key]) for key in ("time", "dt", "step_factor"))
        steps = int(values["steps"])
        if not (0 <= time < np.inf and 0 <= dt < np.inf and 0 < factor <= 1 and steps >= 0):
            raise ValueError(f"time {time}, dt {dt}, step {steps}, {factor} times the step of the case")
        self.settle()
        with self.team.together():
            self._boundary_nodes(0.0)  # a steady profile is that of the beginning
            self.time, self.steps, self.dt, self.step_factor = time, steps, dt, factor
            found = [read(f"q.{state.part.whole}", state.part.box) for state in self.states]
            self._take(found)
            self._boundary_nodes(self.time)
            # Faces had their conditions already: once more might round once more. Ghosts and targets are what was
            # wanted.
            self._take(found)
        self._start_state()
        self.settle()

    def _take(self, found: Sequence[np.ndarray]) -> None:
        self._known_radii = self._began = None
        for state, values in zip(self.states, found, strict=True):
            q = self.backend.to_host(state.q)
            interior = state.interior(q)
            if values.shape != interior.shape or values.dtype != interior.dtype:
                raise ValueError(f"q is {values.dtype} {values.shape}, not {interior.dtype} {interior.shape}")
            interior[...] = values
            self.backend.copy(state.q, self.backend.to_device(q))

    def given(self) -> dict[str, list[float]]:
        """What the functions of steady profiles and sponges ask for: by place, the mean and the root mean square of
        every conservative variable. Collective."""
        found: dict[str, np.ndarray] = {}
        for layer in self.sponges:
            if layer.moments is not None:
                name = f"sponge.{layer.number} in block '{layer.block}'"
                found[name] = found.get(name, 0) + layer.moments
        for c in self.conditions:
            if (target := c.target) is not None:
                whole = self.decomposition.patches[c.patch.place]
                name = (
                    f"{whole.condition.type} on {whole.face} of block '{self.grid.blocks[whole.block].name}', nodes "
                    f"{whole.range}"
                )
                found[name] = found.get(name, 0) + moments(self.backend.to_host(target))
        total: dict[str, np.ndarray] = {}
        for part in self.team.everyone(found):
            for name, values in part.items():
                total[name] = total.get(name, 0) + values
        return {name: _means(values) for name, values in sorted(total.items())}

    def primitives(self, block: int) -> dict[str, np.ndarray]:
        """rho, u, v, w, p and the passive scalars of `states[block]`, float64 (nk, nj, ni)."""
        state = self.states[block]
        q = state.interior(self.backend.to_host(state.q)).astype(np.float64)
        return self._gas.primitive(q)

    def norms(self) -> tuple[np.ndarray, float, float]:
        """Root mean square of dq/dt over all points (5), least density, least pressure. Collective."""
        found = [r.norms() for r in self._reductions]
        sums = self.team.sum(np.sum([f[0] for f in found], axis=0))
        density, pressure = self.team.min(np.min([f[1:] for f in found], axis=0))
        return np.sqrt(sums / self.points), float(density), float(pressure)

    @property
    def points(self) -> int:
        """Of all ranks."""
        return self.decomposition.points

    @property
    def bytes(self) -> int:
        """Device memory held for the fields of this rank."""
        return (
            sum(s.bytes for s in self.states)
            + sum(r.bytes for r in self._reductions)
            + sum(layer.bytes for layer in self.sponges)
        )


def _means(moments: np.ndarray) -> list[float]:
    """Means and root mean squares, by `hiresx.rhs.sponge.moments`."""
    count, sums, squares = moments[0], *np.split(moments[1:], 2)
    return [*(sums / count).tolist(), *np.sqrt(squares / count).tolist()]
