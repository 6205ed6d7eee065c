"""Norms and spectral radii of a block: what NumPy finds, and a NaN anywhere is seen, the last node's too."""

import numpy as np
import pytest

from hiresx import load
from hiresx.bench import rhs
from hiresx.device import backend
from hiresx.solver import Solver
from hiresx.time.reduction import THREADS

# More columns than the device's last pass has threads, and no multiple of them.
N = 34


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


def test_norms_of_unequal_blocks_are_those_of_all_nodes():
    made = Solver(load("shock-diffraction", preset="quick"), backend("cpu"))
    made.initialize()
    made.right_hand_side()
    assert len({state.size for state in made.states}) > 1
    rates = [(state.interior(state.r) * state.interior(state.jacobian)).reshape(5, -1) for state in made.states]
    flows = [made.primitives(n) for n in range(len(made.states))]
    norms, *least = made.norms()
    assert norms == pytest.approx(np.sqrt((np.concatenate(rates, axis=1) ** 2).mean(axis=1)), rel=1e-12)
    assert least == pytest.approx([min(flow[name].min() for flow in flows) for name in ("rho", "p")], rel=1e-14)


def test_there_are_no_rates_before_the_first_right_hand_side():
    made = Solver(rhs.flow(N, True, "fp64"), backend("cpu"))
    made.initialize()
    norms, density, pressure = made.norms()
    assert np.isnan(norms).all() and density > 0 and pressure > 0


def test_there_are_more_columns_than_threads():
    assert N * N > THREADS and N * N % THREADS


@pytest.mark.parametrize("node", [(0, 0, 0), (5, 6, 7), (N - 1, N - 1, N - 1), (2, N - 1, N - 1)])
def test_the_least_and_the_largest_may_be_anywhere(solver, node):
    (state,) = solver.states
    good = solver.backend.to_host(state.q)
    radii = solver.step_size.radii()
    spot = good.copy()
    state.interior(spot)[(0, *node)] *= 0.1  # light: fast sound, quick diffusion
    state.interior(spot)[(4, *node)] *= 0.9
    solver.backend.copy(state.q, solver.backend.to_device(spot))
    flow, found = solver.primitives(0), solver.norms()[1:]
    assert found == pytest.approx((flow["rho"].min(), flow["p"].min()), rel=1e-14)
    assert flow["rho"].argmin() == flow["p"].argmin() == np.ravel_multi_index(node, flow["p"].shape)
    assert all(now > 1.5 * before for now, before in zip(solver.step_size.radii(), radii, strict=True))
    solver.backend.copy(state.q, solver.backend.to_device(good))


@pytest.mark.parametrize("node", [(0, 0, 0), (5, 6, 7), (N - 1, N - 1, N - 1), (0, N - 1, 3), (4, N - 1, N - 1)])
def test_a_nan_is_seen(solver, node):
    (state,) = solver.states
    assert np.isfinite(solver.step_size.radii()).all()
    good = solver.backend.to_host(state.q)
    bad = good.copy()
    state.interior(bad)[(4, *node)] = np.nan
    solver.backend.copy(state.q, solver.backend.to_device(bad))
    assert np.isnan(solver.step_size.radii()[0]) and np.isnan(solver.norms()[2])
    with pytest.raises(FloatingPointError):
        solver.step()
    solver.backend.copy(state.q, solver.backend.to_device(good))
