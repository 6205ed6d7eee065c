"""Steps of a CPU in one call: the launches of all stages and of the radii behind them, made together."""

from collections.abc import Callable

from hiresx.case import Case
from hiresx.device.dependency_graph import RecordingProgram
from hiresx.solver.block_states import LocalBlocks
from hiresx.solver.conditions import Conditions
from hiresx.solver.flow_system import FlowSystem
from hiresx.solver.step_size import StepSize
from hiresx.time.integrator import Integrator

# Above so many points of a process a step takes so long that what lies between its parts is nothing beside it, and that
# a second Ctrl-C, which Python hears between two calls, should not wait for the end of a step.
LARGE = 1_000_000


class BatchedSteps:
    """A step of `integrator`, by the tasks of `system`, and the launches of `size` as one call: threads come together
    once a step, tasks that do not depend on each other run side by side, and nothing waits for Python in between."""

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
        self._system, self._integrator = system, integrator
        # Whether the next step is chosen by the radii of the state that this one leaves.
        self.finds_radii = case.time.dt is None and not case.time.local
        self._step: Callable[[], None] | None = None

    @property
    def possible(self) -> bool:
        """Whether nothing of a step needs the host: no other rank, no profile that changes, no pole, no iteration."""
        b = self._blocks
        here = b.backend.name == "cpu" and isinstance(b.program, RecordingProgram) and b.comm.size == 1
        small = sum(state.part.points for state in b.states) <= LARGE
        return here and small and self._conditions.steady and not self._integrator.iterates

    def forget(self) -> None:
        """The tasks are others from now on."""
        self._step = None

    def __call__(self, time: float, dt: float) -> None:
        """The step `dt` from `time` on."""
        self._conditions.begin(time, dt)
        if self._step is None:
            self._system.time, self._system.dt = time, dt
            calls = [*self._system.launches(), *(self._size.calls if self.finds_radii else [])]
            self._step = self._blocks.program.prepare(calls)
        self._step()
