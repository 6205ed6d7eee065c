"""Slip walls that meet at an angle that is not right: the momentum at their edge is along both, whatever comes last."""

import numpy as np
import pytest

from hiresx import Simulation
from hiresx.case import Case
from hiresx.grid import Block, Grid

STATE = {"rho": 1.0, "u": 0.3, "v": 0.2, "w": -0.1, "p": 1 / 1.4}


def skewed(lean):
    """y = 0 is the one wall, and the plane z = lean y the other."""
    z, y, x = np.meshgrid(*(np.linspace(0, 1, 8),) * 3, indexing="ij")
    return Grid((Block("skewed", x, y, z + lean * y),))


def case(walls):
    boundary = [{"faces": walls, "type": "slip-wall"}, {"faces": "all", "type": "far-field", "state": STATE}]
    tables = {"grid": {"file": "none"}, "initial": {"state": STATE}, "boundary": boundary, "time": {"steps": 1}}
    return Case.from_dict(tables)


@pytest.mark.parametrize("walls", [["jmin", "kmin"], ["kmax", "jmax"]])
def test_the_momentum_at_an_edge_is_along_both_walls(walls):
    lean = 0.5
    simulation = Simulation(case(walls), backend="cpu", grid=skewed(lean))
    block = simulation.blocks[0]
    at = -1 if "jmax" in walls else 0
    u, v, w, p = (block.state(name)[at, at] for name in ("u", "v", "w", "p"))
    np.testing.assert_allclose(u, 0.3, rtol=1e-14)
    assert abs(v).max() < 1e-15 and abs(w).max() < 1e-15
    np.testing.assert_allclose(p, 1 / 1.4, rtol=1e-14)
    # elsewhere on the walls only the normal momentum is lost
    normal = np.array([-lean, 1.0]) / np.hypot(lean, 1.0)
    v, w = (block.state(name)[at, 3] for name in ("v", "w"))
    np.testing.assert_allclose(normal @ [v, w], 0.0, atol=1e-15)
    assert abs(v).min() > 0.01
