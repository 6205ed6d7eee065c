"""Singly diagonally implicit Runge-Kutta schemes with an explicit first stage: implicit steps of unsteady flow."""

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from hiresx.time.implicit_stages import Solved
from hiresx.time.ode_system import System
from hiresx.time.step_control import ControlledStages


def row(*pairs: tuple[int, int]) -> tuple[Fraction, ...]:
    """Return one row of a Butcher tableau as exact fractions. `pairs`: (numerator, denominator) of each entry."""
    return tuple(Fraction(*pair) for pair in pairs)


class Tableau(NamedTuple):
    """The coefficients of a scheme of s stages. `a`: rows 2 to s of the matrix, each with its entries left of the
    diagonal. `gamma`: the diagonal entry of these rows. `embedded`: the s weights of the embedded scheme, whose order
    is lower by one. The last row has the weights of the scheme itself, so that it is stiffly accurate."""

    gamma: Fraction
    a: tuple[tuple[Fraction, ...], ...]
    embedded: tuple[Fraction, ...]

    @property
    def times(self) -> list[float]:
        """Times of the stages of the Runge-Kutta scheme, as fractions of the step."""
        return [0.0, *(float(sum(numbers) + self.gamma) for numbers in self.a)]


class Esdirk(ControlledStages):
    """Base class of the ESDIRK schemes (explicit first stage, singly diagonally implicit Runge-Kutta), with the
    coefficients `tableau`. Stage i at the time c_i dt solves q/(gamma dt) - (q_n/(gamma dt) + sum_(j<i) a_ij k_j /
    gamma) = R(q) with the rates of change k_j = R(q_j); the result of the last stage is the state after the step. All
    stages have the same gamma and so use the same matrix blocks. No earlier step is needed, so that the size of steps
    may change freely. k_j of a solved stage is computed from the equation of the stage: R(q_j) would multiply the
    remaining residual of Newton's method by the stiffness. The initial guess of a stage is the integral of the
    polynomial through at most three of the earlier rates."""

    tableau: Tableau

    def __init__(self) -> None:
        super().__init__()
        self.vectors = ControlledStages.vectors + len(self.tableau.a)
        self._times = self.tableau.times
        self.error_order = self.order

    def prepare(self, system: System) -> None:
        """Allocate the vectors for the rates of change of the stages. `system`: the flow equations, which provide the
        vectors."""
        self._rates = [system.vector() for _ in self.tableau.a]

    def estimate(self, system: System) -> bool:
        """Compute the estimated error of the step, the difference between the new states of the scheme and of the
        embedded scheme, and store it in the attribute `_work`, a vector. Return True, since there is an estimate for
        every step."""
        *kept, last = (
            float(own - other)
            for own, other in zip((*self.tableau.a[-1], self.tableau.gamma), self.tableau.embedded, strict=True)
        )
        # the rates of the last stage are not stored
        system.combine(last / float(self.tableau.gamma), self._x, 0.0, self._work)
        system.axpy(-last * system.dt, self._constant, self._work)
        for weight, rates in zip(kept, self._rates, strict=True):
            system.axpy(weight * system.dt, rates, self._work)
        return True

    def solve_step(self, system: System) -> list[Solved]:
        """Make a step of the size `system.dt` by solving one stage after the other, and return the result of each
        solved stage. The attribute `_start` contains the state before the step, and `_x` the state after it on
        return."""
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
    """Return the weights of the rates of change of earlier stages in the initial guess of stage number `stage` (from
    0), as a dictionary from the number of the earlier stage. By these weights, the polynomial through the rates of the
    first stage and of the last two before `stage` is integrated from the start of the step to the time of the stage;
    they are to be multiplied by the size of the step. `times`: the times of the stages, as fractions of the step."""
    chosen = sorted({0, *range(max(stage - 2, 0), stage)})
    found = {}
    for m in chosen:
        others = [times[other] for other in chosen if other != m]
        through = np.poly1d(others, r=True) / np.prod([times[m] - other for other in others])
        found[m] = float(np.polyint(through)(times[stage]))
    return found
