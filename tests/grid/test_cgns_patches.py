"""Boundary patches of CGNS files: lists of points, kinds of condition, and broken ones that are left out."""

import json

import numpy as np
import pytest

from hiresx.case.grid_file import GridFile
from hiresx.case.grids import Box
from hiresx.cli import execute
from hiresx.errors import HiresxError
from hiresx.grid import build

h5py = pytest.importorskip("h5py")
import cgns_files as cgns  # noqa: E402

BOX = Box(n=(9, 11, 7), lower=(0, 0, 0), upper=(1, 1, 1))
KINDS = {
    "floor": ("jmin", "BCWallViscousHeatFlux", "no-slip-wall"),
    "roof": ("jmax", "BCWallInviscid", "slip-wall"),
    "inlet": ("imin", "BCInflowSubsonic", "far-field"),
    "outlet": ("imax", "BCTunnelOutflow", "far-field"),
    "side": ("kmin", "BCSymmetryPlane", "symmetry"),
    "east_wall": ("kmax", "UserDefined", "no-slip-wall"),
}


def whole_face(face: str) -> tuple[np.ndarray, np.ndarray]:
    """First and last node of a face of the box, which count from 1."""
    first, last = np.ones(3, int), np.array(BOX.n)
    d = "ijk".index(face[0])
    (last if face.endswith("min") else first)[d] = 1 if face.endswith("min") else last[d]
    return first, last


def points_of(first, last) -> np.ndarray:
    """Every index triple of a range, in no order."""
    axes = [np.arange(a, b + 1) for a, b in zip(first, last, strict=True)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    return np.random.default_rng(0).permutation(points).astype(np.int32)


def box_file(path, *patches):
    """One zone; `patches`: (name, kind, points or (begin, end), location)."""
    with cgns.begin(path) as file:
        made = cgns.zone(cgns.base(file, 3), build(BOX).blocks[0], "box", 3)
        for name, kind, nodes, location in patches:
            if isinstance(nodes, tuple):
                cgns.condition(made, name, kind, *nodes, location=location)
                continue
            patch = cgns.node(cgns.holder(made, "ZoneBC", "ZoneBC_t"), name, "BC_t", kind)
            cgns.node(patch, "PointList", "IndexArray_t", nodes)
            if location is not None:
                cgns.node(patch, "GridLocation", "GridLocation_t", location)
    return path


@pytest.mark.parametrize("face", ["imin", "imax", "jmin", "jmax", "kmin", "kmax"])
@pytest.mark.parametrize("location", [None, "FaceCenter"])
def test_a_list_that_is_a_whole_face(tmp_path, face, location):
    first, last = whole_face(face)
    if location is not None:  # faces between nodes: one less in the directions along the face
        last = np.where(first == last, last, last - 1)
    path = box_file(tmp_path / "g.cgns", ("patch", "BCWall", points_of(first, last), location))
    d = "ijk".index(face[0])
    wanted = [(0, n) for n in BOX.n]
    wanted[d] = (0, 1) if face.endswith("min") else (BOX.n[d] - 1, BOX.n[d])
    assert build(GridFile(file=str(path))).blocks[0].regions["patch"] == ((face, tuple(wanted)),)


def test_a_list_that_is_a_rectangle_of_a_face(tmp_path):
    path = box_file(tmp_path / "g.cgns", ("patch", "BCWall", points_of((1, 3, 2), (1, 8, 7)), None))
    assert build(GridFile(file=str(path))).blocks[0].regions["patch"] == (("imin", ((0, 1), (2, 8), (1, 7))),)


def broken(path):
    """A floor that is sound, a list with a hole, and a range on no face."""
    hole = points_of(*whole_face("jmax"))[:-1]
    return box_file(
        path,
        ("floor", "BCWall", whole_face("jmin"), None),
        ("holed", "BCWall", hole, None),
        ("within", "BCWall", ((3, 1, 1), (3, 11, 7)), None),
    )


def test_broken_patches_are_named_and_left_out_by_a_key(tmp_path, capsys):
    path = broken(tmp_path / "g.cgns")
    with pytest.raises(HiresxError, match=r"holed/PointList: its 62 nodes, .* are no rectangle of a face") as error:
        build(GridFile(file=str(path)))
    assert '[grid] drop = ["box/holed"] leaves it out' in error.value.hint
    with pytest.raises(HiresxError, match=r"within/PointRange: .* lies on no face"):
        build(GridFile(file=str(path), drop=["holed"]))
    kept = build(GridFile(file=str(path), drop=["box/holed", "within"]))
    assert list(kept.blocks[0].regions) == ["floor"]
    with pytest.raises(HiresxError, match=r"grid\.drop: there is no patch or connection 'hole'") as error:
        build(GridFile(file=str(path), drop=["holed", "within", "hole"]))
    assert "box/holed" in error.value.hint
    assert execute(["info", str(path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [row["patch"] for row in told["broken"]] == ["box/holed", "box/within"]
    assert "no rectangle" in told["broken"][0]["why"] and str(tmp_path) not in told["broken"][0]["why"]
    assert execute(["new", "--from", str(path), str(tmp_path / "case")]) == 0
    assert "left out, broken: box/holed" in " ".join(capsys.readouterr().out.split())
    assert 'drop = ["box/holed", "box/within"]' in (tmp_path / "case" / "case.toml").read_text()
    assert execute(["check", str(tmp_path / "case")]) == 0


def test_only_cgns_files_have_patches_to_leave_out(tmp_path):
    from hiresx.grid import write_plot3d

    write_plot3d(tmp_path / "g.x", build(BOX))
    with pytest.raises(HiresxError, match=r"grid\.drop: a Plot3D file has no patches"):
        build(GridFile(file=str(tmp_path / "g.x"), drop=["wall"]))


def test_a_connection_is_left_out_by_the_key(tmp_path):
    path = tmp_path / "g.cgns"
    with cgns.begin(path) as file:
        made = cgns.zone(cgns.base(file, 3), build(BOX).blocks[0], "box", 3)
        cgns.one_to_one(made, "wrong", "nowhere", ((1, 1, 1), (1, 11, 7)), ((9, 1, 1), (9, 11, 7)))
    with pytest.raises(HiresxError, match='there is no zone "nowhere"') as error:
        build(GridFile(file=str(path)))
    assert '[grid] drop = ["box/wrong"]' in error.value.hint
    assert not build(GridFile(file=str(path), drop=["wrong"])).connections


def test_kinds_are_told_and_start_the_case(tmp_path, capsys):
    """Walls start as walls: a viscous one of given heat flux too."""
    patches = [(name, kind, whole_face(face), None) for name, (face, kind, _) in KINDS.items()]
    path = box_file(tmp_path / "g.cgns", *patches)
    assert execute(["info", str(path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {row["region"]: row["kind"] for row in told["regions"]} == {n: k for n, (_, k, _) in KINDS.items()}
    assert execute(["new", "--from", str(path), str(tmp_path / "case")]) == 0
    text = (tmp_path / "case" / "case.toml").read_text()
    for name, (face, kind, type_) in KINDS.items():
        assert f'# box {face}: {kind}\n[[boundary]]\nfaces = "all"\nrange = "{name}"\ntype = "{type_}"' in text
    assert execute(["check", str(tmp_path / "case")]) == 0


def test_the_kind_of_a_family(tmp_path, capsys):
    path = box_file(tmp_path / "g.cgns", ("left", "FamilySpecified", whole_face("imin"), None))
    with h5py.File(path, "r+") as file:
        cgns.node(file["Base/box/ZoneBC/left"], "FamilyName", "FamilyName_t", "hot")
        family = cgns.node(file["Base"], "hot", "Family_t")
        cgns.node(family, "FamilyBC", "FamilyBC_t", "BCWallViscousIsothermal")
    assert execute(["info", str(path), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["regions"]
    assert (row["region"], row["kind"]) == ("hot", "BCWallViscousIsothermal")
