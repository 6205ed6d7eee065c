"""Axisymmetric grids that come close to the axis without lying on it, and those that are refused."""

import numpy as np
import pytest

from hiresx import HiresxError, Simulation
from hiresx.case import Case
from hiresx.decomposition import decompose
from hiresx.grid import Block, Grid, build, check_jacobian

STATE = {"rho": 1.0, "u": 0.3, "p": 1 / 1.4}


def with_a_hole(radius) -> Grid:
    i, j = np.meshgrid(np.linspace(0, 1, 21), np.linspace(0, 1, 17))
    x = i + 0.05 * np.sin(2 * np.pi * i) * np.cos(3 * j) + 0.03 * j
    y = radius + j * (1 + 0.1 * np.sin(4 * i))
    return Grid((Block("hole", x[None], y[None], 0 * x[None]),))


def case(**tables) -> Case:
    box = {"generator": "box", "n": [7, 7, 1], "lower": [0, 1, 0], "upper": [1, 2, 0]}
    run = {"grid": box, "axisymmetric": True, "initial": {"state": STATE}}
    far = {"faces": "all", "type": "far-field", "state": STATE}
    return Case.from_dict({**run, "time": {"steps": 150}, "boundary": [far], **tables})


@pytest.mark.parametrize("where", ["cpu", "emulated"])
@pytest.mark.parametrize("local", [False, True])
def test_a_uniform_flow_beside_a_thin_hole_stays(where, local):
    time = {"cfl": 1.0, "steps": 500 if where == "cpu" else 30, "local": local}
    simulation = Simulation(case(time=time), where, grid=with_a_hole(7e-4))
    simulation.run(progress=False)
    for name in ("rho", "u", "v", "p"):
        assert np.abs(simulation.blocks[0].state(name) - STATE.get(name, 0.0)).max() < 1e-12, name


def test_nodes_too_close_to_the_axis_are_refused_by_name():
    with pytest.raises(HiresxError, match=r"block 'hole', node \(i, j, k\) = \(0, 0, 0\).* closer to it than 0.01"):
        decompose(case(), with_a_hole(1e-4))


@pytest.mark.parametrize(("way", "shift"), [("j", (0.0, 17 / 16, 0.0)), ("i", (1.0, 0.5, 0.0))])
def test_periods_to_another_radius_are_refused(way, shift):
    i, j = np.meshgrid(np.arange(20) / 20, np.linspace(0, 1, 17))
    y = 1 + j + 0.5 * i * (way == "i")
    grid = Grid((Block("ring", i[None], y[None], 0 * i[None]),), period=({way: shift},))
    periodic = {"faces": [f"{way}min", f"{way}max"], "type": "periodic"}
    far = {"faces": "all", "type": "far-field", "state": STATE}
    with pytest.raises(HiresxError, match=f"{way}m.. of block 'ring' is joined to nodes at other radii"):
        decompose(case(boundary=[periodic, far]), grid)


@pytest.mark.parametrize("pole", ["imin", "imax"])
def test_the_advice_names_the_pole_beside_the_node(pole):
    sphere = {"generator": "sphere", "n_meridian": 15, "n_normal": 9, "n_around": 16}
    grid = build(case(axisymmetric=False, grid=sphere | {"standoff_axis": 0.6, "standoff_side": 0.9}).grid)
    others = [(0, r) for f, r in (("imin", (0, 1)), ("imax", (14, 15))) if f != pole]
    poles = [(b, (i, (0, 9), (0, 16))) for b, i in others]
    with pytest.raises(HiresxError) as found:
        check_jacobian(grid, poles)
    assert f"{pole} has collapsed" in found.value.hint
