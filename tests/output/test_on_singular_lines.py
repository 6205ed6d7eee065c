"""What is read off where grid lines meet: at poles whose rings repeat their first node, and on the axis."""

import numpy as np
import pytest

from hiresx import Simulation
from hiresx.case import Case
from hiresx.decomposition import decompose
from hiresx.grid import Block, Grid, matched_connections
from hiresx.output.watch import monitors
from hiresx.output.watch.locate import Locator
from hiresx.output.watch.sampling import Monitor

P = 1 / 1.4
SLIP = {"faces": "all", "type": "slip-wall"}


def pipe(bend=0.0, backwards=False) -> Grid:
    """A pipe of radius and length 1 whose rings repeat their first node."""
    r, angle, x = np.linspace(0, 1, 12), 2 * np.pi * np.arange(13) / 12, np.linspace(0, 1, 9)
    r, angle, x = (a.transpose(2, 1, 0) for a in np.meshgrid(r, angle, x, indexing="ij"))
    nodes = [x + bend * r**2 * np.sin(3 * x), r * np.cos(angle), r * np.sin(angle)]
    if backwards:
        nodes = [a[:, ::-1, ::-1] for a in nodes]
    block = Block("pipe", *map(np.ascontiguousarray, nodes))
    return Grid((block,), matched_connections([block]))


def case(pole="imin", **tables) -> Case:
    box = {"generator": "box", "n": [7, 7, 7], "lower": [0, 0, 0], "upper": [1, 1, 1]}
    run = {"grid": box, "time": {"steps": 1}, "initial": {"state": {"rho": 1, "p": P}}}
    return Case.from_dict({**run, "boundary": [{"faces": [pole], "type": "pole"}, SLIP], **tables})


@pytest.mark.parametrize("backwards", [False, True])
def test_integrals_around_a_pole_count_the_repeated_nodes_once(backwards):
    wall, end = ("imin" if backwards else "imax"), "kmax"
    pole = "imax" if backwards else "imin"
    asked = case(pole, conservation={"every": 1}, force=[{"name": f, "faces": [f]} for f in (wall, end)])
    simulation = Simulation(asked, "cpu", grid=pipe(backwards=backwards))
    found = {m.name: m.measure(simulation.solver) for m in monitors.build(asked, simulation) if isinstance(m, Monitor)}
    assert found["history.conservation"]["mass"] == pytest.approx(np.pi, rel=1e-3)
    assert found[f"history.{end}"]["area"] == pytest.approx(np.pi, rel=1e-3)
    assert found[f"history.{wall}"]["area"] == pytest.approx(2 * np.pi, rel=1e-3)


@pytest.mark.parametrize("place", [(0.5, 0, 0), (0.13, 0, 0), (0.5, 1e-6, 0), (0.5, 0.01, 0.005), (0.5, -0.06, 0.3)])
@pytest.mark.parametrize("bend", [0.0, 0.05])
def test_places_on_and_beside_a_pole_are_found(place, bend):
    grid = pipe(bend)
    found = Locator(decompose(case(), grid)).find(place)
    assert found is not None
    i, j, k = found.nodes
    nodes = np.stack(
        [(c[k, j, i] * found.weights).sum() for c in (grid.blocks[0].x, grid.blocks[0].y, grid.blocks[0].z)]
    )
    assert np.abs(nodes - place).max() < 1e-8


@pytest.mark.parametrize("type_", ["slip-wall", "symmetry"])
def test_planes_that_end_on_the_axis_have_numbers_for_their_friction(type_):
    planes = ["imin", "imax"]
    boundary = [
        {"faces": ["jmin"], "type": "axis"},
        {"faces": planes, "type": type_},
        {"faces": ["jmax"], "type": "no-slip-wall", "temperature": 1.0},
    ]
    grid = {"generator": "box", "n": [9, 9, 1], "lower": [0, 0, 0], "upper": [1, 1, 0]}
    tables = {"grid": grid, "axisymmetric": True, "gas": {"reynolds": 50.0}, "boundary": boundary}
    # a plane of symmetry is no wall
    force = {"force": [{"name": "ends", "faces": planes}]} if type_ == "slip-wall" else {}
    asked = case(**tables, conservation={"every": 1}, **force)
    simulation = Simulation(asked, "cpu", initial=lambda x, y, z: (1 + 0 * x, 0.1 * x, -0.05 * y, 0.2 * y, P + 0 * x))
    simulation.solver.step()  # there are no rates before
    for monitor in (m for m in monitors.build(asked, simulation) if isinstance(m, Monitor)):
        for name, value in monitor.measure(simulation.solver).items():
            assert np.isfinite(value).all(), (monitor.name, name)


def test_a_place_far_beyond_all_grids_is_outside_without_a_warning(recwarn):
    locator = Locator(decompose(case(), pipe()))
    for place in ((1e300, 0, 0), (0, -1e200, 1e308)):
        assert locator.find(place) is None
        assert locator.nearest(place)[0] == 0
    assert not recwarn.list
