"""Explicit schemes: every step makes the same launches, which devices record."""

from abc import abstractmethod
from collections.abc import Callable, Sequence

from hiresx.device.interface import Call, Program
from hiresx.device.state import BlockState
from hiresx.time.integrator import Integrator
from hiresx.time.ode_system import System


class Explicit(Integrator):
    """Base class of the explicit integrators. A stage sets the rates `r` of every block to 1/J times dq/dt of the
    current state, makes the launches `updates[stage]`, and sets the nodes on faces for the time at the end of the
    stage. This time is the fraction `times[stage]` of the step, and the last fraction is 1.

    `keeps_start`: whether the first register contains the state at the start of the step until the step is complete.
    """

    iterates = False
    times: Sequence[float]
    # The launches that end each stage on one block and include the work of the launches `differences` of
    # viscous_difference. Only the last stage adds the viscous differences to `r`. None: separate launches do that work.
    viscous_updates: Callable[[Program, BlockState, Sequence[Call]], list[list[Call]]] | None = None

    @property
    def stages(self) -> int:  # type: ignore[override]
        """Number of stages of a step, each of which evaluates the right-hand side once."""
        return len(self.times)

    @abstractmethod
    def updates(self, program: Program, state: BlockState) -> list[Call]:
        """Return the kernel launches that update the state of the block `state` at the end of the stages, one for each
        stage."""

    def step(self, system: System) -> None:
        """Make one time step by computing all stages in order."""
        for n in range(self.stages):
            system.stage(n)
