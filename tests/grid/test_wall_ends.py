"""Walls that end beside a connection of the same face: the nodes of both belong to the wall, as with a connectivity
file whose region includes them."""

from itertools import pairwise

import numpy as np
import pytest
from arrangements import FAR, decomposed
from multiblock import Arrangement

from hiresx import Case, Simulation
from hiresx.case import load, toml
from hiresx.case.boundaries import NoSlipWall
from hiresx.case.grids import BackwardStep
from hiresx.case.wing import WingCH
from hiresx.cli.check_walls import notes_of_ends
from hiresx.decomposition import decompose
from hiresx.errors import HiresxError
from hiresx.grid import Block, Grid, build, matched_connections, write_connectivity, write_plot3d

GAS = {"rho": 1.0, "u": 0.15, "v": 0.01, "p": 0.7142857142857143}
BOX = {"generator": "box", "n": [9, 9, 1], "lower": [0, 0, 0], "upper": [1, 1, 0]}  # replaced by a grid
AIRFOIL = {"n_airfoil": 41, "n_wake": 12, "n_normal": 13}
# the nodes of the trailing edge, at both ends of the wall
LOWER, UPPER = 12, 52


def case_of(folder, connectivity, *walls, **tables) -> Case:
    """A case on the grid in `folder` whose `walls` are slip walls unless they say otherwise; its other faces are far
    fields."""
    grid = {"file": str(folder / "grid.xyz")} | ({"connectivity": str(folder / "join.toml")} if connectivity else {})
    boundary = [{"type": "slip-wall"} | wall for wall in walls]
    boundary.append({"faces": "all", "type": "far-field", "state": GAS})
    given = {"title": "t", "grid": grid, "time": {"steps": 2}, "initial": {"state": GAS}, "boundary": boundary}
    return Case.from_dict(given | tables)


def divided(folder, connectivity, *walls):
    case = case_of(folder, connectivity, *walls)
    return decompose(case, build(case.grid))


def parts_of(found):
    """What holds the nodes of faces: connections, and patches by the type of their condition."""
    return list(found.connections), [(p.block, p.face, p.range, p.condition.type) for p in found.patches]


def write(folder, grid: Grid, cuts=()) -> None:
    """Writes the first block of a grid, cut along i, and the connectivity of the whole."""
    write_connectivity(folder / "join.toml", grid)
    block = grid.blocks[0]
    ends = [0, *cuts, block.size[0] - 1]
    parts = [np.s_[..., a : b + 1] for a, b in pairwise(ends)]
    blocks = [Block(str(n), *(c[part] for c in block.coordinates)) for n, part in enumerate(parts)]
    write_plot3d(folder / "grid.xyz", Grid(blocks))


def airfoil() -> Grid:
    """A C-grid with a region "wall" that includes the trailing edge."""
    return build(load("naca0012", overrides=[f"grid.{key}={n}" for key, n in AIRFOIL.items()]).grid)


@pytest.mark.parametrize("range_", [{}, {"i": [LOWER + 1, UPPER]}, {"i": [LOWER, UPPER + 1]}, {"i": [LOWER, UPPER]}])
def test_the_trailing_edge_of_a_c_grid_belongs_to_the_wall(tmp_path, range_):
    """Whether or not the case names these nodes."""
    write(tmp_path, airfoil())
    wanted = divided(tmp_path, True, {"faces": "all", "range": "wall"})
    found = divided(tmp_path, False, {"faces": ["jmin"], "range": range_})
    assert parts_of(found) == parts_of(wanted)
    assert found.patches[0].range[0] == (LOWER, UPPER + 1)
    assert list(notes_of_ends(found)) == list(notes_of_ends(wanted)) == []


def test_a_wall_beyond_the_end_of_a_connection_is_refused(tmp_path):
    write(tmp_path, airfoil())
    with pytest.raises(HiresxError, match=rf"both hold node \(i, j, k\) = \({LOWER - 1}, 0, 0\)"):
        divided(tmp_path, False, {"faces": ["jmin"], "range": {"i": [LOWER - 1, UPPER + 1]}})


def test_two_walls_have_the_edge_on_their_sides(tmp_path):
    """Each of two blocks has one side of the cut, and one of the walls. The nose, which both blocks have, belongs to
    the first wall."""
    write(tmp_path, airfoil(), cuts=[32])
    lower = {"block": "block-1", "faces": ["jmin"], "range": {"i": [LOWER + 1, "end"]}, "temperature": 1.1}
    upper = {"block": "block-2", "faces": ["jmin"], "range": {"i": [0, UPPER - 32]}, "temperature": 1.2}
    found = divided(tmp_path, False, *({"type": "no-slip-wall"} | wall for wall in (lower, upper)))
    walls = [p for p in found.patches if p.condition.type == "no-slip-wall"]
    assert sorted((p.block, p.range[0], p.condition.temperature) for p in walls) == [
        (0, (LOWER, 33), 1.1),
        (1, (0, 1), 1.1),
        (1, (1, UPPER - 31), 1.2),
    ]
    assert [c.range[0] for c in found.connections if c.face == "jmin"] == [(0, LOWER), (UPPER - 31, 33)]


def test_other_conditions_leave_the_edge_to_the_connection(tmp_path):
    """A far field, and a wall of one side if a far field begins on the other; `hiresx check` tells of the latter."""
    write(tmp_path, airfoil())
    open_, half = divided(tmp_path, False), divided(tmp_path, False, {"faces": ["jmin"], "range": {"i": [LOWER, 32]}})
    for found in (open_, half):
        assert [c.range[0] for c in found.connections] == [(0, LOWER + 1), (UPPER, 65)]
    assert list(notes_of_ends(open_)) == []
    (note,) = notes_of_ends(half)
    assert note.startswith("the slip-wall on face jmin of block 'block-1' ends beside a connection")
    assert f"the node (i, j, k) = ({LOWER}, 0, 0) at (x, y, z) = (1, 0, 0), since another condition begins" in note
    with pytest.raises(HiresxError, match="both hold node"):
        far = {"faces": ["jmin"], "range": {"i": [LOWER, 32]}, "type": "far-field", "state": GAS}
        divided(tmp_path, False, far)


def test_the_edge_of_a_step_belongs_to_the_wall(tmp_path):
    """A channel that opens into a higher one: beyond the edge there is no block on the other side."""
    x, y = np.meshgrid(np.linspace(-1.0, 0.0, 9), np.linspace(0.0, 1.0, 9))
    wide = x.repeat(2, axis=0)[1:] + 1, np.vstack([y[:-1] - 1, y])
    blocks = [Block(name, a[None], b[None], 0 * a[None]) for name, (a, b) in (("a", (x, y)), ("b", wide))]
    write_plot3d(tmp_path / "grid.xyz", Grid(blocks))
    joint = {"block": "block-1", "face": "imax", "donor": "block-2", "donor_face": "imin"}
    joint["donor_range"] = {"j": [8, 17]}
    region = {"name": "step", "block": "block-2", "face": "imin", "range": {"j": [0, 9]}}
    (tmp_path / "join.toml").write_text(toml.dumps({"connection": [joint], "region": [region]}))
    floor = {"block": "block-1", "faces": ["jmin"]}
    wanted = divided(tmp_path, True, floor, {"faces": "all", "range": "step"})
    found = divided(tmp_path, False, floor, {"block": "block-2", "faces": ["imin"], "range": {"j": [0, 8]}})
    assert parts_of(found) == parts_of(wanted)
    assert [(e.block, e.face, e.range[:2]) for e in found.step_edges] == [
        (0, "jmin", ((8, 9), (0, 1))),
        (1, "imin", ((0, 1), (8, 9))),
    ]


@pytest.mark.parametrize("wall, walls_above", [("no-slip-wall", ["jmin"]), ("slip-wall", [])])
def test_the_edge_of_a_step_where_three_blocks_meet(wall, walls_above):
    """The block above the step has it in its own corner, and is connected there in both directions. A no-slip wall sets
    the node. Two slip walls would leave the gas no velocity."""
    grid = build(BackwardStep(spacing=0.1, upstream=0.8, length=0.8, height=0.8, depth=0.8))
    walls = {"type": wall, "faces": "all", "range": "step"}
    found = decompose(Case.from_dict({"grid": BOX, "time": {"steps": 1}, "boundary": [walls, FAR]}), grid)
    above = [p.face for p in found.patches if p.block == 1 and p.condition.type == wall]
    assert above == walls_above
    for face, along in (("imin", 1), ("jmin", 0)):
        ranges = [c.range[along] for c in found.connections if (c.block, c.face) == (1, face)]
        assert sorted(n for ends in ranges for n in range(*ends)) == [*range(9)]


def wing() -> Block:
    (block,) = build(
        WingCH(
            semi_span=1.5, taper=0.6, sweep=30.0, tip=0.04, n_airfoil=32, n_wake=12, n_normal=13, cells=[10, 2, 12],
            stretching=1.6, wake=10.0, far_field=10.0, first_spacing=0.024, trailing_edge_spacing=0.04,
        )
    ).blocks  # fmt: skip
    return block


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("whole, region", [(lambda: airfoil().blocks[0], "wall"), (wing, "wing")], ids=["2-D", "3-D"])
def test_walls_of_turned_blocks(whole, region, seed):
    """However the blocks are cut and turned, a wall has the nodes of all of its cells, and no others. The edge of a
    wing turns round a corner at the tip."""
    block = whole()
    ((_, wall),) = block.regions[region]
    made = Arrangement(Block("whole", *block.coordinates), 6, seed, True)
    conditions, wanted = [], {}
    for n, held in enumerate(made.held):
        common = [(max(a, c), min(b, d)) for (a, b), (c, d) in zip(held, wall, strict=True)]
        if any(hi <= lo for lo, hi in common):
            continue
        face, range_ = made._on_face(n, common, 1, -1)
        wanted[n, face] = range_
        # a part that has no more than the end of the wall gets it from its neighbours
        if all(hi - lo > 1 for d, (lo, hi) in enumerate(common) if d != 1 and d in block.active):
            conditions.append(NoSlipWall(block=f"part-{n}", faces=[face], range=range_))
    found = decomposed(Grid(made.blocks, matched_connections(made.blocks)), *conditions, FAR)
    walls = [p for p in found.patches if p.condition.type == "no-slip-wall"]
    assert {
        (p.block, p.face): {e: list(p.range["ijk".index(e)]) for e in wanted[p.block, p.face]} for p in walls
    } == wanted
    assert len(walls) == len(wanted) > 0
    assert list(notes_of_ends(found)) == []


@pytest.mark.parametrize("wall", ["slip-wall", "no-slip-wall"])
def test_a_cut_at_the_trailing_edge_does_not_change_the_flow(wall):
    """Nor does one within the wall: behind the whole wall grid lines continue on polynomials of one degree."""
    block = airfoil().blocks[0]
    found = []
    for cuts in ([], [LOWER, UPPER], [20, UPPER]):
        ends = list(pairwise([0, *cuts, block.size[0] - 1]))
        blocks = [Block(str(n), *(c[..., a : b + 1] for c in block.coordinates)) for n, (a, b) in enumerate(ends)]
        boundary = [
            {
                "type": wall,
                "block": str(n),
                "faces": ["jmin"],
                "range": {"i": [max(LOWER - a, 0), min(b, UPPER) - a + 1]},
            }
            for n, (a, b) in enumerate(ends)
            if a < UPPER and b > LOWER
        ]
        boundary.append({"faces": "all", "type": "far-field", "state": GAS})
        given = {"grid": BOX, "time": {"steps": 10}, "initial": {"state": GAS}, "boundary": boundary}
        case = Case.from_dict(given | ({"gas": {"reynolds": 1000.0}} if wall == "no-slip-wall" else {}))
        simulation = Simulation(case, "cpu", grid=Grid(blocks, tuple(matched_connections(blocks))))
        simulation.run(progress=False)
        states = np.full((4, *block.x.shape), np.nan)
        for part, (a, b) in zip(simulation.blocks, ends, strict=True):
            states[..., a : b + 1] = [part.state(name) for name in ("rho", "u", "v", "p")]
        found.append(states)
    for states in found[1:]:
        np.testing.assert_allclose(states, found[0], rtol=0, atol=1e-13)


def joukowski() -> Grid:
    """A C-grid around a cambered airfoil with a cusp. The Joukowski map takes a circle to a slit, whose square root is
    a straight line."""
    along = -2 * np.cos(np.linspace(0, np.pi, AIRFOIL["n_airfoil"]))
    behind = 2 + 0.02 * (1.4 ** np.arange(1, AIRFOIL["n_wake"] + 1) - 1)
    s = np.concatenate([-behind[::-1], along, behind]) + 0.05j * (1.3 ** np.arange(17)[:, None] - 1)
    circle = (s * s - 2 + s * np.sqrt(s - 2) * np.sqrt(s + 2)) / 2
    centre = -0.1 + 0.06j
    z = centre + (1 - centre) * circle
    z = (z + 1 / z)[None]
    return Grid([Block("c", z.real.copy(), z.imag.copy(), 0 * z.real)])


def test_the_flow_around_an_airfoil_needs_no_connectivity_file(tmp_path):
    """Lift, drag and area are those with the file in which the region includes the trailing edge."""
    grid = joukowski()
    write(tmp_path, grid)
    cut = {"range": {"i": [0, LOWER + 1]}, "donor": "c", "donor_face": "jmin", "donor_range": {"i": [UPPER, 65]}}
    face = {"block": "c", "face": "jmin"}
    wall = {"name": "wall", "range": {"i": [LOWER, UPPER + 1]}}
    tables = {"blocks": ["c"], "connection": [face | cut], "region": [face | wall]}
    (tmp_path / "join.toml").write_text(toml.dumps(tables))
    found = []
    for connectivity in (True, False):
        force = {"name": "airfoil", "faces": ["jmin"], "coefficients": {}, "every": 1}
        case = case_of(tmp_path, connectivity, {"faces": ["jmin"]}, force=[force])
        simulation = Simulation(case, "cpu")
        simulation.run(progress=False)
        (forces,) = (a.history.table().flat() for a in simulation.attachments if a.name == "history.airfoil")
        states = [simulation.blocks[0].state(name) for name in ("rho", "u", "v", "p")]
        found.append([*states, *(forces[key] for key in ("lift_coefficient", "drag_coefficient", "area"))])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-13, atol=1e-13)
    x, y, _ = grid.blocks[0].coordinates
    around = np.hypot(np.diff(x[0, 0, LOWER : UPPER + 1]), np.diff(y[0, 0, LOWER : UPPER + 1])).sum()
    assert found[1][-1][-1] == pytest.approx(around, rel=5e-3)
