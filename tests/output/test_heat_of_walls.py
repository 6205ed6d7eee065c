"""The heat into walls that forces, balances and `hiresx post wall` report: the one that the scheme itself has, where
the temperature of the wall is not given."""

import numpy as np
import pytest
from heated_gaps import REYNOLDS, Gap, P
from watched_runs import flux_sums, ran, watched

from hiresx import Case, Simulation
from hiresx.grid import Block, Grid
from hiresx.output.watch.monitors.force import ForceMonitor
from hiresx.output.watch.watched_surface import FaceNodes, WatchedSurface

WARMED = f"0.02*(1 + 4*t)*cos({2 * np.pi!r}*x) + 0.01"


def warmed(x, time):
    return 0.02 * (1 + 4 * time) * np.cos(2 * np.pi * x) + 0.01


def uneven(x, y, z):
    rho = 1 + 0.2 * np.sin(5 * x + 2 * y + z)
    return rho, 0.2 * y * (1 - y), 0.0, 0.0, P * (1 + 0.1 * np.cos(4 * y + x))


@pytest.mark.parametrize("gap", [{"skew": 0.6}, {"skew": 0.6, "ring": True}, {"skew": (0.6, 0.3)}],
                         ids=["plane", "curved", "3-D"])  # fmt: skip
def test_no_heat_passes_adiabatic_walls_on_oblique_lines(gap):
    """By differences of T it was 2.4e-4 of the amplitude between plane walls on 65 nodes, and of second order."""
    tables = {"time": {"steps": 2, "cfl": 0.5}, "conservation": {"every": 1}}
    walls = {"force": [{"name": "walls", "faces": "all", "every": 1}]}
    gap = Gap(9, adiabatic=True, **gap, **tables, **walls)
    _, found = ran(gap.case, grid=gap.grid, initial=gap.initial)
    assert found["walls"]["heat"].tolist() == [0.0] * 3
    assert np.abs(found["walls"]["friction_x"][-1]) + np.abs(found["walls"]["friction_y"][-1]) > 0
    assert found["conservation"]["energy_flux_jmin_jmax"].tolist() == [0.0] * 3


def strip(lower, where="cpu", **tables):
    """A gap of 12 x 13 nodes on oblique lines, periodic along x, after three steps, and its monitors."""
    x, y = np.meshgrid(np.arange(12) / 12, np.linspace(0, 1, 13))
    nodes = (np.ascontiguousarray(c[None]) for c in (x + 0.6 * y, y, 0 * x))
    grid = Grid((Block("gap", *nodes, {}),), period=({"i": (1.0, 0.0, 0.0)},))
    case = {
        "grid": {"generator": "box", "n": [9, 9, 1], "lower": [0, 0, 0], "upper": [1, 1, 0], "periodic": ["x"]},
        "gas": {"reynolds": REYNOLDS},
        "time": {"steps": 3, "dt": 2e-3},
        "force": [{"name": "low", "faces": ["jmin"]}],
        "initial": {"state": {"rho": 1.0, "p": P}},
        "boundary": [
            {"type": "periodic", "faces": ["imin", "imax"]},
            {"type": "no-slip-wall", "faces": ["jmin"]} | lower,
            {"type": "no-slip-wall", "faces": ["jmax"], "temperature": 1.1},
        ],
    }
    simulation, monitors = watched(Case.from_dict(case | tables), grid=grid, initial=uneven, backend=where)
    simulation.run(progress=False)
    return simulation, monitors


@pytest.mark.parametrize("integrator", ["ssp_rk3", "carpenter_kennedy_rk4", "bdf2"])
@pytest.mark.parametrize("where", ["cpu", "emulated"])
def test_the_heat_of_a_wall_is_the_given_one_at_the_time_of_the_state(where, integrator):
    """A formula of place and time, after steps that the host and that the device takes."""
    time = {"time": {"steps": 3, "dt": 2e-3, "integrator": integrator}}
    simulation, found = strip({"heat_flux": WARMED}, where=where, **time)
    x = simulation.blocks[0].x[0, 0]
    surface = WatchedSurface(simulation.solver, [FaceNodes(0, "jmin", np.full((1, 12), 0.5), 0)], 1)
    flow = surface.measure()
    assert simulation.time == pytest.approx(6e-3)
    np.testing.assert_allclose(flow.heat / np.abs(flow.push[1]), -warmed(x, 6e-3), rtol=1e-13)
    assert flux_sums(simulation.solver, surface)[0, 4] == pytest.approx(
        flow.heat.sum(), rel=1e-12
    )  # the wall is at rest
    # all of it: the mean of the wave is zero
    assert found["low"].measure(simulation.solver)["heat"] == pytest.approx(-0.01, rel=1e-12)


def test_suction_takes_no_heat_of_conduction():
    """Gas of any temperature leaves through an adiabatic wall; energy goes with it and by friction alone."""
    simulation, found = strip({"normal_velocity": -0.05})
    assert found["low"].measure(simulation.solver)["heat"] == 0.0


OPEN = {"type": "supersonic-outflow", "faces": "all"}


@pytest.mark.parametrize("wall", [{"type": "no-slip-wall"}, {"type": "modelled-wall", "exchange_nodes": 3}],
                         ids=["adiabatic", "adiabatic, modelled"])  # fmt: skip
def test_a_node_of_an_edge_has_the_heat_of_the_face_that_is_asked_for(wall):
    """A wall through which no heat passes meets one of given temperature."""
    held = {"type": "no-slip-wall", "faces": ["jmin"], "temperature": 1.2}
    case = Case.from_dict({
        "grid": {"generator": "box", "n": [9, 9, 1], "lower": [0, 0, 0], "upper": [1, 1, 0]},
        "gas": {"reynolds": REYNOLDS},
        "time": {"steps": 1},
        "initial": {"state": {"rho": 1.0, "p": P}},
        "boundary": [wall | {"faces": ["imin"]}, held, OPEN],
    })  # fmt: skip
    nodes = [FaceNodes(0, face, np.ones((1, 9)), n) for n, face in enumerate(("imin", "jmin"))]
    flow = WatchedSurface(Simulation(case, "cpu", initial=uneven).solver, nodes, 2).measure()
    assert not flow.heat[:9].any() and np.abs(flow.heat[9:]).min() > 1e-5


@pytest.mark.parametrize(
    ("wall", "heat"),
    [({}, 0.0), ({"heat_flux": 0.03}, -0.03), ({"type": "modelled-wall", "exchange_nodes": 3}, 0.0)],
    ids=["adiabatic", "given", "adiabatic, modelled"],
)
def test_at_the_edge_of_a_ridge_both_sides_have_the_heat_of_the_wall(wall, heat):
    """A node that counts with the area of either side."""
    j, i = np.meshgrid(np.linspace(0, 1, 11), np.linspace(-1, 1, 17), indexing="ij")
    grid = Grid((Block("ridge", i[None], (j - 0.5 * abs(i))[None], 0 * i[None]),))
    case = Case.from_dict({
        "grid": {"generator": "box", "n": [9, 9, 1], "lower": [0, 0, 0], "upper": [1, 1, 0]},  # replaced
        "gas": {"reynolds": REYNOLDS},
        "time": {"steps": 1, "dt": 1e-9}, "initial": {"state": {"rho": 1.0, "p": P}},
        "boundary": [{"faces": ["jmin"], "type": "no-slip-wall"} | wall, OPEN],
        "force": [{"name": "low", "faces": ["jmin"]}],
    })  # fmt: skip
    run = Simulation(case, "cpu", initial=uneven, grid=grid)
    (monitor,) = (a for a in run.attachments if isinstance(a, ForceMonitor))
    found = monitor.nodes.measure()["heat"]
    np.testing.assert_allclose(found, np.full(17, heat), rtol=1e-12, atol=1e-18)
