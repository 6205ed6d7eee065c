"""Patched faces: blocks that meet without sharing nodes, joined by interpolation."""

import math
from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from ranks import run_ranks

from hiresx import HiresxError, Simulation, load
from hiresx.case import Case
from hiresx.decomposition import Part, decompose, domain, extended_coordinates, patched
from hiresx.device import backend
from hiresx.grid import Block, Grid, build, matched_connections, read_grid, write_connectivity, write_plot3d
from hiresx.grid.blocks import Delivered, whole_box
from hiresx.grid.patched import BlockMap, continued, degree_of, lagrange
from hiresx.grid.starting_case import case_text
from hiresx.grid.survey import survey
from hiresx.output import history
from hiresx.solver import Solver
from hiresx.team import alone

P0 = 1 / 1.4


def beside(cells, across, ends, ys=(0.0, 1.0), offset=False, curve=0.0, n_span=(1, 1)):
    """Blocks side by side along x from ends[n] to ends[n + 1], with cells[n] there and across[n] along y; their faces
    bend by `curve`. `offset`: the last nodes along y are left out, for periodic grids. n_span: nodes along z."""
    blocks = []
    for n, (a, b) in enumerate(pairwise(ends)):
        x, y = np.linspace(a, b, cells[n] + 1), np.linspace(*ys, across[n] + 1)
        z = np.linspace(0, 1, n_span[n]) if n_span[n] > 1 else np.zeros(1)
        z, y, x = np.meshgrid(z, y[:-1] if offset else y, x, indexing="ij")
        bend = np.sin(math.pi * (x - ends[0]) / (ends[-1] - ends[0]))
        x = x + curve * bend * np.sin(2 * math.pi * (y - ys[0]) / (ys[1] - ys[0])) * (1 + 0.5 * np.sin(3 * z))
        blocks.append(Block(f"b{n}", x, y, z))
    return tuple(blocks)


def case(boundary, time, state=None, **tables):
    state = {"rho": 1.0, "p": P0} if state is None else state
    walls = boundary[-1:] if boundary and boundary[-1].get("faces") == "all" else []
    rest = boundary[: len(boundary) - len(walls)]
    last = walls or [{"faces": "all", "type": "far-field", "state": state}]
    return Case.from_dict(
        {
            "grid": {"file": "none"},
            "time": time,
            "initial": {"state": state},
            "boundary": [*PATCHED, *rest, *last],
            **tables,
        }
    )


PATCHED = [
    {"block": "b0", "faces": ["imax"], "type": "patched"},
    {"block": "b1", "faces": ["imin"], "type": "patched"},
]
PERIODIC = {"faces": ["jmin", "jmax"], "type": "periodic"}


def errors(simulation, name, exact):
    """Largest difference of a variable to exact(x, y, z) over all blocks, and its root mean square over the area."""
    largest = total = area = 0.0
    for block, state in zip(simulation.blocks, simulation.solver.states, strict=True):
        off = block.state(name) - exact(state.block.x, state.block.y, state.block.z)
        volume = 1 / state.interior(state.jacobian)
        largest = max(largest, float(np.abs(off).max()))
        total, area = total + float(np.sum(off**2 * volume)), area + float(volume.sum())
    return largest, math.sqrt(total / area)


# ---- geometry


def test_weights_and_slopes_of_polynomials():
    t = np.linspace(-0.3, 5.2, 12)
    value, slope = lagrange(t)
    for power in range(6):
        nodes = np.arange(6.0) ** power
        np.testing.assert_allclose(value @ nodes, t**power, rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(slope @ nodes, power * t ** max(power - 1, 0), rtol=1e-10, atol=1e-10)


def test_grid_lines_go_on_as_smoothly_as_they_can():
    """A smooth line goes on to fourth degree; one that would turn back or jump goes on straight."""
    t = np.arange(0.0, 6.0)
    smooth = (1.1**t)[:, None, None] * np.ones((3, 2))
    assert degree_of(smooth) == 4
    np.testing.assert_allclose(continued(smooth, 4)[:, 0, 0], 1.1 ** -np.arange(1.0, 4.0), atol=2e-3)
    rough = np.array([0.0, 1.0, 3.0, 9.0, 27.0, 81.0])[:, None, None] * np.ones((3, 2))
    assert degree_of(rough) == 1
    np.testing.assert_allclose(continued(rough, 1)[:, 0, 0], [-1, -2, -3])


def test_points_are_found_in_a_curved_block():
    block = beside((12,), (14,), (0.0, 1.0), curve=0.2, n_span=(9,))[0]
    grid = Grid((block,))
    walls = [{"faces": "all", "type": "slip-wall"}]
    whole = decompose(Case.from_dict({**case([], {"steps": 1}).model_dump(), "boundary": walls}), grid)
    m = BlockMap(block, extended_coordinates(whole)[0], [None] * 3)
    xi = np.random.default_rng(1).uniform(0, 1, (50, 3)) * (np.array(block.size) - 1)
    found, there = m.locate(m.at(xi)[0], np.round(xi) + 2)
    assert there.all()
    np.testing.assert_allclose(found, xi, atol=1e-9)
    slopes = m.at(xi)[1]
    for d in range(3):
        step = 1e-6 * np.eye(3)[d]
        np.testing.assert_allclose((m.at(xi + step)[0] - m.at(xi - step)[0]) / 2e-6, slopes[:, :, d], atol=1e-7)


def test_coordinates_go_on_behind_a_patched_face():
    """As the grid itself would, on edges as well; where a wall reflects them they are off by more than that."""

    def nodes(i, j):
        return np.exp(0.05 * i) + 0.02 * np.sin(0.3 * j), 0.1 * j + 0.01 * j**2 + 0.001 * i**2

    j, i = np.meshgrid(np.arange(12.0), np.arange(15.0), indexing="ij")
    x, y = nodes(i, j)
    other = moved(beside((12,), (20,), (-3.0, 1.02))[0], y=-0.5)
    grid = Grid((Block("b1", x[None], y[None], 0 * x[None]), other))
    conditions = [PATCHED[1], {"faces": "all", "type": "slip-wall"}]
    whole = decompose(Case.from_dict({**case([], {"steps": 1}).model_dump(), "boundary": conditions}), grid)
    found = np.stack(extended_coordinates(whole)[0][:2])[:, 3]
    j, i = np.meshgrid(np.arange(12.0), np.arange(-3.0, 0.0), indexing="ij")
    wanted = np.stack(nodes(i, j))
    step = 0.05
    assert np.abs(found[:, 3:-3, :3] - wanted).max() < 1e-3 * step
    reflected = 2 * found[:, 3:-3, 3:4] - found[:, 3:-3, 6:3:-1]
    assert np.abs(reflected - wanted).max() > 0.2 * step
    # the edge: reflected at jmin and gone on along i, whichever comes first
    np.testing.assert_allclose(found[:, :3, :3], 2 * found[:, 3:4, :3] - found[:, 6:3:-1, :3], atol=1e-12)


def told(boundary, blocks):
    with pytest.raises(HiresxError) as error:
        whole = decompose(case(boundary, {"steps": 1}), Grid(blocks))
        patched.located(whole, extended_coordinates(whole))
    return str(error.value)


def moved(block, **by):
    shifted = {c: getattr(block, c) + by.get(c, 0.0) for c in "xyz"}
    return Block(block.name, **shifted)


def test_gaps_overlaps_and_thin_blocks_are_told():
    left, right = beside((12, 12), (12, 18), (-1.0, 0.0, 1.0))
    assert "block 'b0', face imax, patched: node (i, j, k) = (12, 0, 0)" in told([], (left, moved(right, x=0.1)))
    assert "lies inside block" in told([], (left, moved(right, x=-0.2)))
    assert "node (i, j, k) = (12, 0, 0)" in told([], (left, moved(right, y=0.2)))
    thin = beside((12, 12), (12, 18), (-1.0, 0.0, 0.2))[1]
    assert "has no other block behind it, 3 of its steps away" in told([], (left, thin))


# ---- free stream


@pytest.mark.parametrize("where", ["cpu", "emulated"])
@pytest.mark.parametrize("viscous", [False, True], ids=["inviscid", "viscous"])
@pytest.mark.parametrize("span", [(1, 1), (7, 9)], ids=["2d", "3d"])
def test_free_stream(where, viscous, span):
    state = {"rho": 1.0, "u": 0.5, "v": 0.2, "w": 0.1 * (span[0] > 1), "p": P0}
    gas = {"reynolds": 200.0} if viscous else {}
    blocks = beside((8, 12), (8, 12), (-1.0, 0.0, 1.0), curve=0.1, n_span=span)
    simulation = Simulation(case([], {"steps": 100, "cfl": 0.5}, state, gas=gas), backend=where, grid=Grid(blocks))
    for _ in range(100 if span[0] == 1 else 12):
        simulation.solver.step()
    for name, value in state.items():
        assert errors(simulation, name, lambda x, y, z, v=value: v)[0] < 1e-12, name


def test_free_stream_in_single_precision():
    state = {"rho": 1.0, "u": 0.5, "v": 0.2, "p": P0}
    blocks = beside((10, 15), (12, 18), (-1.0, 0.0, 1.0), curve=0.1)
    spec = case([], {"steps": 20, "cfl": 0.5}, state, scheme={"precision": "fp32"})
    simulation = Simulation(spec, backend="cpu", grid=Grid(blocks))
    for _ in range(20):
        simulation.solver.step()
    assert errors(simulation, "rho", lambda x, y, z: 1.0)[0] < 1e-5


# ---- accuracy


def waves(x, y, z):
    s = 1e-3 * np.sin(3 * x) * np.cos(4 * y)
    return 1 + s, 0.3 + 0.1 * np.sin(2 * y), 0.1 * np.cos(3 * x), 0 * x, P0 + s


def test_equal_nodes_give_what_a_connection_gives():
    blocks = beside((12, 12), (12, 12), (-1.0, 0.0, 1.0), curve=0.0)
    spec = case([], {"steps": 10, "cfl": 0.5}, gas={"reynolds": 100.0})
    joined = Case.from_dict({**spec.model_dump(), "boundary": spec.model_dump()["boundary"][-1:]})
    a = Simulation(spec, backend="cpu", grid=Grid(blocks), initial=waves)
    b = Simulation(joined, backend="cpu", grid=Grid(blocks, tuple(matched_connections(blocks))), initial=waves)
    for _ in range(10):
        a.solver.step(), b.solver.step()
    for one, other in zip(a.blocks, b.blocks, strict=True):
        for name in ("rho", "u", "v", "p"):
            np.testing.assert_allclose(one.state(name), other.state(name), rtol=0, atol=1e-12)


def vortex(time):
    """An isentropic vortex of radius 0.7 that the flow carries along x at 0.5; it starts at x = -1.25."""

    def state(x, y, z):
        r, s = (x + 1.25 - 0.5 * time) / 0.7, y / 0.7
        f = 0.6 * np.exp(0.5 * (1 - r * r - s * s))
        temperature = 1 - 0.2 * f * f
        return temperature**2.5, 0.5 - f * s, f * r, 0 * x, temperature**3.5 / 1.4

    return state


@cache
def vortex_error(cells):
    """RMS error of density when the vortex has come to the curved face between two blocks of `cells` along y."""
    ends, joined = (-4.5, 0.0, 4.5), cells[0] == cells[1]
    blocks = beside([n // 2 for n in cells], cells, ends, ys=(-4.5, 4.5), curve=0.3)
    dt = 0.5 * 9 / max(cells) * (32 / max(cells)) ** (2 / 3)
    spec = case([], {"end": 2.5, "dt": dt}, {"rho": 1.0, "u": 0.5, "p": P0}, scheme={"weights": "linear"})
    grid = Grid(blocks, tuple(matched_connections(blocks))) if joined else Grid(blocks)
    if joined:
        spec = Case.from_dict({**spec.model_dump(), "boundary": spec.model_dump()["boundary"][-1:]})
    simulation = Simulation(spec, backend="cpu", grid=grid, initial=vortex(0))
    simulation.run()
    return errors(simulation, "rho", lambda x, y, z: vortex(2.5)(x, y, z)[0])[1]


@pytest.mark.parametrize("ratio", [(2, 3), (1, 2)], ids=str)
def test_a_vortex_keeps_its_order(ratio):
    """Across curved faces of 2:3 and 1:2 spacing: the order that one block has at these spacings, and no more error
    than the coarser of the two grids throughout."""
    one = [vortex_error((n, n)) for n in (32, 64)]
    found = [vortex_error((n, n * ratio[1] // ratio[0])) for n in (32, 64)]
    assert math.log2(found[0] / found[1]) > math.log2(one[0] / one[1]) - 0.1 > 3.5
    assert found[0] < one[0] and found[1] < one[1]


@pytest.mark.parametrize("cells", [(40, 60), (40, 80), (80, 40)], ids=str)
def test_sound_passes(cells):
    """Of a pulse with 12 points across on the coarser side less than 0.1 % comes back."""
    blocks = beside(cells, [n // 4 for n in cells], (-4.0, 0.0, 4.0), offset=True, curve=0.1)

    def pulse(x, y, z):
        s = 1e-4 * np.exp(-(((x + 2) / 0.5) ** 2))
        return 1 + s, s, 0 * x, 0 * x, P0 + s

    grid = Grid(blocks, period=({"j": (0.0, 1.0, 0.0)},) * 2)
    simulation = Simulation(case([PERIODIC], {"end": 3.5, "cfl": 0.5}), backend="cpu", grid=grid, initial=pulse)
    simulation.run()
    left, right = simulation.blocks
    came = 0.5 * (left.state("p") - P0 - left.state("u"))[simulation.solver.states[0].block.x < -0.3]
    passed = 0.5 * (right.state("p") - P0 + right.state("u"))
    assert np.abs(came).max() < 1e-3 * 1e-4
    assert passed.max() > 0.97e-4


def test_friction_passes():
    """A decaying shear wave of which the interface cuts the middle, to the accuracy of one block."""
    decay = math.pi**2 / 20.0

    def wave(time):
        return lambda x, y, z: (
            1 + 0 * x, 0 * x, 1e-3 * np.exp(-decay * time) * np.sin(math.pi * x), 0 * x, P0 + 0 * x
        )  # fmt: skip

    found = []
    for cells in ((10, 15), (20, 30)):
        blocks = beside(cells, cells, (-1.0, 0.0, 1.0), offset=True)
        grid = Grid(blocks, period=({"j": (0.0, 1.0, 0.0)},) * 2)
        time = {"end": 0.5, "dt": 0.5 / max(cells) ** 2}
        walls = {"faces": "all", "type": "no-slip-wall"}
        spec = case([PERIODIC, walls], time, gas={"reynolds": 20.0})
        simulation = Simulation(spec, backend="cpu", grid=grid, initial=wave(0))
        simulation.run()
        found.append(errors(simulation, "v", lambda x, y, z: wave(0.5)(x, y, z)[2])[1] / 1e-3)
    assert found[0] < 2e-4
    assert math.log2(found[0] / found[1]) > 3.7


def test_a_shear_layer_stays():
    def layer(x, y, z, t=0.0):
        return 1 + 0 * x, 0.5 + 0.25 * np.tanh(y / 0.1), 0 * x, 0 * x, P0 + 0 * x

    worst = {}
    for name, cells, across in (("patched", (18, 27), (27, 40)), ("joined", (18, 18), (27, 27))):
        blocks = beside(cells, across, (-0.5, 0.0, 0.5), ys=(-0.5, 0.5), curve=0.1)
        walls = {"faces": ["jmin", "jmax"], "type": "slip-wall"}
        spec = case(
            [walls, {"block": "b0", "faces": ["imin"], "type": "profile-inflow", "function": "layer"},
             {"block": "b1", "faces": ["imax"], "type": "characteristic-outflow", "pressure": P0}],
            {"end": 6.0, "cfl": 0.5},
        )  # fmt: skip
        boundary = spec.model_dump()["boundary"][:-1]
        boundary = boundary if name == "patched" else boundary[2:]
        grid = Grid(blocks) if name == "patched" else Grid(blocks, tuple(matched_connections(blocks)))
        spec = Case.from_dict({**spec.model_dump(), "boundary": boundary})
        simulation = Simulation(spec, backend="cpu", grid=grid, initial=layer, profiles={"layer": layer})
        simulation.run()
        worst[name] = errors(simulation, "v", lambda x, y, z: 0.0)[0]
    assert worst["patched"] < 1.2 * worst["joined"] < 1e-3


def test_a_shock_passes():
    """Sod's tube across a curved face of 2:3 spacing; mass and energy are kept to a thousandth."""

    def tube(x, y, z):
        left = x < -0.2
        return np.where(left, 1.0, 0.125), 0 * x, 0 * x, 0 * x, np.where(left, 1.0, 0.1)

    blocks = beside((32, 48), (16, 24), (-0.5, 0.0, 0.5), ys=(0.0, 0.25), offset=True, curve=0.02)
    grid = Grid(blocks, period=({"j": (0.0, 0.25, 0.0)},) * 2)
    time = {"end": 0.15, "cfl": 0.5}
    tables = {"conservation": {"every": 1000}}
    spec = case([PERIODIC, {"faces": "all", "type": "supersonic-outflow"}], time, **tables)
    simulation = Simulation(spec, backend="cpu", grid=grid, initial=tube)
    begin = totals(simulation)
    simulation.run()
    change = (totals(simulation) / begin - 1)[[0, 4]]
    assert 1e-8 < np.abs(change).max() < 1e-3  # not conservative, but nearly
    for block in simulation.blocks:
        assert block.state("p").min() > 0.09 and block.state("rho").min() > 0.12


def totals(simulation):
    """Integrals of the conservative variables; the shared face counts half on each side."""
    total = np.full(5, 1e-300)
    for state in simulation.solver.states:
        weight = 1 / state.interior(state.jacobian)
        weight[..., 0] *= 0.5
        weight[..., -1] *= 0.5
        total += (state.interior(state.q) * weight).sum(axis=(1, 2, 3))
    return total


def test_a_strong_shock_passes():
    """A pressure ratio of a million: the interpolation steps back to the linear one, which is convex."""

    def tube(x, y, z):
        return 1 + 0 * x, 0 * x, 0 * x, 0 * x, np.where(x < -0.1, 1e5, 0.1)

    blocks = beside((24, 16), (12, 8), (-0.5, 0.0, 0.5), ys=(0.0, 0.3), offset=True, curve=0.02)
    grid = Grid(blocks, period=({"j": (0.0, 0.3, 0.0)},) * 2)
    spec = case([PERIODIC, {"faces": "all", "type": "supersonic-outflow"}], {"end": 8e-4, "cfl": 0.4})
    simulation = Simulation(spec, backend="cpu", grid=grid, initial=tube)
    simulation.run()
    assert simulation.blocks[1].state("p").max() > 1e4


# ---- ranks, cuts, restarts


def step():
    """A small block on a part of the face of a larger one of other spacing, and a case of friction on it."""
    left = beside((13, 13), (13, 16), (-1.0, 0.0, 1.0), ys=(0.0, 1.0))[0]
    right = beside((13, 15), (13, 27), (-1.0, 0.0, 1.0), ys=(-1.0, 1.0))[1]
    spec = case([{"faces": "all", "type": "slip-wall"}], {"steps": 10, "dt": 5e-3}, gas={"reynolds": 100.0})
    tables = spec.model_dump()
    tables["boundary"][1]["range"] = {"j": [14, "end"]}
    return Case.from_dict(tables), Grid((left, right))


def quarters(ranks):
    """Cuts both blocks in 2 x 2 parts, the interface as well, and deals them to the ranks."""

    def parts(decomposition):
        found = []
        for b, block in enumerate(decomposition.blocks):
            (ni, nj, _), box = block.size, whole_box(block.size)
            for i in ((0, ni // 2), (ni // 2, ni)):
                for j in ((0, nj // 2), (nj // 2, nj)):
                    found.append(Part(b, (i, j, box[2]), len(found) % ranks))
        return found

    return parts


def computed(team, cuts, backends):
    """Each part of this rank: whole block, box, primitives after ten steps."""
    spec, grid = step()
    ground = domain(spec, team, grid, quarters(team.size) if cuts else None)
    solver = Solver(spec, backend(backends[team.rank % len(backends)]), domain=ground)
    solver.initialize(waves)
    for _ in range(10):
        solver.step()
    return [(s.part.whole, s.part.box, solver.primitives(n)) for n, s in enumerate(solver.states)]


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_the_answer_does_not_depend_on_cut_and_ranks(ranks):
    whole = {b: values for b, _, values in computed(alone(), False, ["cpu"])}
    rows = [computed(alone(), True, ["cpu"])] if ranks == 1 else run_ranks(ranks, computed, True, ["cpu", "emulated"])
    parts = [part for row in rows for part in row]
    assert len(parts) == 8 and all(np.isfinite(field).all() for values in whole.values() for field in values.values())
    for b, box, values in parts:
        for name, field in values.items():
            wanted = whole[b][name][tuple(slice(lo, hi) for lo, hi in reversed(box))]
            np.testing.assert_allclose(field, wanted, rtol=0, atol=1e-13, err_msg=name)


def test_restart_is_bit_identical(tmp_path):
    spec, grid = step()
    one = Simulation(spec, backend="cpu", grid=grid, initial=waves, out=tmp_path / "one")
    one.run()
    half = Case.from_dict({**spec.model_dump(), "time": {"steps": 5, "dt": 5e-3}})
    Simulation(half, backend="cpu", grid=grid, initial=waves, out=tmp_path / "two").run()
    two = Simulation(spec, backend="cpu", grid=grid, restart=tmp_path / "two", out=tmp_path / "two")
    two.run()
    for a, b in zip(one.blocks, two.blocks, strict=True):
        for name in ("rho", "u", "v", "p"):
            np.testing.assert_array_equal(a.state(name), b.state(name))


# ---- files


def saved(folder, blocks, connectivity, name="join.toml"):
    named = [replace(block, name=f"b{n}") for n, block in enumerate(blocks)]
    write_plot3d(folder / "grid.xyz", Grid(named))
    (folder / name).write_text(connectivity)
    return folder / "grid.xyz", folder / name


JOIN = """
blocks = ["b0", "b1"]
[[connection]]
block = "b0"
face = "imax"
donor = "b1"
donor_face = "imin"
layout = "patched"
"""


def test_a_connectivity_file_joins_by_interpolation(tmp_path):
    """As the conditions of a case do; written, it reads the same; a wall named on the face comes first."""
    blocks = beside((12, 12), (12, 18), (-1.0, 0.0, 1.0))
    grid = read_grid(*saved(tmp_path, blocks, JOIN))
    spec = case([{"faces": "all", "type": "slip-wall"}], {"steps": 1})
    tables = spec.model_dump()
    plain = Case.from_dict({**tables, "boundary": tables["boundary"][2:]})
    sides = [(p.block, p.face, p.range, p.condition.type) for p in decompose(spec, Grid(blocks)).patches]
    assert [(p.block, p.face, p.range, p.condition.type) for p in decompose(plain, grid).patches] == sides
    write_connectivity(tmp_path / "again.toml", grid)
    again = read_grid(tmp_path / "grid.xyz", tmp_path / "again.toml")
    assert [block.regions for block in again.blocks] == [block.regions for block in grid.blocks]
    wall = {"block": "b1", "faces": ["imin"], "range": {"j": [0, 4]}, "type": "slip-wall"}
    walled = Case.from_dict({**tables, "boundary": [wall, *tables["boundary"][2:]]})
    found = {
        (p.range[1], p.condition.type) for p in decompose(walled, grid).patches if (p.block, p.face) == (1, "imin")
    }
    assert found == {((0, 4), "slip-wall"), ((4, 19), "patched")}
    with pytest.raises(HiresxError, match='transform with layout = "patched"'):
        read_grid(*saved(tmp_path, blocks, JOIN + "transform = [1, 2, 3]\n"))


def test_faces_that_meet_are_offered(tmp_path):
    """`hiresx new --from` writes a case with patched faces in place; the error of a plain case names the mend."""
    blocks = beside((12, 12), (12, 18), (-1.0, 0.0, 1.0))
    write_plot3d(tmp_path / "grid.xyz", Grid(blocks))
    (tmp_path / "case.toml").write_text(case_text(tmp_path / "grid.xyz", survey(tmp_path / "grid.xyz")))
    offered = load(tmp_path)
    whole = decompose(offered, build(offered.grid, tmp_path))
    assert [entry.donor.tolist() for entry in patched.located(whole, extended_coordinates(whole))] == [
        [1] * 39,
        [0] * 57,
    ]
    closed = Case.from_dict({**offered.model_dump(), "boundary": [{"faces": "all", "type": "slip-wall"}]})
    with pytest.raises(HiresxError) as error:
        decompose(closed, build(closed.grid, tmp_path))
    assert '[[boundary]] with type = "patched"' in error.value.mend


def test_abutting_zones_of_a_cgns_file(tmp_path):
    cgns_files = pytest.importorskip("cgns_files", reason="no h5py", exc_type=ImportError)
    blocks = beside((12, 12), (12, 18), (-1.0, 0.0, 1.0))
    with cgns_files.begin(tmp_path / "grid.cgns") as file:
        base = cgns_files.base(file, 2, 2)
        for block, donor, i in ((blocks[0], "b1", 13), (blocks[1], "b0", 1)):
            zone = cgns_files.zone(base, block, block.name, 2, 2)
            held = cgns_files.holder(zone, "ZoneGridConnectivity", "ZoneGridConnectivity_t")
            made = cgns_files.node(held, "other", "GridConnectivity_t", donor)
            cgns_files.node(made, "GridConnectivityType", "GridConnectivityType_t", "Abutting")
            cgns_files.index_range(made, "PointRange", (i, 1), (i, block.size[1]))
    grid = read_grid(tmp_path / "grid.cgns")
    assert [list(block.regions) for block in grid.blocks] == [["patched"], ["patched"]]
    plain = case([{"faces": "all", "type": "slip-wall"}], {"steps": 1}).model_dump()
    whole = decompose(Case.from_dict({**plain, "boundary": plain["boundary"][2:]}), grid)
    assert [(p.block, p.face) for p in whole.patches if p.condition.type == "patched"] == [(0, "imax"), (1, "imin")]


CFL3D = """
     NGRID
    IDIM    JDIM    KDIM
      13      13      02
      13      19      02
I0:   GRID   SEGMENT    BCTYPE      JSTA      JEND      KSTA      KEND     NDATA
         1         1      2008         0         0         0         0         0
         2         1      {side}         0         0         0         0         0
IDIM: GRID   SEGMENT    BCTYPE      JSTA      JEND      KSTA      KEND     NDATA
         1         1      0000         0         0         0         0         0
         2         1      2002         0         0         0         0         0
   1-1 BLOCKING DATA:
      NBLI
         0
 NUMBER   GRID     :    ISTA   JSTA   KSTA   IEND   JEND   KEND  ISVA1  ISVA2
 NUMBER   GRID     :    ISTA   JSTA   KSTA   IEND   JEND   KEND  ISVA1  ISVA2
  PATCH SURFACE DATA:
    NINTER
        {count}
"""


def test_the_input_of_cfl3d_says_what_is_patched(tmp_path):
    """Segments of type 0 that no blocking data join, where the file has patched surfaces."""
    blocks = beside((12, 12), (12, 18), (-1.0, 0.0, 1.0))
    nodes = [[np.repeat(c, 2, axis=0) for c in (b.x, b.y)] for b in blocks]
    thick = [Delivered("b", x, y, np.arange(2.0)[:, None, None] + 0 * x) for x, y in nodes]
    for side, count, wanted in (("0000", -1, ["patched"]), ("0000", 0, []), ("2004", -1, ["viscous-wall"])):
        grid = read_grid(*saved(tmp_path, thick, CFL3D.format(side=side, count=count), "cfl3d.inp"))
        assert [name for name, parts in grid.blocks[1].regions.items() if parts[0][0] == "imin"] == wanted
        assert ("patched" in grid.blocks[0].regions) == (count != 0)


def test_what_an_interface_fails_to_keep_is_measured(tmp_path):
    """`[conservation]` has what leaves both sides together: in a smooth flow next to nothing."""
    blocks = beside((12, 12), (12, 18), (-1.0, 0.0, 1.0), offset=True)
    grid = replace(read_grid(*saved(tmp_path, blocks, JOIN)), period=({"j": (0.0, 1.0, 0.0)},) * 2)

    def jet(x, y, z):
        return 1 + 0 * x, 0.3 + 0.1 * np.sin(2 * math.pi * (y - 0.3 * x)), 0 * x, 0 * x, P0 + 0 * x

    plain = case([PERIODIC], {"steps": 20, "cfl": 0.5}, conservation={"every": 20}).model_dump()
    spec = Case.from_dict({**plain, "boundary": plain["boundary"][2:]})
    simulation = Simulation(spec, backend="cpu", grid=grid, initial=jet, out=tmp_path / "out")
    simulation.run()
    table = history.read(history.histories(tmp_path / "out")["conservation"])
    assert 1e-12 < abs(table.data["mass_flux_patched"][-1]) < 2e-4 * 0.3
