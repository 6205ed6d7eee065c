"""Friction and heat at the faces of an oblique block in which velocity and temperature are linear: every derivative is
one of steps inwards and of steps along both tangents of the face."""

import numpy as np
import pytest

from hiresx import Simulation
from hiresx.case import Case
from hiresx.grid import Block, Grid
from hiresx.grid.blocks import FACES, direction, side
from hiresx.output.watch.watched_surface import FaceNodes, WatchedSurface

GAMMA, PRANDTL, RE = 1.4, 0.72, 20.0
# Edges of the block, a column each; d(u, v, w)/d(x, y, z) and the slope of the temperature; the velocity at the origin.
EDGES = np.array([[1.0, 0.3, -0.2], [0.1, 1.2, 0.25], [-0.15, 0.2, 0.9]])
SLOPES = np.array([[0.02, -0.05, 0.03], [0.03, 0.04, -0.06], [0.07, 0.06, 0.01]])
HEATS, VELOCITY = np.array([0.03, -0.02, 0.04]), np.array([0.1, 0.08, -0.03])
SIZE = (9, 8, 7)


def flow(x, y, z):
    velocity = np.tensordot(SLOPES, np.stack([x, y, z]), 1) + VELOCITY.reshape(3, 1, 1, 1)
    temperature = 1 + np.tensordot(HEATS, np.stack([x, y, z]), 1)
    return np.ones_like(x), *velocity, temperature / GAMMA


@pytest.fixture(scope="module")
def solver():
    shares = np.meshgrid(*(np.linspace(0, 1, n) for n in SIZE), indexing="ij")
    nodes = np.tensordot(EDGES, np.stack(shares), 1).transpose(0, 3, 2, 1)
    tables = {
        "grid": {"file": "none"},
        "gas": {"reynolds": RE, "prandtl": PRANDTL},
        "time": {"steps": 1},
        "boundary": [{"faces": "all", "type": "supersonic-outflow"}],
    }
    return Simulation(Case.from_dict(tables), "cpu", grid=Grid((Block("oblique", *nodes),)), initial=flow).solver


@pytest.mark.parametrize("face", FACES)
def test_of_a_linear_flow_they_are_exact(solver, face):
    d = direction(face)
    one, other = ((d + 1) % 3, (d + 2) % 3)
    nodes = FaceNodes(0, face, np.ones([n for e, n in reversed(list(enumerate(SIZE))) if e != d]), 0)
    found = WatchedSurface(solver, [nodes], 1).measure()
    share = side(face) * np.cross(EDGES[:, one], EDGES[:, other]) / ((SIZE[one] - 1) * (SIZE[other] - 1))
    stress = (SLOPES + SLOPES.T - 2 / 3 * np.trace(SLOPES) * np.eye(3)) / RE
    conduction = 1 / (RE * PRANDTL * (GAMMA - 1))
    assert found.p.shape == (SIZE[one] * SIZE[other],)
    expected = {"push": share, "friction": -stress @ share, "heat": np.array([-conduction * HEATS @ share])}
    for name, value in expected.items():
        every = np.atleast_2d(getattr(found, name))
        np.testing.assert_allclose(every, np.tile(value[:, None], found.p.shape), rtol=1e-11, err_msg=name)
