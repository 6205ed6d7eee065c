"""Grids: generators, quality, periodicity, connections found in files."""

from importlib import import_module

import numpy as np
import pytest

from hiresx.case.grid_file import GridFile
from hiresx.case.grids import GENERATORS, Box, Cylinder, PlanarJet, Plate, Wavy
from hiresx.errors import HiresxError
from hiresx.grid import (
    Block,
    Grid,
    build,
    check_jacobian,
    matched_connections,
    periodic_connections,
    quality,
    write_plot3d,
)
from hiresx.grid.spacing import march, nodes_from_centre, nodes_from_wall


def box(n=(8, 9, 10), **keys) -> Box:
    upper = tuple(float(d + 1) * (m > 1) for d, m in enumerate(n))
    return Box(n=n, **{"lower": (0.0, 0.0, 0.0), "upper": upper, **keys})


def wavy(n=(9, 10, 11), **keys) -> Wavy:
    amplitude = tuple(0.06 * (m > 1) for m in n)
    upper = tuple(1.0 * (m > 1) for m in n)
    return Wavy(n=n, **{"lower": (0.0, 0.0, 0.0), "upper": upper, "amplitude": amplitude, **keys})


def jet(**keys) -> PlanarJet:
    return PlanarJet(
        **{
            "points_per_height": 40,
            "boundary_layer_thickness": 0.1,
            "boundary_layer_points": 5,
            "lip_thickness": 0.2,
            "exit_spacing": 0.06,
            "length": 12.0,
            "half_height": 5.0,
            "upstream": 1.0,
            "stretching": (1.015, 1.06),
            "sponge_length": 8.0,
            "sponge_height": 5.0,
            "sponge_stretching": 1.15,
            **keys,
        }
    )


# --- generators


@pytest.mark.parametrize("name", GENERATORS)
def test_every_generator_of_a_case_has_its_file(name):
    assert callable(import_module(f"hiresx.grid.generators.{name.replace('-', '_')}").generate)


def test_box_has_nodes_at_both_ends_or_unique_ones():
    block = build(box(periodic=("y",))).blocks[0]
    assert block.x.shape == (10, 9, 8) and block.size == (8, 9, 10)
    np.testing.assert_allclose(block.x[3, 4], np.linspace(0, 1, 8))
    np.testing.assert_allclose(block.y[3, :, 4], np.arange(9) * 2 / 9)
    np.testing.assert_allclose(block.z[:, 3, 4], np.linspace(0, 3, 10))


@pytest.mark.parametrize("n, dimensions", [((8, 1, 1), 1), ((8, 9, 1), 2), ((8, 9, 10), 3)])
def test_dimensions(n, dimensions):
    grid = build(box(n))
    assert grid.dimensions == dimensions and grid.points == np.prod(n)
    assert len(grid.blocks[0].faces) == 2 * dimensions


@pytest.mark.parametrize("cluster, at", [("lower", 0), ("upper", -1), ("both", 0), ("both", -1), ("centre", 200)])
def test_stretching_ratio(cluster, at):
    spec = box((401, 1, 1), stretch={"x": {"cluster": cluster, "ratio": 10.0}})
    x = build(spec).blocks[0].x[0, 0]
    step = np.diff(x)
    assert (x[0], x[-1]) == (0.0, 1.0)
    assert step.max() / step.min() == pytest.approx(10, rel=0.03)
    assert step[at] == pytest.approx(step.min(), rel=1e-3)


def test_stretched_periodic_axis_is_refused():
    with pytest.raises(HiresxError, match=r"grid\.stretch\.x"):
        build(box(periodic=("x",), stretch={"x": {"cluster": "both", "ratio": 2.0}}))


def test_wavy_is_the_reference_vortex_grid():
    spec = Wavy(n=(32, 32, 1), lower=(0.0, 0.0, 0.0), upper=(10.0, 10.0, 0.0), amplitude=(0.5, 0.5, 0.0),
                periodic=("x", "y"))  # fmt: skip
    block = build(spec).blocks[0]
    Y, X = np.meshgrid(np.arange(32) / 3.2, np.arange(32) / 3.2, indexing="ij")
    wave = 0.5 * np.sin(2 * np.pi * X / 10) * np.sin(2 * np.pi * Y / 10)
    np.testing.assert_allclose(block.x[0], X + wave, atol=1e-14)
    np.testing.assert_allclose(block.y[0], Y + wave, atol=1e-14)


def test_wavy_is_periodic_only_for_whole_waves():
    assert set(build(wavy(waves=(1.0, 1.5, 2.0))).period[0]) == {"i", "k"}


def test_lines_keep_their_promises():
    wall = nodes_from_wall(40, 2.0, 1e-3, "first_spacing")
    assert wall[1] == pytest.approx(1e-3, rel=1e-9) and wall[-1] == 2.0
    centre = nodes_from_centre(40, 2.0, 1e-3, "spacing")
    slope = 1.5 * centre[1] - 0.3 * centre[2] + centre[3] / 30  # 6th-order central at 0, the line being odd
    assert slope == pytest.approx(1e-3, rel=1e-5)
    np.testing.assert_allclose(nodes_from_wall(10, 1.0, 0.1, ""), np.linspace(0, 1, 11))
    assert len(march(lambda x: 0.1, 1.0)) == 11
    growing = march(lambda x: 0.1 + 0.2 * x, 5.0)  # dx/dn = a + b x
    np.testing.assert_allclose(growing, 0.5 * np.expm1(0.2 * np.arange(len(growing))), rtol=1e-6)
    with pytest.raises(HiresxError, match=r"larger than the uniform spacing 0\.1"):
        nodes_from_wall(10, 1.0, 0.11, "first_spacing")


def test_plate():
    grid = build(Plate(n=(97, 65, 1), upstream=0.4, length=1.0, height=0.5, first_spacing=4e-4,
                       leading_edge_spacing=2e-3))  # fmt: skip
    block = grid.blocks[0]
    ((face, ((_, edge), _, _)),) = block.regions["upstream"]
    ((_, ((start, end), _, _)),) = block.regions["plate"]
    assert face == "jmin" and start == edge and end == 97
    x = block.x[0, 0]
    assert x[edge] == 0.0 and x[0] == -0.4 and x[-1] == 1.0
    np.testing.assert_allclose(np.diff(x)[edge - 1 : edge + 1], 2e-3, rtol=5e-3)
    assert block.y[0, 1, 0] == pytest.approx(4e-4) and block.y[0, -1, 0] == 0.5
    assert quality(grid)[0]["stretching"]["value"] < 1.12


def test_cylinder():
    spec = Cylinder(n_around=97, n_normal=65, standoff_axis=1.0, standoff_side=3.4, first_spacing=0.014, radius=1.0)
    grid = build(spec)
    x, y = grid.blocks[0].x[0], grid.blocks[0].y[0]
    np.testing.assert_allclose(np.hypot(x[0], y[0]), 1.0)
    np.testing.assert_allclose((x[-1] / 2.0) ** 2 + (y[-1] / 4.4) ** 2, 1.0)
    assert x[1, 48] - x[0, 48] == pytest.approx(-0.014)
    assert y[0, 0] == -1.0 and y[0, -1] == 1.0
    np.testing.assert_allclose(x, x[:, ::-1], atol=1e-14)
    check_jacobian(grid)


def test_planar_jet_rows_and_spacing():
    grid = build(jet())
    blocks = {block.name: block for block in grid.blocks}
    y = blocks["jet"].y[0, :, 0]
    np.testing.assert_allclose(y, -y[::-1], atol=0)
    (_, (_, (a, b), _)), (_, (_, (c, d), _)) = blocks["jet"].regions["walls"]
    np.testing.assert_allclose([y[a], y[b - 1], y[c], y[d - 1]], [-0.7, -0.5, 0.5, 0.7], rtol=1e-15)
    assert c - (b - 1) == 40 and np.sum((y >= 0.5 - 0.1 - 1e-9) & (y <= 0.5)) == 6
    np.testing.assert_array_equal(blocks["nozzle"].y[0, :, 0], y[b - 1 : c + 1])
    np.testing.assert_array_equal(blocks["above"].y[0, :, 0], y[d - 1 :])
    np.testing.assert_array_equal(blocks["below"].y[0, :, 0], y[: a + 1])
    x = blocks["jet"].x[0, 0]
    assert x[0] == 0.0 and x[1] == pytest.approx(0.06, rel=1e-3) and x[-1] >= 20.0
    np.testing.assert_array_equal(blocks["nozzle"].x[0, 0, ::-1], -x[1 : blocks["nozzle"].size[0] + 1])
    assert blocks["nozzle"].x.min() == pytest.approx(-0.6, abs=0.07) and blocks["above"].x.min() <= -1.0
    assert 20_000 < grid.points < 35_000
    check_jacobian(grid)
    assert max(record["stretching"]["value"] for record in quality(grid)) < 1.16
    assert all(record["skewness"]["value"] < 1e-6 for record in quality(grid))


def test_planar_jet_span():
    grid = build(jet(nk=8, width=2.0))
    assert all(block.size[2] == 8 for block in grid.blocks)
    assert all(period == {"k": (0.0, 0.0, 2.0)} for period in grid.period)


def test_planar_jet_refusals():
    with pytest.raises(HiresxError, match="odd"):
        build(jet(points_per_height=41))
    with pytest.raises(HiresxError, match="do not fit"):
        build(jet(points_per_height=12))
    with pytest.raises(HiresxError, match="half_height"):
        build(jet(half_height=0.6))


# --- blocks, Jacobian, quality, periodicity


def test_too_few_nodes():
    with pytest.raises(HiresxError, match=r"block 'box' has 5 nodes in direction j.*needs 7"):
        build(box((8, 5, 1)))


def test_jacobian_place():
    grid = build(box((20, 12, 1)))
    check_jacobian(grid)
    x = grid.blocks[0].x.copy()
    x[0, 4, 9] += 0.3  # over its neighbours
    block = Block("folded", x, grid.blocks[0].y, grid.blocks[0].z)
    with pytest.raises(HiresxError, match=r"block 'folded'.*node \(i, j, k\) = \((8|10), 4, 0\)"):
        check_jacobian(Grid((block,)))


def test_left_handed_block():
    block = build(box()).blocks[0]
    with pytest.raises(HiresxError) as error:
        check_jacobian(Grid((Block("mirrored", -block.x, block.y, block.z),)))
    assert "the whole block is left-handed" in error.value.message and "reverse one" in error.value.hint


def test_quality_of_a_sheared_box(monkeypatch):
    grid = build(box((20, 21, 22)))
    b = grid.blocks[0]
    sheared = Grid((Block("sheared", b.x + b.y, b.y, b.z),))
    whole = quality(sheared)[0]
    volume = 1 / 19 * 2 / 20 * 3 / 21
    assert whole["volume_min"]["value"] == pytest.approx(volume) == whole["volume_max"]["value"]
    assert whole["skewness"]["value"] == pytest.approx(45)
    assert whole["aspect_ratio"]["value"] == pytest.approx((3 / 21) / (1 / 19))
    assert whole["stretching"]["value"] == pytest.approx(1)
    # Slabs of any thickness give the same derivatives.
    wave = Grid(build(wavy((9, 10, 23))).blocks)
    before = quality(wave)
    monkeypatch.setattr(import_module("hiresx.grid.quality"), "SLAB", 200)
    assert quality(wave) == before


def test_quality_in_one_dimension():
    (record,) = quality(build(box((9, 1, 1))))
    assert record["volume_min"]["value"] == pytest.approx(1 / 8) and "skewness" not in record


@pytest.mark.parametrize("turned", [False, True])
def test_stretching_counts_both_ways(turned):
    """Spacings that grow along i, or shrink."""
    x = 1.3 ** np.arange(9.0)
    x = -x[::-1] if turned else x
    (record,) = quality(Grid((Block("line", *(c.reshape(1, 1, 9) for c in (x, 0 * x, 0 * x))),)))
    assert record["stretching"]["value"] == pytest.approx(1.3)


def test_collapsed_spacings_have_no_stretching():
    """As the two nodes at a nose that a plane of symmetry divides."""
    x, y = np.meshgrid([0.0, 1.0, 2.0, 3.0, 3.0, 4.0, 5.0, 6.0], 1.2 ** np.arange(8.0))
    (record,) = quality(Grid((Block("plane", x[None], y[None], 0 * x[None]),)))
    assert record["stretching"]["value"] == pytest.approx(1.2)


def test_quality_follows_connections():
    """Behind the exit plane of the jet the spacing goes on smoothly: uniform there, no kink of a reflection."""
    grid = build(jet(stretching=(1.1, 1.1)))
    volume = {}
    for b, block in enumerate(grid.blocks[:2]):
        ((_, tangents),) = import_module("hiresx.grid.quality")._slabs(grid, b)
        volume[block.name] = tangents[0][0][0]
    middle = len(volume["nozzle"]) // 2, len(volume["jet"]) // 2
    x = np.concatenate([grid.blocks[1].x[0, middle[0]], grid.blocks[0].x[0, middle[1]]])
    joined = np.concatenate([volume["nozzle"][middle[0]], volume["jet"][middle[1]]])
    n = len(x)
    wanted = sum(c * x[m : n - 6 + m] for m, c in enumerate((-1 / 60, 3 / 20, -3 / 4, 0, 3 / 4, -3 / 20, 1 / 60)))
    np.testing.assert_allclose(joined[3:-3], wanted, rtol=1e-12)


def test_jacobian_is_sixth_order():
    errors = []
    for n in (20, 40):
        spec = Wavy(n=(n, n, 1), lower=(0.0, 0.0, 0.0), upper=(1.0, 1.0, 0.0), amplitude=(0.05, 0.05, 0.0))
        block = build(spec).blocks[0]
        X = np.linspace(0, 1, n)
        a = 0.05 * 2 * np.pi
        Sx, Cx = np.sin(2 * np.pi * X)[None, :], np.cos(2 * np.pi * X)[None, :]
        Sy, Cy = Sx.T, Cx.T
        exact = ((1 + a * Cx * Sy) * (1 + a * Sx * Cy) - a * a * Sx * Cy * Cx * Sy) / (n - 1) ** 2
        module = import_module("hiresx.grid.quality")
        ((_, tangents),) = module._slabs(Grid((block,)), 0)
        error = np.abs(module._volume(tangents)[0] / exact - 1)[5:-5, 5:-5]
        errors.append(error.max())
    assert np.log2(errors[0] / errors[1]) > 5.7


@pytest.mark.parametrize("periodic, step", [((), 8), (("x",), 9)])
def test_periodic_layouts(periodic, step):
    low, high = periodic_connections(build(wavy(periodic=periodic)), 0, "i")
    assert (low.face, high.face) == ("imin", "imax")
    assert low.offset == (step, 0, 0) and high.offset == (-step, 0, 0)
    assert low.translation == (-1.0, 0.0, 0.0) and high.translation == (1.0, 0.0, 0.0)


def test_periodic_refusals():
    block = build(box((12, 10, 1))).blocks[0]
    with pytest.raises(HiresxError, match="no period in direction i"):
        periodic_connections(Grid((block,)), 0, "i")
    with pytest.raises(HiresxError, match=r"do not match.*\(i, j, k\) = \(0, 0, 0\)"):
        periodic_connections(Grid((block,), period=({"i": (2.0, 0.0, 0.0)},)), 0, "i")
    bent = Block("bent", block.x, block.y + (block.x == 0) * (block.y > 1.5) * 0.5, block.z)
    with pytest.raises(HiresxError, match=r"\(i, j, k\) = \(0, 7, 0\)"):
        periodic_connections(Grid((bent,), period=({"i": (1.0, 0.0, 0.0)},)), 0, "i")
    far = Block("far", block.x + (block.x == 0) * (block.y > 1.5) * 10.0, block.y, block.z)
    with pytest.raises(HiresxError, match=r"\(i, j, k\) = \(0, 7, 0\)"):
        periodic_connections(Grid((far,), period=({"i": (12 / 11, 0.0, 0.0)},)), 0, "i")
    for steps in (0.1, 9.0):  # the seam is a tenth of a step, or nine
        with pytest.raises(HiresxError, match=r"do not match"):
            periodic_connections(Grid((block,), period=({"i": (1 + steps / 11, 0.0, 0.0)},)), 0, "i")


def test_blocks_a_hair_apart_are_not_joined():
    """By a gap that is nothing beside the blocks, but not beside their finest spacing."""
    near, far = (build(box((9, 8, 1))).blocks[0] for _ in range(2))
    fine = near.x**8 + 1e-7 * near.x  # drawn to x = 0
    for gap, joined in ((0.0, 2), (5e-7, 0)):
        blocks = [Block("right", fine + gap, near.y, near.z), Block("left", -fine[..., ::-1], far.y, far.z)]
        assert len(matched_connections(blocks)) == joined


# --- connections found in files


def test_grid_file(tmp_path):
    """Two halves of a periodic box, the interface nodes in both, one of them turned by a quarter about z."""
    whole = build(wavy((17, 9, 8))).blocks[0]
    left = Block("left", *(c[:, :, :9] for c in (whole.x, whole.y, whole.z)))
    right = Block("right", *(c[:, :, 8:].transpose(0, 2, 1)[:, :, ::-1] for c in (whole.x, whole.y, whole.z)))
    write_plot3d(tmp_path / "g.xyz", Grid((left, right)), precision="fp32")
    grid = build(GridFile(file="g.xyz", period={"k": (0.0, 0.0, 1.0)}), tmp_path)
    check_jacobian(grid)
    there, back = grid.connections
    assert (there.face, there.donor, there.range) == ("imax", 1, ((8, 9), (0, 9), (0, 8)))
    # Right block: i' = 8 - j, j' = i - 8, k' = k.
    assert there.matrix == ((0, -1, 0), (1, 0, 0), (0, 0, 1)) and there.offset == (8, -8, 0)
    assert (back.face, back.donor, back.range) == ("jmin", 0, ((0, 9), (0, 1), (0, 8)))
    assert back.matrix == ((0, 1, 0), (-1, 0, 0), (0, 0, 1)) and back.offset == (8, 8, 0)
    assert there.donor_direction == 1 and there.sign == 1
    assert all(set(p) == {"k"} for p in grid.period)


def test_parts_of_faces_are_matched():
    """A tall block beside two short ones: the line of nodes that all three hold is given once."""
    tall = build(box((9, 17, 1), upper=(1.0, 2.0, 0.0))).blocks[0]
    low = Block("low", tall.x[:, :9] - 1, tall.y[:, :9], tall.z[:, :9])
    high = Block("high", tall.x[:, 8:] - 1, tall.y[:, 8:], tall.z[:, 8:])
    connections = matched_connections([Block("tall", tall.x, tall.y, tall.z), low, high])
    ours = [(c.donor, c.range[1]) for c in connections if c.block == 0]
    assert ours == [(1, (0, 9)), (2, (9, 17))]
    assert {(c.block, c.face, c.donor) for c in connections} >= {(1, "imax", 0), (2, "imax", 0), (1, "jmax", 2)}
    assert len(connections) == 6


def test_a_thin_layer_does_not_touch_itself():
    """Nodes closer than what counts as one place beside the block; a ring with such a layer closes all the same."""
    finest = 1e-7 * np.cumsum(1.25 ** np.arange(96))
    x, y = np.meshgrid(np.linspace(0, finest[-1], 17), [0, *finest])
    assert not matched_connections([Block("layer", x[None], y[None], 0 * x[None])])
    x, y = np.meshgrid(np.linspace(0, 1, 17), np.linspace(0, 1e-6, 13))
    assert not matched_connections([Block("channel", x[None], y[None], 0 * x[None])])
    angle, radius = np.meshgrid(np.linspace(0, 2 * np.pi, 41), 1 + finest[:60])
    ring = Block("ring", (radius * np.cos(angle))[None], (radius * np.sin(angle))[None], 0 * angle[None])
    assert [(c.face, c.range[1]) for c in matched_connections([ring])] == [("imin", (0, 60)), ("imax", (0, 60))]


def test_wake_cut_is_matched():
    """C-grid: the two ends of jmin lie on each other."""
    s = np.linspace(-1, 1, 41)
    t = np.linspace(0, 1, 9)[:, None]
    wall = np.where(np.abs(s) > 0.5, 0.0, np.sin(np.pi * (s + 0.5))) * 0.2
    x = np.broadcast_to(np.abs(s) * 4, (9, 41))
    y = np.where(s < 0, -1, 1) * (np.abs(wall) + t)
    connections = matched_connections([Block("c", x[None], y[None], np.zeros((1, 9, 41)))])
    assert [(c.face, c.range[0], c.offset, c.matrix[0]) for c in connections] == [
        ("jmin", (0, 11), (40, 0, 0), (-1, 0, 0)),
        ("jmin", (30, 41), (40, 0, 0), (-1, 0, 0)),
    ]
    assert all(c.matrix[1] == (0, -1, 0) for c in connections)


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda x, y, z: (x, y, z[::-1]), "the whole block is left-handed"),
        (lambda x, y, z: (x, np.where(x < 0.2, 0.5, y), z[::-1]), "left-handed, some of its cells without volume"),
        (lambda x, y, z: (x, y, np.where(y < 0.01, 0.5, z)), "a grid line along k has collapsed there"),
        (lambda x, y, z: (x[:, :, [0, 1, 2, 5, 4, 3, 6, 7, 8]], y, z), "grid lines fold over each other"),
        (
            lambda x, y, z: (x + 1e6 * np.maximum(x - 0.5, 0), y, z),
            "no cell is folded .* spacings along i .* of 1e[+]06",
        ),
        (lambda x, y, z: (x, y, 0 * z + 3.0), "the block is flat, all its nodes have one z"),
        (
            lambda x, y, z: (x, np.abs(y - 0.5) - z, (y - 0.5) * z),  # around the end of a thin plate
            "the grid line along j turns back on itself there",
        ),
    ],
)
def test_why_a_jacobian_is_not_positive(change, words):
    z, y, x = np.meshgrid(*[np.linspace(0, 1, 9)] * 3, indexing="ij")
    with pytest.raises(HiresxError, match=words):
        check_jacobian(Grid((Block("b", *change(x, y, z)),)))


def test_a_jump_of_the_spacing_of_a_single_line_is_no_displaced_node():
    steps = np.concatenate([3.5 ** np.arange(-8.0, -4), 3.5 ** np.arange(-8.0, 0)])
    x = np.concatenate([[0], np.cumsum(steps)]).reshape(1, 1, -1)
    with pytest.raises(HiresxError, match="spacings along i change by a factor of"):
        check_jacobian(Grid((Block("line", x, 0 * x, 0 * x),)))


def test_a_plane_grid_in_another_plane():
    z, x = np.meshgrid(np.linspace(0, 1, 9), np.linspace(0, 1, 8), indexing="ij")
    with pytest.raises(HiresxError, match="the block is flat, all its nodes have one y"):
        check_jacobian(Grid((Block("b", x[None], 0 * x[None], z[None]),)))
