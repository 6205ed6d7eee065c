"""Grids as other programs deliver them: every container, planes of 3-D codes, left-handed blocks; and what is made of
them by the keys of [grid]."""

import json
import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from arrangements import FAR, decomposed, free_stream_residual, shaken
from multiblock import Arrangement
from plot3d_files import write

from hiresx.case import load, toml
from hiresx.case.boundaries import Periodic
from hiresx.case.grid_file import GridFile
from hiresx.case.grids import Box
from hiresx.cli import execute
from hiresx.decomposition import extended_coordinates
from hiresx.errors import HiresxError
from hiresx.grid import (
    Block,
    Grid,
    build,
    check_connections,
    check_jacobian,
    stored_coordinates,
    write_connectivity,
    write_plot3d,
)
from hiresx.grid.plane import flatten, make_right_handed, reverse_i
from hiresx.grid.reindexing import Reindexing, reindex
from hiresx.grid.shaping import coarsen
from hiresx.output.show.describe import describe
from hiresx.output.show.plot_quality import worst_place

# x, y, z of a plane x-y grid in the planes in which 3-D codes hold it
PLANES = {"xy": (0, 1, 2), "xz": (0, 2, 1), "yz": (1, 2, 0)}


def nodes(block: Block) -> np.ndarray:
    return np.stack([block.x, block.y, block.z])


def plane_grid() -> Arrangement:
    return Arrangement(shaken((33, 29, 1)).blocks[0], 3, 5, True)


def as_delivered(blocks, thin: int, plane: str, layers: int = 2, width: float = 0.3) -> list[np.ndarray]:
    """Blocks of a plane grid with `layers` equal planes in direction `thin`, in the plane `plane`."""
    made = []
    for block in blocks:
        x, y = block.x, block.y
        layered = [np.stack([a[0]] * layers) for a in (x, y)]
        height = np.broadcast_to(width * np.arange(layers)[:, None, None], layered[0].shape)
        order = {0: (1, 2, 0), 1: (1, 0, 2), 2: (0, 1, 2)}[thin]  # the layers' axis to that of the thin direction
        values = [a.transpose(order) for a in (*layered, height)]
        made.append([values[PLANES[plane].index(c)] for c in range(3)])
    return made


@pytest.mark.parametrize(
    "form, real, order", [("text", "f8", "<"), *product(("records", "stream"), ("f4", "f8"), "<>")]
)
@pytest.mark.parametrize("blanked", [False, True])
@pytest.mark.parametrize("single", [False, True])
def test_containers(tmp_path, form, real, order, blanked, single):
    arrangement = Arrangement(shaken((17, 16, 15)).blocks[0], 1 if single else 2, 1, True)
    blocks = [nodes(b) for b in arrangement.blocks]
    blanking = [np.full(b[0].shape, n + 1) for n, b in enumerate(blocks)] if blanked else None
    path = tmp_path / "grid.p3dfmt"
    write(path, blocks, form, real, order, blanking, single)
    grid = build(GridFile(file=str(path)))
    for block, wanted in zip(grid.blocks, blocks, strict=True):
        np.testing.assert_array_equal(nodes(block), wanted.astype(real))
    if blanked:
        blanking[-1][3, 2, 1] = 0
        write(path, blocks, form, real, order, blanking, single)
        with pytest.raises(HiresxError, match=rf"block {len(blocks)} of .* has 1 blanked nodes, first .* \(1, 2, 3\)"):
            build(GridFile(file=str(path)))


@pytest.mark.parametrize("form, real", [("text", "f8"), ("records", "f8"), ("stream", "f4"), ("stream", "f8")])
def test_planar_containers(tmp_path, form, real):
    arrangement = plane_grid()
    path = tmp_path / "grid.p2dfmt"
    write(path, [nodes(b)[:2] for b in arrangement.blocks], form, real)
    grid = build(GridFile(file=str(path)))
    for block, wanted in zip(grid.blocks, arrangement.blocks, strict=True):
        np.testing.assert_array_equal(nodes(block)[:2], nodes(wanted)[:2].astype(real))
    assert len(grid.connections) == 2 * len(arrangement.tables)


@pytest.mark.parametrize("what, words", [("solution", r"solution \(Q\)"), ("function", "function")])
@pytest.mark.parametrize("form", ["records", "stream"])
def test_files_that_are_no_grids(tmp_path, form, what, words):
    """Q files (4 numbers, then 5 variables) and function files lie beside grids under any name."""
    size, record = (8, 9, 10), []
    variables = 5 if what == "solution" else 3
    head = [np.array([1], "<i4"), np.array([*size, *([variables] if what == "function" else [])], "<i4")]
    body = [np.ones(4), np.ones(720 * 5)] if what == "solution" else [np.ones(720 * variables)]
    for part in (*head, *body):
        mark = np.array(part.nbytes, "<i4").tobytes() if form == "records" else b""
        record.append(mark + part.tobytes() + mark)
    (tmp_path / "q.x").write_bytes(b"".join(record))
    if form == "stream" and what == "function":
        words = "holds|nodes take"
    with pytest.raises(HiresxError, match=words):
        build(GridFile(file=str(tmp_path / "q.x")))


@pytest.mark.parametrize("thin, plane, layers", [*product(range(3), PLANES, (2,)), (1, "xz", 1), (0, "yz", 1)])
def test_planes_of_three_dimensional_codes(tmp_path, thin, plane, layers):
    """Nodes, connections and handedness are those of the plane grid, whichever way it was held."""
    arrangement = plane_grid()
    write(tmp_path / "g.x", as_delivered(arrangement.blocks, thin, plane, layers))
    grid = build(GridFile(file=str(tmp_path / "g.x")))
    assert len(grid.connections) == 2 * len(arrangement.tables)
    for block, wanted in zip(grid.blocks, arrangement.blocks, strict=True):
        assert block.size[2] == 1
        found = {tuple(n) for n in np.round(nodes(block)[:2].reshape(2, -1).T, 12)}
        there = nodes(wanted)[:2].reshape(2, -1).T
        # In x-z the plane is seen from the other side.
        assert found in ({tuple(n) for n in np.round(there * [1, s], 12)} for s in (1, -1))
    check_jacobian(grid)
    for extended in extended_coordinates(decomposed(grid, FAR)):
        assert free_stream_residual(extended) < 1e-14


@pytest.mark.parametrize("thin", range(3))
def test_connectivity_of_a_plane_in_three_dimensions(tmp_path, thin):
    """Ranges, transforms, regions and periods are given with the indexes of the file."""
    whole = build(Box(n=(33, 15, 1), lower=(0.0, 0.0, 0.0), upper=(2.0, 1.0, 0.0))).blocks[0]
    halves = [Block(n, *(c[:, :, s] for c in nodes(whole))) for n, s in (("a", slice(0, 17)), ("b", slice(16, 33)))]
    write(tmp_path / "g.x", as_delivered(halves, thin, "xy"))
    i, j = [e for e in range(3) if e != thin]
    axes = "ijk"
    table = {"block": "a", "face": f"{axes[i]}max", "donor": "b", "donor_face": f"{axes[i]}min"}
    region = {"name": "floor", "block": "a", "face": f"{axes[j]}min", "range": {axes[i]: [2, 9]}}
    side = {"name": "side", "block": "a", "face": f"{axes[thin]}min"}
    period = {"direction": axes[j], "translation": [0.0, 1.0, 0.0]}
    tables = {"blocks": ["a", "b"], "connection": [table], "region": [region, side], "period": [period]}
    (tmp_path / "g.toml").write_text(toml.dumps(tables))
    grid = build(GridFile(file="g.x", connectivity="g.toml"), tmp_path)
    assert len(grid.connections) == 2
    ((face, range_),) = grid.blocks[0].regions["floor"]
    x = grid.blocks[0].x[tuple(slice(lo, hi) for lo, hi in reversed(range_))]
    assert face == "jmin" and sorted(x.ravel()) == pytest.approx(np.arange(2, 9) / 16)
    assert grid.blocks[0].regions["side"] == ()
    decomposed(grid, Periodic(faces=["jmin", "jmax"]), FAR)  # holds at both layers


def test_wedges_and_uneven_planes_are_named(tmp_path):
    block = build(Box(n=(9, 10, 1), lower=(0.0, 0.5, 0.0), upper=(2.0, 1.0, 0.0))).blocks[0]
    x, y = (np.stack([c[0]] * 2) for c in (block.x, block.y))
    turn = np.radians([-0.5, 0.5])[:, None, None]
    write(tmp_path / "g.x", [[x, y * np.cos(turn), y * np.sin(turn)]])
    with pytest.raises(HiresxError, match="axisymmetric grid: its two planes in direction k are turned by 1 degrees"):
        build(GridFile(file=str(tmp_path / "g.x")))
    z = np.zeros_like(x) + np.arange(2)[:, None, None]
    y = y.copy()
    y[1, 3, 4] += 0.01
    write(tmp_path / "g.x", [[x, y, z]])
    place = re.escape(f"most at (x, y, z) = ({x[0, 3, 4]:.6g}, {y[0, 3, 4]:.6g}, {z[0, 3, 4]:.6g})")
    with pytest.raises(HiresxError, match=f"2 nodes in direction k, and its two planes differ, {place}"):
        build(GridFile(file=str(tmp_path / "g.x")))
    with pytest.raises(HiresxError, match="2 nodes in direction k; the 6th-order stencil"):
        build(GridFile(file=str(tmp_path / "g.x"), plane="keep"))
    write(tmp_path / "g.x", [[x, y, x + y]])
    with pytest.raises(HiresxError, match="its two planes differ"):
        build(GridFile(file=str(tmp_path / "g.x")))


def test_left_handed_blocks_are_reversed(tmp_path):
    arrangement = Arrangement(shaken((17, 16, 15)).blocks[0], 4, 2, True)
    random = np.random.default_rng(0)
    by = [Reindexing(reverse=tuple(bool(r) for r in random.integers(0, 2, 3))) for _ in arrangement.blocks]
    by[0], by[1] = Reindexing(reverse=(False, True, False)), Reindexing(order=(1, 0, 2))
    write_plot3d(tmp_path / "g.x", reindex(Grid(tuple(arrangement.blocks)), by))
    grid = build(GridFile(file=str(tmp_path / "g.x")))
    assert len(grid.connections) == 2 * len(arrangement.tables)
    check_jacobian(grid)
    with pytest.raises(HiresxError, match="a right-handed block meets a left-handed one"):
        build(GridFile(file=str(tmp_path / "g.x"), reverse="keep"))


@pytest.mark.parametrize("plane, off", [("xy", 2.7e-48), ("xy", 5e-9), ("xz", 5e-9), ("yz", 2e-7)])
def test_a_left_handed_plane_off_z_by_round_off_is_reversed(tmp_path, plane, off):
    """As single precision and rotations leave planes: levelled, and its sense is told by info and mended."""
    block = plane_grid().whole
    x, y = block.x, block.y[:, ::-1]
    random = np.random.default_rng(1)
    values = [x, y, 0.3 * (off > 1e-20) + off * np.ptp(x) * random.uniform(-1, 1, x.shape)]
    write(tmp_path / "g.x", [[values[PLANES[plane].index(c)] for c in range(3)]], "stream")
    if plane == "xy":
        assert describe(tmp_path / "g.x")["blocks"][0]["hands"] == "left"
    grid = build(GridFile(file=str(tmp_path / "g.x")))
    assert np.ptp(grid.blocks[0].z) == 0
    check_jacobian(grid)
    with pytest.raises(HiresxError, match="the whole block is left-handed") as error:
        check_jacobian(build(GridFile(file=str(tmp_path / "g.x"), reverse="keep")))
    assert '[grid] reverse = ["block-1"]' in error.value.hint
    check_jacobian(build(GridFile(file=str(tmp_path / "g.x"), reverse=["block-1"])))
    with pytest.raises(HiresxError, match=r"grid\.reverse: there is no block 'block1'") as error:
        build(GridFile(file=str(tmp_path / "g.x"), reverse=["block1"]))
    assert "block-1" in error.value.hint


@pytest.mark.parametrize(("blocks", "more"), [(4, ""), (5, " and others")])
def test_four_reversed_blocks_are_named(blocks, more):
    block = plane_grid().whole
    names = [f"b{n}" for n in range(blocks)]
    grid = Grid(tuple(Block(name, block.x, block.y, block.z) for name in names))
    reversed_, (note,) = reverse_i(grid, names, "were ")
    assert note == f"{blocks} blocks were reversed in i: 'b0', 'b1', 'b2', 'b3'{more}"
    assert np.array_equal(reversed_.blocks[4 if more else 3].x, block.x[:, :, ::-1])


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("thin", [(1, 2), (2, 2), (1, 1)])
@pytest.mark.parametrize("backwards", [False, True])
def test_a_row_of_cells_is_a_line(tmp_path, axis, thin, backwards):
    """A tube as three-dimensional codes hold it, along any axis and index direction: two blocks along x, joined."""
    x = np.linspace(-1, 2, 31)
    x = x + 0.1 * x**3
    sizes = dict(zip([e for e in range(3) if e != axis], thin, strict=True))
    blocks = []
    for part in (x[:16], x[15:]):
        lines = [part[::-1] if backwards else part, *(0.1 * np.arange(n) for n in sizes.values())]
        mesh = np.meshgrid(*lines, indexing="ij")  # along, and the two thin directions
        order = [axis, *sizes]  # coordinate a lies along direction order[a], directions from k to i
        blocks.append([mesh[order.index(c)].transpose([order.index(d) for d in (2, 1, 0)]) for c in (1, 2, 0)])
    write(tmp_path / "g.x", blocks)
    grid = build(GridFile(file=str(tmp_path / "g.x")))
    assert [b.size for b in grid.blocks] == [(16, 1, 1)] * 2 and len(grid.connections) == 2
    np.testing.assert_allclose(np.concatenate([grid.blocks[0].x.ravel(), grid.blocks[1].x.ravel()[1:]]), x, atol=1e-15)
    assert all(np.ptp(b.y) == 0 == np.ptp(b.z) for b in grid.blocks)
    check_jacobian(grid)


def test_a_surface_in_space_is_no_plane(tmp_path):
    block = plane_grid().whole
    write(tmp_path / "g.x", [[block.x, block.y[:, ::-1], 1e-5 * block.x**2]], "stream")
    assert describe(tmp_path / "g.x")["blocks"][0]["hands"] == ""
    with pytest.raises(HiresxError, match="lies in none of the planes"):
        build(GridFile(file=str(tmp_path / "g.x")))


def test_reindexing_keeps_what_is_joined():
    """Ghosts of reindexed blocks are the reindexed ghosts: checked node by node under random reindexings."""
    random = np.random.default_rng(4)
    arrangement = Arrangement(shaken((17, 16, 15)).blocks[0], 4, 3, True)
    from hiresx.grid import matched_connections

    grid = Grid(tuple(arrangement.blocks), tuple(matched_connections(arrangement.blocks)))
    for _ in range(10):
        by = [
            Reindexing(tuple(random.permutation(3).tolist()), tuple(bool(r) for r in random.integers(0, 2, 3)))
            for _ in grid.blocks
        ]
        turned, _ = make_right_handed(reindex(grid, by))
        assert sum(check.nodes for check in check_connections(turned.blocks, turned.connections)) > 0


# --- what is made of a grid


def saved(folder, grid: Grid, **keys) -> Grid:
    write_plot3d(folder / "g.x", grid)
    write_connectivity(folder / "g.toml", grid)
    return build(GridFile(file="g.x", connectivity="g.toml", **keys), folder)


def bent(n=(17, 13, 1)) -> Grid:
    """A plane grid above y = 0.4 with a named floor."""
    (block,) = shaken(n).blocks
    regions = {"floor": (("jmin", ((4, 9), (0, 1), (0, n[2]))),)}
    return Grid((Block("a", block.x, block.y + 0.4, block.z, regions),))


def test_scaled_turned_and_moved(tmp_path):
    from hiresx.case.grid_file import Rotation

    grid = bent()
    period = {"i": (2.0, 0.0, 0.0)}
    grid = Grid(grid.blocks, (), (period,))
    turned = saved(tmp_path, grid, scale=2.0, rotate=Rotation(axis=(0, 0, 1), angle=90.0), translate=(0.5, 0.25, 0.0))
    np.testing.assert_allclose(turned.blocks[0].x, 0.5 - 2 * grid.blocks[0].y)
    np.testing.assert_allclose(turned.blocks[0].y, 0.25 + 2 * grid.blocks[0].x)
    assert turned.period[0]["i"] == pytest.approx((0.0, 4.0, 0.0))
    assert turned.blocks[0].regions == grid.blocks[0].regions


def test_every_second_node(tmp_path):
    whole = build(Box(n=(33, 17, 15), lower=(0.0, 0.0, 0.0), upper=(2.0, 1.0, 1.0))).blocks[0]
    halves = [Block(n, *(c[:, :, s] for c in nodes(whole))) for n, s in (("a", slice(0, 17)), ("b", slice(16, 33)))]
    write_plot3d(tmp_path / "g.x", Grid(tuple(halves)))
    grid = build(GridFile(file=str(tmp_path / "g.x"), coarsen=1))
    assert [b.size for b in grid.blocks] == [(9, 9, 8)] * 2 and len(grid.connections) == 2
    np.testing.assert_array_equal(grid.blocks[1].x, halves[1].x[::2, ::2, ::2])
    with pytest.raises(HiresxError, match="coarsen: there is no direction"):
        build(GridFile(file=str(tmp_path / "g.x"), coarsen=2))


def test_regions_and_neighbours_hold_their_nodes_when_coarsened(tmp_path):
    whole = build(Box(n=(33, 17, 1), lower=(0.0, 0.0, 0.0), upper=(2.0, 1.0, 0.0))).blocks[0]
    regions = {"part": (("jmin", ((3, 9), (0, 1), (0, 1))),)}
    halves = [Block(n, *(c[:, :, s] for c in nodes(whole)), r)
              for n, s, r in (("a", slice(0, 17), regions), ("b", slice(16, 33), {}))]  # fmt: skip
    from hiresx.grid import matched_connections

    grid = saved(tmp_path, Grid(tuple(halves), tuple(matched_connections(halves))), coarsen=1)
    # i of both is one grid line, and the region begins at an odd node
    assert [b.size for b in grid.blocks] == [(17, 9, 1)] * 2


def test_patches_side_by_side_are_coarsened_between_them(tmp_path):
    """One of two begins at a node that stays; so do the wall and the cut of a C-grid, whose sides lie in reverse."""
    whole = build(Box(n=(17, 17, 1), lower=(0.0, 0.0, 0.0), upper=(1.0, 1.0, 0.0))).blocks[0]
    found = {}
    for at in (7, 8):
        regions = {name: (("jmin", ((lo, hi), (0, 1), (0, 1))),) for name, lo, hi in (("a", 0, at), ("b", at, 17))}
        coarse, _ = coarsen(Grid((Block("c", *nodes(whole), regions),)))
        found[coarse.blocks[0].size] = [parts[0][1][0] for parts in coarse.blocks[0].regions.values()]
    assert found == {(17, 9, 1): [(0, 7), (7, 17)], (9, 9, 1): [(0, 4), (4, 9)]}

    airfoil = load("naca0012", "laminar").grid
    coarse, _ = coarsen(build(airfoil))
    (block,) = coarse.blocks
    assert block.size == (81, 23, 1) and block.regions["wall"] == (("jmin", ((16, 65), (0, 1), (0, 1))),)
    assert [c.range[0] for c in coarse.connections] == [(0, 16), (65, 81)]
    assert all(found.gap < 1e-14 for found in check_connections(coarse.blocks, coarse.connections))
    odd, _ = coarsen(build(airfoil.model_copy(update={"n_wake": 33})))  # the trailing edge is no second node
    assert odd.blocks[0].size == (163, 23, 1)


@pytest.mark.parametrize("axes", [("y",), ("x",), ("y", "x")])
@pytest.mark.parametrize("n", [(17, 13, 1), (17, 13, 9)])
def test_half_models_made_whole(tmp_path, n, axes):
    """Half a grid and its image are as good as one grid: free stream, and every node where the mirror has it."""
    whole = build(Box(n=n, lower=(0.0, 0.0, 0.0), upper=(2.0, 1.0, 1.0 * (n[2] > 1)))).blocks[0]
    x, y, z = nodes(whole)
    bump = 0.05 * np.sin(3 * x) * np.sin(2 * y) * x * y
    block = Block("a", x + bump, y + bump, z, {"top": (("jmax", ((0, n[0]), (n[1] - 1, n[1]), (0, n[2]))),)})
    halves = [Block(m, *nodes(block)[:, :, :, s], block.regions if m == "a" else {})
              for m, s in (("a", slice(0, 9)), ("b", slice(8, 17)))]  # fmt: skip
    halves[0] = Block("a", *nodes(halves[0]), {"top": (("jmax", ((0, 9), (n[1] - 1, n[1]), (0, n[2]))),)})
    write_plot3d(tmp_path / "g.x", Grid(tuple(halves)))
    grid = build(GridFile(file=str(tmp_path / "g.x"), mirror=axes))
    assert len(grid.blocks) == 2 * 2 ** len(axes)
    check_jacobian(grid)
    for extended in extended_coordinates(decomposed(grid, FAR)):
        assert free_stream_residual(extended) < 1e-13
    names = [b.name for b in grid.blocks]
    image = grid.blocks[names.index(f"block-1-mirror-{axes[0]}")]
    c = "xyz".index(axes[0])
    d = 1 if axes[0] == "y" else 0
    sign = np.ones((3, 1, 1, 1))
    sign[c] = -1
    np.testing.assert_array_equal(np.flip(nodes(image), axis=3 - d), sign * nodes(halves[0]))


def test_mirrors_that_are_none(tmp_path):
    grid = bent()
    write_plot3d(tmp_path / "g.x", grid)
    with pytest.raises(HiresxError, match='mirror = "y": no free face lies in the plane y = 0'):
        build(GridFile(file=str(tmp_path / "g.x"), mirror=("y",)))
    with pytest.raises(HiresxError, match='mirror = "y": nodes lie on both sides'):
        build(GridFile(file=str(tmp_path / "g.x"), mirror=("y",), translate=(0.0, -0.9, 0.0)))
    with pytest.raises(HiresxError, match="the grid lies in a plane of constant z") as caught:
        build(GridFile(file=str(tmp_path / "g.x"), mirror=("z",)))
    assert caught.value.hint == 'it can be mirrored along x or y: leave "z" out'


def test_planes_drawn_out_and_turned(tmp_path):
    from hiresx.case.grid_file import Extrusion, Revolution

    box = saved(tmp_path, bent(), extrude=Extrusion(n=8, length=0.5))
    assert box.blocks[0].size == (17, 13, 8)
    assert box.blocks[0].regions["floor"] == (("jmin", ((4, 9), (0, 1), (0, 8))),)
    ring = saved(tmp_path, bent(), revolve=Revolution(n=24, angle=360.0))
    part = saved(tmp_path, bent(), revolve=Revolution(n=9, angle=40.0))
    for grid in (box, ring, part):
        check_jacobian(grid)
        (extended,) = extended_coordinates(decomposed(grid, Periodic(faces=["kmin", "kmax"]), FAR))
        assert free_stream_residual(extended) < 1e-13
    np.testing.assert_allclose(np.hypot(part.blocks[0].y, part.blocks[0].z)[3], bent().blocks[0].y[0])
    between_walls = saved(tmp_path, bent(), extrude=Extrusion(n=8, length=0.5, periodic=False))
    assert (between_walls.blocks[0].z[0] == 0).all() and (between_walls.blocks[0].z[-1] == 0.5).all()
    wedge = saved(tmp_path, bent(), revolve=Revolution(n=9, angle=40.0, periodic=False)).blocks[0]
    np.testing.assert_allclose(np.degrees(np.arctan2(wedge.z, wedge.y)[-1]), 40.0, rtol=1e-13)
    with pytest.raises(HiresxError, match="revolve: block 'a' has y = "):
        saved(tmp_path, bent(), revolve=Revolution(n=24, angle=360.0), translate=(0.0, -0.5, 0.0))
    with pytest.raises(HiresxError, match="extrude: the grid is not plane"):
        saved(tmp_path, Grid(shaken((9, 9, 9)).blocks), extrude=Extrusion(n=8, length=0.5))


# --- what is said of a file, and the case that starts from it


def test_info_goes_by_content(tmp_path):
    """Under any name; what is said is of the file as delivered and of what becomes of it."""
    arrangement = plane_grid()
    for form in ("text", "records", "stream"):
        path = tmp_path / f"{form}.dat"
        write(path, as_delivered(arrangement.blocks, 0, "xz"), form)
        found = describe(path)
        assert found["kind"] == "grid (Plot3D)" and [b["thin"] for b in found["blocks"]] == ["i"] * 3
        assert found["connections"] == 2 * len(arrangement.tables)
        assert any("two equal planes" in line for line in found["done"])
        normals = np.array([row["normal"] for row in found["left"]])
        assert np.abs(np.abs(normals).max(axis=1) - 1).max() < 0.1  # of a box that is a little bent
    (tmp_path / "notes.dat").write_text("Once upon a time")
    with pytest.raises(HiresxError, match="does not know this type of file"):
        describe(tmp_path / "notes.dat")


def test_info_names_collapsed_lines(tmp_path):
    """A half sphere around the x axis: one face is the axis, its lines in one direction are points."""
    r, t, p = np.meshgrid(np.linspace(1, 2, 8), np.linspace(0, 1.5, 9), np.linspace(0, 3.1, 10), indexing="ij")
    nodes_ = [r * np.cos(t), r * np.sin(t) * np.cos(p), r * np.sin(t) * np.sin(p)]
    write(tmp_path / "g.x", [[c.transpose(2, 1, 0) for c in nodes_]])
    found = describe(tmp_path / "g.x")
    assert found["blocks"][0]["collapsed"].endswith("jmin along k")
    write(tmp_path / "g.x", [[c.transpose(2, 1, 0)[::-1] for c in nodes_]])
    assert {describe(tmp_path / "g.x")["blocks"][0]["hands"], found["blocks"][0]["hands"]} == {"right", "left"}


def test_a_case_starts_from_a_grid(tmp_path, capsys, monkeypatch):
    """What `hiresx new --from` writes runs as it is."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "g.dat", as_delivered(plane_grid().blocks, 1, "xz"), "stream")
    assert execute(["new", "--from", "g.dat"]) == 0
    printed = capsys.readouterr().out
    assert execute(["new", "--from", "g.dat", "mine"]) == 0
    assert (tmp_path / "mine" / "case.toml").read_text().strip() == printed.strip()
    assert execute(["check", "mine"]) == 0
    assert execute(["run", "mine", "--steps", "2", "--out", "run"]) == 0
    assert execute(["new", "--from", "g.dat", "mine"]) == 2


def test_a_case_from_blocks_that_meet(tmp_path, monkeypatch, capsys):
    """Faces that lie on each other stand in it by name, and not as if they were nothing."""
    monkeypatch.chdir(tmp_path)
    y, x = np.meshgrid(np.linspace(0, 1, 9), np.linspace(0, 1, 10), indexing="ij")
    other, _ = np.meshgrid(np.linspace(0, 1, 12), np.linspace(0, 1, 10), indexing="ij")
    right = np.broadcast_to(x[:1], other.shape) + 1
    write(tmp_path / "g.x", [[x[None], y[None]], [right[None], other[None]]])
    assert [(row["block"], row["face"], row["other"]) for row in describe(tmp_path / "g.x")["meets"]] == [
        ("block-1", "imax", "block-2"),
        ("block-2", "imin", "block-1"),
    ]
    assert execute(["new", "--from", "g.x", "mine"]) == 0
    assert (tmp_path / "mine" / "case.toml").read_text().count("# MEETS block-") == 2
    capsys.readouterr()
    assert execute(["new", "--from", "g.x", "other", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["directory"], told["files"]) == ("other", [str(Path("other", "case.toml"))]) and told["notes"]
    assert execute(["run", "mine", "--steps", "2", "--out", "run"]) == 0


def test_a_picture_of_the_worst_place(tmp_path):
    pytest.importorskip("matplotlib")
    block = shaken((17, 15, 1)).blocks[0]
    x = block.x.copy()
    x[0, 6, 9] += 0.2  # past its neighbour
    write(tmp_path / "g.x", [[x, block.y]])
    grid = build(GridFile(file=str(tmp_path / "g.x")))
    found, what, extreme = worst_place(grid)
    assert found.name == "block-1" and what == "volume_min" and abs(extreme["node"][0] - 9) <= 1
    assert execute(["plot", str(tmp_path / "g.x"), "--quality"]) == 0
    assert (tmp_path / "g.x-quality.png").stat().st_size > 10_000


@pytest.mark.parametrize("large", [False, True], ids=["read", "left in the file"])
@pytest.mark.parametrize("form", ["text", "records", "stream"])
def test_nodes_that_take_values_of_other_blocks_are_blanked_too(tmp_path, monkeypatch, form, large):
    """A negative IBLANK names the block that values come from."""
    if large:
        monkeypatch.setattr(stored_coordinates, "LARGE", 0)
    block = nodes(shaken((9, 8, 7)).blocks[0])
    blanking = np.ones(block[0].shape)
    blanking[3, 2, 1] = -2
    write(tmp_path / "grid.x", [block], form, blanking=[blanking])
    with pytest.raises(HiresxError, match=r"has 1 blanked nodes, first .* \(1, 2, 3\)"):
        build(GridFile(file=str(tmp_path / "grid.x")))


@pytest.mark.parametrize("normal", "xy")
def test_a_plane_is_turned_as_a_whole(normal):
    """No coordinate along the normal, wherever the plane lies, enters those in the plane."""
    a, b = np.meshgrid(np.linspace(0, 1, 9), np.linspace(0, 2, 8))
    far = np.full_like(a, 5.0)
    x, y, z = (m[None] for m in {"x": (far, a, b), "y": (a, far, b)}[normal])
    flat, _ = flatten(Grid((Block("b", x, y, z),)))
    (block,) = flat.blocks
    assert np.array_equal(block.x[0], a) and np.array_equal(block.y[0], b)
