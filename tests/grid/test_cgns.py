"""CGNS grids, from files that are written here node by node."""

import copy
import os
import re
import shutil
import sys

import numpy as np
import pytest
from arrangements import FAR, decomposed, ring, same_nodes, shaken
from multiblock import Arrangement

from hiresx import Case, Simulation
from hiresx.case.boundaries import NoSlipWall, SlipWall
from hiresx.case.grid_file import GridFile
from hiresx.case.grids import Box
from hiresx.decomposition import extended_coordinates
from hiresx.errors import HiresxError
from hiresx.grid import Block, build, check_connections, matched_connections

h5py = pytest.importorskip("h5py")
import cgns_files as cgns  # noqa: E402
from adf_files import from_hdf5  # noqa: E402

EXAMPLES = int(os.environ.get("HIRESX_FUZZ_EXAMPLES", "60"))


def read(path):
    return build(GridFile(file=str(path)))


def written(path, arrangement, real="f8", physical=3, zero=False):
    """The parts of an arrangement as zones, every contact from both sides."""
    dimensions = len(arrangement.whole.active)
    with cgns.begin(path) as file:
        base = cgns.base(file, dimensions, physical)
        zones = [cgns.zone(base, b, b.name, dimensions, physical, real) for b in arrangement.blocks]
        for n, (a, b, box) in enumerate(arrangement.contacts):
            for own, other in ((a, b), (b, a)):
                ends = [arrangement.index(p, np.array([[lo, hi - 1] for lo, hi in box])) + 1 for p in (own, other)]
                # the corner that is first in the zone itself
                corners = np.array([[lo, hi - 1] for lo, hi in box])
                mine = np.sort(ends[0], axis=1)
                swapped = np.abs(arrangement.turns[own].T) @ (ends[0][:, 0] != mine[:, 0])
                corners[swapped.astype(bool)] = corners[swapped.astype(bool), ::-1]
                ranges = [(arrangement.index(p, corners) + 1)[:dimensions].T for p in (own, other)]
                matrix = arrangement.turns[other] @ arrangement.turns[own].T
                transform = [int(np.argmax(np.abs(c)) + 1) * int(c.sum()) for c in matrix.T][:dimensions]
                if zero:  # as the standard allows: the direction off the face
                    transform[next(d for d in range(dimensions) if ranges[0][0, d] == ranges[0][1, d])] = 0
                cgns.one_to_one(zones[own], f"to-{other}-{n}", f"part-{other}", *ranges, transform)
    return path


@pytest.mark.parametrize("version", "AB")
@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("start, pieces", [(b"@(#)", 1), (b"\xc0\xa8\xa3\xa9", 3)])
@pytest.mark.slow
def test_both_forms_hold_the_same(tmp_path, version, order, start, pieces):
    arrangement = Arrangement(shaken((18, 19, 20)).blocks[0], 4, 1, True)
    written(tmp_path / "g.cgns", arrangement, "f8" if version == "A" else "f4")
    from_hdf5(tmp_path / "g.cgns", tmp_path / "old.cgns", version, order, start, pieces)
    new, old = read(tmp_path / "g.cgns"), read(tmp_path / "old.cgns")
    assert [b.name for b in old.blocks] == [b.name for b in new.blocks] and old.connections == new.connections
    for a, b in zip(old.blocks, new.blocks, strict=True):
        np.testing.assert_array_equal([a.x, a.y, a.z], [b.x, b.y, b.z])
        assert a.regions == b.regions


def test_adf_needs_no_h5py(tmp_path, monkeypatch):
    arrangement = Arrangement(shaken((16, 17, 1)).blocks[0], 2, 1, True)
    from_hdf5(written(tmp_path / "g.cgns", arrangement), tmp_path / "old.cgns")
    monkeypatch.setitem(sys.modules, "h5py", None)
    assert len(read(tmp_path / "old.cgns").blocks) == 2
    with pytest.raises(HiresxError, match="h5py, which is not installed"):
        read(tmp_path / "g.cgns")


def test_a_piece_of_adf_data_that_ends_before_it_begins_is_named_by_its_place(tmp_path):
    arrangement = Arrangement(shaken((16, 17, 1)).blocks[0], 2, 1, True)
    from_hdf5(written(tmp_path / "g.cgns", arrangement), tmp_path / "old.cgns", pieces=3)
    data, tag, pointer = bytearray((tmp_path / "old.cgns").read_bytes()), 4, 12
    tables = [found.end() + pointer for found in re.finditer(b"DCtb", bytes(data))]
    for at in tables:  # the third piece ends where it begins
        third = at + 4 * pointer
        data[third + pointer : third + 2 * pointer] = data[third : third + pointer]
    (tmp_path / "old.cgns").write_bytes(bytes(data))
    with pytest.raises(HiresxError, match=r"byte \d+: a piece of data that ends before it begins") as caught:
        read(tmp_path / "old.cgns")
    byte = int(re.search(r"byte (\d+)", caught.value.message)[1])
    assert byte in {at + 4 * pointer for at in tables} and data[byte - 4 * pointer - pointer - tag :][:tag] == b"DCtb"


@pytest.mark.parametrize("version", "AB")
@pytest.mark.slow
def test_damaged_adf(tmp_path, version):
    """Bytes changed, cut off or doubled: a grid or one error, in no time, and no more memory than the file takes."""
    arrangement = Arrangement(shaken((16, 17, 1)).blocks[0], 2, 1, True)
    from_hdf5(written(tmp_path / "g.cgns", arrangement), tmp_path / "old.cgns", version, pieces=2)
    whole = (tmp_path / "old.cgns").read_bytes()
    random = np.random.default_rng(2)
    for _ in range(4 * EXAMPLES):
        data = bytearray(whole)
        for _ in range(random.integers(1, 6)):
            at = int(random.integers(len(data)))
            data[at] = int(random.choice([0, 255, 48, 70, random.integers(256)]))
        if random.random() < 0.2:
            del data[int(random.integers(len(data))) :]
        (tmp_path / "bad.cgns").write_bytes(bytes(data))
        try:
            read(tmp_path / "bad.cgns")
        except HiresxError as error:
            assert str(tmp_path / "bad.cgns") in error.message and "\n" not in error.message


@pytest.mark.parametrize("real", ["f4", "f8"])
@pytest.mark.parametrize("n", [(40, 41, 1), (18, 19, 20)], ids=["2d", "3d"])
@pytest.mark.slow
def test_random_arrangements(tmp_path, n, real):
    """Neighbours turned every way, sub-ranges, several to a face: ghosts are those of the uncut block."""
    for seed in range(2):
        arrangement = Arrangement(shaken(n, seed=seed).blocks[0], 7, seed, True)
        physical = 2 if n[2] == 1 and seed else 3
        grid = read(written(tmp_path / "g.cgns", arrangement, real, physical, zero=seed == 1))
        assert [b.name for b in grid.blocks] == [b.name for b in arrangement.blocks]
        if real == "f8":
            same_nodes(grid, arrangement)
        else:
            same_as_rounded = [c.astype("f4") == d for b in grid.blocks for c, d in ((b.x, b.x), (b.y, b.y))]
            assert all(np.all(same) for same in same_as_rounded)
            assert len(grid.connections) >= 2 * len(arrangement.contacts)


def two_zones(path, kinds=("BCWallInviscid", "BCInflow"), **joins):
    """Two zones of 9 x 11 x 7 nodes side by side along x, with boundary patches that share their lines."""
    whole = build(Box(n=(17, 11, 7), lower=(0, 0, 0), upper=(2, 1, 1))).blocks[0]
    with cgns.begin(path) as file:
        base = cgns.base(file, 3)
        for name, i in (("zone 10", slice(0, 9)), ("zone 2", slice(8, 17))):
            block = Block(name, *(c[:, :, i] for c in (whole.x, whole.y, whole.z)))
            cgns.zone(base, block, name, 3)
        left, right = base["zone 10"], base["zone 2"]
        # the lower six lines of nodes are connected, the upper six a wall: the line j = 6 is of both
        cgns.one_to_one(left, "out", "zone 2", ((9, 1, 1), (9, 6, 7)), ((1, 1, 1), (1, 6, 7)), **joins)
        cgns.one_to_one(right, "in", "Base/zone 10", ((1, 1, 1), (1, 6, 7)), ((9, 1, 1), (9, 6, 7)), (1, 2, 3))
        for made, i in ((left, 9), (right, 1)):
            cgns.condition(made, "step", kinds[0], (i, 6, 1), (i, 11, 7))
        cgns.condition(left, "bottom-1", "FamilySpecified", (1, 1, 1), (4, 1, 7), family="floor")
        cgns.condition(left, "bottom-2", kinds[1], (4, 1, 1), (9, 1, 7), family="opening")
        cgns.condition(right, "bottom", "FamilySpecified", (1, 1, 1), (9, 1, 7), family="Base/floor")
        family = cgns.node(base, "floor", "Family_t")
        cgns.node(family, "FamilyBC", "FamilyBC_t", "BCWallViscous")
    return path


def test_patches_become_regions(tmp_path):
    """By family, or by their own names; walls keep the lines that they share, and no node is held twice."""
    grid = read(two_zones(tmp_path / "g.cgns"))
    left, right = grid.blocks  # in the order in which they were made
    assert (left.name, right.name) == ("zone_10", "zone_2")
    assert left.regions["step"] == (("imax", ((8, 9), (5, 11), (0, 7))),)
    assert left.regions["floor"] == (("jmin", ((0, 4), (0, 1), (0, 7))),)
    assert left.regions["opening"] == (("jmin", ((4, 9), (0, 1), (0, 7))),)
    assert right.regions["floor"] == (("jmin", ((0, 9), (0, 1), (0, 7))),)
    assert [c.range[1] for c in grid.connections] == [(0, 5), (0, 5)]
    d = decomposed(grid, NoSlipWall(faces="all", range="floor"), SlipWall(faces="all", range="step"), FAR)
    assert [p.range[0] for p in d.patches if p.condition.type == "no-slip-wall"] == [(0, 4), (0, 9), (8, 9)]
    other = read(two_zones(tmp_path / "h.cgns", kinds=("BCOutflow", "BCWallViscous")))
    assert other.blocks[0].regions["opening"][0][1][0] == (4, 9)  # of two viscous walls the first


@pytest.mark.parametrize(
    "location, begin, end, wanted",
    [
        ("Vertex", (1, 3, 2), (1, 6, 7), ((0, 1), (2, 6), (1, 7))),
        ("IFaceCenter", (9, 3, 2), (9, 6, 6), ((8, 9), (2, 7), (1, 7))),
        ("FaceCenter", (9, 1, 1), (9, 10, 6), ((8, 9), (0, 11), (0, 7))),
        ("CellCenter", (8, 1, 1), (8, 10, 6), ((8, 9), (0, 11), (0, 7))),
        ("CellCenter", (1, 4, 1), (1, 10, 6), ((0, 1), (3, 11), (0, 7))),
    ],
)
def test_locations_of_patches(tmp_path, location, begin, end, wanted):
    block = build(Box(n=(9, 11, 7), lower=(0, 0, 0), upper=(1, 1, 1))).blocks[0]
    with cgns.begin(tmp_path / "g.cgns") as file:
        made = cgns.zone(cgns.base(file, 3), block, "zone", 3)
        cgns.condition(made, "patch", "BCWall", begin, end, location=location)
    ((_, range_),) = read(tmp_path / "g.cgns").blocks[0].regions["patch"]
    assert range_ == wanted


def sector(path, *, real="f8", angle=30.0, sense=1, degrees=False, ends=True):
    """A sector of 30 degrees about the x axis, joined to itself."""
    block = Block("row", *ring(13, 9, angle=30.0, nk=8, axis="x", ends=ends))
    turn = sense * (angle if degrees else np.radians(angle))
    periodic = {
        "RotationCenter": np.zeros(3, real),
        "RotationAngle": np.array([turn, 0, 0], real),
        "Translation": np.zeros(3, real),
    }
    back = periodic | {"RotationAngle": -periodic["RotationAngle"]}
    low, high = ((1, 1, 1), (9, 1, 8)), ((1, 13, 1), (9, 13, 8))
    with cgns.begin(path) as file:
        made = cgns.zone(cgns.base(file, 3), block, "row", 3, real=real)
        # from jmin to the donor at jmax, by the angle
        cgns.one_to_one(made, "low", "row", low, high, (1, 2, 3), periodic)
        cgns.one_to_one(made, "high", "row", high, low, (1, 2, 3), back)
    return path


@pytest.mark.parametrize(
    "keys", [{}, {"real": "f4"}, {"sense": -1}, {"degrees": True}, {"degrees": True, "real": "f4"}]
)
def test_rotational_periodicity(tmp_path, keys):
    """As the standard has it, the other way round, in degrees, and with an angle in single precision: the ghosts are
    those of the ring, turned by 30 degrees to round-off."""
    grid = read(sector(tmp_path / "g.cgns", **keys))
    low, high = grid.connections
    c, s = np.cos(np.pi / 6), np.sin(np.pi / 6)
    np.testing.assert_allclose(high.rotation, [[1, 0, 0], [0, c, -s], [0, s, c]], atol=1e-15)
    np.testing.assert_allclose(low.rotation, np.transpose(high.rotation), atol=1e-15)
    ((_, y, z),) = extended_coordinates(decomposed(grid, FAR))
    t = np.radians(2.5) * np.arange(-3, 16)
    np.testing.assert_allclose(y[3, :, 3], np.cos(t), atol=1e-14 if keys.get("real") != "f4" else 1e-6)
    np.testing.assert_allclose(z[3, :, 3], np.sin(t), atol=1e-14 if keys.get("real") != "f4" else 1e-6)


def test_translational_periodicity(tmp_path):
    block = build(Box(n=(9, 11, 1), lower=(0, 0, 0), upper=(1, 3, 0))).blocks[0]
    for sense in (1, -1):
        with cgns.begin(tmp_path / "g.cgns") as file:
            made = cgns.zone(cgns.base(file, 2, 2), block, "duct", 2, 2)
            low, high = ((1, 1), (9, 1)), ((1, 11), (9, 11))
            for name, own, other, way in (("low", low, high, 3.0), ("high", high, low, -3.0)):
                moved = {"RotationCenter": np.zeros(2), "RotationAngle": np.zeros(2), "Translation": [0.0, sense * way]}
                cgns.one_to_one(made, name, "duct", own, other, periodic=moved)
        assert [c.translation for c in read(tmp_path / "g.cgns").connections] == [(0.0, -3.0, 0.0), (0.0, 3.0, 0.0)]


def pipe() -> list[Block]:
    """A pipe along z: a bulging square core of 9 x 9 nodes, and four blocks between its sides and the circle."""
    s, r, z = np.linspace(-1, 1, 9), np.linspace(0, 1, 9), np.linspace(0, 1, 8)[:, None, None]
    core = [0.5 * a * (1.15 - 0.15 * b**2) for a, b in (np.meshgrid(s, s), np.meshgrid(s, s)[::-1])]
    found = [Block("core", core[0] + 0 * z, core[1] + 0 * z, z + 0 * core[0])]
    sides = ((slice(None), -1), (-1, slice(None, None, -1)), (slice(None, None, -1), 0), (0, slice(None)))
    for n, side in enumerate(sides):
        angle = np.pi / 4 * (s + 2 * n)
        x, y = (
            a[side][:, None] * (1 - r) + 1.5 * b[:, None] * r
            for a, b in zip(core, (np.cos(angle), np.sin(angle)), strict=True)
        )
        found.append(Block(f"side-{n}", x + 0 * z, y + 0 * z, z + 0 * x))
    return found


def test_without_connections_zones_are_joined_where_nodes_coincide(tmp_path):
    blocks, state = pipe(), {"rho": 1.0, "u": 0.3, "v": 0.2, "w": 0.1, "p": 1 / 1.4}
    with cgns.begin(tmp_path / "g.cgns") as file:
        base = cgns.base(file, 3)
        for block in blocks:
            cgns.zone(base, block, block.name, 3)
    assert len(read(tmp_path / "g.cgns").connections) == len(matched_connections(blocks)) == 16
    case = Case.from_dict(
        {
            "grid": {"file": str(tmp_path / "g.cgns")},
            "time": {"steps": 5},
            "initial": {"state": state},
            "boundary": [{"faces": "all", "type": "far-field", "state": state}],
        }
    )
    run = Simulation(case, "cpu")
    run.run(progress=False)
    assert max(np.abs(b.state(name) - value).max() for b in run.blocks for name, value in state.items()) < 1e-12


def test_patches_between_zones_that_touch_are_not_joined(tmp_path):
    with cgns.begin(tmp_path / "g.cgns") as file:
        base = cgns.base(file, 3)
        core, side, *_ = (cgns.zone(base, block, block.name, 3) for block in pipe())
        cgns.condition(core, "wall", "BCWall", (9, 1, 1), (9, 9, 8))
        cgns.condition(side, "wall", "BCWall", (1, 1, 1), (1, 9, 8))
    joined = {frozenset((c.block, c.donor)) for c in read(tmp_path / "g.cgns").connections}
    assert frozenset((0, 1)) not in joined and len(joined) == 7


def test_a_patch_beside_a_connection_that_is_found_has_the_common_line(tmp_path):
    x, y, z = np.meshgrid(np.arange(9.0), np.arange(17.0), np.arange(8.0), indexing="ij")
    wide = Block("wide", *(c.transpose(2, 1, 0) for c in (x, y, z)))
    half = Block("half", *(c[:, :9].transpose(2, 1, 0) for c in (x + 8, y, z)))
    with cgns.begin(tmp_path / "g.cgns") as file:
        base = cgns.base(file, 3)
        made, _ = (cgns.zone(base, block, block.name, 3) for block in (wide, half))
        cgns.condition(made, "wall", "BCWall", (9, 9, 1), (9, 17, 8))
    grid = read(tmp_path / "g.cgns")
    assert [c.range[1] for c in grid.connections if c.block == 0] == [(0, 8)]
    assert [c.range[1] for c in grid.connections if c.block == 1] == [(0, 9)]


def test_rind_planes_links_and_order(tmp_path):
    """Rind planes are left out, links followed, zones without an order of creation taken by number."""
    wide = build(Box(n=(12, 11, 10), lower=(0, 0, 0), upper=(1, 1, 1))).blocks[0]
    with cgns.begin(tmp_path / "far.cgns") as file:
        base = cgns.base(file, 3)
        cgns.zone(base, wide, "elsewhere", 3)
        cgns.zone(base, Block("beyond", wide.x + 5, wide.y, wide.z), "beyond", 3)
    with h5py.File(tmp_path / "g.cgns", "w") as file:
        base = file.create_group("Base")
        base.attrs["label"] = np.bytes_("CGNSBase_t")
        base.create_dataset(" data", data=np.array([3, 3], np.int32))
        for name, zone in (("zone 10", "beyond"), ("zone 9", "elsewhere")):
            size = np.array([[9, 11, 8], [8, 10, 7], [0, 0, 0]], np.int64)
            made = cgns.node(base, name, "Zone_t", size)
            grid = cgns.node(made, "GridCoordinates", "GridCoordinates_t")
            cgns.node(grid, "Rind", "Rind_t", np.array([1, 2, 0, 0, 0, 2], np.int32))
            for axis in "XYZ":
                link = grid.create_group(f"Coordinate{axis}")
                link.attrs["type"], link.attrs["label"] = np.bytes_("LK"), np.bytes_("")
                link[" link"] = h5py.ExternalLink("far.cgns", f"/Base/{zone}/GridCoordinates/Coordinate{axis}")
    first, second = read(tmp_path / "g.cgns").blocks
    assert (first.name, second.name) == ("zone_9", "zone_10")
    np.testing.assert_array_equal(first.x, wide.x[:8, :, 1:10])
    (tmp_path / "far.cgns").unlink()
    with pytest.raises(HiresxError, match="CoordinateX: the target of the link does not exist"):
        read(tmp_path / "g.cgns")


def test_a_link_to_a_node_that_is_not_there(tmp_path):
    """The file that it leads to is there, in the form of ADF."""
    two_zones(tmp_path / "h.cgns")
    with h5py.File(tmp_path / "h.cgns", "a") as file:
        zone = next(value for value in file["Base"].values() if value.attrs.get("label") == b"Zone_t")
        coordinates = zone["GridCoordinates"]
        del coordinates["CoordinateX"]
        link = coordinates.create_group("CoordinateX")
        link.attrs["type"], link.attrs["label"] = np.bytes_("LK"), np.bytes_("")
        link[" link"] = h5py.SoftLink(f"{coordinates.name}/Absent")
    from_hdf5(tmp_path / "h.cgns", tmp_path / "g.cgns")
    with pytest.raises(HiresxError, match="CoordinateX: the target of the link does not exist"):
        read(tmp_path / "g.cgns")


def test_without_h5py(tmp_path, monkeypatch):
    two_zones(tmp_path / "g.cgns")
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(HiresxError, match="h5py, which is not installed") as error:
        read(tmp_path / "g.cgns")
    assert error.value.hint == "pip install h5py"


# --- faults


def changed(path, place, data=None, label=None):
    """The file with one node's data or label replaced, or, with neither, the node taken out."""
    with h5py.File(path, "r+") as file:
        if data is None and label is None:
            del file[place]
            return
        if data is not None:
            del file[place][" data"]
            file[place].create_dataset(" data", data=cgns.characters(data) if isinstance(data, str) else data)
        if label is not None:
            file[place].attrs["label"] = np.bytes_(label)


OUT = "Base/zone 10/ZoneGridConnectivity/out"
X = "Base/zone 10/GridCoordinates/CoordinateX"
BOTTOM = "Base/zone 10/ZoneBC/bottom-1"


def integers(*rows):
    return np.array(rows, np.int32)


@pytest.mark.parametrize(
    "place, data, message",
    [
        ("Base", None, "no base where one is expected"),
        ("Base/zone 10/ZoneType", "Unstructured", "/Base/zone 10: is unstructured"),
        ("Base/zone 10/GridCoordinates", None, "/Base/zone 10: has no GridCoordinates"),
        ("Base/zone 10/GridCoordinates/CoordinateY", None, "has no CoordinateY, but CoordinateX, CoordinateZ"),
        (X, np.zeros((7, 11, 8)), r"of shape \(7, 11, 8\) instead of \(7, 11, 9\)"),
        (X, np.full((7, 11, 9), np.nan), "'zone_10': x is not finite at node"),
        ("Base/zone 10", integers((9, 11), (8, 10), (0, 0)), r"/Base/zone 10: holds int32 of shape \(3, 2\)"),
        ("Base/zone 10", integers((9, 0, 7), (8, 10, 6), (0, 0, 0)), "/Base/zone 10: has 9 x 0 x 7 nodes"),
        ("Base", integers(4, 3).ravel(), "has cells of 4 dimensions in 3"),
        (OUT, "zone 22", '/ZoneGridConnectivity/out: there is no zone "zone 22"'),
        (f"{OUT}/PointRange", None, "out: has no PointRange"),
        (
            f"{OUT}/PointRange",
            integers((9, 1, 1), (9, 6, 8)),
            "PointRange: .9, 1, 1. to .9, 6, 8. leaves the zone of 9 x 11 x 7",
        ),
        (f"{OUT}/PointRange", integers((0, 1, 1), (0, 6, 7)), "leaves the zone"),
        (f"{OUT}/PointRange", integers((8, 1, 1), (8, 6, 7)), "lies on no face of the zone"),
        (f"{OUT}/PointRange", integers((9, 1, 1), (9, 1, 7)), "is an edge, on the faces imax and jmin"),
        (f"{OUT}/PointRange", integers((9, 2, 1), (9, 6, 7)), r"become \[1, 1, 1\] to \[1, 5, 7\], not to \[1, 6, 7\]"),
        (f"{OUT}/PointRangeDonor", integers((1, 2, 1), (1, 7, 7)), r"35 of 35 nodes do not match"),
        (f"{OUT}/PointRangeDonor", integers((9, 1, 1), (9, 6, 7)), "35 of 35 nodes do not match"),
        (
            BOTTOM + "/PointRange",
            integers((1, 1, 1), (5, 1, 7)),
            "boundary patch bottom-2 .* and boundary patch bottom-1 .* overlap",
        ),
        (BOTTOM + "/PointRange", None, "bottom-1: is not given by one PointRange"),
        (BOTTOM + "/FamilyName", np.zeros(3), "FamilyName: has no data of the expected type"),
    ],
)
def test_faults_in_a_file(tmp_path, place, data, message):
    two_zones(tmp_path / "g.cgns")
    changed(tmp_path / "g.cgns", place, data)
    with pytest.raises(HiresxError, match=message):
        read(tmp_path / "g.cgns")


def test_more_faults(tmp_path):
    path = tmp_path / "g.cgns"
    for transform in ((1, 1, 3), (1, 2, 4), (0, 0, 3)):
        two_zones(path, transform=transform)
        with pytest.raises(HiresxError, match=r"out/Transform: Transform: .* is not a permutation"):
            read(path)
    two_zones(path)
    changed(path, OUT, label="GridConnectivity_t")
    with pytest.raises(HiresxError, match="out: is a connection of the kind overset"):
        read(path)
    two_zones(path)
    changed(path, "Base/zone 2/ZoneGridConnectivity")
    with pytest.raises(HiresxError, match="no connection leads back from its face imin"):
        read(path)
    with pytest.raises(HiresxError, match="says itself how its blocks are connected"):
        build(GridFile(file=str(path), connectivity="x.toml"))
    with h5py.File(path, "r+") as file:
        file.move(" hdf5version", " version")
    with pytest.raises(HiresxError, match=r"before 3\.1"):
        read(path)
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(HiresxError, match="cannot be read as HDF5"):
        read(path)


@pytest.mark.slow
def test_mutated_files(tmp_path):
    """Trees with nodes taken out, relabelled, linked or with other data, and files with bytes changed: a checked grid
    or a clear error."""
    random = np.random.default_rng(5)
    files = [(first, nodes_of(first)) for first in (two_zones(tmp_path / "a.cgns"), sector(tmp_path / "b.cgns"))]
    labels = ["Zone_t", "BC_t", "IndexRange_t", "DataArray_t", "GridConnectivity1to1_t", "Rind_t", "Periodic_t", ""]
    survived, path = 0, tmp_path / "g.cgns"
    for n in range(EXAMPLES):
        first, places = files[n % 2]
        shutil.copy(first, path)
        if n % 3 == 0:
            content = bytearray(first.read_bytes())
            for _ in range(random.integers(1, 9)):
                content[random.integers(len(content))] = random.integers(256)
            path.write_bytes(content[: len(content) - int(random.integers(2) * random.integers(len(content)))])
        else:
            with h5py.File(path, "r+") as file:
                for _ in range(random.integers(1, 3)):
                    mutate(file, places[random.integers(len(places))], places, labels, random)
        try:
            grid = read(path)
            check_connections(grid.blocks, grid.connections)
            survived += 1
        except HiresxError as error:
            assert error.message and "Traceback" not in str(error)
    assert 0 < survived < EXAMPLES


def nodes_of(path) -> list[str]:
    places = []
    with h5py.File(path) as file:
        file.visititems(lambda name, item: places.append(name) if isinstance(item, h5py.Group) else None)
    return places


def mutate(file, place, places, labels, random):
    if place not in file or not isinstance(file[place], h5py.Group):
        return
    group, how = file[place], random.integers(6)
    if how == 0:
        del file[place]
    elif how == 1:
        group.attrs["label"] = np.bytes_(labels[random.integers(len(labels))])
    elif how == 2:
        other = places[random.integers(len(places))]
        if other in file and f"{place}/again" not in file:
            group["again"] = h5py.SoftLink(f"/{other}")  # may lead in a circle
    elif " data" in group:
        data = copy.copy(np.asarray(group[" data"][()]))
        del group[" data"]
        if how == 3 and data.size:
            data.flat[random.integers(data.size)] += random.integers(-3, 4)
        elif how == 4:
            data = data.ravel()[: random.integers(data.size + 1)]
        else:
            data = [np.float32(np.nan), np.int64(2**60), np.bytes_(b"zone 2"), np.zeros((2, 3)), 1 + 2j][
                random.integers(5)
            ]
        group.create_dataset(" data", data=data)
