"""Scalar products of vectors: sums over pieces of columns."""

import numpy as np

from hiresx import Case, Simulation


def test_scalar_products_are_those_of_numpy():
    """11 nodes along k make three pieces, the last one of three nodes, 9 nodes along i are no whole packs."""
    grid = {"generator": "box", "n": [9, 7, 11], "lower": [0, 0, 0], "upper": [1, 1, 1]}
    state = {"rho": 1.0, "u": 0.1, "v": 0.0, "w": 0.0, "p": 1 / 1.4}
    case = Case.from_dict({
        "grid": grid,
        "time": {"integrator": "implicit", "steps": 1},
        "initial": {"state": state},
        "boundary": [{"faces": "all", "type": "far-field", "state": state}],
    })  # fmt: skip
    system = Simulation(case, "cpu").solver.system
    random = np.random.default_rng(1)
    basis, x = system.basis(10), system.vector()
    values = random.standard_normal((11, 5 * 9 * 7 * 11))
    for own, vector in zip(values, [*basis, x], strict=True):
        system.scatter(own, vector)
    np.testing.assert_allclose(system.products(basis, 10, x), values[:10] @ values[10], rtol=1e-12)
    np.testing.assert_allclose(system.dot(basis[3], x), values[3] @ values[10], rtol=1e-12)
