"""What a time integrator is: the one thing that the solver, estimates and tables know of it."""

from abc import ABC, abstractmethod

from hiresx.time.ode_system import System


class Integrator(ABC):
    """How the state goes from one time to the next: `step`, of a `System`. What goes from one step to the next is the
    state and the `history`, and nothing else, so that a run can be stopped and go on there.

    `order`: of accuracy in time. `history`: earlier states that a step asks for (`System.earlier`); checkpoints hold
    them. `vectors`: how many vectors it asks the system for. `registers`: arrays of the size of the state besides q and
    r; block states have them as `registers`. `keeps_start`: whether the state with which a step began is there until
    the step is done: steps that fail can then be taken again. `iterates`: whether the launches of a step depend on what
    it finds, so that it cannot be recorded; the system then keeps the start. `convex`: whether every stage is a convex
    combination of Euler steps no longer than the step itself, which the positivity limiter asks for. `cfl`,
    `viscous_cfl`: the numbers (as of docs/numerics.md, "Time") up to which it is stable, with linear weights, for pure
    convection and pure diffusion. `stages`: right-hand sides of a step, at least.
    """

    order: int
    cfl: float
    viscous_cfl: float
    history = 0
    vectors = 0
    registers = 0
    keeps_start = True
    iterates = True
    convex = False
    stages = 1

    def prepare(self, system: System) -> None:  # noqa: B027 (most have nothing to prepare)
        """What is made once, before the first step: vectors, for one."""

    @abstractmethod
    def step(self, system: System) -> None:
        """One step of `system.dt` from `system.time` on. Raises FloatingPointError, on all ranks, where it finds no
        solution: a smaller step is then tried."""
