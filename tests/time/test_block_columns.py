"""Blocks that GPUs make for sweeps in FP32 (kernels/implicit/block_columns.h)."""

import numpy as np
import pytest
from matrix_free import off, swept

from hiresx.case import load
from hiresx.device import backend
from hiresx.solver import Solver

CHOICES = [
    ("fp32", "steger_warming", {}),
    pytest.param("int8", "hllc", {"viscous": False, "space": False}, marks=pytest.mark.slow),
    pytest.param("fp16", "roe", {"model": "sst"}, marks=pytest.mark.slow),
    pytest.param("none", "steger_warming", {"lines": "j", "model": "spalart_allmaras"}, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("storage", "flux", "choices"), CHOICES)
def test_sweeps_with_them_are_those_of_a_cpu(storage, flux, choices):
    """To the rounding of FP32."""
    one, other = (swept(where, storage, flux, precision="fp32", **choices) for where in ("cpu", "emulated"))
    assert np.abs(one).max() > 1e-2
    assert off(other, one) < 2e-5


def test_where_eigenvalues_are_0():
    """In the Taylor-Green vortex, whose velocity along a direction is 0 on planes of nodes, on a grid whose faces have
    areas along one direction alone: derivatives of split fluxes are not continuous there."""
    one, other = (_in_vortex(where) for where in ("cpu", "emulated"))
    assert np.abs(one).max() > 1e-4
    assert off(other, one) < 2e-5


def _in_vortex(where: str) -> np.ndarray:
    """What sweeps make of the change of an explicit step."""
    case = load(
        "taylor-green",
        overrides=[
            "grid.n=[8,8,8]", 'scheme.precision="fp64"', 'scheme.flux="steger_warming"', 'time.integrator="bdf2"',
            'implicit.lines="none"', 'implicit.sweep_precision="fp32"',
        ],
    )  # fmt: skip
    solver = Solver(case, backend(where))
    solver.initialize()
    linear, system = solver.integrator.linearised, solver.system
    x, right, found = (system.vector() for _ in range(3))
    system.state(x)
    linear.begin()
    linear.change(x, right)
    linear.assemble(x, 0.01)
    linear.precondition(right, found)
    return np.concatenate([
        s.interior(solver.backend.to_host(array)).reshape(5, -1)
        for s, array in zip(solver.states, found.arrays, strict=True)
    ], axis=1)  # fmt: skip
