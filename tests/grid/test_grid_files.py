"""Grids from files: connections within and between blocks, regions, and motions between periodic faces."""

from itertools import permutations, product

import numpy as np
import pytest
from arrangements import FAR, decomposed, free_stream_residual, ring, same_nodes, saved, shaken
from multiblock import Arrangement

from hiresx.case.boundaries import NoSlipWall, Periodic
from hiresx.case.grid_file import GridFile, Rotation
from hiresx.case.grids import AirfoilC, Box, ChannelBump, CylinderO, PlanarJet, Plate
from hiresx.decomposition import extended_coordinates
from hiresx.errors import HiresxError
from hiresx.grid import (
    Block,
    Connection,
    Grid,
    Motion,
    build,
    check_connections,
    periodic_connections,
    read_connectivity,
    write_connectivity,
    write_plot3d,
)
from hiresx.grid.blocks import face_range
from hiresx.grid.motions import motion, rotation_about
from hiresx.grid.orientation import matrix_of, opposite, transform_of

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
@pytest.mark.parametrize("n", [(40, 41, 1), pytest.param((20, 21, 22), marks=pytest.mark.slow)])
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
    checks = check_connections(grid.blocks, grid.connections)
    assert all(check.layout == "shared" and check.gap == 0 for check in checks)


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
    """Plot3D and connectivity file together are the whole grid; a generator's connections are checked on the way."""
    grid = build(spec)
    check_connections(grid.blocks, grid.connections)
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
    assert check_connections(found.blocks, found.connections)[0].layout == ("shared" if ends else "offset")
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
    assert error.value.hint == "they match with the inverse motion"
    outer["rotation"] = {"axis": [0.0, 1.0, 0.0], "angle": -60.0}
    with pytest.raises(HiresxError, match="takes a block of 2 dimensions out of its plane"):
        saved(tmp_path, parts, tables)


def test_period_that_turns_the_wrong_way(tmp_path):
    block = Block("sector", *ring(17, angle=90.0))
    for turn in (Rotation(axis=(0.0, 0.0, 1.0), angle=-90.0), Rotation(axis=(0.0, 0.0, 1.0), angle=80.0)):
        grid = saved(tmp_path, [block], period={"j": turn})
        with pytest.raises(HiresxError, match=r"jmin and jmax do not match under the period, a rotation by .0 degrees"):
            periodic_connections(grid, 0, "j")
