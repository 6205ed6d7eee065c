"""The backward differentiation formula of second order: implicit steps of unsteady flow, of any size."""

import itertools
import math
from collections.abc import Sequence

from hiresx.time.implicit_stages import Solved, Stages
from hiresx.time.ode_system import System

# Steps of unsteady flow, as hiresx.case.implicit reads here.
UNSTEADY = True
# Longer steps, over the one before, are not stable if they follow one another: E. Hairer, S. P. Norsett & G. Wanner,
# Solving Ordinary Differential Equations I, section III.5.
LARGEST_RATIO = 1 + 2**0.5
# A step is solved where its residual is this share of that of the guess.
OF_GUESS = 0.03


class Scheme(Stages):
    """With steps of w times the one before, ((1 + 2 w)/(1 + w) q - (1 + w) q_n + w^2/(1 + w) q_(n-1))/dt = R(q): the
    same book, section III.5. The first step, and one that is much longer than the one before, has two stages of order
    two (`Stages.two_stages`).

    The guess continues the last three states by a parabola. With equal steps it is off by h^3 times the third
    derivative, of which the error of the step is two ninths, so that `OF_GUESS` of its residual is about a seventh of
    what the error in time makes."""

    order, history = 2, 2

    def advance(self, system: System) -> list[Solved]:
        if not system.earlier or system.dt > LARGEST_RATIO * system.earlier[0].dt:
            return self.two_stages(system)
        before = system.earlier[0]
        ratio = system.dt / before.dt
        own, *others = continued(system.dt, [step.dt for step in system.earlier])
        system.combine(own, self._start, 0.0, self._x)
        for factor, step in zip(others, system.earlier, strict=True):
            system.axpy(factor, step.state, self._x)
        system.copy(self._start, self._constant)
        system.combine(
            -(ratio**2) / (1 + ratio) / system.dt, before.state, (1 + ratio) / system.dt, self._constant
        )  # fmt: skip
        over_time = (1 + 2 * ratio) / (1 + ratio) / system.dt
        return [self.solve(system, system.time + system.dt, over_time, OF_GUESS if len(system.earlier) > 1 else 0.0)]


def continued(dt: float, sizes: Sequence[float]) -> list[float]:
    """Return the factors of the last states, the last one first, in their polynomial's value `dt` after the last one.
    `sizes`: of the steps between them, the last one first."""
    times = [0.0, *(-total for total in itertools.accumulate(sizes))]
    return [
        math.prod((dt - other) / (own - other) for m, other in enumerate(times) if m != n)
        for n, own in enumerate(times)
    ]
