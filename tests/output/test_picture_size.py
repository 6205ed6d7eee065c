"""Pictures are exactly as large as was asked for, and nothing of them is cut off."""

from dataclasses import replace

import matplotlib.image
import numpy as np
import pytest
from command_line import command
from matplotlib.figure import Figure
from plotted import case, jet, ring, save

from hiresx.errors import HiresxError
from hiresx.output.show import exact_size
from hiresx.output.show.look import Look
from hiresx.output.show.plot_grid import plot_grid
from hiresx.output.show.run_plot import animate_run, plot_run

LONG = "A jet of a nozzle whose name is far longer than any picture of it could ever be wide, $p_e/p_\\infty = 2.09$"
DPI = 200


def check(path, width=None, height=None):
    """Size in pixels, and a white rim: what reaches the rim was cut off."""
    image = matplotlib.image.imread(path)[..., :3]
    for inches, pixels in ((height, image.shape[0]), (width, image.shape[1])):
        assert inches is None or pixels == round(inches * DPI)
    for rim in (image[:2], image[-2:], image[:, :2], image[:, -2:]):
        assert (rim == 1).all()
    assert (image < 1).any(axis=(1, 2)).sum() > 0.3 * image.shape[0]


@pytest.mark.parametrize(
    ("options", "look"),
    [
        ({"variable": "rho"}, {"width": 3.0, "height": 2.0}),
        pytest.param({"variable": "rho,mach,schlieren"}, {"width": 7.0, "height": 3.0}, marks=pytest.mark.slow),
        ({"variable": "rho"}, {"width": 4.003}),
        ({"variable": "rho", "line": "y=0"}, {"width": 3.0, "height": 3.0}),
        ({"variable": "rho,u,p", "line": "y=0"}, {"height": 4.0}),
    ],
)
def test_pictures_have_the_size_that_was_asked_for(tmp_path, options, look):
    save(tmp_path, jet(), case(LONG))
    (path,) = plot_run(tmp_path, **options, look=Look(**look))
    check(path, **look)


def test_the_lines_of_a_grid_and_their_legend(tmp_path):
    save(tmp_path, jet(), case(LONG))
    (path,) = plot_grid(tmp_path, look=Look(width=5.0, height=2.5))
    check(path, 5.0, 2.5)


def test_curves_of_runs_with_long_names(tmp_path):
    runs = [tmp_path / f"a-run-with-quite-a-long-name-number-{n}" for n in range(3)]
    for run in runs:
        save(run, jet(), case("Jet"))
    (path,) = plot_run(runs[0], "rho", line="y=0", against=runs[1:], look=Look(width=4.0, height=3.5))
    check(path, 4.0, 3.5)


def test_a_size_without_room_is_refused(tmp_path):
    save(tmp_path, ring(), case(LONG))
    with pytest.raises(HiresxError, match="2 inches wide and 1 high has no room"):
        plot_run(tmp_path, "rho,u,v,p", look=Look(width=2.0, height=1.0))
    assert not list(tmp_path.glob("*.png")) and not list(tmp_path.glob(".*"))


def test_a_film_has_the_size_that_was_asked_for(tmp_path):
    for step in (0, 1):
        save(tmp_path, ring(), case(LONG), step=step)
    (path,) = animate_run(tmp_path, "rho", look=Look(width=4.0, height=3.0))
    image = matplotlib.image.imread(path)
    assert image.shape[:2] == (390, 520)


# Options that mean nothing without another one -----------------------------------------------------------------------


def test_levels_alone_are_lines_of_what_is_drawn(tmp_path):
    save(tmp_path, ring(), case("Ring"))
    seen = [
        matplotlib.image.imread(
            plot_run(tmp_path, "rho", out=tmp_path / f"{n}.png", look=replace(look, width=2.0, title=""))[0]
        )
        for n, look in enumerate((Look(), Look(levels=5), Look(contours="rho", levels=5), Look(contours="rho")))
    ]
    assert not np.array_equal(seen[0], seen[1]) and np.array_equal(seen[1], seen[2])
    assert not np.array_equal(seen[2], seen[3])
    assert Look(levels=(2.0, 1.0, 2.0)).lines == [1.0, 2.0], "the same line twice is one"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--line", "y=0", "--levels", "5"], "contour lines belong to planes"),
        (["--line", "y=0", "--symmetric"], "symmetric: only of colours"),
        (["--line", "y=0", "--exponent", "0.3"], "exponent: only of colours"),
        (["--exponent", "0.3", "--variable", "rho"], "exponent: of the shades of schlieren"),
        (["--levels", "1,nan"], "not possible"),
        (["--grid", "--levels", "5"], "--levels: not for a grid"),
        (["--grid", "--range", "0,1"], "--range: not for a grid"),
        (["--grid", "--fps", "3"], "--fps: not for a grid"),
        (["--quality", "--zoom", "0,1,0,1"], "--zoom: not for a grid"),
        (["--quality", "--against", "."], "--against: not for a grid"),
        (["--history", "residual", "--colours", "jet"], "--colours: not for histories"),
        (["--history", "residual", "--levels", "3"], "--levels: not for histories"),
    ],
)
def test_options_of_plot_that_would_go_unheard(tmp_path, arguments, message):
    save(tmp_path, ring(), case("Ring"))
    status, _, err = command("plot", tmp_path, *arguments)
    assert status == 2 and message in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["slice", ".", "rho", "--averages", "--step", "3"], "--step, --time and --subset choose fields, not averages"),
        (["slice", ".", "rho", "--averages", "--subset", "side"], "choose fields, not averages"),
        (["slice", ".", "rho", "--step", "3", "--time", "1"], "--step and --time both choose the fields"),
        (["isosurface", ".", "rho", "1", "--step", "3", "--time", "1"], "--step and --time both choose the fields"),
        (["farfield", ".", "around", "--observers", "1,2,3", "--azimuth", "90"], "belong to an --arc"),
        (["farfield", ".", "around", "--observers", "1,2,3", "--centre", "1,0,0"], "belong to an --arc"),
    ],
)
def test_options_of_post_that_would_go_unheard(tmp_path, arguments, message):
    status, _, err = command("post", *arguments, cwd=tmp_path)
    assert status == 2 and message in err


def test_lines_are_broken_between_words_where_they_are_too_wide():
    """A formula stays in one piece, and so does a word that is too wide by itself, for which there is no room."""
    drawn = Figure((3.0, 3.0), dpi=100, layout=exact_size.ExactSizeLayout(True, True))
    drawn.subplots()
    title = drawn.suptitle("one two three\nfour five six seven eight nine $a = b + c + d + e$")
    drawn.draw_without_rendering()
    formula = "$a{}={}b{}+{}c{}+{}d{}+{}e$"
    assert title._get_wrapped_text().split("\n") == ["one two three", "four five six seven eight nine", formula]
    assert title.get_window_extent().width < drawn.bbox.width - 2 * exact_size.PAD * drawn.dpi
    title.set_text("incomprehensibilities" * 4)
    with pytest.raises(HiresxError, match="no room"):
        drawn.draw_without_rendering()
