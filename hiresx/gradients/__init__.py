"""Derivatives of forces and other results of a steady flow with respect to keys of its case.

`parameters`: keys and the cases with other values of them. `numbers`: the results that can be differentiated. `flow`: a
case with its converged flow and its residual. `tangent`: the derivative of the flow by one parameter, from linear
equations. `adjoint`: derivatives of results by many parameters, from one linear equation for each result. `jacobian`:
the matrix of these equations, by differences of groups of nodes (`colouring`). `sparse_solver`: their solution, by
factors of the matrix (`fronts`) or by GMRES. `forward`: the derivatives by several parameters, one after another.
"""

from hiresx.gradients.forward import Gradient, gradient

__all__ = ["Gradient", "gradient"]
