"""Derivatives of numbers of a steady flow by parameters, from one linear equation for each number.

With df/dx as a sparse matrix (hiresx.gradients.jacobian) the equation (df/dx)^T l = (dF/dx)^T of a number F is solved
by the factors of the matrix. For any y near dx/dp

    dF/dp = d/dt F(x + t y, p + t) - l . r(y),    r(y) = d/dt f(x + t y, p + t),    at t = 0,

except for the product of the errors of l and y: N. A. Pierce & M. B. Giles, SIAM Review 42 (2000) 247. y = 0 gives the
plain adjoint derivative, whose error is that of l. Here the same factors give y, so that the errors of the matrix are
squared.
"""

from collections.abc import Sequence

import numpy as np

from hiresx.errors import HiresxError
from hiresx.gradients.flow import Say, SteadyFlow
from hiresx.gradients.jacobian import SparseLinearisation, scipy
from hiresx.gradients.parameters import CaseFamily
from hiresx.gradients.tangent import Differences, TangentSolver
from hiresx.grid.size import host_memory, in_bytes
from hiresx.output.watch.columns import dimension
from hiresx.time.ode_system import Vector

# Bytes of the factors over the number of unknowns to the power 1.5, by dimensions of the grid. In one and two
# dimensions as measured (docs/gradients.md), in three from matrices with a star of three nodes to each side, up to
# 4,096 unknowns.
BYTES = (110, 110, 350)
# The derivative of the flow is improved so far: its error counts times that of the adjoint solution.
DROP = 1e-7


class AdjointSolver(TangentSolver):
    """Solves for the derivatives of the numbers `wanted` of a `flow` that is converged. Raises HiresxError for more
    than one rank, for a flow whose factors do not fit in memory, and as `SparseLinearisation`."""

    drop = DROP
    hint = "the flow is no smooth function of its state there: leave out --adjoint"

    def __init__(self, family: CaseFamily, flow: SteadyFlow, say: Say, wanted: Sequence[str]):
        self._wanted = wanted
        super().__init__(family, flow, say)

    def _prepare(self) -> None:
        _check_size(self._flow, self._system.gather(self._x).size)
        linear = scipy("sparse.linalg")
        self._sparse = SparseLinearisation(self._flow, self._x, self._wanted)
        jacobian = self._sparse.jacobian
        self._say(
            f"the Jacobian: {jacobian.shape[0]} unknowns, {jacobian.nnz / jacobian.shape[0]:.0f} entries in a row"
        )
        self._factors = linear.splu(jacobian.T.tocsc())
        self._say(f"its factors: {self._factors.nnz / 1e6:.1f} million numbers")
        self._adjoint = {name: self._factors.solve(gradient) for name, gradient in self._sparse.gradients.items()}

    def _solve(self) -> int:
        self._sparse.fill(self._factors.solve(-self._unknowns(self._right), trans="T"), self._update)
        return 0

    def _numbers(self, differences: Differences, y: Vector, wanted: Sequence[str]) -> dict[str, float]:
        found = super()._numbers(differences, y, wanted)
        self._tangent_residual(differences, y)
        left = self._unknowns(self._right)
        return {name: value - float(self._adjoint[name] @ left) for name, value in found.items()}

    def _unknowns(self, right: Vector) -> np.ndarray:
        """Return a right-hand side, with 0 for the equation of the circulation, if there is one."""
        values = self._sparse.flat(right)
        return np.pad(values, (0, self._sparse.jacobian.shape[0] - values.size))


def _check_size(flow: SteadyFlow, unknowns: int) -> None:
    """Raises HiresxError for several ranks, and where the factors do not fit in memory."""
    needed = BYTES[dimension(flow.simulation.solver) - 1] * unknowns**1.5
    if flow.comm.size > 1:
        raise HiresxError("adjoint derivatives are computed on one rank", "leave out --adjoint, or start one rank")
    if needed > host_memory():
        raise HiresxError(
            f"the factors of {unknowns:,} adjoint equations take about {in_bytes(int(needed))}, this machine has "
            f"{in_bytes(host_memory())} of memory",
            "leave out --adjoint, or take a grid with fewer nodes",
        )
