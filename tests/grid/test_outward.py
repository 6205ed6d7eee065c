"""The outward normal that is told of a face: at right angles to it, however the grid lines leave it."""

import numpy as np
import pytest

from hiresx.cli import execute
from hiresx.grid import Block, Grid, write_plot3d
from hiresx.grid.grid_report import _round, grid_report, unassigned_parts
from hiresx.grid.starting_case import case_text


def normals(x, y, z, name="a") -> dict[str, list[float]]:
    return {row["face"]: row["normal"] for row in unassigned_parts(Grid((Block(name, x, y, z),)))}


def sheared(nk=1):
    z, y, x = np.meshgrid(0.5 * np.arange(nk), np.linspace(0, 1, 9), np.linspace(0, 2, 11), indexing="ij")
    return x + 0.8 * y + 0.3 * z, y + 0.6 * z, z


def test_faces_of_a_sheared_plane():
    found = normals(*sheared())
    assert found["jmin"] == [0, -1, 0] and found["jmax"] == [0, 1, 0]
    across = np.array([1, -0.8, 0]) / np.hypot(1, 0.8)
    np.testing.assert_allclose(found["imax"], across, atol=1e-3)
    np.testing.assert_allclose(found["imin"], -across, atol=1e-3)


@pytest.mark.parametrize("turn", ["as it is", "left-handed", "k first"])
def test_faces_of_a_sheared_box(turn):
    nodes = sheared(8)
    if turn == "left-handed":
        nodes = [c[:, :, ::-1] for c in nodes]
    if turn == "k first":
        nodes = [c.transpose(2, 1, 0) for c in nodes]
    found = normals(*nodes)
    low, high = ("imin", "imax") if turn == "k first" else ("kmin", "kmax")
    assert found[low] == [0, 0, -1] and found[high] == [0, 0, 1]
    across = np.array([0, 1, -0.6]) / np.hypot(1, 0.6)
    np.testing.assert_allclose(found["jmax"], across, atol=1e-3)
    np.testing.assert_allclose(found["jmin"], -across, atol=1e-3)


@pytest.mark.parametrize("nk", [1, 9])
def test_a_face_that_closes_has_none(nk, tmp_path):
    z, a, r = np.meshgrid(0.1 * np.arange(nk), np.linspace(0, 2 * np.pi, 65), np.linspace(1, 2, 9), indexing="ij")
    x, y = r * np.cos(a), r * np.sin(a)
    found = normals(x, y, z)
    assert found["imin"] == found["imax"] == [0, 0, 0]
    half = normals(*(c[:, :33] for c in (x, y, z)))
    np.testing.assert_allclose(half["imin"], [0, -1, 0], atol=1e-3)
    np.testing.assert_allclose(half["imax"], [0, 1, 0], atol=1e-3)
    if nk == 1:
        block = Block("ring", x, y, z)
        path = tmp_path / "ring.xyz"
        write_plot3d(path, Grid((block,)))
        text = case_text(path, grid_report(path))
        assert "imin: around [" in text and text.count("closed") == 2


def test_info_says_what_is_left_over(tmp_path, capsys):
    path = tmp_path / "sheared.xyz"
    write_plot3d(path, Grid((Block("a", *sheared()),)))
    assert execute(["info", str(path)]) == 0
    said = capsys.readouterr().out
    assert "Faces left over" in said and "\nLeft" not in said
    assert "0, -1, 0" in said
    assert "outward normal [0.0, -1.0, 0.0]" in case_text(path, grid_report(path))


def test_what_rounds_to_nothing_has_no_sign():
    assert [str(_round(value)) for value in (-0.0, -0.12345678)] == ["0.0", "-0.123457"]
