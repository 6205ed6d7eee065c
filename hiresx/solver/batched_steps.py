"""Batched steps on a CPU: the launches of all stages and of the spectral radii in one call."""

from collections.abc import Callable

from hiresx.case import Case
from hiresx.device.dependency_graph import RecordingProgram
from hiresx.solver.block_states import LocalBlocks
from hiresx.solver.conditions import Conditions
from hiresx.solver.flow_system import FlowSystem
from hiresx.solver.step_size import StepSize
from hiresx.time.integrator import Integrator

# With more points per process, a step takes so long that the time between its parts is negligible. A second Ctrl-C, to
# which Python reacts between two calls, should then not wait for the end of the step.
LARGE = 1_000_000


class BatchedSteps:
    """Time steps on a CPU that each make all launches in one call. `integrator`: the time integrator. `system`: the
    flow system, whose tasks (functions that launch kernels) make up a step. `size`: the size of the step, whose
    launches are included. Threads synchronize once per step, independent tasks run concurrently, and no task waits for
    the Python interpreter. `blocks`, `conditions`: the blocks of this rank and their boundary conditions."""

    def __init__(
        self,
        case: Case,
        blocks: LocalBlocks,
        conditions: Conditions,
        size: StepSize,
        system: FlowSystem,
        integrator: Integrator,
    ):
        self._blocks, self._conditions, self._size = blocks, conditions, size
        self._system = system
        # Whether the radii at the end of this step determine the next one.
        self.finds_radii = case.time.dt is None and not case.time.local
        self._step: Callable[[], None] | None = None
        here = blocks.backend.name == "cpu" and isinstance(blocks.program, RecordingProgram) and blocks.comm.size == 1
        self._points = sum(state.part.points for state in blocks.states)
        self._here = here and not integrator.iterates

    @property
    def possible(self) -> bool:
        """Whether a step can be made as one batch of kernel launches: the run has one rank, the grid has at most a
        million nodes (`LARGE`), and no part of a step needs work on the host. Such work is needed for prescribed
        profiles that change in time, poles, time integrators that iterate, and a filter that is not applied in every
        step."""
        return self._here and self._points <= LARGE and self._conditions.steady and self._system.steps_alike

    def forget(self) -> None:
        """Discard the prepared batch of launches, because the tasks of a step have changed. The next step prepares a
        new one."""
        self._step = None

    def __call__(self, time: float, dt: float) -> None:
        """Make a step of size `dt` from `time`."""
        self._conditions.begin(time, dt)
        if self._step is None:
            self._system.time, self._system.dt = time, dt
            calls = [*self._system.launches(), *(self._size.calls if self.finds_radii else [])]
            self._step = self._blocks.program.prepare(calls)
        self._step()
