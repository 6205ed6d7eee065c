"""Cover of the faces, coordinates beyond them, free-stream identity of the metrics, halo lists."""

from itertools import permutations, product
from types import SimpleNamespace

import numpy as np
import pytest
from arrangements import FAR, decomposed, free_stream_residual, shaken

from hiresx.case.boundaries import NoSlipWall, Periodic, SlipWall, SupersonicOutflow, Symmetry
from hiresx.case.grids import Box, Cylinder, PlanarJet, Plate
from hiresx.decomposition import extended_coordinates, halo_lists, padded_shape, padding
from hiresx.equations.stencil import Stencil
from hiresx.errors import HiresxError
from hiresx.grid import Block, Connection, Grid, build, matched_connections
from hiresx.grid.blocks import FACES, direction, face_range, slices

WALL = SlipWall(faces="all")
SEAM = Periodic(faces="all")


def box(n=(8, 9, 10), **keys) -> Grid:
    return build(Box(n=n, lower=(0.0, 0.0, 0.0), upper=tuple(1.0 * (m > 1) for m in n), **keys))


def jet(**keys) -> Grid:
    return build(
        PlanarJet(
            points_per_height=20, boundary_layer_thickness=0.1, boundary_layer_points=2, lip_thickness=0.2,
            exit_spacing=0.08, length=4.0, half_height=3.0, upstream=1.0, stretching=(1.02, 1.08),
            sponge_length=3.0, sponge_height=3.0, sponge_stretching=1.2, **keys
        )
    )  # fmt: skip


# --- cover of the faces


def test_every_face_is_covered():
    d = decomposed(box(), SlipWall(faces=["imin", "jmax"]), FAR, Symmetry(faces=["kmin"], block="box"))
    assert {p.face: p.condition.type for p in d.patches} == {
        "imin": "slip-wall", "jmax": "slip-wall", "kmin": "symmetry",
        "imax": "far-field", "jmin": "far-field", "kmax": "far-field",
    }  # fmt: skip
    assert all(p.range == face_range(p.face, (8, 9, 10)) for p in d.patches)
    assert d.points == 720 and d.connections == ()


def test_singleton_directions_need_nothing():
    d = decomposed(box((8, 9, 1)), SlipWall(faces=["imin", "imax", "jmin", "jmax"]), Periodic(faces=["kmin", "kmax"]))
    assert len(d.patches) == 4 and not d.connections


def test_the_last_default_may_find_nothing_left():
    assert len(decomposed(box(), FAR, SlipWall(faces="all", block="box")).patches) == 6


def test_default_fills_what_is_left():
    wall = NoSlipWall(faces=["jmin"], range={"i": [2, 5], "k": [3, -2]})
    d = decomposed(box(), wall, SlipWall(faces=["jmin"]), FAR)
    covered = np.zeros((10, 8), dtype=int)
    for patch in d.patches:
        if patch.face == "jmin":
            assert patch.range[1] == (0, 1)
            covered[slices(patch.range)[0], slices(patch.range)[2]] += 1
    assert np.all(covered == 1)
    assert sum(p.condition is wall for p in d.patches) == 1 and d.patches[0].range == ((2, 5), (0, 1), (3, 8))


@pytest.mark.parametrize(
    "conditions, message",
    [
        ([SlipWall(faces=["imin", "imax", "jmin", "jmax", "kmin"])], r"'box', face kmax: no boundary.*\(0, 0, 9\)"),
        (
            [SlipWall(faces=["imin"], range={"j": [0, 4]}), SlipWall(faces=["imax", "jmin", "jmax", "kmin", "kmax"])],
            r"face imin: no boundary condition at node \(i, j, k\) = \(0, 4, 0\)",
        ),
        ([FAR, SlipWall(faces=["imin"]), Symmetry(faces=["imin"])], r"boundary\.2 .*boundary\.1 .*\(0, 0, 0\)"),
        (
            [FAR, SlipWall(faces=["imin"], range={"j": [0, 5]}), Symmetry(faces=["imin"], range={"j": [4, "end"]})],
            r"boundary\.2 \(symmetry\) and boundary\.1 \(slip-wall\) both hold node \(i, j, k\) = \(0, 4, 0\)",
        ),
        ([FAR, WALL], r"boundary\.1 .*boundary\.0"),
        ([SlipWall(faces=["imin"], block="box"), Symmetry(faces=["imin"]), FAR], r"boundary\.1 .*leave it no node"),
        ([SlipWall(faces="all", block="bax")], "no block 'bax'; did you mean 'box'"),
        ([SlipWall(faces="all", range="plate")], "no region 'plate'"),
        ([FAR, SlipWall(faces=["imin"], range={"j": [0, 10]})], r"range j = \[0, 10\] .* leaves the 9 nodes"),
        ([FAR, SlipWall(faces=["imin"], range={"j": [5, 5]})], r"range j = \[5, 5\] is empty"),
        ([FAR, Periodic(faces=["imin"])], "face imin: periodic, but face imax is not"),
    ],
)
def test_faults_in_the_cover(conditions, message):
    with pytest.raises(HiresxError, match=message):
        decomposed(box(), *conditions)


def test_regions():
    grid = build(Plate(n=(33, 17, 1), upstream=0.4, length=1.0, height=0.5, first_spacing=1e-2,
                       leading_edge_spacing=2e-2))  # fmt: skip
    d = decomposed(grid, FAR, NoSlipWall(faces="all", range="plate"), Symmetry(faces=["jmin"], range="upstream"))
    ranges = {p.condition.type: p.range[0] for p in d.patches if p.face == "jmin"}
    assert ranges["no-slip-wall"][1] == 33 and ranges["symmetry"] == (0, ranges["no-slip-wall"][0])
    with pytest.raises(HiresxError, match="region 'plates'; did you mean 'plate'"):
        decomposed(grid, FAR, SlipWall(faces="all", range="plates"))
    with pytest.raises(HiresxError, match="region 'plate' is not on"):
        decomposed(grid, FAR, SlipWall(faces=["imin"], range="plate"))


def test_connected_faces_take_no_condition():
    grid = jet()
    walls = NoSlipWall(faces="all", range="walls")
    d = decomposed(grid, walls, FAR)
    assert sum(p.condition is walls for p in d.patches) == 6
    with pytest.raises(HiresxError, match=r"block 'nozzle', face imax: boundary\.1 .* and connection 1 both hold"):
        decomposed(grid, walls, SupersonicOutflow(faces=["imax"], block="nozzle"), FAR)


def test_periodic_part_of_a_face():
    part = {"j": [2, 6]}
    grid = box((8, 9, 1))
    d = decomposed(grid, FAR, Periodic(faces=["imin"], range=part), Periodic(faces=["imax"], range=part))
    assert [c.range[1] for c in d.connections] == [(2, 6), (2, 6)]
    with pytest.raises(HiresxError, match="not periodic on the same nodes"):
        decomposed(grid, FAR, Periodic(faces=["imin"], range=part), Periodic(faces=["imax"], range={"j": [2, 5]}))


def test_connection_to_nodes_that_do_not_exist():
    grid = box((8, 9, 1))
    wrong = Connection(0, "imin", face_range("imin", (8, 9, 1)), 0, offset=(9, 0, 0))
    with pytest.raises(HiresxError, match=r"no donor node \(i, j, k\) = \(8, 0, 0\)"):
        decomposed(Grid(grid.blocks, (wrong,)), FAR)


# --- free-stream identity: the sum over the directions of d(metric)/d(direction) vanishes


@pytest.mark.parametrize("n", [(9, 10, 11), (16, 17, 1), (20, 1, 1)])
@pytest.mark.parametrize(
    "layout, conditions",
    [
        ((), [WALL]),
        ((), [SEAM]),
        (("x", "y", "z"), [SEAM]),
        ((), [Periodic(faces=["imin", "imax"], block="shaken"), WALL]),
        (("y",), [Periodic(faces=["jmin", "jmax"], block="shaken"), WALL]),
    ],
)
def test_free_stream_identity(n, layout, conditions):
    layout = tuple(a for a in layout if n["xyz".index(a)] > 1)
    (nodes,) = extended_coordinates(decomposed(shaken(n, layout), *conditions))
    assert nodes[0].shape == tuple(m + 6 for m in reversed(n))
    assert free_stream_residual(nodes) < 1e-14


def test_free_stream_identity_with_half_open_faces():
    """A face that is partly periodic, partly wall."""
    part = {"j": [3, 8]}
    seams = [Periodic(faces=["imin"], range=part), Periodic(faces=["imax"], range=part)]
    (nodes,) = extended_coordinates(decomposed(shaken((10, 11, 12)), *seams, WALL))
    assert free_stream_residual(nodes) < 1e-14


@pytest.mark.parametrize("keys", [{}, {"nk": 7, "width": 0.5}])
def test_free_stream_identity_of_the_jet(keys):
    conditions = [Periodic(faces=["kmin", "kmax"]), FAR]
    for nodes in extended_coordinates(decomposed(jet(**keys), *conditions)):
        assert free_stream_residual(nodes) < 1e-14


def test_free_stream_identity_of_bodies():
    for spec in (
        Cylinder(n_around=33, n_normal=17, standoff_axis=1.0, standoff_side=3.4, n_span=8),
        Plate(n=(33, 17, 8), upstream=0.4, length=1.0, height=0.5, first_spacing=1e-2, leading_edge_spacing=2e-2),
    ):
        d = decomposed(build(spec), Periodic(faces=["kmin", "kmax"]), FAR)
        assert free_stream_residual(extended_coordinates(d)[0]) < 1e-14


# --- extended coordinates


def test_point_reflection_and_extrusion():
    grid = shaken((9, 10, 1))
    x, y, z = grid.blocks[0].x[0], grid.blocks[0].y[0], grid.blocks[0].z[0]
    ((X, Y, Z),) = extended_coordinates(decomposed(grid, WALL))
    np.testing.assert_array_equal(X[3, 3:-3, 3:-3], x)
    np.testing.assert_allclose(X[3, 3:-3, 0], 2 * x[:, 0] - x[:, 3], rtol=1e-14)
    np.testing.assert_allclose(Y[3, -1, 3:-3], 2 * y[-1] - y[-4], rtol=1e-14)
    corner = 2 * (2 * x[0, 0] - x[0, 2]) - (2 * x[1, 0] - x[1, 2])
    np.testing.assert_allclose(X[3, 2, 1], corner, rtol=1e-14)
    for m in range(7):
        np.testing.assert_array_equal(X[m], X[3])
        np.testing.assert_array_equal(Z[m, 3:-3, 3:-3], z + m - 3)


def test_jet_ghosts_lie_on_their_neighbours():
    grid = jet()
    d = decomposed(grid, SlipWall(faces="all", range="walls"), FAR)
    extended = extended_coordinates(d)
    b = {block.name: n for n, block in enumerate(grid.blocks)}
    x = grid.blocks[b["jet"]].x[0, 0]
    np.testing.assert_array_equal(extended[b["nozzle"]][0][3, 10, -3:], x[:3])
    # Behind the lip's wall the reflection continues the rows of the blocks above and below it.
    np.testing.assert_allclose(
        extended[b["jet"]][0][3, :, :3], np.broadcast_to(-x[3:0:-1], (len(extended[0][0][3]), 3))
    )


def cut(grid: Grid, i: int, j: int, shared: bool) -> Grid:
    """The block of a grid in four, cut at i and j, nodes of the cuts in one part or in both."""
    block = grid.blocks[0]
    ni, nj, _ = block.size
    more = int(shared)
    parts, place = [], []
    for (jl, jh), (il, ih) in product([(0, j + more), (j, nj)], [(0, i + more), (i, ni)]):
        nodes = [c[:, jl:jh, il:ih] for c in (block.x, block.y, block.z)]
        parts.append(Block(f"part-{len(parts)}", *nodes))
        place.append((il, jl, 0))
    if shared:
        return Grid(tuple(parts), tuple(matched_connections(parts)), tuple({"k": (0.0, 0.0, 1.0)} for _ in parts))
    connections = []
    for a, face, donor in [(0, "imax", 1), (2, "imax", 3), (0, "jmax", 2), (1, "jmax", 3)]:
        other = FACES[FACES.index(face) - 1]
        for block_, face_, donor_ in ((a, face, donor), (donor, other, a)):
            offset = tuple(p - q for p, q in zip(place[block_], place[donor_], strict=True))
            connections.append(Connection(block_, face_, face_range(face_, parts[block_].size), donor_, offset=offset))
    return Grid(tuple(parts), tuple(connections), tuple({"k": (0.0, 0.0, 1.0)} for _ in parts))


@pytest.mark.parametrize("shared", [False, True])
def test_ghosts_do_not_depend_on_the_cut(shared):
    """Edges and corners included: what a part sees is what the whole block has there."""
    whole = shaken((18, 19, 8), periodic=("z",))
    conditions = [Periodic(faces=["kmin", "kmax"]), WALL]
    (wanted,) = extended_coordinates(decomposed(whole, *conditions))
    parts = extended_coordinates(decomposed(cut(whole, 8, 9, shared), *conditions))
    starts = [(0, 0), (8, 0), (0, 9), (8, 9)]
    for nodes, (i, j) in zip(parts, starts, strict=True):
        for got, all_ in zip(nodes, wanted, strict=True):
            _, nj, ni = got.shape
            np.testing.assert_allclose(got, all_[:, j : j + nj, i : i + ni], rtol=0, atol=1e-14)


# --- halo lists


def test_blocks_beyond_the_index_range():
    n = 2**15
    huge = SimpleNamespace(size=(n, n, 7), name="huge")
    with pytest.raises(HiresxError, match=r"block 'huge'.*2147483647"):
        halo_lists(SimpleNamespace(blocks=(huge,), connections=(), stencil=Stencil()))


def test_padding():
    block = box((8, 9, 1)).blocks[0]
    assert padding(block, 3) == (3, 3, 0) and padded_shape(block, 3) == (1, 15, 16)


ORIENTATIONS = [
    np.array([[s if e == p else 0 for e in range(3)] for p, s in zip(order, signs, strict=True)])
    for order in permutations(range(3))
    for signs in product((1, -1), repeat=3)
]


def joined(number, face):
    """One of the orientations behind one of the faces. CI has all orientations, each behind another face."""
    name = "".join(f"{row @ [1, 2, 3]:+d}" for row in ORIENTATIONS[number])
    chosen = number % len(FACES) == FACES.index(face)
    marks = pytest.mark.slow if chosen else (pytest.mark.slow, pytest.mark.long)
    return pytest.param(ORIENTATIONS[number], face, id=f"{face}-{name}", marks=marks)


@pytest.mark.parametrize(
    ("turn", "face"), [joined(number, face) for face in FACES for number in range(len(ORIENTATIONS))]
)
def test_halo_lists_in_all_orientations(turn, face):
    """Two halves of a box with an analytic mapping, the second one turned: ghosts get the analytic values, and fluxes
    normal to the face the analytic fluxes."""
    normal, upper = direction(face), FACES.index(face) % 2
    size = np.array([8, 9, 10])

    def fields(index):
        """Coordinates and, per direction of the first block, an area vector, at index triples (3, ...) of its space."""
        i, j, k = index
        nodes = np.stack([i + 0.1 * np.sin(j), j + 0.1 * np.sin(k), k + 0.1 * np.sin(i)])
        return nodes, np.stack([1 + i * j, 20 + j * k, 300 + k * i])

    own = np.stack(np.meshgrid(*map(np.arange, size), indexing="ij"))
    beyond = own.copy()
    beyond[normal] += size[normal] if upper else -size[normal]
    # Donor index = turn @ (own index) + offset, starting at 0 in all directions.
    turned = np.tensordot(turn, beyond, axes=1)
    offset = -turned.reshape(3, -1).min(axis=1)
    turned += offset[:, None, None, None]
    donor_size = turned.reshape(3, -1).max(axis=1) + 1
    donor_nodes, donor_flux = np.zeros((3, *donor_size)), np.zeros((3, *donor_size))
    nodes, flux = fields(beyond)
    at = tuple(turned)
    for c in range(3):
        donor_nodes[(c, *at)] = nodes[c]
        # S'_e = x_f cross x_g: the sign of the index and the handedness of the turned block.
        e = next(e for e in range(3) if turn[e, c])
        donor_flux[(e, *at)] = flux[c] * turn[e, c] * round(np.linalg.det(turn))

    first = Block("first", *(c.T for c in fields(own)[0]))
    second = Block("second", *(c.T for c in donor_nodes))
    connection = Connection(0, face, face_range(face, first.size), 1, tuple(map(tuple, turn)), tuple(offset))
    rest = [*decomposed(Grid((first, second), (connection,)), FAR).patches]
    assert len(rest) == 11
    decomposition = decomposed(Grid((first, second), (connection,)), FAR)
    (entry,) = halo_lists(decomposition)
    assert (entry.donor, entry.block, entry.face, entry.direction) == (1, 0, face, normal)
    assert entry.destination.dtype == entry.source.dtype == np.int32
    assert len(entry.destination) == 3 * first.points // size[normal] == len(set(entry.destination.tolist()))

    ghosts = connection.ghosts(3, first.size)
    wanted, wanted_flux = fields(ghosts)

    def padded(block, array):
        result = np.full(padded_shape(block, 3), np.nan)
        result[tuple(slice(3, 3 + n) for n in reversed(block.size))] = array
        return result

    def received(array):
        target = np.full(padded_shape(first, 3), np.nan)
        target.ravel()[entry.destination] = padded(second, array.T).ravel()[entry.source]
        i, j, k = ghosts + 3
        return target[k, j, i]

    for c in range(3):
        np.testing.assert_array_equal(received(donor_nodes[c]), wanted[c])
    flux = entry.sign * received(donor_flux[entry.donor_direction])
    np.testing.assert_array_equal(flux, wanted_flux[normal])
    # The extended coordinates behind the face, edges and corners beside it included, come through the same way.
    extended = extended_coordinates(decomposition)[0]
    i, j, k = ghosts + 3
    for c in range(3):
        np.testing.assert_array_equal(extended[c][k, j, i], wanted[c])
        assert np.isfinite(extended[c]).all()


@pytest.mark.parametrize("layout", [(), ("x", "y", "z")])
def test_periodic_halo(layout):
    """A periodic function is continued by the lists, nodes shared or offset."""
    n = (8, 9, 10)
    d = decomposed(box(n, periodic=layout), SEAM)
    count = [m if layout else m - 1 for m in n]
    field = sum(
        np.sin(2 * np.pi * np.arange(-3, m + 3) / c + d).reshape([-1 if a == 2 - d else 1 for a in range(3)])
        for d, (m, c) in enumerate(zip(n, count, strict=True))
    )
    memory = np.full(padded_shape(d.blocks[0], 3), np.nan)
    target = memory[tuple(map(slice, field.shape))]
    target[3:-3, 3:-3, 3:-3] = field[3:-3, 3:-3, 3:-3]
    lists = halo_lists(d)
    assert len(lists) == 6 and all(entry.sign == 1 for entry in lists)
    for entry in lists:
        memory.ravel()[entry.destination] = memory.ravel()[entry.source]
    known = np.isfinite(target)
    assert known.sum() == 720 + 2 * 3 * (72 + 80 + 90)
    np.testing.assert_allclose(target[known], field[known], atol=1e-14)
