"""Explicit schemes: every step is the same launches, which devices record."""

from abc import abstractmethod
from collections.abc import Callable, Sequence

from hiresx.device.interface import Call, Program
from hiresx.device.state import BlockState
from hiresx.time.integrator import Integrator
from hiresx.time.ode_system import System


class Explicit(Integrator):
    """A stage fills `r` of every block with 1/J times dq/dt of the state as it is, makes the launches `updates[stage]`,
    and brings the nodes on faces to the time that is then reached, the share `times[stage]` of the step; at the end of
    the last one it is 1.

    `keeps_start`: whether the first register holds, until the step is done, the state with which it began.
    """

    iterates = False
    times: Sequence[float]
    # The launches that end each stage, on one block, and in the same breath do what the launches `differences` of
    # viscous_difference would; `r` is left without it but for that of the last stage. None: by launches of their own.
    viscous_updates: Callable[[Program, BlockState, Sequence[Call]], list[list[Call]]] | None = None

    @property
    def stages(self) -> int:  # type: ignore[override]
        """Right-hand sides of a step."""
        return len(self.times)

    @abstractmethod
    def updates(self, program: Program, state: BlockState) -> list[Call]:
        """The launch that ends each stage, on one block."""

    def step(self, system: System) -> None:
        for n in range(self.stages):
            system.stage(n)
