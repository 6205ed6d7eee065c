"""Poles: faces collapsed to a line, and the flow across them; what is refused by that name."""

import numpy as np
import pytest
from ranks import run_ranks
from wholes import advanced, off_on_ranks

from hiresx import HiresxError, Simulation
from hiresx.case import Case, load
from hiresx.decomposition import decompose, domain
from hiresx.device import backend
from hiresx.grid import Block, Connection, Grid, build, check_jacobian, matched_connections
from hiresx.grid.blocks import face_range
from hiresx.grid.singular import collapsed_direction
from hiresx.output.watch import monitors
from hiresx.output.watch.sampling import Monitor
from hiresx.solver import Solver
from hiresx.verify.turned_blocks import difference, random_parts

P = 1 / 1.4
POLE = {"faces": ["imin"], "type": "pole"}
SPHERE = {"generator": "sphere", "n_meridian": 15, "n_normal": 9, "n_around": 16, "standoff_axis": 0.6}
SPHERE |= {"standoff_side": 0.9}


def shell(state, poles=("imin", "imax"), grid=None, **tables) -> Case:
    """A shell around a sphere with poles on the faces `poles`, a far field on the others."""
    far = {"faces": "all", "type": "far-field", "state": state}
    boundary = [{"faces": list(poles), "type": "pole"}, far]
    tables = {"time": {"steps": 1}} | tables
    return Case.from_dict({"grid": SPHERE | (grid or {}), "boundary": boundary, "initial": {"state": state}} | tables)


def finished(case, where="cpu", **options) -> Simulation:
    simulation = Simulation(case, where, **options)
    simulation.run(progress=False)
    return simulation


# ---- uniform flow


@pytest.mark.parametrize("where", ["cpu", "emulated"])
@pytest.mark.parametrize(("reynolds", "interpolation"), [(float("inf"), "modified"), (100.0, "modified")])
def test_uniform_flow_stays(where, reynolds, interpolation):
    state = {"rho": 1.0, "u": 0.3, "v": 0.2, "w": -0.1, "p": P}
    tables = {"time": {"steps": 100, "cfl": 0.5}, "gas": {"reynolds": reynolds}}
    block = finished(shell(state, **tables), where).blocks[0]
    for name, value in state.items():
        np.testing.assert_allclose(block.state(name), value, rtol=0, atol=1e-12, err_msg=name)


def test_uniform_flow_in_single_precision():
    state = {"rho": 1.0, "u": 0.3, "v": 0.2, "p": P}
    case = shell(state, time={"steps": 100, "cfl": 0.5}, scheme={"precision": "fp32"}, gas={"reynolds": 1e6})
    assert np.abs(finished(case).blocks[0].state("u") - 0.3).max() < 1e-5


# ---- flow across a pole


def _blob_error(n) -> tuple[float, float]:
    """Of a blob of density that passes square to the pole's line: over the nodes, and on the pole."""
    speed = 0.5

    def blob(t):
        def flow(x, y, z):
            squares = (x + 1.5) ** 2 + (y + 0.15 - speed * t) ** 2 + (z - 0.1) ** 2
            return 1 + 0.2 * np.exp(-squares / 0.35**2), 0 * x, speed + 0 * x, 0 * x, P + 0 * x

        return flow

    grid = {"angle": 60.0, "n_meridian": n + 1, "n_normal": n + 1, "n_around": n}
    grid |= {"standoff_axis": 1.0, "standoff_side": 1.0}
    state = {"rho": 1.0, "v": speed, "p": P}
    case = shell(state, ("imin",), grid, time={"end": 0.6, "cfl": 0.5}, scheme={"flux": "hllc", "weights": "z"})
    simulation = finished(case, initial=blob(0.0))
    block = simulation.blocks[0]
    error = np.abs(block.state("rho") - blob(simulation.time)(block.x, block.y, block.z)[0])
    inner = error[:, n // 4 : 3 * n // 4 + 1, : n // 2]
    return float(inner.mean()), float(inner[:, :, 0].max())


@pytest.mark.slow
def test_a_blob_crosses_the_pole():
    coarse, fine = _blob_error(12), _blob_error(24)
    assert np.log2(coarse[0] / fine[0]) > 4
    assert np.log2(coarse[1] / fine[1]) > 2


def _standoff(block, mach) -> float:
    rho, distance = block.state("rho")[0, :, 0], -block.x[0, :, 0] - 1
    middle = 0.5 * (1 + 2.4 * mach**2 / (0.4 * mach**2 + 2))
    last = np.flatnonzero(rho > middle)[-1]
    share = (rho[last] - middle) / (rho[last] - rho[last + 1])
    return distance[last] + share * (distance[last + 1] - distance[last])


@pytest.mark.slow
def test_bow_shock():
    """Stand-off by the correlation of Ambrosio & Wortman (Billig, 1967); the flow is that of the axisymmetric grid."""
    sets = ["grid.n_normal=21", "time.steps=800"]
    whole = finished(load("sphere", "quick", [*sets, "grid.n_meridian=15", "grid.n_around=8"])).blocks[0]
    plane = finished(load("sphere", "axisymmetric", [*sets, "grid.n_around=15"])).blocks[0]
    assert _standoff(whole, 4) == pytest.approx(0.143 * np.exp(3.24 / 16), rel=0.03)
    assert _standoff(whole, 4) == pytest.approx(_standoff(plane, 4), rel=0.005)
    assert whole.state("p")[0, 0, 0] / P == pytest.approx(21.068, rel=0.01)
    p = whole.state("p")
    np.testing.assert_allclose(p[0, 0], plane.state("p")[0, 0], rtol=0.02)
    assert np.ptp(p, axis=0).max() < 0.02 * p.max()


# ---- integrals


def test_volume_and_area():
    """Nodes of a pole have neither."""
    state = {"rho": 1.0, "p": P}
    grid = {"n_meridian": 25, "n_normal": 13, "n_around": 24, "standoff_side": 0.6}
    wall = [{"faces": ["jmin"], "type": "slip-wall"}, {"faces": ["jmax"], "type": "far-field", "state": state}]
    poles = [{"faces": ["imin", "imax"], "type": "pole"}]
    tables = {"conservation": {"every": 1}, "force": [{"name": "wall", "faces": ["jmin"]}], "time": {"steps": 1}}
    case = Case.from_dict({"grid": SPHERE | grid, "boundary": poles + wall, "initial": {"state": state}} | tables)
    simulation = Simulation(case, "cpu")
    built = (m for m in monitors.build(case, simulation) if isinstance(m, Monitor))
    found = {m.name.removeprefix("history."): m.measure(simulation.solver) for m in built}
    assert found["wall"]["area"] == pytest.approx(4 * np.pi, rel=1e-3)
    assert found["conservation"]["mass"] == pytest.approx(4 / 3 * np.pi * (1.6**3 - 1), rel=1e-3)


# ---- cuts, ranks, restarts


def _moving(local=False, steps=10) -> Case:
    # tangential to no face of the far field, where round-off would say what enters
    state = {"rho": 1.0, "u": 0.3, "v": 0.4, "w": 0.07, "p": P}
    time = {"steps": steps, "cfl": 0.5, "local": local}
    walls = [{"faces": ["jmin"], "type": "no-slip-wall"}, {"faces": ["jmax"], "type": "far-field", "state": state}]
    tables = {"grid": SPHERE, "gas": {"reynolds": 100.0}, "time": time, "initial": {"state": state}}
    return Case.from_dict(tables | {"boundary": [{"faces": ["imin", "imax"], "type": "pole"}, *walls]})


@pytest.mark.parametrize("local", [False, True])
def test_nothing_depends_on_cuts(local):
    case = _moving(local)
    expected = advanced(Solver(case, backend("cpu")), 10)
    assert np.ptp(expected[0][1]) > 0.1
    for seed in range(4):
        chance = np.random.default_rng(seed)
        cut = domain(case, parts=lambda of, chance=chance: random_parts(of, 4, chance))
        where = backend("cpu" if seed else "emulated")
        assert difference(advanced(Solver(case, where, domain=cut), 10), expected) < 1e-12


def _on_ranks(comm):
    return off_on_ranks(comm, _moving(), 10)


@pytest.mark.slow
def test_nothing_depends_on_ranks():
    assert max(run_ranks(2, _on_ranks)) < 1e-12


def test_restart_to_the_last_bit(tmp_path):
    whole = finished(_moving())
    finished(_moving(steps=5), out=tmp_path / "run")
    again = finished(_moving(), restart=tmp_path / "run")
    for name in ("rho", "u", "v", "p"):
        np.testing.assert_array_equal(again.blocks[0].state(name), whole.blocks[0].state(name))


# ---- doubled nodes, and refusals


def _doubled(around=16, turn=2 * np.pi) -> Grid:
    """A shell whose first nodes around the axis are held once more at its end."""
    grid = build(shell({"rho": 1.0, "p": P}).grid, None)
    block = grid.blocks[0]
    angle = np.linspace(0, turn, around + 1)[:, None, None]
    r = np.hypot(block.y[:1], block.z[:1])
    x = np.broadcast_to(block.x[:1], (around + 1, *r.shape[1:]))
    block = Block("shell", x, r * np.cos(angle), r * np.sin(angle))
    seam = [
        Connection(0, face, face_range(face, block.size), 0, offset=(0, 0, step * around))
        for face, step in (("kmin", 1), ("kmax", -1))
    ]
    return Grid((block,), tuple(seam) if turn == 2 * np.pi else ())


def test_doubled_nodes_around_the_pole():
    state = {"rho": 1.0, "u": 0.3, "v": 0.2, "p": P}
    block = finished(shell(state, time={"steps": 20, "cfl": 0.5}), grid=_doubled()).blocks[0]
    assert np.abs(block.state("v") - 0.2).max() < 1e-12
    moving = _moving()
    single = advanced(Solver(moving, backend("cpu")), 10)[0]
    double = advanced(Solver(moving, backend("cpu"), grid=_doubled()), 10)[0]
    np.testing.assert_allclose(double[:, :-1], single, rtol=0, atol=1e-12)


def test_a_collapsed_face_is_named():
    grid = _doubled()
    assert [collapsed_direction(grid.blocks[0], face) for face in ("imin", "imax", "jmin", "kmin")] == [
        2,
        2,
        None,
        None,
    ]
    with pytest.raises(HiresxError, match="collapsed") as error:
        check_jacobian(grid)
    assert 'type = "pole"' in str(error.value) + str(error.value.hint)
    check_jacobian(grid, [(0, face_range(face, grid.blocks[0].size)) for face in ("imin", "imax")])


@pytest.mark.parametrize(
    ("grid", "poles", "words"),
    [
        (lambda: _doubled(15), ("imin", "imax"), "15 nodes around the pole"),
        (lambda: _doubled(16, np.pi), ("imin", "imax"), "does not close on itself"),
        (_doubled, ("imin", "imax", "jmin"), "face jmin of block 'shell' has not collapsed"),
    ],
)
def test_refusals(grid, poles, words):
    case = shell({"rho": 1.0, "p": P}, poles)
    with pytest.raises(HiresxError, match=words) as error:
        decompose(case, grid())
    assert "docs/grids.md" in error.value.hint


@pytest.mark.parametrize("around", [16, 80])
def test_the_seam_of_a_delivered_grid_is_found(around):
    """Doubled nodes around a pole are joined, the collapsed faces to nothing, however many nodes lie at one place."""
    found = {(c.face, c.range, c.matrix, c.offset) for c in matched_connections(_doubled(around).blocks)}
    wanted = {(c.face, c.range, c.matrix, c.offset) for c in _doubled(around).connections}
    assert found == wanted
