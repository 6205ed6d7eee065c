"""Flows on grids of many blocks are those on one: turned neighbours, and sectors joined by a rotation."""

import numpy as np
import pytest
from arrangements import ring, saved, shaken
from multiblock import Arrangement

from hiresx import Simulation
from hiresx.case import Case
from hiresx.case.grid_file import Rotation
from hiresx.grid import Block, Connection, Grid
from hiresx.grid.blocks import face_range
from hiresx.grid.orientation import opposite


def case(viscous: bool, periodic: list[str], wall: str, **initial) -> Case:
    far = {"state": {"rho": 1.0, "p": 0.7, **initial}} if wall == "far-field" else {}
    return Case.from_dict(
        {
            "grid": {"file": "none"},
            "gas": {"reynolds": 200.0} if viscous else {},
            "time": {"steps": 20, "cfl": 0.4},
            "initial": {"state": {"rho": 1.0, "p": 0.7, **initial}},
            "boundary": [
                *([{"faces": periodic, "type": "periodic"}] if periodic else []),
                {"faces": "all", "type": wall, **far},
            ],
        }
    )


def waves(x, y, z):
    rho, p = 1 + 0.1 * np.sin(6 * x) * np.cos(5 * y), 0.7 + 0.1 * np.cos(4 * x + 3 * y + z)
    return rho, 0.2 * np.sin(4 * y + z), 0.2 * np.cos(5 * x), 0.1 * np.sin(3 * x * y), p


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "offset"])
@pytest.mark.parametrize("viscous", [False, True], ids=["inviscid", "viscous"])
@pytest.mark.parametrize("n", [
    pytest.param((40, 41, 1), id="2d"), pytest.param((20, 21, 22), marks=pytest.mark.slow, id="3d")
])  # fmt: skip
def test_turned_blocks_flow_as_one(tmp_path, n, viscous, shared):
    """Eight blocks cut and turned at random, several to a face, give what the uncut block does, and keep a free stream;
    behind the outer boundary the flow is far away, since at a corner of two walls the order of directions counts."""
    whole = shaken(n, seed=2).blocks[0]
    parts = Arrangement(whole, 8, 2, shared)
    tables = {"blocks": [block.name for block in parts.blocks], "connection": parts.tables}
    grid = saved(tmp_path, parts.blocks, tables)
    spec = case(viscous, [], "far-field", u=0.5, v=0.2)
    a = Simulation(spec, backend="cpu", grid=grid, initial=waves)
    b = Simulation(spec, backend="cpu", grid=Grid((whole,)), initial=waves)
    free = Simulation(spec, backend="cpu", grid=grid)
    for _ in range(20):
        assert a.solver.step() == pytest.approx(b.solver.step(), rel=1e-12)
        free.solver.step()
    for name, uniform in (("rho", 1.0), ("u", 0.5), ("v", 0.2), ("w", 0.0), ("p", 0.7)):
        wanted = b.blocks[0].state(name)
        for p, held in enumerate(parts.held):
            nodes = np.stack(np.meshgrid(*(np.arange(*r) for r in held), indexing="ij"))
            (i, j, k), (l, m, o) = nodes, parts.index(p, nodes)
            got = a.blocks[p].state(name)[o, m, l]
            np.testing.assert_allclose(got, wanted[k, j, i], rtol=0, atol=1e-12)
            np.testing.assert_allclose(free.blocks[p].state(name), uniform, rtol=0, atol=1e-12)


def swirl(x, y, z):
    """A vortex u_theta(r) with four waves around it, the same in every quarter."""
    r, t = np.hypot(x, y), np.arctan2(y, x)
    bump, wave = np.sin(np.pi * (r - 1)), np.cos(4 * t)
    around, outwards = 0.3 * bump * (1 + 0.2 * wave), 0.1 * bump * np.sin(4 * t)
    u, v = outwards * np.cos(t) - around * np.sin(t), outwards * np.sin(t) + around * np.cos(t)
    return 1 + 0.1 * wave * bump, u, v, 0.05 * np.sin(4 * t), 1 / 1.4 + 0.05 * r


@pytest.mark.parametrize("backend", ["cpu", "emulated"])
@pytest.mark.parametrize("ends", [True, False], ids=["shared", "offset"])
@pytest.mark.parametrize("viscous", [False, True], ids=["inviscid", "viscous"])
def test_a_quarter_flows_as_the_ring(tmp_path, viscous, ends, backend):
    n = 16
    quarter = Block("quarter", *ring(n + ends, angle=90.0, ends=ends))
    part = saved(tmp_path, [quarter], period={"j": Rotation(axis=(0.0, 0.0, 1.0), angle=90.0)})
    whole = Block("ring", *ring(4 * n + ends, ends=ends))
    join = Connection(0, "jmin", face_range("jmin", whole.size), 0, offset=(0, 4 * n, 0))
    around = Grid((whole,), (join, opposite(join, (whole,))))
    wall = "no-slip-wall" if viscous else "slip-wall"
    a = Simulation(case(viscous, ["jmin", "jmax"], wall), backend=backend, grid=part, initial=swirl)
    b = Simulation(case(viscous, [], wall), backend="cpu", grid=around, initial=swirl)
    for _ in range(20):
        assert a.solver.step() == pytest.approx(b.solver.step(), rel=1e-12)
    change = 0.0
    for name, before in zip(("rho", "u", "v", "w", "p"), swirl(a.blocks[0].x, a.blocks[0].y, 0.0), strict=True):
        got, wanted = a.blocks[0].state(name), b.blocks[0].state(name)[:, : n + ends]
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-13)
        change = max(change, np.abs(got - before).max())
    assert change > 0.01


@pytest.mark.parametrize("velocity", [0.5, 0.0])
@pytest.mark.parametrize("viscous", [False, True], ids=["inviscid", "viscous"])
def test_free_stream_along_the_axis(tmp_path, viscous, velocity):
    """A wavy sector of 30 degrees about the x axis: a uniform flow along it, or none, stays."""
    x, y, z = ring(13, 9, angle=30.0, nk=8, axis="x")
    r, t = np.hypot(y, z), np.arctan2(z, y)
    wave = np.sin(12 * t) * np.sin(2 * np.pi * x / 0.8)  # of the sector's period, and of the axial one
    t, r = t + 0.02 * wave * (r - 1) * (2 - r), r + 0.2 * wave * (r - 1) * (2 - r)
    period = {"j": Rotation(axis=(1.0, 0.0, 0.0), angle=30.0), "k": (0.8, 0.0, 0.0)}
    grid = saved(tmp_path, [Block("sector", x + 0.01 * np.sin(12 * t), r * np.cos(t), r * np.sin(t))], period=period)
    spec = case(viscous, ["jmin", "jmax", "kmin", "kmax"], "slip-wall", u=velocity)
    simulation = Simulation(spec, backend="cpu", grid=grid)
    for _ in range(20):
        simulation.solver.step()
    for name, wanted in (("rho", 1.0), ("u", velocity), ("v", 0.0), ("w", 0.0), ("p", 0.7)):
        np.testing.assert_allclose(simulation.blocks[0].state(name), wanted, rtol=0, atol=1e-12)
