"""Pictures: what `plot_run` draws of a tube, a vortex, a jet and a cube."""

import sys

import numpy as np
import pytest
from case_texts import boundary, box
from plotted import block, case, jet, mesh, picture, ring, save, vortex

from hiresx.case import load
from hiresx.errors import HiresxError
from hiresx.output.fields.formats import netcdf
from hiresx.output.saved import record
from hiresx.output.show import colours, lines
from hiresx.output.show.run_plot import plot_run

CASE_TOML = box(
    "[41, 1, 1]", "[1.0, 0.0, 0.0]", "end = 1.0", boundary("supersonic-outflow", '["imin", "imax"]'),
    head='title = "A travelling wave"\n[parameters]\namplitude = 0.2',
)  # fmt: skip
CASE_PY = """
import numpy as np

def exact(x, y, z, t, *, amplitude, gamma):
    return 1 + amplitude * np.sin(2 * np.pi * (x - t)), 1.0, 0.0, 0.0, 1 / gamma

def initial(x, y, z, *, amplitude, gamma):
    return exact(x, y, z, 0.0, amplitude=amplitude, gamma=gamma)
"""


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
        ("x,rho,rho,u\n1,2,3,4\n", "line 1: two columns are called rho"),
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
@pytest.mark.slow
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
        norm, colour_map, extend = colours.default_scale(name, np.array(values))
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
@pytest.mark.slow
def test_the_same_fields_give_the_same_file(tmp_path, suffix):
    save(tmp_path, jet(), case("Jet"))
    first, second = (plot_run(tmp_path, out=tmp_path / f"{n}{suffix}")[0].read_bytes() for n in (1, 2))
    assert first == second


def test_the_last_step_or_another_or_a_file(tmp_path):
    for step in (3, 20, 100):
        save(tmp_path, ring(10, 20), case("Ring"), step=step)
    assert plot_run(tmp_path, "rho")[0].name == "fields_000100_rho.png"
    assert plot_run(tmp_path, "rho", step=20)[0].name == "fields_000020_rho.png"
    assert plot_run(netcdf.frame(tmp_path, 3), "rho")[0].name == "fields_000003_rho.png"


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
        ({"line": "y=0", "reference": "no-such.csv"}, "cannot read the table"),
    ],
)
def test_requests_that_cannot_be_met(tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    save(tmp_path, ring(10, 20), case("Ring"))
    with pytest.raises(HiresxError) as caught:
        plot_run(tmp_path, **options)
    assert message in caught.value.message
    assert caught.value.hint
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
    assert caught.value.hint == "pip install '.[plot]' in the clone of HiresX"
