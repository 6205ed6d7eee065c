"""What a time integrator is: the one thing that the solver, estimates and tables know of it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from hiresx.device.interface import Call, Program
from hiresx.device.state import BlockState


class Integrator(ABC):
    """How the state goes from one time to the next.

    A stage fills `r` of every block with 1/J times dq/dt of the state as it is, makes the launches `updates[stage]`,
    and brings the nodes on faces to the time that is then reached, the share `times[stage]` of the step; at the end of
    the last one it is 1. Between steps nothing but q is carried over, so that a run can be stopped and go on there.

    `order`: of accuracy in time. `registers`: arrays of the size of the state besides q and r; block states have them
    as `registers`. `keeps_start`: whether the first of them holds, until the step is done, the state with which it
    began: steps that fail can then be taken again. `convex`: whether every stage is a convex combination of Euler
    steps no longer than the step itself, which the positivity limiter asks for. `cfl`, `viscous_cfl`: the numbers (as
    of docs/numerics.md, "Time") up to which it is stable, with linear weights, for pure convection and pure diffusion.
    """

    order: int
    registers: int
    keeps_start: bool
    convex: bool
    cfl: float
    viscous_cfl: float
    times: Sequence[float]
    # The launches that end each stage, on one block, and in the same breath do what the launches `differences` of
    # viscous_difference would; `r` is left without it but for that of the last stage. None: by launches of their own.
    viscous_updates: Callable[[Program, BlockState, Sequence[Call]], list[list[Call]]] | None = None

    @property
    def stages(self) -> int:
        """Right-hand sides of a step."""
        return len(self.times)

    @property
    def iterates(self) -> bool:
        """Whether a step is another thing than every stage once, so that it cannot be recorded."""
        return type(self).step is not Integrator.step

    @abstractmethod
    def updates(self, program: Program, state: BlockState) -> list[Call]:
        """The launch that ends each stage, on one block."""

    def prepare(self, program: Program, states: Sequence[BlockState]) -> Callable[[int], None]:
        """What ends a stage, called with its number, on all blocks of this rank."""
        of_states = [self.updates(program, state) for state in states]
        launches = [program.prepare([calls[stage] for calls in of_states]) for stage in range(self.stages)]
        return lambda stage: launches[stage]()

    def step(self, stage: Callable[[int], None]) -> None:
        """One step, in which `stage(n)` is a stage from its right-hand side to the nodes on faces. Raises
        FloatingPointError, on all ranks, where it finds no solution: a smaller step is then tried."""
        for n in range(self.stages):
            stage(n)
