"""Line-implicit sweeps, and the blocks at outflows."""

import numpy as np
import pytest
from sweep_blocks import diagonal_blocks, neighbour_blocks

from hiresx import Case, load
from hiresx.cli.grid_checks import check_grid
from hiresx.device import backend
from hiresx.errors import HiresxError
from hiresx.solver import Solver
from hiresx.solver.sweeps import directions_of

BUMP = [
    'time.integrator="implicit"', "grid.cells=[4, 8, 4]", "grid.n_normal=13", "grid.first_spacing=0.02",
]  # fmt: skip


def solved(lines: str, sweeps: int) -> tuple[np.ndarray, list]:
    """The update at CFL 2 that so many sweeps give for a flow that is not uniform, and the directions of the lines."""
    case = load("bump", preset="subsonic", overrides=[*BUMP, f"implicit.lines={lines}", f"implicit.sweeps={sweeps}"])
    solver = Solver(case, backend("cpu"))
    solver.initialize(
        lambda x, y, z: (1 + 0.1 * np.sin(x), 0.5 + 0.1 * y, 0.05 * np.cos(x), 0.0, (1 + 0.1 * x * y) / 1.4)
    )
    system, linear = solver.system, solver.integrator._linear
    x, right, found = (system.vector() for _ in range(3))
    system.state(x)
    linear.begin()
    linear.assemble(x, 0.25)
    linear.change(x, right)
    linear.precondition(right, found)
    return system.gather(found), linear._sweeps.lines


def test_lines_solve_the_equations_that_points_solve():
    """With fewer sweeps, whichever way they lie."""
    wanted, lines = solved("none", 200)
    scale = np.abs(wanted).max()
    assert lines == [()] and scale > 1e-2
    for name, directions in {"i": (0,), "j": (1,), "auto": (0, 1)}.items():
        found, lines = solved(name, 100)
        assert lines == [directions]
        assert np.abs(found - wanted).max() < 1e-11 * scale


def test_a_block_takes_the_directions_in_which_enough_cells_are_thin():
    assert directions_of([0, 0, 0], 100) == ()
    assert directions_of([9, 10, 0], 100) == (1,)
    assert directions_of([40, 10, 30], 100) == (0, 1, 2)


def test_lines_along_a_direction_without_nodes_are_refused():
    """By `hiresx check` and by a run, in the same words."""
    case = load("bump", overrides=[*BUMP, "implicit.lines=k"])
    for refuses in (check_grid, lambda case: Solver(case, backend("cpu"))):
        with pytest.raises(HiresxError, match=r'implicit\.lines = "k": no block has more than one node along k'):
            refuses(case)


@pytest.mark.parametrize("reynolds", [None, pytest.param(200.0, marks=pytest.mark.slow)])  # its compilation
def test_blocks_at_an_outflow_have_its_relaxation(reynolds):
    """An update that is the same at all nodes changes the rates at an outflow by the relaxation alone, in the blocks
    and in the flow."""
    case = Case.from_dict(
        {
            "gas": {} if reynolds is None else {"reynolds": reynolds},
            "grid": {"generator": "box", "n": [12, 12, 1], "lower": [0.0, 0.0, 0.0], "upper": [1.0, 1.0, 0.0]},
            "scheme": {"flux": "hllc", "epsilon": 1e-2},  # compiled for other tests as well
            "initial": {"state": {"rho": 1.0, "u": 0.4, "v": 0.1, "p": 1 / 1.4}},
            "time": {"integrator": "implicit", "steps": 1},
            "boundary": [
                {"faces": ["imax"], "type": "pressure-outflow", "pressure": 1 / 1.4, "relaxation": 9.0},
                {"faces": "all", "type": "far-field", "state": {"rho": 1.0, "u": 0.4, "v": 0.1, "p": 1 / 1.4}},
            ],
        }
    )
    solver = Solver(case, backend("cpu"))
    solver.initialize()
    system, linear = solver.system, solver.integrator._linear
    (state,) = solver.states
    x, f, shifted, found = (system.vector() for _ in range(4))
    system.state(x)
    linear.begin()
    linear.change(x, f)
    update, shift = np.array([0.3, -0.2, 0.1, 0.0, 0.7]), 1e-6
    system.copy(x, shifted)
    state.interior(shifted.arrays[0])[:] += shift * update[:, None, None, None]
    linear.change(shifted, found)
    of_flow = (state.interior(found.arrays[0]) - state.interior(f.arrays[0]))[:, 0, 4:-4, -1] / shift
    linear._sweeps.factor = lambda *of_diagonal: None
    linear.assemble(x, 0.0)
    held = state.array("implicit_blocks")
    diagonal = state.interior(diagonal_blocks(held, 5))[:, :, 0, 4:-4, -1]
    others = state.interior(neighbour_blocks(held, "fp32", 5))[:4, :, :, 0, 4:-4, -1].sum(axis=0)
    of_blocks = np.einsum("abn,b->an", diagonal + others, update)
    assert np.abs(of_flow).max() > 0.02
    np.testing.assert_allclose(of_blocks, -of_flow, atol=2e-5)
