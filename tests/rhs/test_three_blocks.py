"""Three blocks that meet along a line, as on an octant of a sphere: the flow has the symmetries of the grid, whatever
the index directions of the blocks are."""

import numpy as np
import pytest
from arrangements import free_stream_residual
from oblique_grids import REST, P, case

from hiresx import Simulation
from hiresx.decomposition.domain import domain
from hiresx.grid import Block, Grid, matched_connections

N = 7
FAR = {"faces": "all", "type": "far-field", "state": REST}
VISCOUS = case([FAR], {"steps": 3}, gas={"reynolds": 1e2})


def grid(turned: bool) -> Grid:
    """Three rhombi about the z axis, extruded along z; `turned`: with other index directions in two of them."""
    s, blocks = np.linspace(0, 1, N), []
    for b in range(3):
        z, t, r = np.meshgrid(s, s, s, indexing="ij")
        plane = r * np.exp(2j / 3 * np.pi * b) + t * np.exp(2j / 3 * np.pi * (b + 1))
        nodes = np.stack([plane.real, plane.imag, z])
        if turned and b == 1:
            nodes = nodes.transpose(0, 2, 3, 1)
        if turned and b == 2:
            nodes = nodes.transpose(0, 1, 3, 2)[:, :, :, ::-1]
        blocks.append(Block(f"block-{b}", *nodes))
    return Grid(tuple(blocks), matched_connections(blocks))


def pulse(x, y, z):
    p = P * (1 + 0.1 * np.exp(-9 * (x * x + y * y)))
    return 1 + 0 * x, 0 * x, 0 * x, 0.1 * np.exp(-4 * (x * x + y * y)), p


def flow(turned: bool):
    """The nodes (n, 3) and states (n, 5) of all blocks after three steps."""
    run = Simulation(VISCOUS, "cpu", grid=grid(turned), initial=pulse)
    run.run()
    nodes = [np.stack([c.ravel() for c in block.coordinates], axis=1) for block in grid(turned).blocks]
    names = ("rho", "u", "v", "w", "p")
    states = [np.stack([block.state(name).ravel() for name in names], axis=1) for block in run.blocks]
    return np.concatenate(nodes), np.concatenate(states)


def differences(one, other) -> np.ndarray:
    """Of each node of `one`, from the nearest state that `other` has there: blocks that meet may differ."""
    (nodes, states), (places, found) = one, other
    return np.array([
        np.abs(found[np.abs(places - place).max(axis=1) < 1e-9] - state).max(axis=1).min()
        for place, state in zip(nodes, states, strict=True)
    ])  # fmt: skip


def moved(found, matrix):
    nodes, states = found
    states = states.copy()
    states[:, 1:4] @= np.transpose(matrix)
    return nodes @ np.transpose(matrix), states


def test_flow_has_the_symmetry_of_the_grid():
    plain, turned = flow(False), flow(True)
    assert differences(turned, plain).max() < 1e-13
    c, s = -0.5, np.sqrt(0.75)
    assert differences(moved(turned, [[c, -s, 0], [s, c, 0], [0, 0, 1]]), turned).max() < 1e-13
    assert differences(moved(turned, np.diag([1, -1, 1])), turned).max() < 1e-13


@pytest.mark.parametrize("turned", [False, True])
def test_uniform_flow_stays(turned):
    for extended in domain(VISCOUS, grid=grid(turned)).extended:
        assert free_stream_residual(extended) < 1e-13


def test_ghosts_are_means():
    """With directions e0, e1, e2 that add to zero, the neighbours give e2 + e0 and e2 + e1."""
    x, y, _ = (c[N // 2, 2, 2] * (N - 1) for c in domain(VISCOUS, grid=grid(False)).extended[0])
    assert abs(x + 0.25) < 1e-14 and abs(y + np.sqrt(0.1875)) < 1e-14
