"""A case on a device: its state, its time steps, and the recovery from a failed step."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hiresx.case import Case
from hiresx.decomposition import Domain
from hiresx.decomposition import domain as make_domain
from hiresx.decomposition.held_arrays import Piece
from hiresx.device.interface import Backend, Call
from hiresx.estimate import layout
from hiresx.grid import Grid
from hiresx.grid.blocks import Range
from hiresx.rhs import boundary, scalar_conditions, spatial_filter
from hiresx.rhs.layers import place_sponges, with_tiles
from hiresx.rhs.terms import Task
from hiresx.solver.batched_steps import BatchedSteps
from hiresx.solver.block_states import LocalBlocks, Reused
from hiresx.solver.conditions import Conditions
from hiresx.solver.device_resident_steps import DeviceResidentSteps
from hiresx.solver.flow_system import FlowSystem
from hiresx.solver.ghosts import Ghosts
from hiresx.solver.implicit_operators import connect
from hiresx.solver.initial_flow import Flow, initial_flow
from hiresx.solver.plan_choice import choose_plan
from hiresx.solver.state_cache import StateCache
from hiresx.solver.step_size import StepSize
from hiresx.solver.terms import Terms
from hiresx.time.integrators import check_integrator, integrator
from hiresx.time.step_clock import StepClock
from hiresx.time.step_recording import StepState
from hiresx.time.step_rule import radii_are_finite, time_advances
from hiresx.time.stopwatch import Stopwatch

# A failed step is repeated with these fractions of its size.
STEP_SHARES = (1.0, 0.5, 0.25)


class _StepAbandoned(Exception):
    """The exception for a step that a watcher ended before it was complete."""


class Solver:
    """The flow solver of a case on a device, for the blocks that this rank computes.

    `domain`: the grid with its partition among the ranks; without it this process computes the whole grid of the case,
    or `grid`. `plan`: "pencils" (CPU), "fused" (GPUs, and emulated), "decomposed" or "compact" (any backend); None
    means the plan of the case, or one that suits the backend and its memory. `profiles`: functions that replace
    functions of case.py. `transport`: the transport of ghost nodes to other ranks (`hiresx.exchange.choice.NAMES`).
    `overlap`: if false, the solver waits for ghost nodes at once, to measure the gain of overlapping. `flow`: the
    initial state (see `initial_flow`); without it, the state is set by `initialize` or `restore`. `reused`: data of
    another solver of the case, which must not be used afterwards; either all ranks pass them or none.

    Collective. Raises HiresxError for a grid that is not right-handed everywhere, for boundary conditions that omit a
    node, for invalid values of `flow`, and for errors of the backend and the compiler.

    `decomposition`: the grid's blocks. `cut`, `states`: those of all ranks, of this rank. `kept`: reusable results.
    """

    def __init__(
        self,
        case: Case,
        backend: Backend,
        grid: Grid | None = None,
        plan: str | None = None,
        profiles: dict[str, Callable[..., Any]] | None = None,
        domain: Domain | None = None,
        transport: str = "auto",
        overlap: bool = True,
        flow: Flow | None = None,
        reused: Reused | None = None,
    ):
        domain = make_domain(case, grid=grid) if domain is None else domain
        case = with_tiles(place_sponges(case, domain.grid.blocks), domain.whole)
        self.case, self.backend = case, backend
        self.comm, self.grid = domain.comm, domain.grid
        self.decomposition, self.cut = domain.whole, domain.cut
        self.time, self.steps = 0.0, 0
        # Factor of the case's dt or CFL numbers, which is reduced when a run returns to a checkpoint after a blow-up.
        self.step_factor = 1.0
        self.plan = choose_plan(case, backend, domain, plan, 0 if reused is None else reused.bytes)
        boundary.check(self.decomposition.patches)
        scalar_conditions.check(case, self.decomposition.patches)
        spatial_filter.check(case, self.decomposition.blocks)
        self.integrator = integrator(case.time.integrator)
        check_integrator(case, self.integrator)
        self.layout = layout(case, self.plan)
        self._blocks = LocalBlocks(case, backend, domain, self.layout, flow, reused)
        self.configuration, self.program = self._blocks.configuration, self._blocks.program
        self.compile_s = self._blocks.compile_s  # seconds of the compilation
        self.states, self.reusable, self.kept = self._blocks.states, self._blocks.reusable, self._blocks.kept
        self.primitives, self.lazy_primitives = self._blocks.primitives, self._blocks.lazy_primitives
        self._ghosts = Ghosts(case, self._blocks, domain, transport, overlap)
        self.halo = self._ghosts.halo
        self.close = self._ghosts.close  # frees the resources of MPI and of the device
        self._conditions = Conditions(
            case, self._blocks, self.grid, profiles or {}, self.halo.memory, self._ghosts.mirrored.places
        )
        self.conditions, self.sponges = self._conditions.all, self._conditions.sponges
        self.profile_statistics = self._conditions.profile_statistics
        self.terms = Terms(case, self._blocks, self._ghosts, self._conditions, self.plan, self.integrator)
        self._state_cache = StateCache()
        limits = [call for a in self.terms.axisymmetric for call in a.steps]
        self.step_size = StepSize(case, self._blocks, self._state_cache, limits)
        self.stopwatch = Stopwatch(backend)
        self.dt = case.time.dt or 0.0
        self.retaken = 0  # steps repeated with a smaller dt
        self.system = FlowSystem(
            self._blocks, self.terms, self._ghosts, self._conditions, self.integrator, self._perform_timed, case,
            lambda name: self.stopwatch(name),
        )  # fmt: skip
        connect(case, self.integrator, self._blocks, self._ghosts, self._conditions, self.step_size, self.system)
        self._lookers: dict[int, list[Call]] = {}
        parts = self._conditions, self.step_size, self.system, self.integrator
        self.device_resident_steps = DeviceResidentSteps(case, self._blocks, self._ghosts, *parts)
        self.batched_steps = BatchedSteps(case, self._blocks, *parts)
        if flow is not None:
            self.complete_state()

    @property
    def tasks(self) -> list[Task]:
        """The tasks (name, function of the stage) of a stage, or of a right-hand side if the integrator iterates."""
        return self.system.tasks

    @property
    def has_rates(self) -> bool:
        """Whether the right-hand side was computed since the state was set; the array `r` has no meaning before."""
        return self._state_cache.rates

    @property
    def overlap(self) -> bool:
        """Whether computation overlaps with the exchange of ghost nodes."""
        return self._ghosts.overlap

    @overlap.setter
    def overlap(self, value: bool) -> None:
        """Set whether computation overlaps with the exchange of ghost nodes."""
        self._ghosts.overlap = value

    def look_at_steps(self, calls: Sequence[Call]) -> Callable[[], None]:
        """Launch `calls`, which only read the flow, at the start of every step. Return a function that ends this."""
        key = max(self._lookers, default=0) + 1
        self._lookers[key] = list(calls)

        def end() -> None:
            if self._lookers.pop(key, None) is not None:
                self._looked_at()

        self._looked_at()
        return end

    def _looked_at(self) -> None:
        calls = [call for some in self._lookers.values() for call in some]
        self._conditions.clocked = bool(calls)
        look = self.program.prepare(calls) if calls else None

        def task(stage: int) -> None:
            if stage == 0 and look is not None:
                self._conditions.begin(self.time, self.dt)
                look()

        self.system.look([("samples", task)] if calls else [])
        self.device_resident_steps.forget()
        self.batched_steps.forget()

    @property
    def clock(self) -> StepClock:
        """The clock on the device, from which the launches given to `look_at_steps` read the time at a step's start."""
        return self._conditions.clock

    # ---- the step

    def stage(self, stage: int) -> None:
        """Compute stage number `stage` of an explicit integrator, with the step `dt` from the time of the state."""
        self._state_cache.expect_rates()
        self.system.time, self.system.dt = self.time, self.dt
        self.system.stage(stage)

    def right_hand_side(self) -> None:
        """Compute the right-hand side (the array `r` of every block, 1/J times dq/dt) of the current state."""
        self._state_cache.rates = True
        self.system.compute_rates()

    def _perform_timed(self, tasks: Sequence[Task], stage: int) -> None:
        for name, task in tasks:
            with self.stopwatch(name):
                task(stage)

    def choose_dt(self, largest: float = np.inf) -> float:
        """Set the time step of the case and return it, in L / c_ref. It is fixed and at most `largest`, or it follows
        from the CFL limits over all blocks of all ranks, such that steps end at the time that is `largest` away
        (`hiresx.time.step_rule.step_towards`). With local steps every node has its own, and 0 is returned."""
        with self.stopwatch("time step"):
            if self.local:
                self.step_size.fill_local(self.step_factor)
                self.dt = 0.0
            else:
                self._set_dt(self.step_size.choose(self.step_factor, largest, self.integrator.next_step))
        return self.dt

    def _set_dt(self, dt: float) -> None:
        self.dt = dt
        self.step_size.put(dt)

    def step(self, largest: float = np.inf) -> float:
        """Make one time step, no longer than `largest`, and return its size, in L / c_ref (0 with local steps). A step
        by CFL number may fail because wave speeds grow during it, for instance after an impulsive start. It is then
        repeated with half of its size, then with a quarter, if the integrator stores the state at the start. Raises
        FloatingPointError, with the state as before, if no step is possible: the rates of change are not finite, or so
        large that time would not advance, or a quarter of the step fails as well. If the integrator does not store the
        start, the failed state remains."""
        if largest == np.inf:
            self.advance(1)
        else:
            self._one(largest)
        return self.dt

    def advance(self, count: int, until: float = np.inf) -> int:
        """Make up to `count` time steps, none past the time `until` in L / c_ref: one if steps need work on the host,
        otherwise nearly all. Return the number made. Raises FloatingPointError if a step is not possible (`step`); the
        steps before it remain. All ranks call this with the same count."""
        taken, failed = self._take_device_steps(count, until) if self.device_resident_steps.possible else (0, None)
        if taken and failed is None:
            return taken
        sampler = self.device_resident_steps.sampler
        until = until if sampler is None else min(until, sampler.next)
        self._one(max(until - self.time, 0.0), failed)  # raises the error if the device made no step
        return taken + 1

    def _take_device_steps(self, count: int, until: float) -> tuple[int, float | None]:
        """Make steps on the device. Returns their number, and the size of a failed step after them, if any."""
        with self.stopwatch("step"):
            complete = self.device_resident_steps(count, self.time, until, self.step_factor)
        taken = complete()
        self.stopwatch.collect()
        if taken.count:
            self._state_cache.rates = True
            self._state_cache.began = taken.began, self.steps + taken.count - 1
            self.time, self.dt = taken.time, taken.dt
            self.steps += taken.count
            if (sampler := self.device_resident_steps.sampler) is not None:
                before = self.steps - taken.count
                sampler.record_samples([(before + steps, time) for steps, time in taken.samples])
        dead = taken.state == StepState.DEAD
        if dead:
            self._state_cache.begin_step(self.time, self.steps)
            self._take_back()
        self.device_resident_steps.raise_failed()
        return taken.count, taken.dt if dead else None

    def _one(self, largest: float, failed: float | None = None) -> None:
        """Make one step by the host, no longer than `largest`: the first of its shares that the flow survives.
        `failed`: the size of the whole step, if it has failed already."""
        with self.stopwatch.step(self.batched_steps.possible):
            whole = self.choose_dt(largest) if failed is None else failed
            if failed is None and not self._time_advances(largest):
                raise FloatingPointError(f"time step {self.dt:.4g}")
            self._begin()
            for share in STEP_SHARES if failed is None else STEP_SHARES[1:]:
                if not self.local:
                    self._set_dt(share * whole)
                if self._try_step():
                    break
                if not self.integrator.keeps_start:
                    raise FloatingPointError(f"time step {self.dt:.4g}")
                self._take_back()
            else:
                raise FloatingPointError(f"time step {self.dt:.4g}")
            self._count()
        self.stopwatch.collect()

    def _time_advances(self, largest: float) -> bool:
        """True if the chosen step changes the time."""
        return self.local or time_advances(self.time, self.dt, largest)

    def _begin(self) -> None:
        self._state_cache.begin_step(self.time, self.steps)
        self._blocks.keep_start()
        self.system.begin(self.steps)

    def _count(self) -> None:
        """Complete the step."""
        self.system.end(self.dt)
        self.time += self.dt
        self.steps += 1

    def _take_back(self) -> None:
        self.rewind()
        self.retaken += 1

    def _try_step(self) -> bool:
        """True if the integrator made the step and the flow allows another one. Where steps are chosen by CFL number,
        the check needs no extra work. Collective."""
        self._state_cache.expect_rates()
        joined = self.stopwatch.together
        try:
            if joined:
                with self.stopwatch("step"):
                    self.batched_steps(self.time, self.dt)
            else:
                self.system.step(self.time, self.dt)
                self._set_dt(self.system.dt)  # the integrator may have shortened it
        except FloatingPointError:
            return False
        if not self.batched_steps.finds_radii:
            return True
        with self.stopwatch("time step"):
            self._state_cache.radii = radii = self.step_size.radii(launched=joined)
        return radii_are_finite(*map(float, radii))

    def watched_step(self, watch: Callable[[int, str], bool]) -> bool:
        """Make one time step of the case, and return whether it was completed. `watch(stage, task)` is called after
        each task (part of a stage, such as "boundary"), and returns whether to continue. If not, the step ends there,
        and `time` and `steps` do not change; call `rewind` or set a state before another step. Collective."""

        def perform_watched(tasks: Sequence[Task], stage: int) -> None:
            for name, task in tasks:
                task(stage)
                if not watch(stage, name):
                    raise _StepAbandoned

        self.choose_dt()
        if not self._time_advances(np.inf):
            return False
        self._begin()
        try:
            with self.system.by(perform_watched):
                self.system.step(self.time, self.dt)
                self._set_dt(self.system.dt)
        except (_StepAbandoned, FloatingPointError):
            return False
        self._count()
        return True

    @property
    def can_rewind(self) -> bool:
        """Whether the start of the last step is stored, with positive density and pressure. Collective."""
        alive = self._state_cache.began is not None and self.system.alive_before
        return bool(self.comm.min([float(alive)])[0])

    def rewind(self) -> None:
        """Return to the state, time and number of steps at the start of the last step. All ranks must call this."""
        if self._state_cache.began is None:
            raise RuntimeError("no step was taken")
        self.time, self.steps = self._state_cache.began
        self.settle()
        with self.comm.together():
            self.system.back()
        self.complete_state(given=False)

    @property
    def local(self) -> bool:
        """Whether each node has its own time step."""
        return self.case.time.local

    # ---- the state

    def set_state(
        self, block: int, rho: ArrayLike, u: ArrayLike, v: ArrayLike, w: ArrayLike, p: ArrayLike,
        scalars: Mapping[str, ArrayLike] | None = None,
    ) -> None:  # fmt: skip
        """Set the state at the nodes of block number `block` of this rank. `rho`, `u`, `v`, `w` and `p`: density,
        velocities and pressure in the scales of the case, numbers or arrays that broadcast to (nk, nj, ni). Passive
        scalars that `scalars` omits do not change. All ranks call `complete_state` or `complete_if_set` afterwards."""
        self.settle()
        self._give()
        self._state_cache.incomplete = True
        self._blocks.set_state(block, rho, u, v, w, p, scalars)

    def initialize(self, initial: str | Callable[..., Any] | None = None) -> None:
        """Set the initial state of the case, or of `initial`: a function f(x, y, z, *, <parameters>) -> (rho, u, v, w,
        p), or its name in case.py. Several threads call it for ranges of planes of large blocks. Collective."""
        self.settle()
        self._give()
        with self.comm.together():
            self._blocks.evaluate(initial_flow(self.case, initial))
        self.time, self.steps = 0.0, 0
        self.complete_state()

    def _give(self) -> None:
        """Discard derived data, since another state is set."""
        self._state_cache.reset()
        self.integrator.memory.clear()
        if self.system.history is not None:
            self.system.history.forget()

    def complete_state(self, given: bool = True) -> None:
        """Apply the boundary conditions and fill the ghost nodes of connected blocks. `given`: whether the caller has
        set the state, so that walls, for instance, must first impose their velocity. All ranks must call this."""
        self.settle()
        self._state_cache.invalidate_radii()
        self._state_cache.incomplete = False
        if given:
            self._ghosts.start_state()  # walls need the neighbours of their nodes
            self.settle()
        with self.comm.together():
            self._conditions.nodes(self.time, given=given)
        self._ghosts.start_state()
        self.settle()
        if given and self.layout.has("eddy_viscosity"):
            # The first time step and the first output need the eddy viscosity, computed with the viscous fluxes.
            self.system.time, self.system.dt = self.time, self.dt
            self.system.compute_rates()
            self.settle()

    def complete_if_set(self) -> None:
        """Call `complete_state` if any rank has set nodes since it was called last. All ranks must call this."""
        if self.comm.max(float(self._state_cache.incomplete)):
            self._give()  # also on ranks that set no node
            self._state_cache.replaced = True
            self.complete_state()

    def settle(self) -> None:
        """Wait until the exchange of ghost nodes is complete, before ghost nodes are read between steps."""
        self._ghosts.finish_state()

    def finish_reads(self) -> None:
        """Wait until no file is read in the background any more: netCDF4 is not safe for two threads."""
        self._conditions.finish_reads()

    def values(self) -> dict[str, Any]:
        """Return a dictionary of the numbers on which the next step depends, for a checkpoint: time, steps, dt,
        step_factor, and what the integrator, its history and the format of the state need in addition."""
        found = dict[str, Any](time=self.time, steps=self.steps, dt=float(self.dt), step_factor=self.step_factor)
        if self.configuration.storage.carries:
            found["reference"] = list(self.configuration.reference)
        if self.system.history is not None:
            found["history"] = self.system.history.steps
            found["memory"] = dict(self.integrator.memory)
        return found

    def pieces(self) -> Iterator[Piece]:
        """Yield the arrays of a checkpoint: the conservative variables (n, nk, nj, ni) of each block of this rank,
        called q.<number of the block in the grid>, and the states of earlier steps (`StateHistory.pieces`)."""
        yield from self._blocks.pieces()
        if self.system.history is not None:
            yield from self.system.history.pieces()

    def restore(self, values: Mapping[str, Any], read: Callable[[str, Range], np.ndarray]) -> None:
        """Continue from a checkpoint, bit-identically on the same backend and partition. `values`: the result of the
        method `values`. `read(name, box)`: returns array `name` at the nodes `box`, half-open ranges (i, j, k).
        Collective. Raises ValueError for impossible numbers, and for arrays of another shape or type."""

        def fill() -> None:
            with self.comm.together():
                if self.system.history is not None:
                    self.integrator.memory = dict(values.get("memory", {}))
                    self.system.history.read(values.get("history", ()), read)
                self._blocks.take(self._blocks.read(read))

        self.go_on(values, fill)

    def go_on(self, values: Mapping[str, Any], fill: Callable[[], None]) -> None:
        """Continue from the numbers `values` (the result of the method `values`), with a state that the function `fill`
        sets on the device. Nodes that `fill` does not set are not changed. All ranks must call this."""
        time, dt, factor = (float(values[key]) for key in ("time", "dt", "step_factor"))
        steps = int(values["steps"])
        if not (0 <= time < np.inf and 0 <= dt < np.inf and 0 < factor <= 1 and steps >= 0):
            raise ValueError(f"time {time}, dt {dt}, step {steps}, {factor} times the step of the case")
        self.settle()
        with self.comm.together():
            self._conditions.prepare(0.0)  # a steady profile is evaluated at time 0
            self.time, self.steps, self.dt, self.step_factor = time, steps, dt, factor
            self._give()
        fill()
        with self.comm.together():
            # The nodes satisfy their conditions already, and imposing them again may change the rounding. It is only
            # needed for ghosts and prescribed values.
            put_back = self._blocks.copy_at_conditions()
            self._conditions.nodes(self.time)
            put_back()
        self._ghosts.start_state()
        self.settle()

    def norms(self) -> tuple[np.ndarray, float, float]:
        """Return the root mean squares (5,) of dq/dt over all nodes (NaN before the first step from a new state), the
        least density and the least pressure. All ranks must call this."""
        rates, density, pressure = self.step_size.norms()
        return rates if self._state_cache.rates else np.full_like(rates, np.nan), density, pressure

    def field(self, block: int, name: str) -> np.ndarray:
        """Return a host copy, float64 (..., nk, nj, ni), of the field called `name` of block number `block` of this
        rank. Raises HiresxError if the run has no such field."""
        self.layout.must_have(name)
        state = self.states[block]
        return self._blocks.host_values(state, state.array(name)).astype(np.float64)

    @property
    def points(self) -> int:
        """Number of nodes of all ranks."""
        return self.decomposition.points

    @property
    def bytes(self) -> int:
        """Number of bytes on the device of all arrays of this rank."""
        blocks = sum(state.bytes for state in self.states) + sum(layer.bytes for layer in self.sponges)
        return blocks + self.system.bytes + self.step_size.bytes
