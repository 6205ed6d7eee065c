"""Singly diagonally implicit Runge-Kutta schemes with an explicit first stage: implicit steps of unsteady flow."""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from hiresx.time.implicit_stages import Solved, Stages
from hiresx.time.ode_system import System

# A step is so much shorter than the estimate of its error would allow, and the ratio of two steps within these bounds.
SAFETY, SHRINK, GROW = 0.9, 0.2, 2.0
# What the errors of a step and of the one before count in the size of the next, over the order: E. Hairer & G. Wanner,
# Solving Ordinary Differential Equations II, section IV.2, eq. (2.43 c).
OF_ERROR, OF_BEFORE = 0.7, 0.4
# An error counts as this share of the tolerance at least.
LEAST = 1e-3
# Repeated steps, at most: an estimate that stays above the tolerance does not come from the size of the step.
REPEATS = 10


def row(*pairs: tuple[int, int]) -> tuple[Fraction, ...]:
    """Return a row of a tableau from numerators and denominators."""
    return tuple(Fraction(*pair) for pair in pairs)


class Tableau(NamedTuple):
    """The numbers of a scheme of s stages: `a`, rows 2 to s of the matrix, each of its numbers left of the diagonal,
    `gamma`, the diagonal of these rows, and `embedded`, the s weights of a scheme of one order less. The last row has
    the weights of the scheme itself, so that it is stiffly accurate."""

    gamma: Fraction
    a: tuple[tuple[Fraction, ...], ...]
    embedded: tuple[Fraction, ...]

    @property
    def times(self) -> list[float]:
        """The time of each stage, over the step."""
        return [0.0, *(float(sum(numbers) + self.gamma) for numbers in self.a)]


class Esdirk(Stages):
    """The stages of `tableau`: stage i at the time c_i dt solves q/(gamma dt) - (q_n/(gamma dt) + sum_(j<i) a_ij k_j /
    gamma) = R(q) with the rates of change k_j = R(q_j); the last one is the state after the step. As all stages have
    one gamma, they have the blocks in common. No earlier step is needed: its size may change at will.

    With `implicit.tolerance` the size of steps follows the error, the norm of the difference between the state and that
    of the embedded scheme over the norm of the state. A step with a larger one is repeated with a shorter dt. `memory`:
    `dt` of the next step, the `error` of the last, and how many were `repeated` in all.

    k_j of a solved stage is taken from its equation, in which what Newton's method left is not multiplied by the
    stiffness. The guess of a stage integrates the polynomial through at most three of the rates before it."""

    tableau: Tableau

    def __init__(self) -> None:
        super().__init__()
        self.vectors = Stages.vectors + len(self.tableau.a)
        self._times = self.tableau.times
        # the error of a step that is repeated
        self._unmet = 0.0

    @property
    def obstacle(self) -> str:
        if not self._unmet:
            return super().obstacle
        return (
            f"; its estimated error stays at {self._unmet:.3g} however short the step, above implicit.tolerance, as "
            "where a condition jumps in time: take a larger tolerance, or a fixed time.dt without one"
        )

    def prepare(self, system: System) -> None:
        self._rates = [system.vector() for _ in self.tableau.a]

    @property
    def next_step(self) -> float | None:
        return self.memory.get("dt")

    def advance(self, system: System) -> list[Solved]:
        if self._linear.settings.tolerance is None:
            return self._stages(system)
        try:
            return self._controlled(system, self._linear.settings.tolerance)
        except FloatingPointError:
            self.memory["dt"] = system.dt / 2
            raise

    def _controlled(self, system: System, tolerance: float) -> list[Solved]:
        """Make a step, or a shorter one, with an error below the tolerance, and choose the size of the next one."""
        found, repeats, first = self._stages(system), 0, system.dt
        while (error := self._error(system)) > tolerance:
            self._unmet = error
            if repeats == REPEATS:
                raise FloatingPointError("the error of a step does not fall with its size")
            repeats += 1
            system.dt *= max(SAFETY * (tolerance / error) ** (1 / self.order), SHRINK)
            self._blocks_of = None
            found += self._stages(system)
        self._unmet = 0.0
        before, wanted = self.memory.get("error", tolerance), self.memory.get("dt", 0.0)
        of_error, of_before = (max(value / tolerance, LEAST) for value in (error, before))
        ratio = SAFETY * (of_error**-OF_ERROR * of_before**OF_BEFORE) ** (1 / self.order)
        # what is repeated does not grow again at once, nor does a step whose error is round-off
        most = 1.0 if repeats or error < 10 * system.epsilon else GROW
        chosen = system.dt * min(max(ratio, SHRINK), most)
        if not repeats and first < wanted:  # it was shortened towards the time of a sample, and so says little
            chosen, error = max(chosen, wanted), before
        self.memory |= {"dt": chosen, "error": error, "repeated": self.memory.get("repeated", 0) + repeats}
        return found

    def _error(self, system: System) -> float:
        """Return the estimated error of the step to `_x`, over the norm of the state at its start."""
        *kept, last = (
            float(own - other)
            for own, other in zip((*self.tableau.a[-1], self.tableau.gamma), self.tableau.embedded, strict=True)
        )
        # the rates of the last stage are not among those that are kept
        system.combine(last / float(self.tableau.gamma), self._x, 0.0, self._work)
        system.axpy(-last * system.dt, self._constant, self._work)
        for weight, rates in zip(kept, self._rates, strict=True):
            system.axpy(weight * system.dt, rates, self._work)
        return system.norm(self._work) / system.norm(self._start)

    def _stages(self, system: System) -> list[Solved]:
        """Solve the stages of a step from `_start`, and leave the state after it in `_x`."""
        gamma, dt, found = float(self.tableau.gamma), system.dt, []
        over_time = 1 / (gamma * dt)
        system.rates(self._start, system.time, self._rates[0])
        for n, numbers in enumerate(self.tableau.a, 1):
            system.combine(over_time, self._start, 0.0, self._constant)
            for factor, rates in zip(numbers, self._rates, strict=False):
                if factor:
                    system.axpy(float(factor) / gamma, rates, self._constant)
            system.copy(self._start, self._x)
            for m, weight in guess_weights(self._times, n).items():
                system.axpy(weight * dt, self._rates[m], self._x)
            found.append(self.solve(system, system.time + self._times[n] * dt, over_time))
            if n < len(self._rates):
                system.combine(over_time, self._x, 0.0, self._rates[n])
                system.axpy(-1.0, self._constant, self._rates[n])
        return found


def guess_weights(times: Sequence[float], stage: int) -> dict[int, float]:
    """Return what the rates of stages before `stage` (from 0) count in the integral from 0 to its time, of the
    polynomial through those of the first stage and of the last two."""
    chosen = sorted({0, *range(max(stage - 2, 0), stage)})
    found = {}
    for m in chosen:
        others = [times[other] for other in chosen if other != m]
        through = np.poly1d(others, r=True) / np.prod([times[m] - other for other in others])
        found[m] = float(np.polyint(through)(times[stage]))
    return found
