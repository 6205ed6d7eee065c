"""Derivatives of numbers of a steady flow by parameters, from one linear equation for each number.

With df/dx as a sparse matrix (hiresx.gradients.jacobian) the equation (df/dx)^T l = (dF/dx)^T of a number F is solved
(hiresx.gradients.sparse_solver). For any y near dx/dp

    dF/dp = d/dt F(x + t y, p + t) - l . r(y),    r(y) = d/dt f(x + t y, p + t),    at t = 0,

except for the product of the errors of l and y: N. A. Pierce & M. B. Giles, SIAM Review 42 (2000) 247. y = 0 gives the
plain adjoint derivative, whose error is that of l. Here the same matrix gives y, so that its errors are squared.
"""

from collections.abc import Sequence

import numpy as np

from hiresx.gradients.flow import Say, SteadyFlow
from hiresx.gradients.jacobian import SparseLinearisation
from hiresx.gradients.parameters import CaseFamily
from hiresx.gradients.sparse_solver import Factors, Iterative, solver_of
from hiresx.gradients.tangent import Differences, TangentSolver
from hiresx.output.watch.columns import dimension
from hiresx.time.ode_system import Vector

# The derivative of the flow is improved so far, and until the product of the errors of both solutions is so small.
DROP, PRODUCT = 1e-7, 1e-12
# In extended precision both are less by this factor: a derivative that is small beside those of other numbers needs it.
FURTHER = 1e-5
# Assumed relative error of an adjoint solution where GMRES computes the derivative of the flow: in three dimensions,
# where small entries of the matrix are left out, and without factors of the whole matrix.
ITERATIVE = 0.1


class AdjointSolver(TangentSolver):
    """Solver for the derivatives of the results `wanted` of a converged `flow` by the adjoint method. `family`: the
    case with variable keys. `say`: a function that is called with lines about the progress. `extended`: whether the
    residual is computed in extended precision. Rank 0 stores the matrix and solves. Raises HiresxError for a flow whose
    factors do not fit in memory, and as `SparseLinearisation`."""

    drop, further = DROP, FURTHER
    hint = "the flow is no smooth function of its state there: leave out --adjoint"

    def __init__(self, family: CaseFamily, flow: SteadyFlow, say: Say, wanted: Sequence[str], extended: bool = False):
        self._wanted = wanted
        super().__init__(family, flow, say, extended)

    def _prepare(self) -> None:
        flow, comm = self._flow, self._flow.comm
        self._sparse = SparseLinearisation(flow, self._x, self._wanted)
        jacobian, found, iterative = self._sparse.jacobian, {}, False
        with comm.together():
            if jacobian is not None:
                rows = jacobian.shape[0]
                self._say(f"the Jacobian: {rows} unknowns, {jacobian.nnz / rows:.0f} entries in a row")
                dimensions = dimension(flow.simulation.solver)
                solver = solver_of(jacobian, self._sparse.variables, dimensions, self._say)
                self._say(solver.about)
                found = {name: solver.adjoint(gradient) for name, gradient in self._sparse.gradients.items()}
                iterative, self._solver = dimensions == 3 or isinstance(solver, Iterative), solver
        self._adjoint, self._iterative = comm.bcast((found, iterative))
        if self._iterative:
            super()._prepare()

    def _is_solved(self, left: float, before: float) -> bool:
        """True where the derivative of the flow is so near that the product of its error and that of the adjoint
        solution is small. The factor by which factors have lowered the residual tells the error of the matrix."""
        drop, product = self.drop * self._further, PRODUCT * self._further
        return left <= drop and left * (ITERATIVE if self._iterative else left / before) <= product

    def _solve(self) -> tuple[float, int]:
        if self._iterative:
            return super()._solve()
        self._precondition(self._right, self._update)
        return 0.0, 0

    def _precondition(self, x: Vector, into: Vector) -> None:
        right, found = -self._unknowns(x), None
        with self._flow.comm.together():
            if self._flow.comm.root:
                if isinstance(self._solver, Factors) and not self._iterative:
                    found = self._solver.direct(right)
                else:
                    found = self._solver.roughly(right)
        self._sparse.fill(self._flow.comm.bcast(found), into)

    def _numbers(self, differences: Differences, y: Vector, wanted: Sequence[str]) -> dict[str, float]:
        found = super()._numbers(differences, y, wanted)
        self._tangent_residual(differences, y)
        left = self._unknowns(self._right)
        return {name: value - float(self._adjoint[name] @ left) for name, value in found.items()}

    def _unknowns(self, right: Vector) -> np.ndarray:
        """Return a right-hand side, with 0 for the equation of the circulation, if there is one."""
        values = self._sparse.flat(right)
        return np.pad(values, (0, self._sparse.unknowns - values.size))
