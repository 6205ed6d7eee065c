"""The backward differentiation formula of second order: implicit steps of unsteady flow, of any size."""

import itertools
import math
from collections.abc import Sequence

from hiresx.time.implicit_stages import Solved
from hiresx.time.ode_system import System, Vector
from hiresx.time.step_control import ControlledStages

# Marks an integrator of unsteady flow; hiresx.case.implicit_table searches for this line.
UNSTEADY = True
# Consecutive steps that are longer than this multiple of the step before are unstable: E. Hairer, S. P. Norsett & G.
# Wanner, Solving Ordinary Differential Equations I, section III.5.
LARGEST_RATIO = 1 + 2**0.5
# A step is solved if its residual is this fraction of that of the initial guess.
OF_GUESS = 0.03


class Bdf2(ControlledStages):
    """The backward differentiation formula of second order. w is the size of a step divided by that of the previous
    step. A step solves ((1 + 2 w)/(1 + w) q - (1 + w) q_n + w^2/(1 + w) q_(n-1))/dt = R(q). Source: E. Hairer, S. P.
    Norsett & G. Wanner, Solving Ordinary Differential Equations I, section III.5. The first step, and one that is much
    longer than the previous one, has two stages of order two (`Stages.two_stages`).

    The initial guess is extrapolated from the last three states by a parabola. With equal steps h its error is h^3
    times the third derivative, and the error of the step is two ninths of that. A residual of `OF_GUESS` times that of
    the guess is therefore about a seventh of the residual that corresponds to the error in time.
    """

    order, history, error_order = 2, 2, 3

    def solve_step(self, system: System) -> list[Solved]:
        """Make a step of the size `system.dt` by the second-order backward differentiation formula, and return the
        result of each stage. The attribute `_start` contains the state before the step, and `_x` the state after it on
        return."""
        if self._too_long(system):
            return self.two_stages(system)
        before = system.earlier[0]
        ratio = system.dt / before.dt
        self._continue(system, self._x)
        system.copy(self._start, self._constant)
        system.combine(
            -(ratio**2) / (1 + ratio) / system.dt, before.state, (1 + ratio) / system.dt, self._constant
        )  # fmt: skip
        over_time = (1 + 2 * ratio) / (1 + ratio) / system.dt
        return [self.solve(system, system.time + system.dt, over_time, OF_GUESS if len(system.earlier) > 1 else 0.0)]

    def _too_long(self, system: System) -> bool:
        return not system.earlier or system.dt > LARGEST_RATIO * system.earlier[0].dt

    def _continue(self, system: System, into: Vector) -> None:
        """Set a vector to the guess of the state after the step, extrapolated from the last states."""
        own, *others = extrapolation_weights(system.dt, [step.dt for step in system.earlier])
        system.combine(own, self._start, 0.0, into)
        for factor, step in zip(others, system.earlier, strict=True):
            system.axpy(factor, step.state, into)

    def estimate(self, system: System) -> bool:
        """Compute the estimated error of the step, store it in the attribute `_work`, a vector, and return True; return
        False without an estimate, if there are too few earlier steps or this step is much longer than the previous one.
        The error is a fraction of the difference between the new state and the initial guess, which is extrapolated by
        a parabola through three states. The leading errors of both are multiples of the third derivative with known
        factors (Milne's device)."""
        if self._too_long(system) or len(system.earlier) < 2:
            return False
        self._continue(system, self._work)
        share = error_ratio(system.dt, [step.dt for step in system.earlier])
        system.combine(share, self._x, -share, self._work)
        return True


def error_ratio(dt: float, sizes: Sequence[float]) -> float:
    """Return the ratio of the error of a BDF2 step of size `dt` to the difference between its result and the value
    extrapolated by the parabola through the last three states. Both are computed for the function t^3, where t = 0 is
    the start of the step. `sizes`: sizes of the two previous steps, the latest first."""
    before, ratio = sizes[0], dt / sizes[0]
    solved = (3 * dt**3 - ratio**2 / (1 + ratio) * -(before**3)) * (1 + ratio) / (1 + 2 * ratio)
    guess = extrapolation_weights(dt, sizes)[1:]
    guessed = guess[0] * -(before**3) + guess[1] * -((before + sizes[1]) ** 3)
    return (dt**3 - solved) / (solved - guessed)


def extrapolation_weights(dt: float, sizes: Sequence[float]) -> list[float]:
    """Return the weights of known states, the latest first, by which the polynomial through them is extrapolated to the
    time `dt` after the latest. `sizes`: the n sizes of the steps between n + 1 states, the latest first."""
    times = [0.0, *(-total for total in itertools.accumulate(sizes))]
    return [
        math.prod((dt - other) / (own - other) for m, other in enumerate(times) if m != n)
        for n, own in enumerate(times)
    ]
