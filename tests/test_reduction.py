"""Norms and spectral radii of a block: what NumPy finds, and a NaN anywhere is seen."""

import numpy as np
import pytest

from hiresx.bench import rhs
from hiresx.device import backend
from hiresx.solver import Solver

N = 12


@pytest.fixture(scope="module", params=["cpu", "emulated"])
def solver(request):
    made = Solver(rhs.flow(N, True, "fp64"), backend(request.param))
    made.initialize()
    made.right_hand_side()
    return made


def test_norms(solver):
    state = solver.states[0]
    host = solver.backend.to_host
    rates = state.interior(host(state.r)) * state.interior(host(state.jacobian))
    norms, density, pressure = solver.norms()
    assert norms == pytest.approx(np.sqrt((rates**2).mean(axis=(1, 2, 3))), rel=1e-12)
    flow = solver.primitives(0)
    assert density == flow["rho"].min() and pressure == pytest.approx(flow["p"].min(), rel=1e-14)


@pytest.mark.parametrize("node", [(0, 0, 0), (5, 6, 7), (N - 1, N - 1, N - 1), (0, N - 1, 3)])
def test_a_nan_is_seen(solver, node):
    (state,), (reduction,) = solver.states, solver._reductions
    assert np.isfinite(reduction.radii(1.0)).all()
    good = solver.backend.to_host(state.q)
    bad = good.copy()
    state.interior(bad)[(4, *node)] = np.nan
    solver.backend.copy(state.q, solver.backend.to_device(bad))
    assert np.isnan(reduction.radii(1.0)[0]) and np.isnan(reduction.norms()[2])
    with pytest.raises(FloatingPointError):
        solver.step()
    solver.backend.copy(state.q, solver.backend.to_device(good))
