"""Pictures, whole: words, ends of axes, and the figures of every line and field in them."""

from pathlib import Path

import made_runs
import numpy as np
import pytest
import reported
from plotted import block, case, jet, mesh, ring, save, vortex

from hiresx import cli
from hiresx.grid import Block, Grid
from hiresx.grid.plot3d import write_plot3d
from hiresx.output.show import picture_file


@pytest.fixture
def drawn(monkeypatch, tmp_path, request):
    """Compares what the command line draws in place of writing it."""
    seen = []
    monkeypatch.setattr(picture_file, "save", lambda figure, target: seen.append((figure, target)) or target)
    monkeypatch.chdir(tmp_path)

    def draw(name, *words):
        assert cli.execute([*words]) == 0
        told = [f"{Path(target).name}\n{reported.drawn(figure)}" for figure, target in seen]
        reported.check(f"drawn-{name}", "\n".join(told))
        seen.clear()

    return draw


LINE = ["--line", "y=0"]


@pytest.mark.parametrize(
    ("name", "made", "words"),
    [
        ("vortex-look", vortex, ["--variable", "p,mach", "--range", "0.5,0.8", "--width", "6", "--levels", "5"]),
        ("vortex-zoom", vortex, ["--variable", "vorticity", "--zoom", "2,8,3,7", "--symmetric", "--font", "8"]),
        ("jet", jet, ["--variable", "schlieren", "--exponent", "1", "--title", "A jet"]),
        ("jet-line", jet, ["--variable", "u,p", *LINE, "--height", "5"]),
        ("jet-contours", jet, ["--variable", "u", "--contours", "p", "--levels", "0.6,0.7", "--colours", "inferno"]),
        ("ring", ring, []),
        ("jet-plane", lambda: jet(8), ["--variable", "u", "--plane", "z=1"]),
        ("jet-grid", jet, ["--grid"]),
    ],
)
def test_fields(drawn, name, made, words):
    save(Path("run"), made(), case("Made"))
    drawn(name, "plot", "run", *words)


def test_one_dimension(drawn):
    x, y, z = mesh(np.linspace(0, 1, 41))
    for name, shift in (("run", 0.25), ("other", 0.3)):
        save(Path(name), [block("main", x, y, z, 1 + 0.2 * np.sin(2 * np.pi * (x - shift)), 1.0)], case("Tube"))
    Path("points.csv").write_text("# x,rho,u\n0,1,2\n0.5,1.1,2\n1.0,1.0,2\n")
    drawn("tube", "plot", "run", "--reference", "points.csv", "--against", "other")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("history-column", ["--history", "lips.p_1", "--against", "other", "--from", "20", "--range", "0.1,0.9"]),
        ("spectrum-against", ["--spectrum", "lips.p_0", "--against", "other"]),
    ],
)
def test_histories(drawn, name, words):
    time = 0.1 * np.arange(1000)
    for folder, frequency in (("run", 0.7), ("other", 1.3)):
        p = np.stack([0.5 + np.sin(2 * np.pi * frequency * time) * f for f in (0.1, 0.3)], axis=1)
        p += 0.01 * np.random.default_rng(1).standard_normal(p.shape)
        made_runs.probe(made_runs.run(Path(folder)), "lips", time, [[0, 1, 0], [0, -1, 0]], p=p)
    drawn(name, "plot", "run", *words)


def test_the_worst_place_of_a_grid(drawn):
    x, y, z = mesh(np.linspace(0, 1, 30) ** 2, np.linspace(0, 1, 12))
    write_plot3d("a.xyz", Grid((Block("b", x + 0.4 * y**3, y, z),)))
    drawn("quality", "plot", "a.xyz", "--quality")


def test_the_worst_place_may_lie_in_a_plane_that_other_blocks_lack(drawn):
    a, b = (Block(name, *mesh(np.linspace(n, n + 1, 9), np.linspace(0, 1, 9), np.linspace(0, 1, nk)))
            for n, name, nk in ((0, "a", 7), (2, "b", 15)))  # fmt: skip
    b.x[12] += 0.3 * b.y[12] ** 3
    write_plot3d("a.xyz", Grid((a, b)))
    drawn("quality-planes", "plot", "a.xyz", "--quality")


def test_names_near_the_left_edge_begin_at_their_places():
    """Three names that are far enough apart stand in one row."""
    figure = picture_file.figure(3.0)
    ax = figure.subplots()
    ax.set_xlim(0, 1), ax.set_ylim(0, 1)
    picture_file.label_points(ax, [(0.01, 0.2, "first"), (0.06, 0.2, "next"), (0.7, 0.2, "last")])
    rows = {text.get_text(): text.get_transform().transform((0, 1))[1] for text in ax.texts}
    assert rows["first"] == rows["last"] and rows["next"] < rows["first"]
