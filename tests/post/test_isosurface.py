"""Surfaces in space: their shape, their colours, and what is said where they cannot be drawn."""

import json
import subprocess
import sys
from types import SimpleNamespace
from typing import ClassVar

import made_runs
import matplotlib.image
import numpy as np
import pytest

pytest.importorskip("xarray", reason="pip install '.[post]'")

from hiresx import HiresxError, cli
from hiresx.output.fields import field_file
from hiresx.output.fields.field_file import FieldBlock
from hiresx.output.fields.formats import netcdf
from hiresx.post import isosurface


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Two curvilinear blocks side by side; rho is the distance from the origin, u = x, p = 2 x."""
    folder, blocks = made_runs.run(tmp_path_factory.mktemp("space")), []
    for name, low, high in (("left", -2, 0), ("right", 0, 2)):
        ends = np.linspace(-1, 1, 31), np.linspace(-1, 1, 29), np.linspace(low, high, 33)
        z, y, x = np.meshgrid(*ends, indexing="ij")
        x = x + 0.1 * np.sin(2 * y) * (1 - (x / 2) ** 2)
        state = {"rho": np.sqrt(x * x + y * y + z * z), "u": x, "v": 0 * x, "w": 0 * x, "p": 2 * x + 9}
        blocks.append(FieldBlock(name, x, y, z, state))
    field_file.write(netcdf.frame(folder, 3), blocks, 1.5, 3, made_runs.CASE)
    return folder


def test_without_pyvista_the_extra_is_named(run, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "pyvista", None)
    assert cli.execute(["post", "isosurface", str(run), "rho", "0.5"]) == 2
    assert "pip install '.[surface]'" in " ".join(capsys.readouterr().err.split())


def needs_pyvista():
    return pytest.importorskip("pyvista", reason="pip install '.[surface]'")


def test_a_surface_through_levels_is_there_once(tmp_path):
    """Oblique to grid lines, through two levels, of which the blocks say where they lie."""
    needs_pyvista()
    from hiresx import Case, Simulation
    from hiresx import open as open_run
    from hiresx.post import isosurface

    case = Case.from_dict({
        "grid": {"generator": "box", "n": [20, 18, 17], "lower": [0, 0, 0], "upper": [1, 1, 1]},
        "refine": {"tile": 8, "region": [{"level": 2, "x": [0.4, 0.5], "y": [0.4, 0.5], "z": [0.4, 0.5]}]},
        "time": {"steps": 1, "cfl": 0.5}, "initial": {"state": {"rho": 1.0, "p": 0.7}},
        "boundary": [{"faces": "all", "type": "slip-wall"}],
    })  # fmt: skip

    def oblique(x, y, z):
        return 1 + x + 0.5 * y + 0.25 * z, 0 * x, 0 * x, 0 * x, 0.7 + 0 * x

    Simulation(case, "cpu", initial=oblique, out=tmp_path / "run").run(0, progress=False)
    found = isosurface(tmp_path / "run", "rho", (1.9,))
    # over the square of y and z: x = 0.9 - y/2 - z/4 lies within the box everywhere
    assert found.summary["surfaces"][0]["area"] == pytest.approx(np.sqrt(1 + 0.25 + 0.0625), rel=1e-6)
    blocks = open_run(tmp_path / "run").fields().hiresx.blocks
    fine = next(block for name, block in blocks.items() if "level1" in name)
    assert (fine.attrs["level"], fine.attrs["of"], blocks["box"].attrs["level"]) == (1, "box", 0)
    i, j, k = fine.attrs["first"]
    assert [float(fine[axis][0, 0, 0]) for axis in "xyz"] == pytest.approx([i / 38, j / 34, k / 32])


def test_spheres_have_their_radius_area_and_colours(run, tmp_path):
    needs_pyvista()
    from hiresx.post import isosurface

    found = isosurface(run, "rho", (0.5, 0.8), by="u")
    first, second = found.summary["surfaces"]
    assert first["area"] == pytest.approx(4 * np.pi * 0.5**2, rel=0.01)
    assert second["area"] == pytest.approx(4 * np.pi * 0.8**2, rel=0.01)
    data = found.data
    r = np.sqrt(data["x"] ** 2 + data["y"] ** 2 + data["z"] ** 2)
    assert np.minimum(abs(r - 0.5), abs(r - 0.8)).max() < 5e-3
    assert abs(data["u"] - data["x"]).max() < 1e-6, "the colour is that of the place"
    half = isosurface(run, "rho", (0.5,), clip=(0, 3, -1, 1, -1, 1))
    assert half.summary["surfaces"][0]["area"] == pytest.approx(2 * np.pi * 0.5**2, rel=0.01)
    assert float(half.data["x"].min()) >= -1e-6
    (path,) = found.write(tmp_path / "s.ply")
    assert path.stat().st_size > 10_000


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["rho", "90"], "rho is 90 nowhere"),
        (["rhoo", "1"], 'no variable "rhoo"'),
        (["rho", "one"], "not a list of numbers"),
        (["rho", "0.5", "--clip", "1,0,0,1,0,1"], "is no box"),
        (["rho", "0.5", "--clip", "1.5,2,-1,1,-1,1"], "nowhere in this box"),
        (["rho", "0.5", "--camera", "above"], 'camera "above"'),
        (["rho", "0.5", "--opacity", "0"], "opacity"),
    ],
)
def test_faults_name_the_place(run, words, message, capsys):
    needs_pyvista()
    assert cli.execute(["post", "isosurface", str(run), *words]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_plane_has_no_surfaces(tmp_path):
    needs_pyvista()
    from hiresx.post import isosurface

    folder = made_runs.run(tmp_path)
    y, x = np.meshgrid(np.linspace(0, 1, 5), np.linspace(0, 1, 6), indexing="ij")
    state = {name: (1 + x)[None] for name in ("rho", "u", "v", "w", "p")}
    field_file.write(netcdf.frame(folder, 0), [FieldBlock("a", x[None], y[None], 0 * x[None], state)], 0.0, 0,
                     made_runs.CASE)  # fmt: skip
    with pytest.raises(HiresxError, match="fields in space"):
        isosurface(folder, "rho", (1.5,))


def test_without_opengl_it_is_said_and_the_surface_is_written(run, tmp_path, monkeypatch, capsys):
    needs_pyvista()
    failed = subprocess.CompletedProcess([], -11, "", "no display\n")
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: failed)
    command = ["post", "isosurface", str(run), "rho", "0.5", "--out"]
    assert cli.execute([*command, str(tmp_path / "s.png")]) == 2
    assert "cannot draw off screen here (no display)" in " ".join(capsys.readouterr().err.split())
    assert cli.execute([*command, str(tmp_path / "s.vtp"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["files"] == [str(tmp_path / "s.vtp")]


@pytest.mark.parametrize(
    ("azimuth", "elevation", "names"),
    [(300, 25, "xyz"), (40, 60, "xyz"), (200, -20, "xyz"), (270, 90, "xy"), (270, 0, "xz"), (0, 0, "yz")],
)
def test_the_scales_of_the_box_stand_at_the_border_of_its_picture(azimuth, elevation, names):
    from hiresx.post.isosurface import PictureView, box_axes

    a, e = np.radians(azimuth), np.radians(elevation)
    towards = np.array([np.cos(a) * np.cos(e), np.sin(a) * np.cos(e), np.sin(e)]).round(15)
    up = np.array([0.0, 1.0, 0.0] if elevation == 90 else [0.0, 0.0, 1.0])
    right = np.cross(up, towards) / np.linalg.norm(np.cross(up, towards))
    seen = PictureView(
        np.stack([100 * right, -100 * np.cross(towards, right), towards]), np.array([500.0, 400.0, 0]), 900, 800
    )
    bounds = [-2.0, 4.0, -1.0, 1.5, 0.0, 3.0]
    axes = {axis.name: axis for axis in box_axes(bounds, seen)}
    assert "".join(axes) == names
    corners = seen.at(np.array(np.meshgrid(bounds[:2], bounds[2:4], bounds[4:])).reshape(3, -1).T)
    for d, name in enumerate("xyz"):
        if name in axes:
            axis, unit = axes[name], seen.at(np.eye(3)[d]) - seen.at(np.zeros(3))
            assert len(axis.ticks) >= 2 and bounds[2 * d] <= axis.ticks[0] and axis.ticks[-1] <= bounds[2 * d + 1]
            np.testing.assert_allclose(np.diff(axis.pixels, axis=0), np.diff(axis.ticks)[:, None] * unit, atol=1e-9)
            start = axis.ends[0] + (axis.ticks[0] - bounds[2 * d]) * unit
            np.testing.assert_allclose(axis.pixels[0], start, atol=1e-9)
            # Nothing of the box lies on the side where the numbers are.
            assert ((corners - axis.ends[0]) @ axis.away).max() < 1e-9


class Plotter:
    """Notes how a scene is looked at, and shows a grey box in a white picture."""

    made: ClassVar[list] = []

    def __init__(self, off_screen, window_size):
        self.size, self.camera, self.camera_position = window_size, SimpleNamespace(), None
        self.made.append(self)

    def __getattr__(self, name):
        return lambda *given, **named: None

    def screenshot(self, return_img):
        picture = np.full((self.size[1], self.size[0], 3), 255, np.uint8)
        picture[20:-40, 60:-10] = 100
        return picture


@pytest.mark.parametrize(("azimuth", "elevation", "zoom"), [(270, 0, 1.0), (30, 20, 2.0), (0, 90, 1.0)])
def test_the_camera_stands_where_it_is_asked(monkeypatch, azimuth, elevation, zoom):
    """Outside the box, on the side that its angles name; a length has the pixels that the view says."""
    pytest.importorskip("vtkmodules", reason="pip install '.[surface]'")
    module = sys.modules[isosurface.__module__]
    monkeypatch.setattr(module, "_check_gl", lambda: None)
    box = SimpleNamespace(extract_all_edges=lambda: None)
    fake = SimpleNamespace(Plotter=Plotter, Box=lambda bounds: box)
    points = {"u": np.linspace(0, 1, 5)}
    found = SimpleNamespace(point_data=points, copy=lambda: SimpleNamespace(point_data={}))
    bounds, wide = [-2.0, 4.0, -1.0, 1.5, 0.0, 3.0], 300
    cut, view = module._picture(fake, found, "u", lambda v: v, "viridis", bounds, 1.0, (azimuth, elevation, zoom), wide)
    plotter = Plotter.made.pop()
    a, e = np.radians(azimuth), np.radians(elevation)
    towards = np.array([np.cos(a) * np.cos(e), np.sin(a) * np.cos(e), np.sin(e)])
    place, middle, up = map(np.array, plotter.camera_position)
    np.testing.assert_allclose(middle, [1.0, 0.25, 1.5])
    np.testing.assert_allclose((place - middle) / np.linalg.norm(place - middle), towards, atol=1e-14)
    assert np.linalg.norm(place - middle) > np.linalg.norm([3.0, 1.25, 1.5]), "outside the box"
    assert abs(up @ towards) < 0.95
    high = plotter.size[1] // 2
    assert plotter.size == (2 * wide, 2 * high) and cut.shape == (high - 30, wide - 35, 3) and (cut == 100).all()
    right = np.cross(up, towards) / np.linalg.norm(np.cross(up, towards))
    # half of the picture's height is the scale of the parallel view
    pixels = high / 2 / plotter.camera.parallel_scale
    np.testing.assert_allclose(view.at(middle), [wide / 2 - 30, high / 2 - 10], atol=1e-9)
    np.testing.assert_allclose(view.at(middle + right) - view.at(middle), [pixels, 0], atol=1e-9)
    np.testing.assert_allclose(view.at(middle + np.cross(towards, right)) - view.at(middle), [0, -pixels], atol=1e-9)
    corners = np.array(np.meshgrid(bounds[:2], bounds[2:4], bounds[4:])).reshape(3, -1).T - middle
    assert zoom > 1 or abs(corners @ right).max() <= wide / 2 / pixels, "all of it is seen"


@pytest.mark.slow
def test_the_picture_shows_the_sphere_from_where_it_is_asked(run, tmp_path):
    needs_pyvista()
    from hiresx.post import Look, isosurface

    try:
        isosurface(run, "rho", (0.8,), by="u", camera="xz").write(tmp_path / "front.png")
    except HiresxError as error:
        pytest.skip(error.message)
    _, ax = isosurface(run, "rho", (0.8,), by="u", camera="xz", look=Look(title="")).plot()
    shown = ax.images[0].get_array()
    ends = np.array([line.get_xydata() for line in ax.lines])  # x below, z at the left: -2 to 2 and -1 to 1
    np.testing.assert_allclose(ends[0, :, 0], [0, shown.shape[1]], atol=4)
    np.testing.assert_allclose(ends[1, :, 1], [shown.shape[0], 0], atol=4)
    assert {"$x/L$", "$z/L$", "-2", "2", "-1"} <= {text.get_text() for text in ax.texts}
    image = matplotlib.image.imread(tmp_path / "front.png")[..., :3]
    rows, columns = np.nonzero(np.ptp(image[:, : image.shape[1] * 3 // 4], axis=2) > 0.25)
    left = image[rows[columns < columns.mean()], columns[columns < columns.mean()]].mean(axis=0)
    right = image[rows[columns > columns.mean()], columns[columns > columns.mean()]].mean(axis=0)
    assert left[2] > left[0] and right[0] > right[2], "from -y, x runs to the right: blue, then red"
