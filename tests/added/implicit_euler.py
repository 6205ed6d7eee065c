"""Backward Euler: Newton's method, with SciPy's GMRES and products with the Jacobian by finite differences."""

import numpy as np
from scipy.sparse.linalg import LinearOperator, gmres

from hiresx.time.integrator import Integrator


class ImplicitEuler(Integrator):
    """q = C(q0 + dt R(q)), with the conditions C at the nodes of faces."""

    order, vectors = 1, 6
    cfl = viscous_cfl = np.inf

    def prepare(self, system):
        self.state, self.base, self.rest, self.along, self.change = (system.vector() for _ in range(5))

    def step(self, system):
        system.state(self.base)
        self.solve(system, system.dt)

    def solve(self, system, dt):
        """The state becomes the solution of q = C(base + dt R(q))."""
        end = system.time + system.dt
        system.state(self.state)

        def residual(x, into):
            system.rates(x, end, into)
            system.scale(dt, into)
            system.axpy(1.0, self.base, into)
            system.impose(into, end)
            system.axpy(-1.0, x, into)

        def product(values):
            system.scatter(values, self.along)
            system.derivative(residual, self.state, self.rest, self.along, self.change)
            return system.gather(self.change)

        for _ in range(12):
            residual(self.state, self.rest)
            if system.norm(self.rest) < 1e-12 * system.norm(self.state):
                system.accept(self.state, end)
                return
            right = -system.gather(self.rest)
            jacobian = LinearOperator((right.size, right.size), matvec=product)
            found, _ = gmres(jacobian, right, rtol=1e-3, restart=30, maxiter=2)
            system.scatter(found, self.change)
            system.axpy(1.0, self.change, self.state)
        raise FloatingPointError("no solution was found")
