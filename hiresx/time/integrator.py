"""The interface of a time integrator, used by the solver, estimates and tables."""

from abc import ABC, abstractmethod
from typing import Any

from hiresx.case import Case
from hiresx.time.ode_system import System


class Integrator(ABC):
    """A time integrator: its method `step` advances a `System` in time. Only the state, the `history` and the `memory`
    pass from one step to the next, so that a run can be stopped and continued between steps.

    - `order`: of accuracy in time.
    - `history`: the number of earlier states that a step needs (`System.earlier`). Checkpoints contain them.
    - `vectors`: the number of vectors that it needs from the system.
    - `registers`: the number of arrays of the size of the state besides q and r, in `registers` of block states.
    - `keeps_start`: whether the state at the start of a step is stored until the step is complete, so that a failed
      step can be repeated.
    - `iterates`: whether the launches of a step depend on its results, so that it cannot be recorded. The system then
      stores the start.
    - `convex`: whether every stage is a convex combination of Euler steps no longer than the step itself, as the
      positivity limiter requires.
    - `cfl`, `viscous_cfl`: the largest stable numbers (docs/numerics.md, "Time"), with linear weights, for pure
      convection and pure diffusion.
    - `stages`: the smallest number of right-hand sides of a step.
    - `implicit`: whether a step solves equations by the matrix blocks of `hiresx.time.linearised.Linearised`.
    - `steady`: whether steps are those of an iteration towards steady flow (`hiresx.time.linearised.Steady`).
    - `memory`: the numbers that pass from one step to the next besides states. Checkpoints contain them.
    - `report`: data on the last step, for run.json.
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
    implicit = False
    steady = False

    @classmethod
    def needed_fields(cls, case: Case) -> dict[str, int]:
        """Return the fields (named arrays at the nodes) that every block of `case` must store because of the time
        integrator: a dictionary from the name to the number of arrays or components."""
        return {"registers": cls.registers, "dt": int(case.time.local)}

    def __init__(self) -> None:
        self.memory: dict[str, float] = {}
        self.report: dict[str, Any] = {}

    @property
    def obstacle(self) -> str:
        """The reason why the last time step found no solution, as the end of a sentence; "" if unknown."""
        return ""

    @property
    def next_step(self) -> float | None:
        """Size of the next time step, in L / c_ref, if the integrator chooses it; None if it follows from the case and
        the flow."""
        return None

    @property
    def converged(self) -> bool:
        """Whether an iteration towards steady flow has converged as far as the case requires."""
        return False

    def prepare(self, system: System) -> None:  # noqa: B027 (most have nothing to prepare)
        """Allocate the vectors and other memory of the integrator before the first step."""

    @abstractmethod
    def step(self, system: System) -> None:
        """Make one time step of the size `system.dt` from `system.time`. The integrator may make a shorter step; its
        size is then stored in `system.dt`. Raises FloatingPointError, on all ranks, if no solution is found; the solver
        then tries a smaller step."""
