"""The backward differentiation formula of second order: implicit steps of unsteady flow, of any size."""

from hiresx.time.implicit_stages import Solved, Stages
from hiresx.time.ode_system import System

# Longer steps, over the one before, are not stable if they follow one another: E. Hairer, S. P. Norsett & G. Wanner,
# Solving Ordinary Differential Equations I, section III.5.
LARGEST_RATIO = 1 + 2**0.5


class Scheme(Stages):
    """Backward differences of second order. If a step is w times as long as the one before, it solves ((1 + 2 w)/(1 +
    w) q - (1 + w) q_n + w^2/(1 + w) q_(n-1))/dt = R(q). The first step, and a step that is much longer than the one
    before, has two stages of order two instead (`Stages.two_stages`). Source: Hairer, Norsett & Wanner, section III.5
    (see the module)."""

    order, history = 2, 1

    def advance(self, system: System) -> list[Solved]:
        if not system.earlier or system.dt > LARGEST_RATIO * system.earlier[0].dt:
            return self.two_stages(system)
        before = system.earlier[0]
        ratio = system.dt / before.dt
        system.copy(self._start, self._x)  # the guess goes on in a straight line
        system.combine(-ratio, before.state, 1 + ratio, self._x)
        system.copy(self._start, self._constant)
        system.combine(
            -(ratio**2) / (1 + ratio) / system.dt, before.state, (1 + ratio) / system.dt, self._constant
        )  # fmt: skip
        return [self.solve(system, system.time + system.dt, (1 + 2 * ratio) / (1 + ratio) / system.dt)]
