"""Areas of the nodes of curved planes, and of what numbers a file seems to hold."""

from io import BytesIO

import numpy as np
import pytest

pytest.importorskip("xarray", reason="pip install '.[post]'")

from arrangements import saved
from multiblock import Arrangement

import hiresx
from hiresx import Case, HiresxError, Simulation
from hiresx.grid import plot3d_binary
from hiresx.grid.blocks import Block
from hiresx.grid.connections import Grid
from hiresx.post import modes
from hiresx.post.spod import _areas, spod

BOX = {"generator": "box", "n": [14, 12, 1], "lower": [0, 0, 0], "upper": [1, 1, 1]}


def shoelace(corners):
    x, y = np.array(corners).T
    return 0.5 * abs(np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)))


@pytest.mark.parametrize("turned", [False, True])
def test_a_node_has_a_quarter_of_each_cell_around_it(turned):
    rng = np.random.default_rng(2)
    y, x = np.mgrid[0:5, 0:4] + rng.uniform(-0.3, 0.3, (2, 5, 4))
    if turned:
        x, y = x[:, ::-1], y[:, ::-1]
    wanted = np.zeros(x.shape)
    for j in range(4):
        for i in range(3):
            around = [(j, i), (j, i + 1), (j + 1, i + 1), (j + 1, i)]
            for node in around:
                wanted[node] += shoelace([(x[at], y[at]) for at in around]) / 4
    found = _areas(*(np.pad(axis, 1, constant_values=np.nan) for axis in (x, y)))
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def energies(out, given=None, **tables):
    """Of the modes of a wave along x in a box."""

    def waving(x, y, z):
        p = 1 / 1.4 + 1e-3 * np.cos(2 * np.pi * x)
        return 1 + 1.4e-3 * np.cos(2 * np.pi * x), 0 * x, 0 * x, 0 * x, p

    case = Case.from_dict({
        "grid": BOX, "time": {"end": 1.0, "cfl": 0.8}, "initial": {"state": {"rho": 1.0, "p": 0.7}},
        "boundary": [{"faces": "all", "type": "slip-wall"}],
        "output": {"every_time": 0.1, "variables": ["p"]}, **tables,
    })  # fmt: skip
    Simulation(case, "cpu", grid=given, initial=waving, out=out).run(progress=False)
    return spod(out, "p").data["energy"].values


def test_cells_between_the_ends_of_a_period_count(tmp_path):
    """All nodes of equal cells then have the same weight."""
    case = {"grid": BOX | {"periodic": ["x", "y"]}, "boundary": [{"faces": "all", "type": "periodic"}]}
    found = energies(tmp_path, **case)
    p = hiresx.open(tmp_path).series(["p"])["box"]["p"].values.reshape(-1, 12 * 14)
    wanted = modes.spod(lambda: [(p, np.full(12 * 14, 1 / (12 * 14)))], len(p), 0.1, 4, 0.5).energy
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12 * wanted.max())


def test_cells_between_blocks_without_common_nodes_count(tmp_path):
    """Turned blocks have the energy of one block."""
    nodes = np.meshgrid(np.linspace(0, 1, 14) ** 1.1, np.linspace(0, 1, 12), indexing="ij")
    x, y = (axis.T[None] for axis in nodes)
    whole = Block("box", x, y + 0.1 * np.sin(3 * x), 0 * x)
    parts = Arrangement(whole, 3, 5, shared=False)
    tables = {"blocks": [block.name for block in parts.blocks], "connection": parts.tables}
    found = [energies(tmp_path / name, grid) for name, grid in
             (("whole", Grid((whole,))), ("parts", saved(tmp_path, parts.blocks, tables)))]  # fmt: skip
    np.testing.assert_allclose(found[1], found[0], rtol=1e-9, atol=1e-9 * found[0].max())


@pytest.mark.parametrize("real", ["f4", "f8"])
def test_the_share_of_numbers_that_a_grid_may_hold(real):
    """Zeros of both signs, and what is neither tiny nor huge nor no number."""
    rng = np.random.default_rng(3)
    good = np.concatenate([[0.0, -0.0, 0.0, 1.1e-30, -0.9e30], rng.uniform(-5, 5, 10)])
    bad = [np.nan, np.inf, -np.inf, 0.9e-30, -1.1e30]
    values = np.concatenate([good, bad]).astype(f"<{real}")
    file = BytesIO(b"head" + values.tobytes())
    share = plot3d_binary._likeness(file, ("<", [[20, 1, 1]], 4, real, 0))
    assert share == pytest.approx(15 / 20)


@pytest.mark.slow
def test_modes_count_every_place_once_with_levels(tmp_path):
    """A standing wave in a box has the energy that it has on the grid alone; its planes in space are refused."""

    def waving(x, y, z):
        p = 1 / 1.4 + 1e-3 * np.cos(np.pi * x)
        return 1 + 1.4e-3 * np.cos(np.pi * x), 0 * x, 0 * x, 0 * x, p

    def made(name, n=(21, 20, 1), **tables):
        case = Case.from_dict({
            "grid": {"generator": "box", "n": list(n), "lower": [0, 0, 0], "upper": [1, 1, float(n[2] > 1)]},
            "time": {"end": 4.0, "cfl": 0.8}, "initial": {"state": {"rho": 1.0, "p": 0.7}},
            "boundary": [{"faces": "all", "type": "slip-wall"}],
            "output": {"every_time": 0.25, "variables": ["p"]}, **tables,
        })  # fmt: skip
        Simulation(case, "cpu", initial=waving, out=tmp_path / name).run(progress=False)
        return tmp_path / name

    refine = {"tile": 8, "region": [{"x": [0.0, 0.3]}]}
    energies = [float(spod(made(name, **tables), "p").data["energy"].sum())
                for name, tables in (("alone", {}), ("levels", {"refine": refine}))]  # fmt: skip
    assert energies[1] == pytest.approx(energies[0], rel=2e-3)
    planes = {"every_time": 0.25, "variables": ["p"], "subset": [{"name": "cut", "plane": {"z": 0.5}}]}
    space = made("space", (12, 12, 12), refine={"tile": 8, "region": [{"x": [0.0, 0.2]}]}, output=planes)
    with pytest.raises(HiresxError, match=r"points lie on several levels of \[refine\]"):
        spod(space, "p", subset="cut")
