"""Connectivity files that do not fit their grid, from Python and from the command line, and mutated ones.

`HIRESX_FUZZ_EXAMPLES` sets how many mutated files are tried (2,000 of each once, by hand; a modest number here).
"""

import copy
import json
import os
import re
from pathlib import Path

import case_file
import numpy as np
import pytest
from arrangements import saved, shaken
from multiblock import Arrangement
from paths import ROOT

from hiresx.case import toml
from hiresx.case.grid_file import GridFile, Rotation
from hiresx.case.grids import Box
from hiresx.cli import execute
from hiresx.errors import HiresxError
from hiresx.grid import (
    Block,
    Connection,
    Grid,
    build,
    check_connections,
    prove,
    read_connectivity,
    write_plot3d,
)
from hiresx.grid.connectivity import ConnectionTable, Connectivity, PeriodTable, RegionTable
from hiresx.grid.orientation import opposite

EXAMPLES = int(os.environ.get("HIRESX_FUZZ_EXAMPLES", "150"))


# --- what does not match


def pair(shift=0.0) -> list[Block]:
    """Two blocks that share the nodes at x = 1, the second one's index i along y and j along -x."""
    whole = build(Box(n=(17, 11, 9), lower=(0, 0, 0), upper=(2, 1.5, 1))).blocks[0]
    left = Block("left", *(c[:, :, :9] for c in (whole.x, whole.y, whole.z)))
    x, y, z = (c[:, :, 8:].transpose(0, 2, 1)[:, ::-1] for c in (whole.x, whole.y, whole.z))
    return [left, Block("right", x, y + shift, z)]


JOIN = {"block": "left", "face": "imax", "donor": "right", "donor_face": "jmax", "transform": [-2, 1, 3]}
NAMES = ["left", "right"]


def test_the_pair_itself(tmp_path):
    grid = saved(tmp_path, pair(), {"blocks": NAMES, "connection": [JOIN]})
    assert grid.connections[0].donors(np.array([9, 4, 2])).tolist() == [4, 7, 2]


def joined(**changes) -> dict:
    """A file with the connection of the pair, changed; None takes a key away."""
    return {"connection": [{k: v for k, v in (JOIN | changes).items() if v is not None}]}


def region(**changes) -> dict:
    return {"region": [{"name": "w", "block": "left", "face": "kmin"} | changes]}


Z = [0.0, 0.0, 1.0]


@pytest.mark.parametrize(
    "tables, message, hint",
    [
        (joined(block="lefd"), r'connection\.0\.block = "lefd": there is no such block', '"left"'),
        (joined(donor="rihgt"), r'connection\.0\.donor = "rihgt"', '"right"'),
        (joined(face="imix"), r"connection\.0\.face = .imix.: must be 'imin'", '"imin"'),
        (joined(donnor="right"), r"connection\.0\.donnor = .*unknown key", '"donor"'),
        (joined(transform=[1, 1, 3]), r"connection\.0\.transform: \[1, 1, 3\] is not a permutation", "once"),
        (joined(transform=[2, 1, 3]), "does not go on from its face imax", "entry 1 .* must be -2"),
        (joined(transform=[-2, 3, 1]), "9 nodes along k meet 11 nodes along the donor's i", "ranges"),
        (joined(transform=[1.5, 2, 3]), r"connection\.0\.transform.* whole number", ""),
        (joined(transform=[1]), r"connection\.0\.transform", ""),
        (
            joined(transform=[-2, -1, 3]),
            r"90 of 99 nodes do not match; first, node \(i, j, k\) = \(8, 0, 0\) at \(x, y, z\) = \(1, 0, 0\) is not "
            r"the same point as node \(10, 8, 0\) of 'right' at \(1, 1.5, 0\)",
            r"with transform = \[-2, 1, 3\]",
        ),
        (joined(layout="offset"), "99 of 99 nodes do not match.*is not followed by", 'with layout = "shared"'),
        (joined(range={"j": [0, 12]}), r"connection\.0\.range\.j = \[0, 12\] .*leaves the 11", "11"),
        (joined(range={"j": [5, 5]}), r"connection\.0\.range\.j = \[5, 5\] is empty", ""),
        (joined(range={"i": [0, 5]}), "i does not run along face imax", "leave i out"),
        (joined(range={"j": [0, 5]}), "5 nodes along j meet 11 nodes", "ranges"),
        (
            joined(range={"j": [1, 6]}, donor_range={"i": [0, 5]}),
            r"nodes i = 8:9, j = 1:6, k = 0:9.*45 of 45 nodes do not match; first, node \(i, j, k\) = \(8, 1, 0\)",
            "off by",
        ),
        (
            joined(transform=None, range={"j": [0, 10]}),
            "1 x 10 x 9 nodes of block 'left' do not meet 11 x 1 x 9 of block 'right'",
            "range",
        ),
        ({"connection": [JOIN, JOIN]}, r"connection\.1 and connection\.0 overlap from node .* = \(8, 0, 0\)", "line"),
        (joined(mutual=False), r"no connection leads back from its face jmax, .* = \(1, 8, 1\)", "inverse"),
        (joined(translation=[0.0, 0.5, 0.0]), r"after a translation by \(0, 0.5, 0\)", "no motion"),
        (
            joined(rotation={"axis": [0.0, 0.0, 0.0], "angle": 5.0}),
            r"connection\.0\.rotation\.axis: must not be zero",
            "",
        ),
        (joined(rotation={"axis": Z, "angle": 500.0}), r"connection\.0\.rotation\.angle", ""),
        ({"connection": [{"block": "left"}]}, r"connection\.0\.face: missing", ""),
        ({"connection": 3}, "connection = 3", ""),
        (region(range={"i": [0, 99]}), r"region\.0\.range\.i", ""),
        (region(face="kmid"), r"region\.0\.face", '"kmi'),
        (region(name=""), r"region\.0\.name", ""),
        ({"period": [{"direction": "k"}]}, r"period\.0: nothing moves", "translation"),
        ({"period": [{"direction": "k", "block": "lft", "translation": Z}]}, r"period\.0\.block", '"left"'),
        ({"blocks": ["one"]}, "1 name for a grid of 2 blocks", "every block"),
        ({"blocks": ["one", "one"]}, "two blocks are named 'one'", "own name"),
    ],
)
def test_faults_in_a_connectivity_file(tmp_path, tables, message, hint):
    with pytest.raises(HiresxError, match=message) as error:
        saved(tmp_path, pair(), {"blocks": NAMES} | tables)
    assert re.search(hint, error.value.hint), error.value.hint


def test_a_grid_that_does_not_match(tmp_path):
    with pytest.raises(HiresxError, match="do not match; first") as error:
        saved(tmp_path, pair(shift=0.3), {"blocks": NAMES, "connection": [JOIN]})
    assert "all of them are off by (0, -0.3, 0)" in error.value.hint
    left, right = pair()
    y = right.y.copy()
    y[4, 8, 6] += 0.02  # one node of the face, beyond the tolerance
    with pytest.raises(HiresxError, match=r"1 of 99 nodes do not match; first, node \(i, j, k\) = \(8, 6, 4\)"):
        saved(tmp_path, [left, Block("right", right.x, y, right.z)], {"blocks": NAMES, "connection": [JOIN]})


def test_a_fine_grid_is_not_matched_with_its_neighbours_node(tmp_path):
    """Steps smaller than the tolerance in proportion to the extent: a shift by one node is still seen."""
    y = np.concatenate([1e-7 * np.arange(5), np.linspace(0.1, 1, 8)])
    blocks = []
    for n, start in enumerate((0.0, 1.0)):
        yy, xx = np.meshgrid(y, start + np.linspace(0, 1, 9), indexing="ij")
        blocks.append(Block(NAMES[n], xx[None], yy[None], 0 * xx[None]))
    table = {"block": "left", "face": "imax", "donor": "right", "donor_face": "imin"}
    saved(tmp_path, blocks, {"blocks": NAMES, "connection": [table]})
    shifted = table | {"range": {"j": [0, 4]}, "donor_range": {"j": [1, 5]}, "transform": [1, 2]}
    with pytest.raises(HiresxError, match="4 of 4 nodes do not match"):
        saved(tmp_path, blocks, {"blocks": NAMES, "connection": [shifted]})


def test_left_handed_neighbour(tmp_path):
    left, right = pair()
    mirrored = Block("right", *(c[:, :, ::-1] for c in (right.x, right.y, right.z)))
    table = {k: v for k, v in JOIN.items() if k != "transform"}
    with pytest.raises(HiresxError, match="a right-handed block meets a left-handed one") as error:
        saved(tmp_path, [left, mirrored], {"blocks": NAMES, "connection": [table]}, reverse="keep")
    assert error.value.hint == "reverse one index direction of block 'right'"


@pytest.mark.parametrize(
    "change, message",
    [
        ({"range": ((7, 8), (0, 11), (0, 9))}, "the range is not on the face"),
        ({"range": ((8, 9), (0, 12), (0, 9))}, "leaves the block of 9 x 11 x 9 nodes"),
        ({"offset": (0, 15, 0)}, "neither on face jmax of the donor nor one spacing behind it"),
        ({"offset": (0, 40, 0)}, r"there is no donor node \(i, j, k\) = \(0, 31, 0\)"),
        ({"offset": (1, 16, 0)}, r"there is no donor node \(i, j, k\) = \(11, 7, 0\)"),
        ({"matrix": ((0, 1, 0), (-1, 0, 0), (0, 1, 0))}, "no permutation"),
        ({"donor": 0, "matrix": ((1, 0, 0), (0, 1, 0), (0, 0, 1)), "offset": (-8, 0, 0)}, "do not match"),
    ],
)
def test_check_of_connections_made_in_python(change, message):
    from dataclasses import replace

    blocks = pair()
    good = Connection(0, "imax", ((8, 9), (0, 11), (0, 9)), 1, ((0, 1, 0), (-1, 0, 0), (0, 0, 1)), (0, 16, 0))
    assert [p.nodes for p in check_connections(blocks, (good, opposite(good, blocks)))] == [99, 99]
    with pytest.raises(HiresxError, match=message):
        check_connections(blocks, (replace(good, **change), opposite(good, blocks)))
    with pytest.raises(HiresxError, match="no connection leads back"):
        check_connections(blocks, (good,))
    with pytest.warns(FutureWarning, match="check_connections"):
        assert prove(blocks, (good, opposite(good, blocks))) == check_connections(
            blocks, (good, opposite(good, blocks))
        )


def test_dimensions_do_not_mix():
    flat = build(Box(n=(9, 11, 1), lower=(1, 0, 0), upper=(2, 1, 0))).blocks[0]
    with pytest.raises(HiresxError, match="to those of one of 9 x 11 x 1 nodes"):
        check_connections((pair()[0], flat), (Connection(0, "imax", ((8, 9), (0, 11), (0, 9)), 1, offset=(-8, 0, 0)),))


def test_missing_files(tmp_path):
    write_plot3d(tmp_path / "g.xyz", Grid(tuple(pair())))
    with pytest.raises(HiresxError, match=r"lost\.toml: cannot be read"):
        build(GridFile(file="g.xyz", connectivity="lost.toml"), tmp_path)
    (tmp_path / "bad.toml").write_text("blocks = [\n3 3\n")
    with pytest.raises(HiresxError, match=r"bad\.toml, line 2, .*not valid TOML"):
        build(GridFile(file="g.xyz", connectivity="bad.toml"), tmp_path)
    with pytest.raises(HiresxError, match=r"lost\.\S+: cannot be read"):
        build(GridFile(file="lost.xyz"), tmp_path)
    (tmp_path / "old.cgns").write_bytes(b"@(#)ADF Database Version A02011>AdF0" + bytes(200))
    with pytest.raises(HiresxError, match="byte 100: this machine cannot read numbers in the format") as error:
        build(GridFile(file="old.cgns"), tmp_path)
    assert "cgnsconvert" in error.value.hint and "adf2hdf" in error.value.hint


# --- from the command line


CASE = """\
[grid]
file = "grid.xyz"
connectivity = "join.toml"

[time]
steps = 2

[initial]
state = { rho = 1.0, u = 0.1, p = 0.7 }

[[boundary]]
faces = "all"
range = "floor"
type = "symmetry"

[[boundary]]
faces = "all"
type = "slip-wall"
"""
FLOOR = [{"name": "floor", "block": name, "face": "kmin"} for name in NAMES]


@pytest.fixture
def command(tmp_path, monkeypatch, capfd):
    """Runs hiresx in a folder with the case of the pair; gives its status and what it printed."""
    (tmp_path / "pair").mkdir()
    monkeypatch.chdir(tmp_path)
    write_plot3d("pair/grid.xyz", Grid(tuple(pair())))
    (tmp_path / "pair" / "case.toml").write_text(CASE)

    def run(join, *words):
        tables = {"blocks": NAMES, "connection": [join], "region": FLOOR}
        (tmp_path / "pair" / "join.toml").write_text(toml.dumps(tables))
        status = execute(list(words))
        return status, "".join(capfd.readouterr())

    return run


def test_check_proves_and_run_refuses(command):
    status, out = command(JOIN, "check", "pair", "--json")
    assert status == 0
    there, back = json.loads(out[out.index("{") :])["connections"]
    assert there == {
        "block": "left", "face": "imax", "range": [[8, 9], [0, 11], [0, 9]],
        "donor": "right", "donor_face": "jmax", "donor_range": [[0, 11], [8, 9], [0, 9]],
        "transform": [-2, 1, 3], "layout": "shared", "motion": "no motion", "nodes": 99, "gap": 0.0,
        "stretching": {"value": pytest.approx(1.0), "node": [8, 0, 0]},  # even spacings
    }  # fmt: skip
    assert (back["block"], back["transform"]) == ("right", [2, -1, 3])
    status, out = command(JOIN, "check", "pair")
    assert status == 0 and "all 198 nodes match" in out
    for verb in (["check", "pair"], ["run", "pair", "--out", "runs/pair"]):
        status, out = command(JOIN | {"transform": [-2, -1, 3]}, *verb)
        assert status == 2 and "90 of 99 nodes do not match" in out and "transform = [-2, 1, 3]" in out
    # a part of the face that nothing is said of
    status, out = command(JOIN | {"range": {"j": [0, 6]}, "donor_range": {"i": [0, 6]}}, "check", "pair")
    assert status == 2 and "face imax of block 'left', nodes i = 8:9, j = 6:11" in out  # "all" does not close it off
    text = CASE.replace('faces = "all"\ntype', 'faces = ["imin", "jmin", "jmax", "kmax"]\ntype')
    Path("pair/case.toml").write_text(text)
    status, out = command(JOIN | {"range": {"j": [0, 6]}, "donor_range": {"i": [0, 6]}}, "check", "pair")
    assert status == 2 and "block 'left', face imax: no boundary condition at node (i, j, k) = (8, 6, 0)" in out


def test_a_run_goes_on_with_its_files(command):
    """The kept case finds both files; a file that connects something else is refused."""
    assert command(JOIN, "run", "pair", "--out", "runs/pair")[0] == 0
    assert command(JOIN, "run", "--restart", "runs/pair", "--set", "time.steps=3")[0] == 0
    some = JOIN | {"range": {"j": [0, 6]}, "donor_range": {"i": [0, 6]}}
    status, out = command(some, "run", "--restart", "runs/pair", "--set", "time.steps=4")
    assert status == 2 and "block 'left' is connected otherwise" in out


@pytest.mark.parametrize("model", [Connectivity, ConnectionTable, RegionTable, PeriodTable, Rotation])
def test_the_page_has_all_keys(model):
    page = (ROOT / "docs" / "grids.md").read_text()
    assert "\n".join(case_file.keys(model)) in page


# --- mutated connectivity files


def places(tree, path=()):
    """Paths of every entry of nested tables and lists."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


NUMBERS = [0, 1, -1, 2, 3, -3, 7, 2**70, -(2**40), 0.5, 1e300, 1e-300, -90.0, float("nan"), float("inf"), True]
WORDS = ["", "end", "a", "b", "imin", "jmax", "kmin", "offset", "shared"]
TABLES = [{}, {"i": [0, 9]}, {"j": [-4, "end"]}, {"axis": Z, "angle": 90.0}]
VALUES = [*NUMBERS, *WORDS, *TABLES, [], [1, 2, 3], [-2, 1, 3], [0, 9], [0, "end"], [[1]], None]


def mutated(tree, random):
    tree = copy.deepcopy(tree)
    for _ in range(random.integers(1, 4)):
        found = list(places(tree))
        if not found:
            break
        path, holder = found[random.integers(len(found))], tree
        for key in path[:-1]:
            holder = holder[key]
        how = random.integers(4)
        value = copy.deepcopy(VALUES[random.integers(len(VALUES))])
        if how == 0:
            del holder[path[-1]]
        elif how == 1 and isinstance(holder, list):
            holder.append(copy.deepcopy(holder[path[-1]]))
        elif how == 1:
            holder[f"{path[-1]}x"] = value
        elif isinstance(holder[path[-1]], int) and how == 2:
            holder[path[-1]] += int(random.integers(-3, 4))
        elif value is not None:
            holder[path[-1]] = value
    return tree


def test_mutated_connectivity_files(tmp_path):
    """A grid or a clear error, and when a grid, one whose connections are right."""
    random = np.random.default_rng(7)
    whole = shaken((16, 15, 1)).blocks[0]
    arrangement = Arrangement(whole, 4, 3, True)
    names = [block.name for block in arrangement.blocks]
    (first, *_) = names
    document = {
        "blocks": names,
        "match": False,
        "connection": arrangement.tables,
        "region": [{"name": "a", "block": first, "face": "imin", "range": {"j": [0, 4]}}],
        "period": [{"block": first, "direction": "j", "rotation": {"axis": [0.0, 0.0, 1.0], "angle": 90.0}}],
    }
    survived = 0
    for n in range(EXAMPLES):
        tree = mutated(document, random)
        text = toml.dumps(tree)
        if n % 5 == 0:  # the text itself, too
            at = int(random.integers(len(text)))
            text = text[:at] + "[]={}\"'#\n.,-x"[random.integers(13)] + text[at + int(random.integers(6)) :]
        (tmp_path / "fuzz.toml").write_text(text)
        try:
            grid = read_connectivity(tmp_path / "fuzz.toml", arrangement.blocks)
            check_connections(grid.blocks, grid.connections)
            survived += 1
        except HiresxError as error:
            assert error.message and "Traceback" not in str(error)
    assert 0 < survived < EXAMPLES
