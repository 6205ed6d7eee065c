"""Where a formula of [source] is not finite: the first node, of those whose state is good."""

from types import SimpleNamespace

import numpy as np
import pytest

from hiresx import Case
from hiresx.grid import build
from hiresx.simulation import blow_up_error


def solver(values, source, time=0.25, dt=0.5):
    """Of one block whose primitives are given."""
    case = Case.from_dict(
        {
            "grid": {"generator": "box", "n": [8, 7, 1], "lower": [0, 0, 0], "upper": [7, 6, 0]},
            "time": {"steps": 1, "cfl": 0.5},
            "initial": {"state": {"rho": 1.0, "p": 0.7}},
            "source": source,
            "boundary": [{"faces": "all", "type": "slip-wall"}],
        }
    )
    grid = build(case.grid, None)
    state = SimpleNamespace(block=grid.blocks[0], first=(0, 0, 0), part=SimpleNamespace(whole=0))
    comm = SimpleNamespace(rank=0, allgather=lambda one: [one])
    return SimpleNamespace(
        case=case, states=[state], comm=comm, grid=grid, time=time, dt=dt, primitives=lambda n: dict(values)
    )


def uniform():
    values = {"rho": 1.0, "u": 0.2, "v": 0.0, "w": 0.0, "p": 0.7}
    return {name: np.full((1, 7, 8), value) for name, value in values.items()}


@pytest.mark.parametrize(("key", "bad"), [("rho", 0.0), ("rho", -1.0), ("p", 0.0), ("p", -0.1), ("u", np.nan)])
def test_nodes_whose_state_is_bad_are_not_blamed_on_the_source(key, bad):
    """The first bad rate is that of the node (5, 4): at those before it the state itself is bad, or nothing is."""
    values = uniform()
    values["u"][0, 4, 5] = values["u"][0, 6, 1] = -1.0
    values["u"][0, 2, 3] = -1.0
    values[key][0, 2, 3] = bad
    error = blow_up_error.find_in_source(solver(values, {"e": "sqrt(u)"}))
    assert "node (i, j, k) = (5, 4, 0), (x, y, z) = (5, 4, 0), time 0.25" in error.message and error.node == (5, 4, 0)
    assert 'source.e = "sqrt(u)" is nan' in error.message


@pytest.mark.parametrize(("formula", "time"), [("1/(t - 0.5)", 0.5), ("1/(t - 0.75)", 0.75), ("1/(t - 0.25)", 0.25)])
def test_the_times_of_the_step_that_follows(formula, time):
    error = blow_up_error.find_in_source(solver(uniform(), {"e": formula}))
    assert f"is inf in block 'box' at node (i, j, k) = (0, 0, 0), (x, y, z) = (0, 0, 0), time {time:g}" in error.message


def test_temperature_and_place_and_finite_sources():
    good = solver(uniform(), {"e": "T + x + y"})
    assert blow_up_error.find_in_source(good) is None
    hot = uniform()
    hot["rho"][0, 1, 6] = 0.5  # T = 1.4 * 0.7 / 0.5
    error = blow_up_error.find_in_source(solver(hot, {"e": "sqrt(1 - T)"}))
    assert "node (i, j, k) = (6, 1, 0)" in error.message
