"""The flow on the local blocks as a `System` for time integrators, and the task lists of steps."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from typing import TypeAlias

import numpy as np

from hiresx.case import Case
from hiresx.decomposition.oblique_walls import mirroring_planes
from hiresx.device.dependency_graph import RecordingProgram
from hiresx.device.interface import Call
from hiresx.equations.gas import alive
from hiresx.rhs.spatial_filter import filter_calls
from hiresx.rhs.terms import Task
from hiresx.solver.block_states import LocalBlocks
from hiresx.solver.conditions import Conditions
from hiresx.solver.ghosts import Ghosts
from hiresx.solver.state_history import StateHistory
from hiresx.solver.terms import Terms
from hiresx.solver.updates import update_tasks
from hiresx.solver.vectors import Vectors
from hiresx.time.explicit import Explicit
from hiresx.time.integrator import Integrator
from hiresx.time.ode_system import Basis, Earlier, System, Vector

# Executes tasks in order, for a stage.
Perform: TypeAlias = Callable[[Sequence[Task], int], None]
# Times a part of the step by its name.
Timed: TypeAlias = Callable[[str], AbstractContextManager[None]]
# The name of the part of a step with operations on vectors.
VECTORS = "vectors"


def one_after_another(tasks: Sequence[Task], stage: int) -> None:
    """Execute `tasks`, pairs (name, function of the stage number), in order. `stage`: the number of the Runge-Kutta
    stage, from 0, with which each function is called."""
    for _, task in tasks:
        task(stage)


class FlowSystem(System):
    """The discretised flow equations on the blocks of this rank, as tasks: pairs (name, function) whose function,
    called with the number of the stage, launches kernels. `tasks`: the tasks of a stage of an explicit integrator, or
    of a right-hand side of an integrator that iterates. `rates_tasks`: the tasks of a right-hand side. `perform`: the
    function that executes tasks; in the context `by` it is replaced. `timed`: measures the time of other work of an
    integrator that iterates. `terms`, `ghosts`, `conditions`: the terms of the right-hand side, the exchanges of
    ghosts, and the boundary conditions."""

    def __init__(
        self,
        blocks: LocalBlocks,
        terms: Terms,
        ghosts: Ghosts,
        conditions: Conditions,
        integrator: Integrator,
        perform: Perform,
        case: Case,
        timed: Timed,
    ):
        self._blocks, self._ghosts, self._conditions = blocks, ghosts, conditions
        self._integrator, self._perform, self.timed = integrator, perform, timed
        self.time = self.dt = 0.0
        self._overwrites_ghosts = terms.overwrites_ghosts
        self._filter, self._steps = case.filter, 0
        self.epsilon = float(np.finfo(blocks.configuration.storage.stored).eps)
        send: Task = ("exchange", lambda stage: ghosts.send_state())
        self.rates_tasks: list[Task] = [("exchange", lambda stage: ghosts.start_state()), *terms.tasks, *terms.left]
        if isinstance(integrator, Explicit):
            times = integrator.times
            self._ordinary = [
                *([("time", self._begin_clock)] if conditions.timed else []),
                *terms.tasks,
                *update_tasks(blocks, terms, ghosts, integrator),
                ("boundary", lambda stage: conditions.nodes(self.time, self.dt, times[stage])),
                send,
                *self._filter_tasks(case, integrator.stages - 1),
            ]
        else:
            self._ordinary = self.rates_tasks
        self.tasks = list(self._ordinary)
        self._looks: list[Task] = []
        self._send = [send]
        self._vectors = Vectors(blocks, [size**-2 for size in case.turbulence.sizes] if integrator.implicit else ())
        self._history = StateHistory(blocks, self._vectors, integrator.history) if integrator.iterates else None
        integrator.prepare(self)

    def _begin_clock(self, stage: int) -> None:
        """Set the time of this step for terms of the first stage; after each stage the conditions set it."""
        if stage == 0:
            self._conditions.begin(self.time, self.dt)

    # ---- steps

    @property
    def steps_alike(self) -> bool:
        """Whether every step makes the same kernel launches, so that they can be recorded once."""
        return self._filter is None or self._filter.every == 1

    def _filter_tasks(self, case: Case, last: int) -> list[Task]:
        """Return the task that filters the state after the stage `last` and exchanges it again, if the case has a
        filter. Nodes on physical faces do not change, except on planes of symmetry whose ghosts are mirror images."""
        blocks, ghosts, given = self._blocks, self._ghosts, case.filter
        if given is None:
            return []
        crossed = mirroring_planes(blocks.decomposition)
        ends = [patch for patch in blocks.cut.patches if patch.place not in crossed]
        calls = filter_calls(case, blocks.backend, blocks.program, blocks.states, ends)
        images = [call for c in self._conditions.all if c.patch.place in crossed for call in c.calls("ghost")]
        launch = blocks.program.prepare([images, *calls])

        def filter_state(stage: int) -> None:
            if stage == last and (self._steps + 1) % given.every == 0:
                ghosts.finish_state()
                launch()
                ghosts.send_state()

        return [("filter", filter_state)]

    def begin(self, steps: int) -> None:
        """Start a time step from the current state, which is stored if the time integrator needs it or `back` must
        restore it. `steps`: the number of steps that were made before."""
        self._steps = steps
        if self._history is not None:
            self._history.begin()

    def step(self, time: float, dt: float) -> None:
        """Make a time step of size `dt` from `time`, both in L / c_ref, by the time integrator. After `back` it may be
        called again with another dt. Raises FloatingPointError, on all ranks, if the integrator finds no solution."""
        self.time, self.dt = time, dt
        if self._integrator.iterates:
            self._perform(self._looks, 0)
        self._integrator.step(self)
        self._ghosts.halo.flush()

    def end(self, dt: float) -> None:
        """Complete the time step of size `dt`, in L / c_ref."""
        if self._history is not None:
            self._history.end(dt)

    def stage(self, n: int) -> None:
        """Compute stage number `n` (from 0) of an explicit time integrator by executing all tasks in order: right-hand
        side, update, boundary conditions. Afterwards the nodes on faces satisfy their boundary conditions and the
        exchange of ghost nodes between blocks has started, so that the state can be read between steps. Ghost nodes of
        physical faces are filled only when they are needed."""
        self._perform(self.tasks, n)

    def compute_rates(self) -> None:
        """Compute the right-hand side of every block (the array `r`, 1/J times dq/dt) for the current state, including
        the exchange of ghost nodes."""
        self._ghosts.finish_state()
        self._perform(self.rates_tasks, 0)
        if self._overwrites_ghosts:
            self._ghosts.mirrored.state()  # the next stage begins with these ghosts

    def launches(self) -> list[Call | list[Call]]:
        """Return all kernel launches of a time step, in order, without making them. An entry that is a list has
        launches that do not depend on each other. The time integrator must not iterate."""
        program = self._blocks.program
        assert isinstance(program, RecordingProgram)  # callers check this
        with self.by(one_after_another), program.recording() as calls:
            self._integrator.step(self)
        return calls

    @contextmanager
    def by(self, perform: Perform) -> Iterator[None]:
        """Return a context manager inside which `perform(tasks, stage)`, a function, executes the tasks of a stage, in
        place of the usual execution one after another. `tasks`: pairs (name, function of the stage number)."""
        before, self._perform = self._perform, perform
        try:
            yield
        finally:
            self._perform = before

    def look(self, looks: Sequence[Task]) -> None:
        """Execute the tasks `looks`, pairs (name, function of the stage number), before the other tasks of every stage,
        from now on. They must only read the flow. They replace the tasks that an earlier call of this method has
        set."""
        self._looks = list(looks)
        self.tasks[:] = [*looks, *self._ordinary]

    # ---- undoing a step

    @property
    def alive_before(self) -> bool:
        """Whether the state at the start of the last step is stored, with positive density and pressure at all
        nodes."""
        if self._history is not None:
            return all(alive(values) for values in self._history.start)
        return self._integrator.keeps_start and self._blocks.alive_before()

    def back(self) -> None:
        """Undo the last step: restore the state at its start."""
        if self._history is not None:
            self._history.back()
        else:
            self._blocks.back()

    # ---- data that are passed from one step to the next

    @property
    def history(self) -> StateHistory | None:
        """The states of earlier steps, for time integrators that iterate; None for other integrators."""
        return self._history

    @property
    def earlier(self) -> Sequence[Earlier]:
        """The earlier steps that the integrator needs, the latest first, each with the state at its start and its size
        in L / c_ref."""
        return [] if self._history is None else self._history.earlier

    # ---- vectors

    def vector(self) -> Vector:
        """Return a new vector of zeros of the size of the state. Raises HiresxError if it does not fit in memory."""
        return self._vectors.new()

    def combine(self, a: float, x: Vector, b: float, y: Vector) -> None:
        """Combine two vectors: y = a x + b y. If b is 0 the old y is ignored."""
        with self.timed(VECTORS):
            self._vectors.combine(a, x, b, y)

    def dot(self, x: Vector, y: Vector) -> float:
        """Return the scalar product of the vectors x and y over all variables and nodes of all ranks."""
        with self.timed(VECTORS):
            return self._vectors.dot(x, y)

    def basis(self, count: int) -> Basis:
        """Return `count` new vectors of zeros, each of the size of the state, that are consecutive in memory. Raises
        HiresxError if they do not fit in memory."""
        return self._vectors.basis(count)

    def products(self, basis: Basis, count: int, x: Vector) -> np.ndarray:
        """Return the scalar products of x with each of the first `count` vectors of a basis, an array (count,)."""
        with self.timed(VECTORS):
            return self._vectors.products(basis, count, x)

    def add_sum(self, weights: np.ndarray, basis: Basis, x: Vector) -> None:
        """Add to x the sum of the first n vectors of a basis, multiplied by their `weights` (n,)."""
        with self.timed(VECTORS):
            self._vectors.add_sum(weights, basis, x)

    def gather(self, x: Vector) -> np.ndarray:
        """Return all numbers of the vector x on every rank, as a one-dimensional float64 array: the blocks of the grid
        one after another, each in C order of (variables, nk, nj, ni)."""
        return self._vectors.gather(x)

    def scatter(self, values: np.ndarray, x: Vector) -> None:
        """Set the vector x from `values`, the numbers of all ranks in the order in which `gather` returns them."""
        self._vectors.scatter(values, x)

    @property
    def bytes(self) -> int:
        """Number of bytes on the device of all vectors that the time integrator has allocated on this rank."""
        return self._vectors.bytes

    # ---- the flow

    def state(self, into: Vector) -> None:
        """Copy the current conservative state to the vector `into`."""
        with self.timed(VECTORS):
            self._vectors.from_state(into)

    def accept(self, x: Vector, time: float) -> None:
        """Set the state to x, with the boundary conditions at `time` (in L / c_ref) applied, and start the exchange of
        ghost nodes."""
        self._put(x, time)
        self._perform(self._send, 0)

    def rates(self, x: Vector, time: float, into: Vector) -> None:
        """Compute dq/dt of the state x at `time` (in L / c_ref), with boundary conditions, and store it in the vector
        `into`."""
        self._put(x, time)
        self.compute_rates()
        with self.timed(VECTORS):
            self._vectors.from_rates(into)

    def impose(self, x: Vector, time: float) -> None:
        """Apply the boundary conditions at `time` (in L / c_ref) to the nodes on physical faces of the state x."""
        self._put(x, time)
        self.state(x)

    def fill_ghosts(self, x: Vector, time: float) -> None:
        """Set the state to x with the boundary conditions at `time` (in L / c_ref), and fill all its ghost nodes."""
        self._put(x, time)
        self._ghosts.start_state()
        self._ghosts.finish_state()
        self._fill()

    @cached_property
    def _fill(self) -> Callable[[], None]:
        return self._blocks.program.prepare(self._conditions.ghost_calls())

    def _put(self, x: Vector, time: float) -> None:
        """Set the state to x, with its conditions at nodes."""
        self._ghosts.finish_state()
        nodes: Task = ("boundary", lambda stage: self._conditions.nodes(time))
        self._perform([("update", lambda stage: self._vectors.to_state(x)), nodes], 0)
