"""Axisymmetric flow: the stress in forces and in fluxes through boundaries, its parts v/y and w/y included."""

import numpy as np
import pytest

from hiresx import Simulation
from hiresx.case import Case
from hiresx.output.watch import monitors

GAMMA, RE = 1.4, 20.0
P = 1 / GAMMA
FACES = {"imin": (0, 0.0), "imax": (0, 1.0), "jmin": (1, 1.0), "jmax": (1, 2.0)}
# Gradient of (u, v, w) with respect to x and y, and their values at x = y = 0: all that a linear flow can have.
SLOPES, OFFSETS = np.array([[0.02, -0.05], [0.03, 0.04], [0.07, 0.06]]), np.array([0.1, 0.08, -0.03])


def measured(kind, velocity, boundary, **tables) -> dict[str, float]:
    """What the monitor `kind` finds in the gas of temperature 1 between the radii 1 and 2."""
    grid = {"generator": "box", "n": [9, 33, 1], "lower": [0, 1, 0], "upper": [1, 2, 0]}
    run = {"grid": grid, "gas": {"reynolds": RE}, "time": {"steps": 1}, "boundary": boundary}
    case = Case.from_dict({"axisymmetric": True, **run, **tables})
    simulation = Simulation(case, "cpu", initial=lambda x, y, z: (1 + 0 * x, *velocity(x, y), P + 0 * x))
    return next(m for m in monitors.build(case, simulation) if m.name == kind).measure(simulation.solver)


def linear(x, y):
    return [s[0] * x + s[1] * y + o for s, o in zip(SLOPES, OFFSETS, strict=True)]


def stress(x, y, velocity, slopes):
    """tau (3, 3, ...) in cylindrical coordinates (x, r, theta), from velocity and d(u, v, w)/d(x, r)."""
    (ux, ur), (vx, vr), (wx, wr) = slopes
    _, v, w = velocity
    div = ux + vr + v / y
    tau = [
        [2 * ux - 2 / 3 * div, ur + vx, wx + 0 * y],
        [ur + vx, 2 * vr - 2 / 3 * div, wr - w / y],
        [wx + 0 * y, wr - w / y, 2 * v / y - 2 / 3 * div],
    ]
    return np.array([[t + 0 * y for t in row] for row in tau]) / RE


def test_fluxes_through_boundaries():
    boundary = [{"faces": [face], "type": "supersonic-outflow"} for face in FACES]
    found = measured("history.conservation", linear, boundary, conservation={"every": 1})
    nodes, weights = np.polynomial.legendre.leggauss(8)
    along, weights = (nodes + 1) / 2, weights / 2
    for face, (d, place) in FACES.items():
        x, y = (place + 0 * along, 1 + along) if d == 0 else (along, place + 0 * along)
        outward = -1 if face.endswith("min") else 1
        velocity = np.array(linear(x, y))
        force = outward * stress(x, y, velocity, SLOPES)[d]
        through = outward * velocity[d]
        energy = P / (GAMMA - 1) + 0.5 * (velocity**2).sum(axis=0) + P
        flux = [through, *(velocity * through - force), energy * through - (velocity * force).sum(axis=0)]
        flux[1 + d] = flux[1 + d] + outward * P
        names = ("mass", "momentum_x", "momentum_y", "momentum_z", "energy")
        for name, values in zip(names, flux, strict=True):
            expected = (2 * np.pi * y * values * weights).sum()
            assert found[f"{name}_flux_{face}"] == pytest.approx(expected, rel=1e-11, abs=1e-12), (name, face)


def walls(velocity) -> list[dict]:
    """The cylinders move as the gas there; the ends are open."""
    at = {face: [float(c) for c in velocity(0.0, FACES[face][1])] for face in ("jmin", "jmax")}
    found = [{"faces": [f], "type": "no-slip-wall", "temperature": 1.0, "velocity": at[f]} for f in at]
    return [*found, {"faces": ["imin", "imax"], "type": "supersonic-outflow"}]


def on_walls(velocity) -> list[dict[str, float]]:
    force = [{"name": face, "faces": [face], "pressure": P} for face in ("jmin", "jmax")]
    return [measured(f"history.{f['name']}", velocity, walls(velocity), force=force) for f in force]


def test_walls_that_move_along_around_and_outwards():
    def velocity(x, y):
        return linear(0 * x, y)

    for found, radius, inwards in zip(on_walls(velocity), (1.0, 2.0), (-1, 1), strict=True):
        slopes = SLOPES * [0, 1]
        expected = -inwards * stress(0.0, radius, velocity(0.0, radius), slopes)[1] * 2 * np.pi * radius
        for name, value in zip("xyz", expected, strict=True):
            assert found[f"friction_{name}"] == pytest.approx(value, rel=1e-11), (name, radius)
        assert found["torque"] == pytest.approx(radius * expected[2], rel=1e-11)


def test_rigid_rotation_rubs_nowhere():
    for found in on_walls(lambda x, y: (0 * y, 0 * y, 0.1 * y)):
        assert found["friction_z"] == pytest.approx(0, abs=1e-14)
        assert found["torque"] == pytest.approx(0, abs=1e-14)


def test_torques_of_taylor_couette_flow():
    """w = a y + c/y: the torque is 4 pi c mu/Re on either cylinder, the force on the inner one that over its radius."""
    a, c = -0.1 / 3, 0.4 / 3
    inner, outer = on_walls(lambda x, y: (0 * y, 0 * y, a * y + c / y))
    assert inner["torque"] == pytest.approx(-4 * np.pi * c / RE, rel=1e-4)
    assert inner["force_z"] == inner["torque"]
    assert outer["torque"] == pytest.approx(4 * np.pi * c / RE, rel=1e-4)
    assert outer["force_z"] == pytest.approx(outer["torque"] / 2, rel=1e-12)
