"""Sizes of implicit steps that follow the error of a step, as an integrator estimates it."""

from abc import abstractmethod

from hiresx.time.implicit_stages import Solved, Stages
from hiresx.time.ode_system import System

# Safety factor of the step with respect to the estimate of its error, and bounds of the ratio of two steps.
SAFETY, SHRINK, GROW = 0.9, 0.2, 2.0
# Exponents, times the order, of the errors of a step and of the previous one in the size of the next: E. Hairer & G.
# Wanner, Solving Ordinary Differential Equations II, section IV.2, eq. (2.43 c).
OF_ERROR, OF_BEFORE = 0.7, 0.4
# Least error, as a fraction of the tolerance.
LEAST = 1e-3
# Largest number of repetitions of a step: an estimate that stays above the tolerance is not caused by the size of the
# step.
REPEATS = 10


class ControlledStages(Stages):
    """Base class of the implicit integrators with control of the step size. With the key `implicit.tolerance` the size
    of a step depends on its error, divided by the norm of the state at its start. A step with a larger error than the
    tolerance is repeated with a smaller dt. `memory`: `dt` of the next step, the `error` of the last one, and
    `repeated`, the number of repeated steps. `error_order`: the power of the step size to which the error of a step is
    proportional."""

    error_order: int

    def __init__(self) -> None:
        super().__init__()
        # The error of a repeated step and its former size: they explain a later failure, until steps grow again.
        self._unmet = self._shortened = 0.0

    @property
    def obstacle(self) -> str:
        """The reason why the last step found no solution, as the end of a sentence; "" if unknown."""
        if not self._unmet:
            return super().obstacle
        return (
            f"; its estimated error stays at {self._unmet:.3g} however short the step, above implicit.tolerance, as "
            "where a condition jumps in time: take a larger tolerance, or a fixed time.dt without one"
        )

    @property
    def next_step(self) -> float | None:
        """Size of the next time step, in L / c_ref, chosen from the estimated error; None without a tolerance."""
        # a restart may have removed the tolerance
        return None if self._linear.settings.tolerance is None else self.memory.get("dt")

    @abstractmethod
    def solve_step(self, system: System) -> list[Solved]:
        """Make a step of the size `system.dt`, whatever its error, and return the result of each stage. The attribute
        `_start` contains the state before the step, and `_x` the state after it on return."""

    @abstractmethod
    def estimate(self, system: System) -> bool:
        """Estimate the error of the step that led to the state in the attribute `_x`, and store it in the attribute
        `_work`, a vector. Return False, with `_work` undefined, if the method has no estimate yet, for instance in its
        first step. `system`: the equations, with operations on vectors."""

    def _error(self, system: System) -> float | None:
        """Return the estimated error of the step, divided by the norm of the state at its start, if there is an
        estimate."""
        return system.norm(self._work) / system.norm(self._start) if self.estimate(system) else None

    def advance(self, system: System) -> list[Solved]:
        """Make a step, repeated with a smaller size as long as its error exceeds the tolerance of the case, and return
        the result of each stage, including those of repeated steps. `system.dt` becomes the size of the accepted step.
        The attribute `_start` contains the state before the step, and `_x` the state after it on return. Raises
        FloatingPointError, on all ranks, if no solution is found or the error does not fall."""
        if self._linear.settings.tolerance is None:
            return self.solve_step(system)
        try:
            return self._step_by_tolerance(system, self._linear.settings.tolerance)
        except FloatingPointError:
            self.memory["dt"] = system.dt / 2
            raise

    def _step_by_tolerance(self, system: System, tolerance: float) -> list[Solved]:
        """Make a step, or a shorter one, with an error below the tolerance, and choose the size of the next one."""
        found, repeats, first = self.solve_step(system), 0, system.dt
        while (error := self._error(system)) is not None and error > tolerance:
            self._unmet = error
            if repeats == REPEATS:
                raise FloatingPointError("the error of a step does not fall with its size")
            repeats += 1
            system.dt *= max(SAFETY * (tolerance / error) ** (1 / self.error_order), SHRINK)
            self._blocks_of = None
            found += self.solve_step(system)
        if repeats:
            self._shortened = system.dt
        elif system.dt > GROW * self._shortened:
            self._unmet = 0.0
        self.memory["repeated"] = self.memory.get("repeated", 0) + repeats
        # a step that was shortened to end at the time of a sample does not represent the flow
        if error is not None and (repeats or first >= self.memory.get("dt", 0.0)):
            before = max(self.memory.get("error", tolerance) / tolerance, LEAST)
            ratio = max(error / tolerance, LEAST) ** -OF_ERROR * before**OF_BEFORE
            # a repeated step does not grow at once, nor does a step whose error is round-off
            most = 1.0 if repeats or error < 10 * system.epsilon else GROW
            self.memory["dt"] = system.dt * min(max(SAFETY * ratio ** (1 / self.error_order), SHRINK), most)
            self.memory["error"] = error
        return found
