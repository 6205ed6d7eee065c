"""Connectivity files of other programs, written here from what connects the parts of a block that was cut."""

import tomllib

import numpy as np
import pytest
from arrangements import FAR, decomposed, same_nodes, shaken
from multiblock import Arrangement

from hiresx.case import toml
from hiresx.case.boundaries import NoSlipWall
from hiresx.case.grid_file import GridFile
from hiresx.case.schema import Case
from hiresx.decomposition import decompose
from hiresx.errors import HiresxError
from hiresx.grid import Block, Grid, build, foreign, write_plot3d
from hiresx.grid.grid_report import grid_report
from hiresx.grid.starting_case import case_text

AXES = "ijk"
NMF_FACE = {"kmin": 1, "kmax": 2, "imin": 3, "imax": 4, "jmin": 5, "jmax": 6}
NMF_ALONG = {"k": "ij", "i": "jk", "j": "ki"}


def sides(table, arrangement):
    """Per side of a connection (block from 1, face, {axis: (first, last)} from 1), nodes of both in the same order."""
    own, donor = (int(table[key].removeprefix("part-")) for key in ("block", "donor"))
    d = AXES.index(table["face"][0])
    mine, theirs = {}, {}
    for axis, (lo, hi) in table["range"].items():
        entry = table["transform"][AXES.index(axis)]
        other = AXES[abs(entry) - 1]
        a, b = table["donor_range"][other]
        mine[axis] = (lo + 1, hi)
        theirs[other] = (a + 1, b) if entry > 0 else (b, a + 1)
    assert AXES[d] not in mine
    return (own + 1, table["face"], mine), (donor + 1, table["donor_face"], theirs)


def walls(arrangement):
    """(block from 1, face) of faces that no connection holds any of."""
    held = {(t[b], t[f]) for t in arrangement.tables for b, f in (("block", "face"), ("donor", "donor_face"))}
    return [
        (n + 1, face)
        for n, block in enumerate(arrangement.blocks)
        for face in block.faces
        if (block.name, face) not in held
    ]


def nmf(arrangement) -> str:
    rows = ["# ==== Neutral Map File ====  \\", f"  {len(arrangement.blocks)} \\", " \\"]
    rows += [f" {n} {' '.join(map(str, b.size))} \\" for n, b in enumerate(arrangement.blocks, 1)]

    def side(block, face, ends):
        return f"{block} {NMF_FACE[face]} " + " ".join(f"{a} {z}" for a, z in (ends[x] for x in NMF_ALONG[face[0]]))

    for table in arrangement.tables:
        own, donor = sides(table, arrangement)
        first = NMF_ALONG[own[1][0]][0]
        meets = AXES[abs(table["transform"][AXES.index(first)]) - 1]
        swap = meets != NMF_ALONG[donor[1][0]][0]
        rows.append(f"'one-to-one' {side(*own)} {side(*donor)} {str(swap).lower()} \\")
    for n, face in walls(arrangement):
        size = arrangement.blocks[n - 1].size
        whole = {AXES[d]: (1, size[d]) for d in range(3)}
        rows.append(f"'viscous_solid' {side(n, face, whole)} \\")
    return "\n".join(rows) + "\n"


def cfl3d(arrangement) -> str:
    rows = ["I/O FILES", "grid.bin", " a title", "    IDIM    JDIM    KDIM"]
    rows += [" ".join(f"{n:7d}" for n in b.size) for b in arrangement.blocks]
    names = {"imin": "I0", "imax": "IDIM", "jmin": "J0", "jmax": "JDIM", "kmin": "K0", "kmax": "KDIM"}
    for face, name in names.items():
        rows.append(f"{name}: GRID SEGMENT BCTYPE ISTA IEND KSTA KEND NDATA")
        for n, there in walls(arrangement):
            if there == face:
                rows += [f" {n} 1 2004 0 0 0 0 2", "   TWTYPE   CQ", "   0.  0."]
    rows += ["   1-1 BLOCKING DATA:", "      NBLI", f"   {len(arrangement.tables)}"]
    both = [sides(table, arrangement) for table in arrangement.tables]
    for which in (0, 1):
        rows.append(" NUMBER GRID : ISTA JSTA KSTA IEND JEND KEND ISVA1 ISVA2")
        for number, pair in enumerate(both, 1):
            block, face, ends = pair[which]
            size = arrangement.blocks[block - 1].size
            d = AXES.index(face[0])
            ends = {**ends, face[0]: (1, 1) if face.endswith("min") else (size[d], size[d])}
            order = list(pair[0][2])
            if which:
                table = arrangement.tables[number - 1]
                order = [AXES[abs(table["transform"][AXES.index(x)]) - 1] for x in order]
            numbers = [ends[x][0] for x in AXES] + [ends[x][1] for x in AXES] + [AXES.index(x) + 1 for x in order]
            rows.append(f" {number} {block} " + " ".join(map(str, numbers)))
    return "\n".join([*rows, "  PATCH SURFACE DATA:", "    NINTER", "         0"]) + "\n"


def gridgen(arrangement) -> str:
    """Patches of every block; of the two directions along a connection the first is marked on both sides."""
    patches = [[] for _ in arrangement.blocks]

    def row(block, face, ends, marked):
        size = arrangement.blocks[block - 1].size
        d = AXES.index(face[0])
        whole = {**ends, face[0]: (1, 1) if face.endswith("min") else (size[d], size[d])}
        return " ".join(f"{a * s} {z * s}" for x in AXES for a, z in [whole[x]] for s in [-1 if x == marked else 1])

    for table in arrangement.tables:
        own, donor = sides(table, arrangement)
        marked = next(iter(own[2]))
        met = AXES[abs(table["transform"][AXES.index(marked)]) - 1]
        texts = row(*own, marked), row(*donor, met)
        patches[own[0] - 1].append(f"{texts[0]} -1\n{texts[1]} {donor[0]}")
        patches[donor[0] - 1].append(f"{texts[1]} -1\n{texts[0]} {own[0]}")
    for n, face in walls(arrangement):
        ends = {AXES[d]: (1, m) for d, m in enumerate(arrangement.blocks[n - 1].size) if AXES[d] != face[0]}
        patches[n - 1].append(f"{row(n, face, ends, '')} 2")
    rows = ["1", str(len(arrangement.blocks))]
    for block, mine in zip(arrangement.blocks, patches, strict=True):
        rows += [" ".join(map(str, block.size)), block.name, str(len(mine)), *mine]
    return "\n".join(rows) + "\n"


WRITERS = {"nmf": (nmf, "viscous_solid"), "cfl3d": (cfl3d, "viscous-wall"), "gridgen": (gridgen, "bc-2")}


@pytest.mark.parametrize("form", WRITERS)
@pytest.mark.slow
def test_the_same_as_in_our_own_file(tmp_path, form):
    write, wall = WRITERS[form]
    for seed in range(4):
        arrangement = Arrangement(shaken((20, 21, 22), seed=seed).blocks[0], 6, seed, True)
        write_plot3d(tmp_path / "g.x", Grid(tuple(arrangement.blocks)))
        ours = {"blocks": [f"block-{n + 1}" for n in range(len(arrangement.blocks))], "connection": []}
        for table in arrangement.tables:
            renamed = {k: f"block-{int(table[k][5:]) + 1}" for k in ("block", "donor")}
            ours["connection"].append({**table, **renamed})
        (tmp_path / "ours.toml").write_text(toml.dumps(ours))
        (tmp_path / f"theirs.{form}").write_text(write(arrangement))
        grids = [build(GridFile(file="g.x", connectivity=name), tmp_path) for name in ("ours.toml", f"theirs.{form}")]
        assert {(c.block, c.matrix, c.donor) for c in grids[0].connections} == {
            (c.block, c.matrix, c.donor) for c in grids[1].connections
        }
        same_nodes(grids[1], arrangement)
        decomposed(grids[1], NoSlipWall(faces="all", range=wall), FAR)
        named = {(b, face) for b, block in enumerate(grids[1].blocks, 1) for face, _ in block.regions.get(wall, ())}
        assert named == set(walls(arrangement))


@pytest.mark.parametrize("examples", [10, pytest.param(150, marks=pytest.mark.slow)])
@pytest.mark.parametrize("form", WRITERS)
def test_damaged_files_are_one_error(tmp_path, form, examples):
    random = np.random.default_rng(3)
    arrangement = Arrangement(shaken((20, 21, 22), seed=1).blocks[0], 4, 1, True)
    write_plot3d(tmp_path / "g.x", Grid(tuple(arrangement.blocks)))
    text = WRITERS[form][0](arrangement)
    for _ in range(examples):
        words = text.split(" ")
        for _ in range(random.integers(1, 3)):
            at = int(random.integers(len(words)))
            words[at] = str(random.choice(["0", "-3", "99", "x", "", "1e9", "7 7", words[at][::-1]]))
        changed = " ".join(words)
        if random.random() < 0.2:
            changed = changed[: random.integers(len(changed))]
        (tmp_path / "c.inp").write_text(changed)
        try:
            build(GridFile(file="g.x", connectivity="c.inp"), tmp_path)
        except HiresxError as error:
            assert "\n" not in error.message


def test_files_that_do_not_belong_together(tmp_path):
    arrangement = Arrangement(shaken((20, 21, 22)).blocks[0], 3, 1, True)
    write_plot3d(tmp_path / "g.x", Grid(tuple(arrangement.blocks[:2])))
    for form, (write, _) in WRITERS.items():
        (tmp_path / form).write_text(write(arrangement))
        with pytest.raises(HiresxError, match=r"blocks here and 2 in the grid|there is no block"):
            build(GridFile(file="g.x", connectivity=form), tmp_path)


def test_patches_share_a_line_and_the_wall_keeps_it(tmp_path):
    """As in most NMF files; `hiresx new --from` then starts without a node held twice."""
    block = shaken((21, 9, 1)).blocks[0]
    write_plot3d(tmp_path / "g.x", Grid((block,)))
    patches = ["'farfield' 1 5 1 1 1 8", "'viscous_solid' 1 5 1 1 8 21", "'farfield' 1 6 1 1 1 21"]
    patches += ["'inflow' 1 3 1 9 1 1", "'outflow' 1 4 1 9 1 1"]
    (tmp_path / "g.nmf").write_text("1\n1 21 9 1\n" + "\n".join(patches) + "\n")
    grid = build(GridFile(file="g.x", connectivity="g.nmf"), tmp_path)
    regions = grid.blocks[0].regions
    assert regions["viscous_solid"] == (("jmin", ((7, 21), (0, 1), (0, 1))),)
    assert regions["farfield"][0] == ("jmin", ((0, 7), (0, 1), (0, 1)))
    text = case_text(tmp_path / "g.x", grid_report(tmp_path / "g.x", tmp_path / "g.nmf"), tmp_path / "g.nmf")
    case = Case.from_dict(tomllib.loads(text))
    decompose(case, build(case.grid))


def test_a_face_that_meets_two_blocks_is_named_once(tmp_path):
    lines = [np.linspace(0, 1, 17), np.linspace(0, 0.5, 12), np.linspace(0.5, 1, 13)]
    blocks = []
    for n, y in enumerate(lines):
        nodes = np.meshgrid([0.0], y, np.linspace(0, 1, 9) + (n > 0), indexing="ij")
        blocks.append(Block(f"b{n}", nodes[2], nodes[1], nodes[0]))
    write_plot3d(tmp_path / "g.x", Grid(tuple(blocks)))
    text = case_text(tmp_path / "g.x", grid_report(tmp_path / "g.x"))
    assert "MEETS block-2, face imin; block-3, face imin" in text
    case = Case.from_dict(tomllib.loads(text))
    decompose(case, build(case.grid))


def test_files_of_another_grid_are_told(tmp_path):
    x, y, z = np.meshgrid(*(np.arange(n) * 1.0 for n in (9, 8, 7)), indexing="ij")
    blocks = [Block("a", *(c.T for c in (x, y, z)))]
    (tmp_path / "g.nmf").write_text("one block\n")
    lines = foreign.Lines(tmp_path / "g.nmf", comment="#")
    with pytest.raises(HiresxError, match="block 1 has 9 x 8 x 6 nodes here and 9 x 8 x 7 in the grid file"):
        foreign._check_sizes(lines, [(9, 8, 6)], blocks)
    with pytest.raises(HiresxError, match="2 blocks here and 1 in the grid file"):
        foreign._check_sizes(lines, [(9, 8, 7)] * 2, blocks)
