"""Flexible GMRES, and the products and sums of many vectors that it is made of."""

import numpy as np
import pytest
from test_system import OnArrays

from hiresx import load
from hiresx.device import backend
from hiresx.solver import Solver
from hiresx.time.gmres import FlexibleGmres, PreconditionedGmres, PreconditionerAlone
from hiresx.time.ode_system import Vector

SIZE = 40


class LongVectors(OnArrays):
    def vector(self) -> Vector:
        return Vector([np.zeros(SIZE)])


@pytest.mark.parametrize("spread", [1.0, 1e-4, 1e-8])
def test_the_residual_that_it_reports_is_that_of_its_solution(spread):
    """Also where what a product adds to the vectors before is small beside it: a single pass of Gram and Schmidt's
    classical method would leave vectors that are not orthogonal, and report another residual."""
    rng = np.random.default_rng(3)
    system = LongVectors()
    matrix = np.eye(SIZE) + spread * rng.normal(size=(SIZE, SIZE)) / np.sqrt(SIZE)
    right, found = Vector([rng.normal(size=SIZE)]), system.vector()

    def product(x: Vector, y: Vector) -> None:
        y.arrays[0][:] = matrix @ x.arrays[0]

    gmres = FlexibleGmres(system, SIZE)
    left, count = gmres(product, system.copy, right, 1e-13 * spread, found)
    residual = np.linalg.norm(right.arrays[0] - matrix @ found.arrays[0]) / np.linalg.norm(right.arrays[0])
    basis = np.array([vector.arrays[0] for vector in gmres._basis[:count]])
    np.testing.assert_allclose(basis @ basis.T, np.eye(count), atol=1e-12)
    assert abs(residual - left) < 1e-14 and residual < 1e-12


def test_the_preconditioned_residual_is_what_it_lowers():
    rng = np.random.default_rng(5)
    system = LongVectors()
    matrix = 2 * np.eye(SIZE) - np.eye(SIZE, k=1) - np.eye(SIZE, k=-1)
    inverse = (np.eye(SIZE) + 0.3 * rng.normal(size=(SIZE, SIZE)) / np.sqrt(SIZE)) @ np.linalg.inv(matrix)
    right, found = Vector([rng.normal(size=SIZE)]), system.vector()

    def product(x: Vector, y: Vector) -> None:
        y.arrays[0][:] = matrix @ x.arrays[0]

    def precondition(x: Vector, y: Vector) -> None:
        y.arrays[0][:] = inverse @ x.arrays[0]

    left, count = PreconditionedGmres(system, SIZE)(product, precondition, right, 1e-3, found)
    # The least of all vectors of the space.
    space = [inverse @ right.arrays[0]]
    for _ in range(count - 1):
        space.append(inverse @ (matrix @ space[-1]))
    least = np.linalg.lstsq(inverse @ matrix @ np.array(space).T, space[0], rcond=None)[1]
    residual = np.linalg.norm(inverse @ (right.arrays[0] - matrix @ found.arrays[0]))
    assert residual == pytest.approx(np.sqrt(least.item()), rel=1e-6)
    assert left == pytest.approx(residual / np.linalg.norm(space[0]), rel=1e-9) and left <= 1e-3


@pytest.mark.parametrize("where", ["cpu", pytest.param("emulated", marks=pytest.mark.slow)])
def test_products_and_sums_of_many_vectors_are_those_of_each(where):
    """More of them than are summed at once, and the last of these alone."""
    solver = Solver(load("isentropic-vortex", overrides=["grid.n=[13,11,1]"]), backend(where))
    solver.initialize()
    system, rng = solver.system, np.random.default_rng(7)
    count = 17
    basis, x = system.basis(count), system.vector()
    values = rng.normal(size=(count + 1, system.gather(x).size))
    for vector, numbers in zip([*basis, x], values, strict=True):
        system.scatter(numbers, vector)
    for some in (1, 8, 9, count):
        np.testing.assert_allclose(system.products(basis, some, x), values[:some] @ values[-1], rtol=0, atol=1e-11)
        weights = rng.normal(size=some)
        wanted = system.gather(x) + weights @ values[:some]
        system.add_sum(weights, basis, x)
        np.testing.assert_allclose(system.gather(x), wanted, rtol=0, atol=1e-12)
        system.scatter(values[-1], x)


def test_an_update_by_the_preconditioner_alone_that_is_not_finite_is_none():
    system, right = LongVectors(), Vector([np.full(SIZE, np.nan)])
    with pytest.raises(FloatingPointError, match="not finite"):
        PreconditionerAlone(system, 0)(system.copy, system.copy, right, 0.1, system.vector())
