"""Blocks that meet without being joined: never closed off in silence."""

import re

import numpy as np
import pytest
from arrangements import decomposed, free_stream_residual

from hiresx import load
from hiresx.case import toml
from hiresx.case.boundaries import Periodic, SlipWall
from hiresx.case.grid_file import GridFile
from hiresx.cli import execute
from hiresx.decomposition import extended_coordinates
from hiresx.errors import HiresxError
from hiresx.grid import Block, Grid, build, matched_connections, write_plot3d
from hiresx.grid.touching import touching

ALL = SlipWall(faces="all")


def sheet(x, y, z=(0.0,), bend=0.0) -> np.ndarray:
    """Nodes of a box of grid lines, its sides at constant x bent."""
    z, y, x = np.meshgrid(z, y, x, indexing="ij")
    return np.stack([x + bend * y * (1 - y), y, z])


def grid_of(folder, *blocks, **keys) -> Grid:
    blocks = tuple(Block(str(n), *nodes) for n, nodes in enumerate(blocks))
    write_plot3d(folder / "g.x", Grid(blocks))
    return build(GridFile(file=str(folder / "g.x"), **keys))


def lines(lo, hi, n):
    return np.linspace(lo, hi, n)


@pytest.mark.parametrize("bend", [0.0, 0.3])
@pytest.mark.parametrize("span", [(0.0,), lines(0, 1, 9)], ids=["2d", "3d"])
@pytest.mark.parametrize("counts", [(17, 23), (17, 31), (33, 9)])
def test_a_patched_interface(tmp_path, counts, span, bend):
    """Unequal spacing on both sides; where end nodes and here and there a node coincide no join is made of it."""
    left = sheet(lines(0, 1, 12), lines(0, 1, counts[0]), span, bend)
    right = sheet(lines(1, 2, 12), lines(0, 1, counts[1]) ** 1.1, span, bend)
    grid = grid_of(tmp_path, left, right)
    assert not grid.connections
    assert {(t.block, t.face, t.other, t.other_face) for t in grid.touching} == {
        (0, "imax", 1, "imin"), (1, "imin", 0, "imax")
    }  # fmt: skip
    with pytest.raises(HiresxError, match=r"takes a face that meets another block: face imax of block 'block-1'") as e:
        decomposed(grid, ALL)
    assert 'block = "block-1" and faces = ["imax"]' in e.value.hint
    walls = [SlipWall(faces=["imax"], block="block-1"), SlipWall(faces=["imin"], block="block-2")]
    decomposed(grid, *walls, ALL)
    with pytest.raises(HiresxError, match="face imin of block 'block-2'"):
        decomposed(grid, walls[0], ALL)
    with pytest.raises(HiresxError, match="face imax of block 'block-1'"):  # of every block: not by name
        decomposed(grid, SlipWall(faces=["imax"]), walls[1], ALL)


def test_some_nodes_coincide_by_chance(tmp_path):
    """Two neighbouring nodes of the faces are the same: one cell's width is no join."""
    y = lines(0, 1, 17)
    other = np.concatenate([y[:8:2], y[8:10], lines(y[9], 1, 9)[1:]])
    grid = grid_of(tmp_path, sheet(lines(0, 1, 9), y), sheet(lines(1, 2, 9), other))
    assert not grid.connections
    with pytest.raises(HiresxError, match="meets another block"):
        decomposed(grid, ALL)


def test_a_narrow_join_is_made_and_said(tmp_path, caplog):
    """Blocks that share 4 nodes and nothing else, as a step has it."""
    caplog.set_level("INFO")
    y = lines(0, 1, 17)
    grid = grid_of(tmp_path, sheet(lines(0, 1, 9), y), sheet(lines(1, 2, 9), y[13] + y[:9] + 0 * y[:9]))
    assert [c.range[1] for c in grid.connections] == [(13, 17), (0, 4)] and not grid.touching
    assert "joined over 4 x 1 nodes only: block 'block-1', face imax" in caplog.text
    decomposed(grid, ALL)


@pytest.mark.parametrize("gap", [0.5, 0.1, -0.5, -2.6])
def test_gaps_and_overlaps(tmp_path, gap):
    h = 1 / 12
    y = lines(0, 1, 17)
    grid = grid_of(tmp_path, sheet(lines(0, 1, 13), y), sheet(1 + gap * h + lines(0, 1, 13), y))
    with pytest.raises(HiresxError, match="lies on face imin" if gap > -1 else "lies inside block 'block-2'"):
        decomposed(grid, ALL)


@pytest.mark.parametrize("gap", [0.76, 0.9, 1.0, 1.05])
@pytest.mark.parametrize("count", [17, 26])
def test_gaps_of_nearly_a_cell(tmp_path, gap, count):
    h = 1 / 12
    right = sheet(1 + gap * h + lines(0, 1, 13), lines(0, 1, count))
    grid = grid_of(tmp_path, sheet(lines(0, 1, 13), lines(0, 1, 17)), right)
    with pytest.raises(HiresxError, match=r"lies (on|one spacing from) face imin of block 'block-2'"):
        decomposed(grid, ALL)


def one_step(kind: str) -> list:
    """Blocks whose grid lines go on in the next one: no node is held twice. Steps grow by 15 % from node to node."""
    y = lines(0, 1, 17) ** 1.2
    if kind == "patched":  # of other counts
        return [sheet(lines(0, 1, 13), y), sheet(1 + 1 / 12 + lines(0, 1, 13), lines(0, 1, 30))]
    x = np.concatenate([[0], np.cumsum(1.15 ** np.arange(25))]) / 40
    z = lines(0, 1, 9) if kind == "3-D" else (0.0,)
    left, right = sheet(x[:13], y, z, 0.1), sheet(x[13:], y, z, 0.1)
    if kind == "turned":
        right = right.transpose(0, 1, 3, 2)[:, :, :, ::-1]
    return [left, right]


@pytest.mark.parametrize("kind", ["plane", "turned", "3-D", "patched"])
def test_blocks_one_step_apart(tmp_path, kind):
    """A gap of a cell is named; where line goes on in line the mend is the layout, and it does mend it."""
    blocks = one_step(kind)
    grid = grid_of(tmp_path, *blocks)
    assert len(grid.touching) == 2 and {t.one_step for t in grid.touching} == {kind != "patched"}
    with pytest.raises(HiresxError, match="takes a face that meets another block") as error:
        decomposed(grid, ALL)
    assert ('layout = "offset"' in error.value.hint) == (kind != "patched")
    if kind != "patched":
        assert "lies one spacing from face" in error.value.message
        own, other = grid.touching[0], grid.touching[1]
        (tmp_path / "join.toml").write_text(toml.dumps({"connection": [{
            "block": "block-1", "face": own.face, "donor": "block-2", "donor_face": other.face, "layout": "offset"
        }]}))  # fmt: skip
        joined = build(GridFile(file="g.x", connectivity="join.toml"), tmp_path)
        assert len(joined.connections) == 2 and not joined.touching
        decomposed(joined, ALL)


def ring(n: int) -> np.ndarray:
    """An O-grid of `n` nodes around, unevenly spread, without the one that would close it."""
    t, r = np.meshgrid(2 * np.pi * np.arange(n) / n, 1.1 ** np.arange(12), indexing="ij")
    t = t + 0.3 * np.sin(t)
    return np.stack([r * np.cos(t), r * np.sin(t), 0 * r])[:, None]


def test_an_o_grid_without_its_last_node(tmp_path):
    grid = grid_of(tmp_path, ring(40))
    assert [(t.face, t.other_face, t.closes) for t in grid.touching] == [("jmin", "jmax", True), ("jmax", "jmin", True)]
    with pytest.raises(HiresxError, match=r"face jmin of block 'block-1'.* lies one spacing from face jmax") as error:
        decomposed(grid, ALL)
    assert "period = { j = [0.0, 0.0, 0.0] }" in error.value.hint
    closed = grid_of(tmp_path, ring(40), period={"j": (0.0, 0.0, 0.0)})
    seams = decomposed(closed, Periodic(faces=["jmin", "jmax"]), ALL).connections
    assert [(c.face, c.offset[1]) for c in seams] == [("jmin", 40), ("jmax", -40)]
    for extended in extended_coordinates(decomposed(closed, Periodic(faces=["jmin", "jmax"]), ALL)):
        assert free_stream_residual(extended) < 1e-14


def test_a_ring_with_a_wide_opening_is_one(tmp_path):
    """Two nodes left out: a slit of three steps, as thick plates leave it."""
    assert not grid_of(tmp_path, ring(40)[:, :, :38]).touching


def test_a_wide_gap_is_one(tmp_path):
    y = lines(0, 1, 17)
    grid = grid_of(tmp_path, sheet(lines(0, 1, 13), y), sheet(1.3 + lines(0, 1, 13), y))
    assert not grid.touching
    decomposed(grid, ALL)


def test_joined_by_one_edge_only(tmp_path):
    """In three dimensions: one line of nodes is shared, the others are spaced otherwise."""
    z = lines(0, 1, 9)
    left = sheet(lines(0, 1, 9), lines(0, 1, 11), z)
    right = sheet(lines(1, 2, 9), lines(0, 1, 14), z)
    grid = grid_of(tmp_path, left, right)
    assert not grid.connections
    with pytest.raises(HiresxError, match="meets another block"):
        decomposed(grid, ALL)


def test_periodic_by_mistake(tmp_path):
    """Faces that meet another block and are each other's image too."""
    y = lines(0, 1, 17)
    left, right = sheet(lines(0, 1, 9), y), sheet(lines(1, 2, 9), lines(0, 1, 23))
    grid = grid_of(tmp_path, left, right, period={"i": (1.0, 0.0, 0.0)})
    with pytest.raises(HiresxError, match=r"boundary\.0 \(periodic\) takes a face that meets another block"):
        decomposed(grid, Periodic(faces=["imin", "imax"]), ALL)


def test_two_faces_on_one(tmp_path):
    """Two blocks are joined, and a third one lies on the same face."""
    y = lines(0, 1, 17)
    blocks = [sheet(lines(0, 1, 9), y), sheet(lines(1, 2, 9), y), sheet(lines(1, 3, 9), lines(0, 1, 9))]
    grid = grid_of(tmp_path, *blocks)
    assert len(grid.connections) == 2
    with pytest.raises(HiresxError, match="block 'block-3'"):
        decomposed(grid, ALL)


def traps():
    """name -> (blocks, further keys of [grid], boundary tables before the last, words)."""
    y, z, h = lines(0, 1, 17), lines(0, 1, 9), 1 / 12
    left = sheet(lines(0, 1, 13), y)
    displaced, below = sheet(lines(1, 2, 13), y), sheet(lines(1, 2, 13), y, z)
    displaced[1, 0, 7, 0] += 0.3 / 16
    below[2, 5, 7, 0] += 0.3 / 8
    corner, edge = sheet(lines(1, 2, 13), y), sheet(lines(1, 2, 13), y, z)
    corner[0, 0, -2:, 0] += 0.2 / 12
    edge[0, :, 0, 0] += 1e-3
    chance = np.concatenate([y[:8:2], y[8:10], lines(y[9], 1, 9)[1:]])
    periodic = [{"faces": ["imin", "imax"], "type": "periodic"}]
    on = "face imax of block 'block-1'.* lies on face imin of block '{}'.*not joined to it"
    return {
        "patched, two nodes coincide": ([left, sheet(lines(1, 2, 9), chance)], {}, [], on.format("block-2")),
        "a node out of place": ([left, displaced], {}, [], "nodes i = 12:13, j = 6:9, k = 0:1, lies on face imin of"),
        "a node out of place in space": (
            [sheet(lines(0, 1, 13), y, z), below], {}, [], r"j = 6:17, k = 4:7, lies on face imin of .* \(20 c"
        ),
        "nodes out of place at the end of a face": (
            [left, corner], {}, [], "nodes i = 12:13, j = 14:17, k = 0:1, lies on face imin of"
        ),
        "an edge out of place in space": (
            [sheet(lines(0, 1, 13), y, z), edge], {}, [], r"j = 0:2, k = 0:9, lies on face imin of .* \(8 c"
        ),
        "gap of half a spacing": ([left, sheet(1 + h / 2 + lines(0, 1, 13), y)], {}, [], on.format("block-2")),
        "overlap": ([left, sheet(1 - 2.6 * h + lines(0, 1, 13), y)], {}, [], "lies inside block 'block-2'"),
        "one edge only": (
            [sheet(lines(0, 1, 9), lines(0, 1, 11), z), sheet(lines(1, 2, 9), lines(0, 1, 14), z)],
            {}, [], on.format("block-2"),
        ),
        "periodic by mistake": (
            [sheet(lines(0, 1, 9), y), sheet(lines(1, 2, 9), lines(0, 1, 23))],
            {"period": {"i": [1.0, 0.0, 0.0]}}, periodic, r"boundary\.0 \(periodic\) takes a face that meets another",
        ),
        "two faces on one": (
            [left, sheet(lines(1, 2, 9), y), sheet(lines(1, 3, 9), lines(0, 1, 9))], {}, [], "block 'block-3'"
        ),
    }  # fmt: skip


@pytest.mark.parametrize("verb", ["check", "run"])
@pytest.mark.parametrize("name", traps())
def test_no_trap_is_closed_off_in_silence(tmp_path, capsys, name, verb):
    """By the commands: they stop with both blocks, the place and the mend; said by name, the walls are walls."""
    blocks, keys, boundary, words = traps()[name]
    write_plot3d(tmp_path / "g.x", Grid(tuple(Block(str(n), *nodes) for n, nodes in enumerate(blocks))))
    state = {"rho": 1.0, "u": 0.1, "p": 0.7142857142857143}
    case = {
        "grid": {"file": "g.x", **keys},
        "time": {"steps": 1},
        "initial": {"state": state},
        "boundary": [*boundary, {"faces": "all", "type": "slip-wall"}],
    }
    (tmp_path / "case.toml").write_text(toml.dumps(case))
    assert execute([verb, str(tmp_path), *(["--out", str(tmp_path / "out")] if verb == "run" else [])]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert re.search(words, said) and "meets another block" in said and "(x, y, z) =" in said
    assert "if that is a boundary, add a [[boundary]]" in said and "Traceback" not in said
    if verb == "check" and "out of place" not in name:  # these need ranges
        met = {(t.block, t.face) for t in build(GridFile(file=str(tmp_path / "g.x"))).touching}
        named = [{"block": f"block-{b + 1}", "faces": [face], "type": "slip-wall"} for b, face in sorted(met)]
        case["boundary"] = [*named, {"faces": "all", "type": "slip-wall"}]
        (tmp_path / "case.toml").write_text(toml.dumps(case))
        assert execute(["check", str(tmp_path)]) == 0


@pytest.mark.parametrize("name, preset", [("planar-jet", "quick"), ("naca0012", None), ("cylinder-o", None)])
def test_sound_grids_have_none(name, preset):
    """Corners of every angle, thin layers at walls, a sharp edge, an O-grid joined with itself."""
    grid = build(load(name, preset=preset).grid)
    joined = Grid(grid.blocks, (*grid.connections, *matched_connections(grid.blocks)))
    assert touching(joined) == []


@pytest.mark.parametrize(("cells", "told"), [(1, False), (2, False), (3, True)])
def test_a_contact_has_a_width(tmp_path, cells, told):
    """Faces that lie on each other over a cell or two, as walls that run together at an edge do, are none."""
    y = lines(0, 1, 17)
    other = y[-1] - cells / 16 + 0.97 * y
    grid = grid_of(tmp_path, sheet(lines(0, 1, 9), y), sheet(lines(1, 2, 9), other))
    assert not grid.connections and bool(touching(grid)) == told


def test_a_block_that_is_there_twice():
    """No contact of its faces tells it from a neighbour, and behind its edges grid lines would fold."""
    y, x = np.meshgrid(np.linspace(0, 1, 9), np.linspace(0, 1, 9), indexing="ij")
    blocks = [Block(name, x[None], y[None], 0 * x[None]) for name in ("one", "two")]
    with pytest.raises(HiresxError, match="block 'two' has the same 81 nodes as block 'one'") as caught:
        matched_connections(blocks)
    assert "leave one of them out" in caught.value.hint


@pytest.mark.parametrize("shear", [2.0, 3.0, 6.0, -10.0])
@pytest.mark.parametrize("span", [(0.0,), lines(0, 1, 9)], ids=["2d", "3d"])
def test_faces_at_an_acute_corner_do_not_lie_on_each_other(tmp_path, shear, span):
    """They share an edge: of one block, and of two blocks that are joined."""
    whole = sheet(lines(0, 1, 17), lines(0, 1, 11), span)
    whole[0] += shear * whole[1]
    grid = grid_of(tmp_path, whole)
    assert not grid.touching
    decomposed(grid, ALL)
    parts = grid_of(tmp_path, whole[..., :9], whole[..., 8:])
    assert parts.connections and not parts.touching
    # around the edge at which the sheared block begins, a second one at the same angle below: their outer faces meet
    below = whole * np.array([1, -1, 1]).reshape(3, 1, 1, 1)
    both = grid_of(tmp_path, whole, np.flip(below, axis=2))
    assert both.connections and not both.touching


@pytest.mark.parametrize("span", [(0.0,), lines(0, 1, 9)], ids=["2d", "3d"])
def test_blocks_on_both_sides_of_a_sharp_body_do_not_lie_on_each_other(tmp_path, span):
    """Many cells of each wall are closer to the other one than the walls' spacing; the walls begin at one edge."""
    above = sheet(lines(0, 1, 41), lines(0, 1, 11), span)
    below = sheet(lines(0, 1, 41), lines(-1, 0, 11), span)
    below[1] -= 0.25 * below[0]
    assert not grid_of(tmp_path, above, below).touching


def test_blocks_that_lie_on_each_other_from_a_common_edge_on_still_do(tmp_path):
    """A hinge that has opened by less than a degree."""
    left = sheet(lines(0, 1, 12), lines(0, 1, 23))
    right = sheet(lines(1, 2, 12), lines(0, 1, 31))
    right[0] += 0.01 * right[1]
    assert {(t.block, t.face) for t in grid_of(tmp_path, left, right).touching} == {(0, "imax"), (1, "imin")}
