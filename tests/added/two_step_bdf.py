"""The backward differentiation formula of second order, with steps of any size."""

from hiresx.time.integrators import implicit_euler


class TwoStepBdf(implicit_euler.ImplicitEuler):
    """E. Hairer, S. P. Norsett & G. Wanner, Solving Ordinary Differential Equations I, section III.5; the first step is
    one of backward Euler."""

    order, history = 2, 1

    def step(self, system):
        if not system.earlier:
            return super().step(system)
        (before,) = system.earlier
        ratio = system.dt / before.dt
        share = 1 / (1 + 2 * ratio)
        system.state(self.base)
        system.combine(-(ratio**2) * share, before.state, (1 + ratio) ** 2 * share, self.base)
        self.solve(system, (1 + ratio) * share * system.dt)
