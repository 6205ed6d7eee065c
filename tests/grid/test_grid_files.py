"""Grids from files: connectivity files, CGNS, motions between periodic faces, and the proof that nodes match.

`HIRESX_FUZZ_EXAMPLES` sets how many mutated files are tried (2,000 of each once, by hand; a modest number here).
"""

import copy
import json
import os
import re
from itertools import permutations, product
from pathlib import Path

import numpy as np
import pytest
from arrangements import FAR, decomposed, free_stream_residual, ring, same_nodes, saved, shaken
from multiblock import Arrangement
from paths import ROOT

from hiresx.case import reference, toml
from hiresx.case.boundaries import NoSlipWall, Periodic
from hiresx.case.grids import AirfoilC, Box, ChannelBump, CylinderO, GridFile, PlanarJet, Plate, Rotation
from hiresx.cli import execute
from hiresx.decomposition import extended_coordinates
from hiresx.errors import HiresxError
from hiresx.grid import (
    Block,
    Connection,
    Grid,
    Motion,
    build,
    periodic_connections,
    prove,
    read_connectivity,
    write_connectivity,
    write_plot3d,
)
from hiresx.grid.blocks import face_range
from hiresx.grid.connectivity import ConnectionTable, Connectivity, PeriodTable, RegionTable
from hiresx.grid.motions import motion, rotation_about
from hiresx.grid.orientation import matrix_of, opposite, transform_of

EXAMPLES = int(os.environ.get("HIRESX_FUZZ_EXAMPLES", "150"))


# --- motions


def test_motions():
    random = np.random.default_rng(1)
    points = random.normal(size=(3, 4, 5))
    for angle in (90.0, -90.0, 180.0, 270.0):
        assert set(np.unique(rotation_about((0.0, 0.0, 2.0), angle))) <= {-1.0, 0.0, 1.0}
    np.testing.assert_array_equal(rotation_about((0, 0, 1), 90.0) @ [1, 0, 0], [0, 1, 0])
    for axis, angle in ((random.normal(size=3), 37.0), ((1e-200, 0.0, 0.0), 10.0), ((0.0, 1.0, 1.0), 180.0)):
        r = rotation_about(axis, angle)
        np.testing.assert_allclose(r @ r.T, np.eye(3), atol=1e-15)
        assert np.linalg.det(r) == pytest.approx(1)
        moved = motion(r, centre=(1.0, 2.0, 3.0), translation=(0.0, 0.5, 0.0))
        np.testing.assert_allclose(moved(np.array([1.0, 2.0, 3.0])), [1.0, 2.5, 3.0], atol=1e-15)
        np.testing.assert_allclose(moved.inverse(moved(points)), points, atol=1e-14)
        np.testing.assert_allclose(rotation_about(*moved.axis_and_angle), r, atol=1e-15)
    assert motion(rotation_about((1, 2, 3), 360.0)).still and Motion().still
    assert str(motion(rotation_about((0, 0, 1), -30.0), translation=(0, 0, 2))) == (
        "a rotation by 30 degrees about (0, 0, -1) and a translation by (0, 0, 2)"
    )


# --- orientations


def test_transforms():
    """All 48, and the two examples of the CGNS standard."""
    transforms = [
        [s * n for s, n in zip(signs, order, strict=True)]
        for order in permutations((1, 2, 3))
        for signs in product((1, -1), repeat=3)
    ]
    assert len(transforms) == 48
    for transform in transforms:
        matrix = matrix_of(transform)
        assert transform_of(matrix) == transform and abs(round(np.linalg.det(matrix))) == 1
    assert matrix_of([-2, 3, 1]) == ((0, 0, 1), (-1, 0, 0), (0, 1, 0))
    assert matrix_of([-2, 1]) == ((0, 1, 0), (-1, 0, 0), (0, 0, 1))
    for wrong in ([1, 1, 2], [0, 1, 2], [1, 2, 4], [1], [1, 2, 3, 4], [2, 3]):
        with pytest.raises(ValueError, match="permutation"):
            matrix_of(wrong)


@pytest.mark.parametrize("shared", [True, False], ids=["shared", "offset"])
@pytest.mark.parametrize("n", [(40, 41, 1), (20, 21, 22)])
def test_random_arrangements(tmp_path, n, shared):
    """Blocks turned every way, several to a face, joined by a connectivity file: ghosts, edges and corners are those of
    the uncut block, with the transforms given and with those found, and the file written from it says the same."""
    for seed in range(3):
        arrangement = Arrangement(shaken(n, seed=seed).blocks[0], 8, seed, shared)
        names = [block.name for block in arrangement.blocks]
        tables = {"blocks": names, "connection": arrangement.tables}
        grid = saved(tmp_path, arrangement.blocks, tables)
        same_nodes(grid, arrangement)
        bare = [{k: v for k, v in t.items() if k != "transform"} for t in arrangement.tables]
        found = saved(tmp_path, arrangement.blocks, {"blocks": names, "connection": bare})
        assert found.connections == grid.connections
        write_connectivity(tmp_path / "again.toml", grid)
        again = read_connectivity(tmp_path / "again.toml", grid.blocks)
        assert set(again.connections) == set(grid.connections)
        if shared:
            matched = saved(tmp_path, arrangement.blocks)
            same_nodes(matched, arrangement)
            some = saved(tmp_path, arrangement.blocks, {"connection": [], "match": True})
            assert set(some.connections) == set(matched.connections)


def test_single_precision_nodes(tmp_path):
    arrangement = Arrangement(shaken((20, 21, 22)).blocks[0], 6, 5, True)
    names = [block.name for block in arrangement.blocks]
    grid = saved(tmp_path, arrangement.blocks, {"blocks": names, "connection": arrangement.tables}, precision="fp32")
    proofs = prove(grid.blocks, grid.connections)
    assert all(proof.layout == "shared" and proof.gap == 0 for proof in proofs)


# --- connections of a block with itself, partial faces, regions


@pytest.mark.parametrize("layout", ["shared", "offset"])
def test_o_grid(tmp_path, layout):
    block = Block("ring", *ring(65, ends=layout == "shared"))
    table = {"block": "ring", "face": "jmin", "donor": "ring", "donor_face": "jmax", "layout": layout}
    grid = saved(tmp_path, [block], {"blocks": ["ring"], "connection": [table]})
    step = 64 + (layout == "offset")
    assert [c.offset for c in grid.connections] == [(0, step, 0), (0, -step, 0)]
    assert not any(c.translation != (0, 0, 0) or c.rotation for c in grid.connections)
    ((x, y, _),) = extended_coordinates(decomposed(grid, FAR))
    np.testing.assert_allclose(np.hypot(x, y)[3, :, 3:-3], np.broadcast_to(np.linspace(1, 2, 17), (71, 17)))


def c_grid() -> Block:
    s = np.linspace(-1, 1, 41)
    t = np.linspace(0, 1, 9)[:, None]
    wall = np.where(np.abs(s) > 0.5, 0.0, np.cos(np.pi * s)) * 0.2
    x = np.broadcast_to(-np.abs(s) * 4, (9, 41))
    y = np.where(s < 0, -1, 1) * (np.abs(wall) + t)
    return Block("c", x[None], y[None], np.zeros((1, 9, 41)))


def test_c_grid_keeps_its_wall(tmp_path):
    """The cut behind the body is connected with itself; the trailing edge, on cut and wall, is the wall's."""
    cut = {"block": "block-1", "face": "jmin", "range": {"i": [0, 11]}, "donor": "block-1", "donor_face": "jmin",
           "donor_range": {"i": [30, "end"]}, "transform": [-1, -2]}  # fmt: skip
    wall = {"name": "body", "block": "block-1", "face": "jmin", "range": {"i": [10, 31]}}
    grid = saved(tmp_path, [c_grid()], {"connection": [cut], "region": [wall]})
    assert {(c.range[0], c.offset[:2], c.matrix[1]) for c in grid.connections} == {
        ((0, 10), (40, 0), (0, -1, 0)),
        ((31, 41), (40, 0), (0, -1, 0)),
    }
    d = decomposed(grid, NoSlipWall(faces="all", range="body"), FAR)
    assert [p.range[0] for p in d.patches if p.condition.type == "no-slip-wall"] == [(10, 31)]
    matched = saved(tmp_path, [c_grid()], {"match": True, "region": [wall]})
    assert set(matched.connections) == set(grid.connections)


def test_regions_leave_corners_to_connections(tmp_path):
    """A wall in the corner of a face that is connected: what remains is cut into rectangles, no node is lost."""
    block = build(Box(n=(17, 12, 13), lower=(0, 0, 0), upper=(2, 1, 1))).blocks[0]
    halves = {"a": slice(0, 9), "b": slice(8, 17)}
    parts = [Block(name, *(c[:, :, i] for c in (block.x, block.y, block.z))) for name, i in halves.items()]
    corner = {"name": "step", "range": {"j": [0, 5], "k": [0, 6]}}
    walls = [corner | {"block": "a", "face": "imax"}, corner | {"block": "b", "face": "imin"}]
    table = {"block": "a", "face": "imax", "donor": "b", "donor_face": "imin"}
    # the rectangles that are left with their rims
    tables = [table | {"range": r, "donor_range": r} for r in ({"j": [4, 12]}, {"j": [0, 5], "k": [5, 13]})]
    grid = saved(tmp_path, parts, {"blocks": ["a", "b"], "connection": tables, "region": walls})
    d = decomposed(grid, NoSlipWall(faces="all", range="step"), FAR)
    held = np.zeros((13, 12), dtype=int)
    for holder in (*d.connections, *d.patches):
        if (holder.block, holder.face) == (0, "imax"):
            (_, (j, jj), (k, kk)) = holder.range
            held[k:kk, j:jj] += 1
    assert (held == 1).all()
    with pytest.raises(HiresxError, match=r"block 'a', face imax: connection\.0 and region\.0 \('step'\) overlap"):
        saved(tmp_path, parts, {"blocks": ["a", "b"], "connection": [table], "region": walls})


@pytest.mark.parametrize(
    "spec",
    [
        Plate(n=(33, 17, 8), upstream=0.4, length=1.0, height=0.5, first_spacing=1e-2, leading_edge_spacing=2e-2),
        PlanarJet(
            points_per_height=20, boundary_layer_thickness=0.1, boundary_layer_points=2, lip_thickness=0.2,
            exit_spacing=0.08, length=4.0, half_height=3.0, upstream=1.0, stretching=(1.02, 1.08),
            sponge_length=3.0, sponge_height=3.0, sponge_stretching=1.2, nk=8,
        ),
        CylinderO(outer_radius=5.0, n_around=48, n_normal=17, blocks=3),
        AirfoilC(naca="0012", n_airfoil=65, n_wake=17, n_normal=21, wake=4.0, far_field=4.0, first_spacing=5e-3,
                 trailing_edge_spacing=2e-2, blocks=3, n_span=7),
        ChannelBump(cells=(16, 24, 16), n_normal=17, blocks=3, nk=7),
    ],
    ids=lambda spec: spec.generator,
)  # fmt: skip
def test_generated_grids_are_saved(tmp_path, spec):
    """Plot3D and connectivity file together are the whole grid; a generator's connections are proved on the way."""
    grid = build(spec)
    prove(grid.blocks, grid.connections)
    write_plot3d(tmp_path / "g.xyz", grid)
    write_connectivity(tmp_path / "g.toml", grid)
    again = build(GridFile(file="g.xyz", connectivity="g.toml"), tmp_path)
    assert set(again.connections) == set(grid.connections) and again.period == grid.period
    for one, other in zip(grid.blocks, again.blocks, strict=True):
        assert (one.name, one.regions) == (other.name, other.regions)
        np.testing.assert_array_equal(one.y, other.y)


# --- rotation


@pytest.mark.parametrize("axis", ["z", "x"])
@pytest.mark.parametrize("ends", [True, False], ids=["shared", "offset"])
def test_sector_has_the_ghosts_of_the_ring(tmp_path, ends, axis):
    nk = 1 if axis == "z" else 9
    sector = Block("sector", *ring(16 + ends, angle=90.0, ends=ends, nk=nk, axis=axis))
    whole = Block("ring", *ring(64, ends=False, nk=nk, axis=axis))
    seam = Periodic(faces=["jmin", "jmax"])
    turn = Rotation(axis=tuple(float(axis == a) for a in "xyz"), angle=90.0)
    found = decomposed(saved(tmp_path, [sector], period={"j": turn}), seam, FAR)
    assert [(c.offset[1], c.rotation is not None) for c in found.connections] == [(16, True), (-16, True)]
    assert prove(found.blocks, found.connections)[0].layout == ("shared" if ends else "offset")
    join = Connection(0, "jmin", face_range("jmin", whole.size), 0, offset=(0, 64, 0))
    around = decomposed(Grid((whole,), (join, opposite(join, (whole,)))), FAR)
    (got,), (all_,) = extended_coordinates(found), extended_coordinates(around)
    for one, other in zip(got, all_, strict=True):
        np.testing.assert_allclose(one, other[:, : one.shape[1]], rtol=0, atol=3e-15)
    assert free_stream_residual(got) < 1e-14


def test_rotated_connections_of_a_file(tmp_path):
    """A sixth of a ring about an axis beside the origin, in two blocks, the far side of one joined to the other's."""
    x, y, z = ring(17, angle=60.0)
    parts = [Block(n, x[:, s] + 3.0, y[:, s], z[:, s]) for n, s in (("a", slice(0, 9)), ("b", slice(8, 17)))]
    inner = {"block": "a", "face": "jmax", "donor": "b", "donor_face": "jmin"}
    outer = {"block": "a", "face": "jmin", "donor": "b", "donor_face": "jmax",
             "rotation": {"axis": [0.0, 0.0, 1.0], "angle": -60.0, "centre": [3.0, 0.0, 0.0]}}  # fmt: skip
    tables = {"blocks": ["a", "b"], "connection": [inner, outer]}
    grid = saved(tmp_path, parts, tables)
    first, last = (c for c in grid.connections if c.rotation)
    assert first.face == "jmin" and last.face == "jmax"
    np.testing.assert_allclose(first.rotation, np.transpose(last.rotation), atol=1e-15)
    ((x, y, _), _) = extended_coordinates(decomposed(grid, FAR))
    np.testing.assert_allclose(np.hypot(x - 3.0, y)[3, :-3, 3], 1.0)
    write_connectivity(tmp_path / "again.toml", grid)
    again = read_connectivity(tmp_path / "again.toml", grid.blocks)
    for one, other in zip(grid.connections, again.connections, strict=True):
        np.testing.assert_allclose(one.rotation or np.eye(3), other.rotation or np.eye(3), atol=1e-15)
    outer["rotation"]["angle"] = 60.0
    with pytest.raises(HiresxError, match=r"face jmin.* do not match.*after a rotation by 60 degrees") as error:
        saved(tmp_path, parts, tables)
    assert error.value.mend == "they match with the inverse motion"
    outer["rotation"] = {"axis": [0.0, 1.0, 0.0], "angle": -60.0}
    with pytest.raises(HiresxError, match="takes a block of 2 dimensions out of its plane"):
        saved(tmp_path, parts, tables)


def test_period_that_turns_the_wrong_way(tmp_path):
    block = Block("sector", *ring(17, angle=90.0))
    for turn in (Rotation(axis=(0.0, 0.0, 1.0), angle=-90.0), Rotation(axis=(0.0, 0.0, 1.0), angle=80.0)):
        grid = saved(tmp_path, [block], period={"j": turn})
        with pytest.raises(HiresxError, match=r"jmin and jmax do not match under the period, a rotation by .0 degrees"):
            periodic_connections(grid, 0, "j")


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
    "tables, message, mend",
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
        ({"blocks": ["one"]}, "1 names for a grid of 2 blocks", "every block"),
        ({"blocks": ["one", "one"]}, "two blocks are named 'one'", "own name"),
    ],
)
def test_faults_in_a_connectivity_file(tmp_path, tables, message, mend):
    with pytest.raises(HiresxError, match=message) as error:
        saved(tmp_path, pair(), {"blocks": NAMES} | tables)
    assert re.search(mend, error.value.mend), error.value.mend


def test_a_grid_that_does_not_match(tmp_path):
    with pytest.raises(HiresxError, match="do not match; first") as error:
        saved(tmp_path, pair(shift=0.3), {"blocks": NAMES, "connection": [JOIN]})
    assert "all of them are off by (0, -0.3, 0)" in error.value.mend
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
    assert error.value.mend == "reverse one index direction of block 'right'"


@pytest.mark.parametrize(
    "change, message",
    [
        ({"range": ((7, 8), (0, 11), (0, 9))}, "the range is not on the face"),
        ({"range": ((8, 9), (0, 12), (0, 9))}, "leaves the block of 9 x 11 x 9 nodes"),
        ({"offset": (0, 15, 0)}, "neither on face jmax of the donor nor one step behind it"),
        ({"offset": (0, 40, 0)}, r"there is no donor node \(i, j, k\) = \(0, 31, 0\)"),
        ({"offset": (1, 16, 0)}, r"there is no donor node \(i, j, k\) = \(11, 7, 0\)"),
        ({"matrix": ((0, 1, 0), (-1, 0, 0), (0, 1, 0))}, "no permutation"),
        ({"donor": 0, "matrix": ((1, 0, 0), (0, 1, 0), (0, 0, 1)), "offset": (-8, 0, 0)}, "do not match"),
    ],
)
def test_proof_of_connections_made_in_python(change, message):
    from dataclasses import replace

    blocks = pair()
    good = Connection(0, "imax", ((8, 9), (0, 11), (0, 9)), 1, ((0, 1, 0), (-1, 0, 0), (0, 0, 1)), (0, 16, 0))
    assert [p.nodes for p in prove(blocks, (good, opposite(good, blocks)))] == [99, 99]
    with pytest.raises(HiresxError, match=message):
        prove(blocks, (replace(good, **change), opposite(good, blocks)))
    with pytest.raises(HiresxError, match="no connection leads back"):
        prove(blocks, (good,))


def test_dimensions_do_not_mix():
    flat = build(Box(n=(9, 11, 1), lower=(1, 0, 0), upper=(2, 1, 0))).blocks[0]
    with pytest.raises(HiresxError, match="does not go on in one of 9 x 11 x 1 nodes that way"):
        prove((pair()[0], flat), (Connection(0, "imax", ((8, 9), (0, 11), (0, 9)), 1, offset=(-8, 0, 0)),))


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
    with pytest.raises(HiresxError, match="byte 100: numbers of the format") as error:
        build(GridFile(file="old.cgns"), tmp_path)
    assert "cgnsconvert" in error.value.mend and "adf2hdf" in error.value.mend


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
    assert "\n".join(reference.keys(model)) in page


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
    """A grid or a clear error, and when a grid, one that is proved."""
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
            prove(grid.blocks, grid.connections)
            survived += 1
        except HiresxError as error:
            assert error.message and "Traceback" not in str(error)
    assert 0 < survived < EXAMPLES
