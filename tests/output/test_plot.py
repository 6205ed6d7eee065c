"""Pictures: cuts through curvilinear blocks, and what `plot_run` draws of a tube, a vortex, a jet and a cube."""

import itertools
import sys

import matplotlib.image
import numpy as np
import pytest

from hiresx import cli
from hiresx.case import load
from hiresx.errors import HiresxError
from hiresx.output.fields import cut
from hiresx.output.fields import field_file as fields
from hiresx.output.fields.field_file import FieldBlock
from hiresx.output.saved import record
from hiresx.output.show import colours, lines
from hiresx.output.show import plot_history as plot_history_module
from hiresx.output.show.plot import animate_run, plot_run
from hiresx.output.show.plot_history import plot_history, plot_spectrum
from hiresx.output.watch import history

CASE_TOML = """
title = "A travelling wave"
[parameters]
amplitude = 0.2
[grid]
generator = "box"
n = [41, 1, 1]
lower = [0.0, 0.0, 0.0]
upper = [1.0, 0.0, 0.0]
[time]
end = 1.0
[[boundary]]
faces = ["imin", "imax"]
type = "supersonic-outflow"
"""
CASE_PY = """
import numpy as np

def exact(x, y, z, t, *, amplitude, gamma):
    return 1 + amplitude * np.sin(2 * np.pi * (x - t)), 1.0, 0.0, 0.0, 1 / gamma

def initial(x, y, z, *, amplitude, gamma):
    return exact(x, y, z, 0.0, amplitude=amplitude, gamma=gamma)
"""


def case(title, *variables):
    return {"title": title, "gas": {"gamma": 1.4}, "output": {"variables": ["rho", "u", "v", "w", "p", *variables]}}


def block(name, x, y, z, rho, u=0.0, v=0.0, w=0.0, p=1 / 1.4):
    values = {"rho": rho, "u": u, "v": v, "w": w, "p": p}
    return FieldBlock(name, x, y, z, {key: np.array(np.broadcast_to(value, x.shape)) for key, value in values.items()})


def mesh(x, y=(0.0,), z=(0.0,)):
    z, y, x = np.meshgrid(z, y, x, indexing="ij")
    return x, y, z


def vortex(n=32):
    """Isentropic vortex of strength 5 on a wavy periodic grid whose last nodes are not doubled."""
    s = np.arange(n) * 10 / n
    x, y, z = mesh(s, s)
    wave = 0.5 * np.sin(np.pi * x / 5) * np.sin(np.pi * y / 5)
    x, y = x + wave, y + wave
    r2 = (x - 5) ** 2 + (y - 5) ** 2
    temperature = 1 - 0.4 * 25 / (8 * 1.4 * np.pi**2) * np.exp(1 - r2)
    swirl = 5 / (2 * np.pi) * np.exp((1 - r2) / 2)
    rho = temperature**2.5
    return [block("main", x, y, z, rho, 1 - swirl * (y - 5), 1 + swirl * (x - 5), 0.0, rho * temperature / 1.4)]


def jet(nz=1):
    """Three blocks side by side, the middle one finer, with shared nodes: cells and a shear layer."""
    blocks = []
    for name, y in (("below", (-4, -0.5, 20)), ("core", (-0.5, 0.5, 15)), ("above", (0.5, 4, 20))):
        x, y, z = mesh(np.linspace(0, 12, 60), np.linspace(*y), np.linspace(0, 3, nz) if nz > 1 else (0.0,))
        core = (np.tanh((y + 0.5) / 0.15) - np.tanh((y - 0.5) / 0.15)) / 2
        p = (1 + 0.4 * core * (x / 2.6 % 1 - 0.5) * np.exp(-x / 6)) / 1.4
        blocks.append(block(name, x, y, z, 1.4 * p / (1 - 0.3 * core), 1.27 * core, 0.0, 0.0, p))
    return blocks


def ring(n=20, m=40):
    """An O-grid round a cylinder of radius 1, along theta without a doubled node."""
    r, theta, z = mesh(np.linspace(1, 5, n), np.arange(m) * 2 * np.pi / m)
    return [block("ring", r * np.cos(theta), r * np.sin(theta), z, 1 + 1 / r)]


def save(directory, blocks, about, step=7, time=0.25):
    directory.mkdir(exist_ok=True)
    return fields.write(fields.frame(directory, step), blocks, time, step, about)


def picture(path):
    """A PNG as an array, after seeing that something of many colours is drawn."""
    image = matplotlib.image.imread(path)
    assert image.shape[0] > 300
    assert image.shape[1] > 1000
    assert len(np.unique(image.reshape(-1, image.shape[2])[::7], axis=0)) > 50
    return image


@pytest.fixture
def tube(tmp_path):
    """A run directory of the travelling wave, with its case kept."""
    (tmp_path / "case.toml").write_text(CASE_TOML)
    (tmp_path / "case.py").write_text(CASE_PY)
    wave = load(tmp_path / "case.toml")
    x, y, z = mesh(np.linspace(0, 1, 41))
    rho = 1 + 0.2 * np.sin(2 * np.pi * (x - 0.25))
    save(tmp_path / "run", [block("main", x, y, z, rho, 1.0)], wave.model_dump(mode="json"))
    record.keep_case(tmp_path / "run", wave.to_toml(), tmp_path / "case.py")
    return tmp_path / "run"


# Cuts -----------------------------------------------------------------------------------------------------------------


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


def test_a_line_across_blocks_rises_without_doubled_nodes():
    pieces = [{"x": b.x[0], "y": b.y[0], "z": b.z[0]} for b in jet()]
    samples, gaps = cut.line(pieces, "x", 5.0)
    assert not gaps.size
    assert (np.diff(samples["y"]) > 0).all()
    assert samples["y"].size == 20 + 15 + 20 - 2
    np.testing.assert_allclose(samples["x"], 5.0, rtol=0, atol=1e-14)


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
    assert "z = 0 to 1" in caught.value.mend


@pytest.mark.parametrize("text", ["", "q=1", "x=a", "x=1,x=2", "x="])
def test_cuts_that_are_not_understood(text):
    with pytest.raises(HiresxError, match="is not understood"):
        cut.parse(text, "line")


def test_cuts_that_are_understood():
    assert cut.parse("y = 0, z=1.5", "line") == {"y": 0.0, "z": 1.5}
    assert cut.parse("z", "plane") == {"z": None}


# Lines ----------------------------------------------------------------------------------------------------------------


def test_a_tube_with_its_exact_solution(tube, monkeypatch):
    drawn = []
    monkeypatch.setattr(lines, "_exact", lambda *a, exact=lines._exact: drawn.append(exact(*a)) or drawn[0])
    (path,) = plot_run(tube)
    assert path == tube / "fields_000007.png"
    picture(path)
    (exact,) = drawn
    np.testing.assert_allclose(exact["rho"], 1 + 0.2 * np.sin(2 * np.pi * (exact["x"] - 0.25)), atol=1e-14)
    assert set(exact) == {"x", "rho", "u", "p"}


def test_variables_that_are_gradients_have_no_exact_line(tube):
    (path,) = plot_run(tube, "mach, schlieren", out=tube)
    assert path == tube / "fields_000007_mach_schlieren.png"
    picture(path)


def test_lines_through_two_and_three_dimensions(tmp_path):
    save(tmp_path, ring(), case("Ring"), step=1)
    picture(plot_run(tmp_path, line="y=0")[0])
    save(tmp_path, jet(8), case("Jet"), step=2)
    (path,) = plot_run(tmp_path, "p", line="y=0,z")
    assert path.name == "fields_000002_p_y0_z.png"
    picture(path)


def test_a_reference_from_a_csv_file(tube, tmp_path):
    reference = tmp_path / "points.csv"
    reference.write_text("# measured, somewhere\n# x,rho,u\n0,1,2\n\n0.5,1.1,2\n1.0,1.0,2\n")
    columns = lines.read_table(reference, "x")
    assert list(columns) == ["x", "rho", "u"]
    np.testing.assert_array_equal(columns["rho"], [1, 1.1, 1])
    picture(plot_run(tube, reference=reference)[0])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x,rho\n1,2\n1,two\n", "line 3: not numbers"),
        ("x,rho\n1,2,3\n", "line 2: 3 numbers under 2 names"),
        ("1,2\n", "line 1: 2 numbers under 0 names"),
        ("x,rho\n", "has no numbers"),
    ],
)
def test_references_that_cannot_be_read(tmp_path, text, message):
    (tmp_path / "bad.csv").write_text(text)
    with pytest.raises(HiresxError, match=message):
        lines.read_table(tmp_path / "bad.csv", "x")


# Colours --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("blocks", "about"),
    [
        (vortex(), case("Vortex", "vorticity")),
        (jet(), case("Jet")),
        (ring(), case("Ring")),
        (jet(8), case("Jet in space", "q_criterion")),
    ],
    ids=["vortex", "jet", "ring", "jet-3d"],
)
def test_default_pictures(tmp_path, blocks, about):
    save(tmp_path, blocks, about)
    picture(plot_run(tmp_path)[0])


def test_default_variables_are_what_the_case_derives(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(colours, "draw", lambda *a, draw=colours.draw, **k: asked.append(a[1]) or draw(*a, **k))
    save(tmp_path, vortex(), case("Vortex", "vorticity", "T"))
    plot_run(tmp_path)
    save(tmp_path, vortex(), case("Vortex"))
    plot_run(tmp_path)
    assert asked == [["rho", "vorticity", "T"], ["rho", "schlieren"]]


def test_one_plane_and_one_variable(tmp_path):
    save(tmp_path, jet(8), case("Jet"))
    (path,) = plot_run(tmp_path, "mach", plane="x=6", out=tmp_path / "pictures" / "cross.png")
    assert path == tmp_path / "pictures" / "cross.png"
    picture(path)


def test_a_plane_that_meets_a_part_of_the_grid(tmp_path):
    r, theta, z = mesh(np.linspace(1, 5, 20), np.linspace(0, 2 * np.pi, 60), np.linspace(0, 4, 8))
    save(tmp_path, [block("pipe", r * np.cos(theta), r * np.sin(theta), z, 1 + 1 / r)], case("Pipe"))
    picture(plot_run(tmp_path, "rho", plane="x=3")[0])


def test_colour_scales():
    def shades(name, *values):
        norm, colour_map, extend = colours.shades(name, np.array(values))
        return norm.vmin, norm.vmax, colour_map, extend

    low, high, colour_map, _ = shades("vorticity", *np.linspace(-1, 2, 1001))
    assert colour_map == "RdBu_r", "white at zero where both signs matter"
    assert low == -high
    assert shades("p", 1.0, 1.0)[:2] == pytest.approx((0.9995, 1.0005)), "round-off is no structure"
    spiked = shades("p", *np.linspace(1, 2, 5000), 100.0)
    assert spiked[1] < 2.001
    assert spiked[3] == "both"
    assert shades("schlieren", *np.linspace(0, 3, 1001))[0] == 0
    with pytest.raises(HiresxError, match="T is not a number anywhere"):
        shades("T", np.nan, np.nan)


def test_a_thin_domain_is_stretched(tmp_path):
    x, y, z = mesh(np.linspace(0, 100, 20), np.linspace(0, 1, 12))
    save(tmp_path, [block("layer", x, y, z, 1 + 0.1 * y)], case("Layer"))
    picture(plot_run(tmp_path, "rho")[0])


def test_missing_values_leave_holes(tmp_path):
    blocks = vortex()
    blocks[0].state["rho"][0, 10:14, 10:14] = np.nan
    save(tmp_path, blocks, case("Broken vortex"))
    picture(plot_run(tmp_path, "rho")[0])


# Files and faults -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".svg", ".pdf"])
def test_the_same_fields_give_the_same_file(tmp_path, suffix):
    save(tmp_path, jet(), case("Jet"))
    first, second = (plot_run(tmp_path, out=tmp_path / f"{n}{suffix}")[0].read_bytes() for n in (1, 2))
    assert first == second


def test_the_last_step_or_another_or_a_file(tmp_path):
    for step in (3, 20, 100):
        save(tmp_path, ring(10, 20), case("Ring"), step=step)
    assert plot_run(tmp_path, "rho")[0].name == "fields_000100_rho.png"
    assert plot_run(tmp_path, "rho", step=20)[0].name == "fields_000020_rho.png"
    assert plot_run(fields.frame(tmp_path, 3), "rho")[0].name == "fields_000003_rho.png"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"step": 9}, "has no fields of step 9"),
        ({"variable": "rhoo"}, 'there is no variable "rhoo"'),
        ({"out": "picture.xyz"}, 'pictures cannot be written as ".xyz"'),
        ({"plane": "z=0"}, "there is no plane to choose"),
        ({"reference": "r.csv"}, "with lines only"),
        ({"line": "z=0"}, "does not name a line in 2 dimensions"),
        ({"line": "x=0,y=0"}, "does not name a line in 2 dimensions"),
        ({"line": "x=77"}, "x = 77 does not meet the grid"),
        ({"line": "y=0", "plane": "z=0"}, "both a plane and a line"),
        ({"line": "y=0", "reference": "no-such.csv"}, "cannot read the reference"),
    ],
)
def test_requests_that_cannot_be_met(tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    save(tmp_path, ring(10, 20), case("Ring"))
    with pytest.raises(HiresxError) as caught:
        plot_run(tmp_path, **options)
    assert message in caught.value.message
    assert caught.value.mend
    assert not list(tmp_path.glob("*.png"))


def test_requests_of_the_wrong_dimension(tube, tmp_path):
    with pytest.raises(HiresxError, match="no line to choose"):
        plot_run(tube, line="y=0")
    save(tmp_path, jet(8), case("Jet"))
    with pytest.raises(HiresxError, match="does not name a plane"):
        plot_run(tmp_path, plane="x=0,y=0")
    with pytest.raises(HiresxError, match="does not name a line in 3 dimensions"):
        plot_run(tmp_path, line="y=0")


def test_no_fields_no_directory_no_permission(tmp_path):
    with pytest.raises(HiresxError, match="no fields"):
        plot_run(tmp_path)
    with pytest.raises(HiresxError, match="does not exist"):
        plot_run(tmp_path / "nowhere")
    save(tmp_path, ring(10, 20), case("Ring"))
    (tmp_path / "file").touch()
    with pytest.raises(HiresxError, match=r"cannot write .*p\.png"):
        plot_run(tmp_path, "rho", out=tmp_path / "file" / "p.png")


def test_without_matplotlib(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(HiresxError) as caught:
        plot_run(tmp_path)
    assert caught.value.mend == "pip install 'hiresx[plot]'"


# Subsets, other runs, histories, spectra, animations ------------------------------------------------------------------


def test_a_subset_is_drawn_in_its_own_plane(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(colours, "views", lambda *a, f=colours.views: seen.append(f(*a)) or seen[-1])
    x, y, z = mesh(np.linspace(0, 4, 30), (0.5,), np.linspace(0, 2, 20))
    sheet = [block("sheet", x, y, z, 1 + 0.1 * np.sin(x) * z)]
    fields.write(fields.frame(tmp_path, 7, "side"), sheet, 0.5, 7, case("Sheet"), part="plane y = 0.5")
    (path,) = plot_run(tmp_path, "rho,mach", subset="side")
    assert path == tmp_path / "side_000007_rho_mach.png"
    picture(path)
    assert [view[:2] for view in seen[0]] == [("x", "z")]
    plot_run(tmp_path, "rho", subset="side", line="x=1", out=tmp_path / "line.png")
    with pytest.raises(HiresxError, match="does not name a line"):
        plot_run(tmp_path, "rho", subset="side", line="y=1")
    with pytest.raises(HiresxError, match="no fields"):
        plot_run(tmp_path)


def test_a_line_that_was_written_is_drawn_with_its_gaps(tmp_path):
    y = np.concatenate([np.linspace(-3, -1, 20), np.linspace(1, 3, 20)])
    x, y, z = mesh((0.0,), y)
    line = block("line", *(c.reshape(1, 1, -1) for c in (x, y, z)), 1 + 0.1 * y.reshape(1, 1, -1))
    line.gaps = (20,)
    fields.write(fields.frame(tmp_path, 7, "cut"), [line], 0.5, 7, case("Line"), part="line x = 0")
    data = fields.read(fields.frame(tmp_path, 7, "cut"), ["rho"])
    drawn = lines.samples(data, [{"x": b.x, "y": b.y, "z": b.z} | dict(b.state) for b in data.blocks], 1, None)
    assert drawn.along == "y" and list(drawn.gaps) == [20]
    picture(plot_run(tmp_path, subset="cut")[0])


def test_another_run_beside_a_line_and_as_a_difference(tmp_path):
    for name, shift, size in (("one", 0.0, 32), ("two", 0.05, 32), ("coarse", 0.0, 20)):
        blocks = vortex(size)
        blocks[0].state["rho"] += shift * np.exp(-((blocks[0].x - 3) ** 2))
        for step in (0, 7, 9):
            save(tmp_path / name, blocks, case("Vortex"), step=step, time=step / 10)
    (path,) = plot_run(tmp_path / "one", "rho", line="y=5", against=tmp_path / "coarse", step=7)
    assert path.name == "fields_000007_rho_y5_coarse.png"
    picture(path)
    picture(plot_run(tmp_path / "one", "rho", against=tmp_path / "two")[0])
    with pytest.raises(HiresxError, match="different grids"):
        plot_run(tmp_path / "one", "rho", against=tmp_path / "coarse")


def test_a_difference_is_white_at_zero():
    norm, colour_map, _ = colours.shades("rho", np.linspace(0.1, 0.3, 100), difference=True)
    assert (norm.vmin, colour_map) == (-norm.vmax, "RdBu_r")


def tone(n=4000, frequency=0.37, uneven=0.0, seed=1):
    """A tone of amplitude 0.5 in weak noise, sampled at steps that vary by the share `uneven`."""
    chance = np.random.default_rng(seed)
    t = np.cumsum(0.1 * (1 + uneven * np.sin(0.05 * np.arange(n))))
    return t, 2 + 0.5 * np.sin(2 * np.pi * frequency * t) + 0.01 * chance.standard_normal(n)


@pytest.mark.parametrize("uneven", [0.0, 0.3])
def test_a_spectrum_finds_the_tone_and_holds_the_variance(uneven):
    t, p = tone(uneven=uneven)
    found = plot_history_module.spectrum(t, p)
    step = found.frequency[1]
    assert abs(found.peak - 0.37) <= step
    assert np.sum(found.density) * step == pytest.approx(p.var(), rel=0.05)
    assert found.segments == 4 and found.samples == 4000


def test_a_spectrum_of_noise_is_flat():
    chance = np.random.default_rng(2)
    found = plot_history_module.spectrum(np.arange(20000) * 0.5, chance.standard_normal(20000))
    # variance 1 up to the frequency 1: a density of 1
    assert found.density[5:-5].mean() == pytest.approx(1.0, rel=0.05)


def test_too_few_samples_for_a_spectrum():
    with pytest.raises(HiresxError, match="15 samples are too few"):
        plot_history_module.spectrum(np.arange(15.0), np.ones(15))


@pytest.fixture
def watched(tmp_path):
    """A run directory with the history of two probes and residuals."""
    t, p = tone(400)
    column = history.Column("p", "pressure", "rho_ref c_ref^2")
    for name, places in (("lip", [[0, 0, 0]]), ("rake", [[0, 0, 0], [0, 1, 0], [0, 2, 0]])):
        kept = history.History(name, "probe", [column], np.array(places, dtype=float), tmp_path / "run" / "history")
        kept.start()
        for n in range(400):
            kept.add(n, t[n], {"p": p[n] + np.arange(len(places))})
        kept.close()
    norms = [history.Column(name, f"norm of {name}", "1") for name in ("dt", "rho", "rho_w", "least_p")]
    kept = history.History("residual", "residual", norms, None, tmp_path / "run" / "history")
    kept.start()
    for n in range(50):
        kept.add(10 * n, 0.1 * n, {"dt": 0.01, "rho": 0.0 if n == 0 else 0.9**n, "rho_w": 0.0, "least_p": 0.5})
    kept.close()
    return tmp_path / "run"


def test_histories_are_drawn(watched, tmp_path):
    (path,) = plot_history(watched, "lip")
    assert path == watched / "history_lip.png"
    picture(path)
    picture(plot_history(watched, "rake.p", start=10.0, out=tmp_path / "rake.png")[0])
    (tmp_path / "r.csv").write_text("time,p\n0,2\n20,2.5\n")
    picture(plot_history(watched, "lip.p", reference=tmp_path / "r.csv", against=watched, out=tmp_path / "a.png")[0])
    picture(plot_history(watched, "residual", out=tmp_path / "residual.png")[0])


def test_norms_share_a_panel_and_what_is_always_zero_is_left_out(watched):
    chosen = plot_history_module._chosen(watched, "residual", None)
    assert chosen.panels == [["rho"], ["least_p"]] and chosen.norms == {"rho"}
    assert plot_history_module._chosen(watched, "residual.dt,rho_w", None).panels == [["dt"], ["rho_w"]]
    assert plot_history_module._chosen(watched, "rake", None).panels == [["p_0", "p_1", "p_2"]]
    assert plot_history_module._chosen(watched, "rake.p_1", None).panels == [["p_1"]]


def test_spectra_are_drawn(watched, tmp_path):
    (path,) = plot_spectrum(watched, "lip.p", start=5.0, against=watched)
    assert path == watched / "spectrum_lip_p_run.png"
    picture(path)
    assert plot_spectrum(watched, "lip.p", out=tmp_path / "s.svg")[0].read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("columns", "start", "message"),
    [
        ("lipp", None, 'no history "lipp"'),
        ("lip.q", None, 'no column "q"'),
        ("lip", 1e9, "no samples to draw"),
    ],
)
def test_histories_that_are_not_there(watched, columns, start, message):
    with pytest.raises(HiresxError, match=message) as caught:
        plot_history(watched, columns, start=start)
    assert caught.value.mend


@pytest.fixture
def moving(tmp_path):
    for step in range(5):
        blocks = vortex(24)
        blocks[0].state["rho"] += 0.02 * step * np.exp(-((blocks[0].x - 3) ** 2))
        save(tmp_path / "run", blocks, case("Vortex"), step=step, time=step / 10)
    return tmp_path / "run"


def test_an_animation(moving):
    from PIL import Image

    (path,) = animate_run(moving, "rho", fps=5)
    assert path == moving / "fields_rho.gif"
    with Image.open(path) as film:
        assert film.n_frames == 5 and film.info["duration"] == 200 and film.info["loop"] == 0
        pictures = []
        for n in range(5):
            film.seek(n)
            pictures.append(np.asarray(film.convert("RGB")))
    assert all(p.shape == pictures[0].shape and p.shape[1] > 800 for p in pictures)
    assert all((a != b).any() for a, b in itertools.pairwise(pictures))
    # The colour bar, at the right, stands still: one scale for all.
    assert all((p[120:, -60:] == pictures[0][120:, -60:]).all() for p in pictures)
    assert (pictures[0][0, 0] == 255).all()


def test_an_animation_of_lines_keeps_its_axes(moving, tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(lines, "draw", lambda *a, f=lines.draw: seen.append(f(*a)) or seen[-1])
    animate_run(moving, "rho,p", line="y=5", out=tmp_path / "l.gif")
    assert len({tuple(ax.get_ylim() for ax in figure.axes) for figure in seen}) == 1 and len(seen) == 5


def fake_ffmpeg(folder, body):
    folder.mkdir()
    (folder / "ffmpeg").write_text(f"#!{sys.executable}\nimport sys\n{body}\n")
    (folder / "ffmpeg").chmod(0o755)
    return folder


def test_an_mp4_is_made_by_ffmpeg(moving, tmp_path, monkeypatch):
    body = "data = sys.stdin.buffer.read(); open(sys.argv[-1], 'w').write(' '.join(sys.argv) + f' {len(data)}')"
    monkeypatch.setenv("PATH", str(fake_ffmpeg(tmp_path / "bin", body)))
    (path,) = animate_run(moving, "rho", out=tmp_path / "f.mp4")
    words = path.read_text().split()
    width, height = map(int, words[words.index("-s") + 1].split("x"))
    assert width % 2 == height % 2 == 0 and int(words[-1]) == 5 * 3 * width * height
    monkeypatch.setenv(
        "PATH", str(fake_ffmpeg(tmp_path / "bad", "print('Unknown encoder', file=sys.stderr); sys.exit(1)"))
    )
    with pytest.raises(HiresxError, match="Unknown encoder"):
        animate_run(moving, "rho", out=tmp_path / "g.mp4")
    assert not (tmp_path / "g.mp4").exists()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HiresxError, match="ffmpeg, which is not installed") as caught:
        animate_run(moving, "rho", out=tmp_path / "h.mp4")
    assert "apt install ffmpeg" in caught.value.mend


def test_animations_that_cannot_be(moving, tmp_path):
    with pytest.raises(HiresxError, match="animations cannot be written"):
        animate_run(moving, "rho", out="f.avi")
    with pytest.raises(HiresxError, match="pictures a second"):
        animate_run(moving, "rho", fps=0)
    with pytest.raises(HiresxError, match="no fields"):
        animate_run(tmp_path, "rho")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--history", "lip", "--line", "y=0"], "--line: not for histories"),
        (["--history", "lip", "--spectrum", "lip"], "two pictures"),
        (["--animate", "--step", "3"], "--step: not for animations"),
        (["--fps", "3"], "--fps: only for animations"),
    ],
)
def test_options_that_would_go_unheard_are_refused(watched, capsys, arguments, expected):
    assert cli.execute(["plot", str(watched), *arguments]) == 2
    assert expected in capsys.readouterr().err


def test_the_verb(watched, moving, tmp_path, capsys):
    assert (
        cli.execute(["plot", str(watched), "--spectrum", "lip.p", "--from", "4", "--out", str(tmp_path / "s.png")]) == 0
    )
    assert cli.execute(["plot", str(moving), "--variable", "rho", "--out", str(tmp_path / "f.gif")]) == 0
    assert cli.execute(["plot", str(moving), "--variable", "rho", "--animate", "--json"]) == 0
    assert capsys.readouterr().out.count("wrote") == 2
    assert (tmp_path / "s.png").exists() and (tmp_path / "f.gif").exists() and (moving / "fields_rho.gif").exists()
