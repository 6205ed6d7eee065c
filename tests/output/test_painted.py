"""What is painted: blocks to their faces and no farther, gaps of a cell between them, what was asked for."""

import json
from itertools import islice

import made_runs
import matplotlib.image
import numpy as np
import pytest
from plotted import block, case, jet, mesh, ring, save

from hiresx import HiresxError, cli
from hiresx.base import notify
from hiresx.output.show import colours, picture_file, plot_history, raster
from hiresx.output.show.look import Look
from hiresx.output.show.plot_grid import plot_grid
from hiresx.output.show.run_plot import plot_run


def quarters(shared):
    """An O-grid of four blocks round a cylinder of radius 1, which share the nodes between them, or not."""
    found = []
    for n in range(4):
        theta = n * np.pi / 2 + np.linspace(0, np.pi / 2, 21)[: 21 if shared else 20]
        r, theta, z = mesh(np.linspace(1, 3, 25), theta)
        found.append(block(f"q{n}", r * np.cos(theta), r * np.sin(theta), z, 1 + r))
    return found


def flat(blocks):
    return [{name: getattr(b, name)[0] for name in "xy"} for b in blocks]


@pytest.mark.parametrize("blocks", [quarters(True), quarters(False), ring(20, 80)], ids=["shared", "apart", "closed"])
def test_no_pixel_beyond_the_faces_is_painted_and_none_within_is_missing(blocks):
    pieces = flat(blocks)
    found = raster.raster(pieces, "x", "y", (-3.5, 3.5, -3.5, 3.5), wide=600)
    x, y = found.centres
    r, theta = np.hypot(x, y[:, None]), np.arctan2(y[:, None], x)
    painted = np.isfinite(found([piece["x"] for piece in pieces]))
    # Faces are polygons: their chords lie within the circles by 1 - cos(half a cell).
    cell = np.pi / 80
    outer = 3 if len(blocks) > 1 else 5
    inside = (r > 1) & (r < outer * np.cos(cell)) & (np.abs(theta) < 4)
    assert painted[inside].all()
    assert not painted[(r < np.cos(cell) - 1e-12) | (r > outer)].any()
    values = found([2 * piece["x"] - 3 * piece["y"] for piece in pieces])
    assert np.abs(values - (2 * x - 3 * y[:, None]))[painted].max() < 1e-12, "linear fields are exact, in gaps too"


def test_the_saved_picture_is_white_in_the_body(tmp_path):
    """In the file itself: to one of its pixels."""
    save(tmp_path, quarters(True), case("Body"))
    look = Look(limits=(1.5, 3.9), colours="jet", title="")
    (path,) = plot_run(tmp_path, "rho", look=look)
    image = matplotlib.image.imread(path)[..., :3]
    bright = (image > 0.98).all(axis=2)
    coloured = np.ptp(image, axis=2) > 0.2
    # The ring, 6 L wide, is the first thing that is coloured; behind it comes the bar.
    columns = np.flatnonzero(coloured.any(axis=0))
    columns = np.split(columns, np.flatnonzero(np.diff(columns) > 5) + 1)[0]
    rows = np.flatnonzero(coloured[:, columns].any(axis=1))
    middle = (rows[0] + rows[-1]) / 2
    scale = (rows[-1] - rows[0] + 1) / 6
    y, x = np.indices(bright.shape)
    r = np.hypot((x - columns[0] + 0.5) / scale - 3, (y - middle) / scale)
    within = r < 1 * np.cos(np.pi / 80) - 2.5 / scale
    assert within.sum() > 10_000 and bright[within].mean() > 0.999
    ring_of = (r > 1 + 3 / scale) & (r < 2.9)
    assert coloured[ring_of].mean() > 0.99


def test_a_wall_between_blocks_stays_and_a_seam_does_not_grow_into_it():
    x, y, _ = mesh(np.linspace(0, 1, 11), np.linspace(0, 1, 11))
    left, right, far = ({"x": x[0] + shift, "y": y[0]} for shift in (0.0, 1.0, 2.3))
    found = raster.raster([left, right, far], "x", "y", (-0.2, 3.5, -0.2, 1.2), wide=700)
    a, b = found.centres
    painted = np.isfinite(found.weights[0])
    assert not painted[(b < 0) | (b > 1)].any(), "not below the seam at x = 1 either"
    assert not painted[:, (a > 2) & (a < 2.3)].any(), "three cells are a wall"
    assert painted[np.ix_((b > 0) & (b < 1), (a > 0) & (a < 2))].all()


def test_a_gap_ends_where_the_wall_beside_it_begins():
    """A channel that ends one cell before a block which is wider: the wall above it reaches to that block."""
    channel, wide = (
        {"x": x[0], "y": y[0]}
        for x, y, _ in (
            mesh(np.linspace(0, 0.9, 10), np.linspace(0, 1, 11)),
            mesh(np.linspace(1, 2, 11), np.linspace(0, 2, 81)),
        )
    )
    found = raster.raster([channel, wide], "x", "y", (-0.2, 2.2, -0.2, 2.2), wide=600)
    a, b = found.centres
    painted = np.isfinite(found.weights[0])
    assert not painted[np.ix_((b > 1), (a > 0.9) & (a < 1))].any(), "no corner of the wall is painted"
    assert painted[np.ix_((b > 0) & (b < 1), (a > 0) & (a < 2))].all()


def test_a_gap_between_blocks_of_a_finer_level_has_its_values_and_not_those_below():
    def nodes(x, y):
        x, y, _ = mesh(x, y)
        return {"x": x[0], "y": y[0]}

    fine = np.linspace(0, 1, 11)
    pieces = [
        nodes(np.linspace(0, 1, 6), np.linspace(0, 1, 6)),
        nodes(fine[2:5], fine[2:9]),
        nodes(fine[5:9], fine[2:9]),
    ]
    found = raster.raster(pieces, "x", "y", wide=300)
    a, b = found.centres
    finest = found([np.full(piece["x"].shape, n > 0, float) for n, piece in enumerate(pieces)])
    inside = np.ix_((b > 0.2) & (b < 0.8), (a > 0.2) & (a < 0.8))
    assert np.abs(finest[inside] - 1).max() < 1e-12
    assert np.abs(np.delete(finest, inside[1].ravel(), 1)).max() < 1e-12


def test_poles_and_holes(tmp_path):
    """Nodes that coincide, and nodes that are missing."""
    r, theta, _ = mesh(np.linspace(0, 1, 9), np.linspace(0, 2 * np.pi, 41))
    x, y = (r * np.cos(theta))[0], (r * np.sin(theta))[0]
    found = raster.raster([{"x": x, "y": y}], "x", "y", wide=300)
    a, b = found.centres
    assert np.isfinite(found.weights[0])[np.hypot(a, b[:, None]) < 0.99].all()
    x[20:22, 4:6] = np.nan
    holed = np.isfinite(raster.raster([{"x": x, "y": y}], "x", "y", (-1, 1, -1, 1), wide=300).weights[0])
    assert 0 < np.isfinite(found.weights[0]).sum() - holed.sum() < 0.1 * holed.sum()


def test_what_is_asked_for_is_what_is_drawn(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(picture_file, "save", lambda figure, path: drawn.append(figure) or path)
    save(tmp_path, jet(), case("Jet"))
    command = ["plot", str(tmp_path), "--variable", "schlieren", "--exponent", "0.3", "--contours", "mach"]
    command += ["--levels", "0.4,0.8", "--zoom", "1,6,-2,2", "--range", "0,1.5", "--title", "mine", "--width", "5"]
    command += ["--font", "13", "--colours", "bone", "--json"]
    assert cli.execute(command) == 0
    (figure,) = drawn
    ax = figure.axes[0]
    (image,) = ax.images
    assert image.norm.gamma == 0.3 and (image.norm.vmin, image.norm.vmax) == (0, 1.5) and image.cmap.name == "bone"
    assert (*ax.get_xlim(), *ax.get_ylim()) == (1, 6, -2, 2) and figure.get_size_inches()[0] == 5
    assert figure._suptitle.get_text() == "mine" and figure._suptitle.get_fontsize() == 14
    assert "power 0.3" in figure.axes[1].get_ylabel()
    assert list(ax.collections[0].levels) == [0.4, 0.8]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--range", "2,1"], "not possible"),
        (["--zoom", "1,2,3"], "not 2 or 4 numbers"),
        (["--zoom", "1,2"], "four numbers"),
        (["--width", "100"], "not possible"),
        (["--font", "1"], "cannot be read"),
        (["--exponent", "0"], "show nothing"),
        (["--contours", "pp"], 'no variable "pp"'),
        (["--line", "y=0", "--contours", "p"], "belong to planes"),
        (["--every", "2"], "only for --grid"),
        (["--grid", "--variable", "p"], "not for a grid"),
        (["--grid", "--every", "0"], "not possible"),
        (["--zoom", "30,40,0,1"], "no flow"),
    ],
)
def test_looks_that_cannot_be(tmp_path, words, message, capsys):
    save(tmp_path, jet(), case("Jet"))
    assert cli.execute(["plot", str(tmp_path), *words]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert not list(tmp_path.glob("*.png"))


@pytest.mark.parametrize(
    ("key", "least", "greatest"),
    [("font", 3, 40), ("width", 2, 30), ("height", 1, 40), ("exponent", 0.05, 5), ("levels", 1, 200)],
)
def test_looks_up_to_the_limits_that_messages_give(key, least, greatest):
    for value in (least, greatest):
        assert getattr(Look(**{key: value}), key) == value
    beyond = (0, 201) if key == "levels" else (np.nextafter(least, 0), np.nextafter(greatest, 100))
    for value in beyond:
        with pytest.raises(HiresxError, match=f"give .*{least} to {greatest}|between {least} and {greatest}") as found:
            Look(**{key: value})
        assert key != "font" or "points cannot be read" in str(found.value)


def test_plot_and_slice_draw_the_same_pixels(tmp_path):
    pytest.importorskip("xarray", reason="pip install '.[post]'")
    from hiresx.post import slice as sliced

    made_runs.run(tmp_path, case("Jet") | {"parameters": {}})
    save(tmp_path, jet(), case("Jet"))
    figure, axes = sliced(tmp_path, "mach").plot()
    seen = colours.views([{n: getattr(b, n) for n in "xyz"} | dict(b.state, mach=b.state["u"]) for b in jet()], 2, None)
    other = colours.draw(seen, ["mach"])
    assert axes.images[0].get_extent() == other.axes[0].images[0].get_extent()
    assert axes.images[0].get_array().shape == other.axes[0].images[0].get_array().shape
    assert figure._suptitle.get_text().startswith("Jet")


def test_grids_are_drawn_by_their_lines(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(picture_file, "save", lambda figure, path: drawn.append(figure) or path)
    save(tmp_path, jet(), case("Jet"))
    assert plot_grid(tmp_path, every=7) == [tmp_path / "grid.png"]
    plot_grid(tmp_path / "fields_000007.nc", every=1)
    coarse, fine = (figure.axes[0].collections for figure in drawn)
    # below: 60 x 20 nodes; the lines behind the faces, then the faces, of either family.
    assert [len(c.get_segments()) for c in coarse[:4]] == [2, 2, 8, 2]
    assert [len(c.get_segments()) for c in fine[:4]] == [18, 2, 58, 2]
    legend = drawn[0].axes[0].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["below", "core", "above"]


def test_the_grid_of_a_case_and_of_a_field_in_space(tmp_path):
    assert cli.execute(["plot", "isentropic-vortex", "--grid", "--out", str(tmp_path / "v.png"), "--json"]) == 0
    save(tmp_path, jet(8), case("Jet"))
    plot_grid(tmp_path, look=Look(plane="x=6"))
    assert all(matplotlib.image.imread(tmp_path / name).shape[1] > 900 for name in ("v.png", "grid.png"))


def test_what_is_left_out_is_said(tmp_path, monkeypatch, capsys):
    drawn = []
    monkeypatch.setattr(picture_file, "save", lambda figure, path: drawn.append(figure) or path)
    made_runs.run(tmp_path / "run")
    time = 0.1 * np.arange(30)
    p = np.sin(time)[:, None] + np.arange(200)
    made_runs.probe(tmp_path / "run", "rake", time, np.outer(np.arange(200), [1, 0, 0]), p=p)
    assert cli.execute(["plot", str(tmp_path / "run"), "--history", "rake", "--json"]) == 0
    assert "10 of 200 places of rake.p are drawn" in " ".join(capsys.readouterr().err.split())
    legend = drawn[0].axes[0].get_legend()
    assert legend.get_title().get_text() == "10 of 200 places"
    named = [text.get_text() for text in legend.get_texts()]
    assert named[0] == "p_0" and named[-1] == "p_199" and len(named) == 10
    told = []
    with notify.notifications_to(told.append):
        plot_history.plot_history(tmp_path / "run", "rake." + ",".join(f"p_{n}" for n in range(12)))
    assert not told and len(drawn[1].axes[0].lines) == 12, "what is named is drawn"
    drawn[1].canvas.draw()
    frame, box = drawn[1].axes[0].get_window_extent(), drawn[1].axes[0].get_legend().get_window_extent()
    assert box.x0 >= frame.x1, "the legend lies beside the curves"


def test_several_runs_over_each_other(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(picture_file, "save", lambda figure, path: drawn.append(figure) or path)
    time = 0.1 * np.arange(40)
    for n, name in enumerate(("a", "b", "c")):
        made_runs.run(tmp_path / name)
        made_runs.probe(tmp_path / name, "lip", time, [[0, 0, 0]], p=(n + np.sin(time))[:, None])
        save(tmp_path / name, jet(), case(name))
    beside = ["--against", str(tmp_path / "b"), "--against", str(tmp_path / "c")]
    for words in (["--history", "lip", "--zoom", "1,2", "--range", "-1,5"], ["--line", "y=0", "--variable", "p"]):
        assert cli.execute(["plot", str(tmp_path / "a"), *words, *beside, "--json"]) == 0
    for figure in drawn:
        found = [line.get_color() for line in figure.axes[0].lines]
        assert len(found) == len(set(found)) == 3
    assert [line.get_label().split(",")[0] for line in drawn[1].axes[0].lines] == ["b", "c", "a"]
    assert drawn[0].axes[0].get_xlim() == (1, 2) and drawn[0].axes[0].get_ylim() == (-1, 5)
    assert cli.execute(["plot", str(tmp_path / "a"), *beside]) == 2, "a difference is from one run"


def test_runs_of_unlike_dimensions_are_no_curves_beside_each_other(tmp_path, capsys):
    axes = np.linspace(0, 1, 8)
    save(tmp_path / "plane", jet(), case("plane"))
    save(tmp_path / "space", [block("box", *mesh(axes, axes, axes), 1.0)], case("space"))
    words = ["plot", str(tmp_path / "plane"), "--line", "y=0", "--against", str(tmp_path / "space")]
    assert cli.execute(words) == 2
    assert "space has 3 dimensions" in capsys.readouterr().err


def test_a_rate_and_a_suffix_are_checked_in_one_place(tmp_path, capsys):
    pytest.importorskip("xarray", reason="pip install '.[post]'")
    made_runs.run(tmp_path, case("Jet") | {"parameters": {}})
    save(tmp_path, jet(), case("Jet"))
    said = []
    for verb in (["plot", str(tmp_path), "--variable", "p", "--animate"], ["post", "animate", str(tmp_path), "p"]):
        for words in (["--fps", "61"], ["--out", str(tmp_path / "f.avi")]):
            assert cli.execute([*verb, *words, "--json"]) == 2
            said.append(json.loads(capsys.readouterr().out)["error"])
    assert said[:2] == said[2:]


def test_a_missing_map_is_an_error(tmp_path):
    save(tmp_path, jet(), case("Jet"))
    with pytest.raises(HiresxError, match='no colour map "mud"'):
        plot_run(tmp_path, "rho", look=Look(colours="mud"))


def test_moments_bear_the_symbol_of_what_they_are_of():
    assert picture_file.symbol("rms_p") == f"rms {picture_file.symbol('p')}"
    assert picture_file.symbol("u_v") == "u_v"


def test_triangles_are_taken_in_slabs(monkeypatch):
    """Up to a number of tests at once, and one triangle where it has more."""
    monkeypatch.setattr(raster, "_SLAB", 10)
    assert list(islice(raster._slabs(np.array([4, 9, 10, 50, 55])), 9)) == [(0, 3), (3, 4), (4, 5)]
