"""Planes and lines through curvilinear blocks."""

import numpy as np
import pytest
from plotted import jet, mesh, ring

from hiresx.errors import HiresxError
from hiresx.output.fields import cut


def wavy_piece(nk=8, nj=9, ni=10):
    x, y, z = mesh(np.linspace(0, 1, ni), np.linspace(0, 1, nj), np.linspace(0, 1, nk))
    wave = 0.05 * np.sin(6 * x) * np.sin(6 * y) * np.sin(6 * z)
    x, y, z = x + wave, y - wave, z + wave
    return {"x": x, "y": y, "z": z, "f": 2 * x - y + 3 * z}


@pytest.mark.parametrize("axis", ["x", "y", "z"])
def test_a_plane_through_a_wavy_block_is_flat_and_linear_functions_stay_exact(axis):
    (sheet,) = cut.plane([wavy_piece()], axis, 0.4)
    np.testing.assert_allclose(sheet[axis], 0.4, rtol=0, atol=1e-14)
    np.testing.assert_allclose(sheet["f"], 2 * sheet["x"] - sheet["y"] + 3 * sheet["z"], rtol=0, atol=1e-13)


@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_a_plane_through_nodes_and_faces(value):
    x, y, z = mesh(np.linspace(0, 1, 7), np.linspace(0, 1, 8), np.linspace(0, 1, 9))
    (sheet,) = cut.plane([{"x": x, "y": y, "z": z}], "z", value)
    assert sheet["x"].shape == (8, 7)
    np.testing.assert_array_equal(sheet["z"], value)


def test_a_plane_that_meets_grid_lines_twice_or_not_at_all():
    r, theta, z = mesh(np.linspace(1, 5, 8), np.linspace(0, 2 * np.pi, 41), np.linspace(0, 1, 7))
    pipe = {"x": r * np.cos(theta), "y": r * np.sin(theta), "z": z}
    sheets = cut.plane([pipe], "x", 0.3)
    assert len(sheets) == 2
    for sheet, side in zip(sheets, (1, -1), strict=True):
        np.testing.assert_allclose(sheet["x"], 0.3, rtol=0, atol=1e-13)
        assert (side * sheet["y"] > 0.9).all()
    outside = cut.plane([pipe], "x", 3.0)
    assert all(np.isnan(sheet["y"]).any() and np.isfinite(sheet["y"]).any() for sheet in outside)


@pytest.mark.parametrize("scale", [1.0, 1e-10])
def test_a_line_across_blocks_rises_without_doubled_nodes(scale):
    pieces = [{name: scale * getattr(b, name)[0] for name in "xyz"} for b in jet()]
    samples, gaps = cut.line(pieces, "x", 5.0 * scale)
    assert not gaps.size
    assert (np.diff(samples["y"]) > 0).all()
    assert samples["y"].size == 20 + 15 + 20 - 2
    np.testing.assert_allclose(samples["x"], 5.0 * scale, rtol=0, atol=1e-14 * scale)


@pytest.mark.parametrize("value", [0.0, 0.3])
def test_a_line_through_a_ring_is_broken_at_the_cylinder_only(value):
    (b,) = ring()
    samples, gaps = cut.line([{"x": b.x[0], "y": b.y[0], "z": b.z[0]}], "y", value)
    (gap,) = gaps
    wall = np.sqrt(1 - value**2)
    assert samples["x"][gap - 1] == pytest.approx(-wall, abs=0.01)
    assert samples["x"][gap] == pytest.approx(wall, abs=0.01)


def test_a_cut_outside_the_grid_says_where_the_grid_is():
    with pytest.raises(HiresxError) as caught:
        cut.plane([wavy_piece()], "z", 9.0)
    assert caught.value.message == "z = 9 does not meet the grid"
    assert "z = 0 to 1" in caught.value.hint


def test_between_equal_values_a_zero_is_at_the_first_node():
    before, after = np.array([0.0, 0.0, 1.0, 1.0, -1.0]), np.array([0.0, 1.0, 1.0, -1.0, 3.0])
    np.testing.assert_array_equal(cut._fraction(before, after), [0, 0, 0, 0.5, 0.25])


@pytest.mark.parametrize("text", ["", "q=1", "x=a", "x=1,x=2", "x="])
def test_cuts_that_are_not_understood(text):
    with pytest.raises(HiresxError, match="is not understood"):
        cut.parse(text, "line")


def test_cuts_that_are_understood():
    assert cut.parse("y = 0, z=1.5", "line") == {"y": 0.0, "z": 1.5}
    assert cut.parse("z", "plane") == {"z": None}
