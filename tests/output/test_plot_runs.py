"""Pictures of subsets, of other runs, of histories and spectra, and animations."""

import itertools
import sys

import made_runs
import matplotlib.image
import numpy as np
import pytest
from plotted import block, case, mesh, picture, save, vortex

from hiresx import cli
from hiresx.base.notify import notifications_to
from hiresx.errors import HiresxError
from hiresx.output.fields import field_file as fields
from hiresx.output.fields.formats import netcdf
from hiresx.output.show import colours, lines
from hiresx.output.show import plot_history as plot_history_module
from hiresx.output.show import run_plot as plot_module
from hiresx.output.show.plot_history import plot_history
from hiresx.output.show.run_plot import animate_run, plot_run
from hiresx.output.watch import history


def test_a_subset_is_drawn_in_its_own_plane(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(colours, "views", lambda *a, f=colours.views: seen.append(f(*a)) or seen[-1])
    x, y, z = mesh(np.linspace(0, 4, 30), (0.5,), np.linspace(0, 2, 20))
    sheet = [block("sheet", x, y, z, 1 + 0.1 * np.sin(x) * z)]
    fields.write(netcdf.frame(tmp_path, 7, "side"), sheet, 0.5, 7, case("Sheet"), part="plane y = 0.5")
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
    fields.write(netcdf.frame(tmp_path, 7, "cut"), [line], 0.5, 7, case("Line"), part="line x = 0")
    data = fields.read(netcdf.frame(tmp_path, 7, "cut"), ["rho"])
    drawn = lines.line_values(data, [{"x": b.x, "y": b.y, "z": b.z} | dict(b.state) for b in data.blocks], 1, None)
    assert drawn.along == "y" and list(drawn.gaps) == [20]
    picture(plot_run(tmp_path, subset="cut")[0])


@pytest.mark.slow
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


def at_times(folder, times, still=False):
    for n, time in enumerate(times):
        save(folder, vortex(8), case("Vortex"), step=n + 10 if still or time else 0, time=time)
    return folder


@pytest.mark.parametrize(
    ("ours", "theirs", "step", "drawn"),
    [
        ((0, 11.0, 22.0), (0, 11.0, 22.0, 34.0), None, (22.0, 22.0)),  # the other one goes on
        ((0, 11.0, 22.0, 34.0), (0, 11.0, 22.0 * (1 + 1e-14)), None, (22.0, 22.0)),
        ((0, 11.0, 22.0), (0, 10.0, 11.0), 11, (11.0, 11.0)),
        ((0, 11.0, 22.0), (0, 11.0, 22.0), 0, (0.0, 0.0)),  # the start was compared with the end
        ((0, 11.0), (0.0,), None, (0.0, 0.0)),
        ((0, 22.0), (0, 34.0), None, "t = 0, 22, and t = 0, 34"),
        ((0, 11.0, 22.0), (0, 11.0), 12, "t = 22, and t = 0, 11"),
    ],
)
def test_runs_are_compared_at_one_time_or_not_at_all(tmp_path, ours, theirs, step, drawn):
    one, two = at_times(tmp_path / "one", ours), at_times(tmp_path / "two", theirs)
    said = []
    with notifications_to(said.append):
        if isinstance(drawn, str):
            with pytest.raises(HiresxError, match=f"(?s)no fields of one time: there are {drawn}") as caught:
                plot_module._at_one_time([one, two], step, "fields")
            assert "--against" in caught.value.hint
            return
        chosen = plot_module._at_one_time([one, two], step, "fields")
    assert [fields.read_time(path) for path in chosen] == pytest.approx(drawn, rel=1e-12)
    assert bool(said) == (step is None and drawn[0] != ours[-1])


def test_fields_of_different_times_are_compared_by_their_names_and_both_times_are_said(tmp_path, monkeypatch):
    one, two = at_times(tmp_path / "one", (0, 22.0)), at_times(tmp_path / "two", (0, 34.0))
    steady = [at_times(tmp_path / name, [0.0] * n, still=True) for name, n in (("a", 3), ("b", 2))]
    assert [path.name[-5:-3] for path in plot_module._at_one_time(steady, None, "fields")] == ["11", "11"]
    with pytest.raises(HiresxError, match="no fields of one time"):  # one moves, the other one does not
        plot_module._at_one_time([one, steady[0]], None, "fields")
    drawn = []
    monkeypatch.setattr(plot_module.picture_file, "save", lambda figure, path: drawn.append(figure) or path)
    files = [netcdf.frame(run, 11) for run in (one, two)]
    plot_run(files[0], "rho", against=files[1], out=tmp_path / "difference.png")
    plot_run(files[0], "rho", line="y=5", against=files[1], out=tmp_path / "line.png")
    assert "$t = 22" in drawn[0].get_suptitle() and "$t = 34" in drawn[0].get_suptitle()
    assert any("$t = 34" in line.get_label() for line in drawn[1].axes[0].lines)


def test_a_difference_is_of_grids_that_are_the_same_to_round_off(tmp_path):
    """To 1e-6 of the grid's extent in each direction, wherever the grid lies; what has no extent, to round-off."""

    def frame(name, **shifts):
        (made,) = vortex(8)
        made.x += 1e4
        for axis, shift in shifts.items():
            getattr(made, axis)[0, 3, 3] += shift
        save(tmp_path / name, [made], case("Vortex"))
        return fields.read(netcdf.frame(tmp_path / name, 7), ["rho"])

    ours = frame("ours")
    extent = np.ptp(ours.blocks[0].y)
    assert np.ptp(ours.blocks[0].x) == pytest.approx(extent) and np.ptp(ours.blocks[0].z) == 0
    near = frame("near", x=0.9e-6 * extent, y=0.9e-6 * extent, z=5e-13)
    (piece,) = plot_module._difference(ours, near, ["rho"])
    assert not piece["rho"].any()
    for shift in ({"x": 1.1e-6 * extent}, {"y": 1.1e-6 * extent}, {"z": 2e-12}):
        with pytest.raises(HiresxError, match="lie on different grids"):
            plot_module._difference(ours, frame("far", **shift), ["rho"])


def test_a_difference_is_white_at_zero():
    norm, colour_map, _ = colours.default_scale("rho", np.linspace(0.1, 0.3, 100), difference=True)
    assert (norm.vmin, colour_map) == (-norm.vmax, "RdBu_r")


def tone(n=4000, frequency=0.37, uneven=0.0, seed=1):
    """A tone of amplitude 0.5 in weak noise, sampled at steps that vary by the share `uneven`."""
    chance = np.random.default_rng(seed)
    t = np.cumsum(0.1 * (1 + uneven * np.sin(0.05 * np.arange(n))))
    return t, 2 + 0.5 * np.sin(2 * np.pi * frequency * t) + 0.01 * chance.standard_normal(n)


@pytest.fixture
def watched(tmp_path):
    """A run directory with the history of two probes and residuals."""
    made_runs.run(tmp_path / "run")
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


def test_curves_of_a_history_are_its_columns(watched, tmp_path, monkeypatch):
    """Of this run, of another one, and of a file of numbers; norms and their axis."""
    drawn = []
    monkeypatch.setattr(plot_history_module.picture_file, "save", lambda figure, path: drawn.append(figure) or path)
    (tmp_path / "r.csv").write_text("time,p,T\n0,2,1\n20,2.5,1\n")
    plot_history(watched, "lip.p", reference=tmp_path / "r.csv", against=watched, start=10.0)
    plot_history(watched, "residual")
    read = history.read(watched / "history" / "lip.nc").flat()
    later = read["time"] >= 10.0
    (axes,) = drawn[0].axes
    curves = {line.get_label(): line.get_xydata() for line in axes.lines}
    assert len(curves) == len(axes.lines) == 3
    np.testing.assert_allclose(curves.pop("r"), [[0, 2], [20, 2.5]])
    for curve in curves.values():
        np.testing.assert_allclose(curve, np.stack([read["time"], read["p"]], axis=1)[later])
    assert {axes.get_yscale() for axes in drawn[1].axes} == {"log", "linear"}


@pytest.mark.slow
def test_histories_are_drawn(watched, tmp_path):
    (path,) = plot_history(watched, "lip")
    assert path == watched / "history_lip.png"
    picture(path)
    picture(plot_history(watched, "rake.p", start=10.0, out=tmp_path / "rake.png")[0])
    (tmp_path / "r.csv").write_text("time,p\n0,2\n20,2.5\n")
    picture(plot_history(watched, "lip.p", reference=tmp_path / "r.csv", against=watched, out=tmp_path / "a.png")[0])
    picture(plot_history(watched, "residual", out=tmp_path / "residual.png")[0])


def test_norms_share_a_panel_and_what_is_always_zero_is_left_out(watched):
    chosen = plot_history_module._select_columns(watched, "residual", None)
    assert chosen.panels == [["rho"], ["least_p"]] and chosen.norms == {"rho"}
    assert plot_history_module._select_columns(watched, "residual.dt,rho_w", None).panels == [["dt"], ["rho_w"]]
    assert plot_history_module._select_columns(watched, "rake", None).panels == [["p_0", "p_1", "p_2"]]
    assert plot_history_module._select_columns(watched, "rake.p_1", None).panels == [["p_1"]]


def test_spectra_are_drawn(watched, tmp_path):
    pytest.importorskip("xarray", reason="pip install '.[post]'")
    (tmp_path / "r.csv").write_text("f,level\n0.1,-40\n1,-60\n")
    arguments = [
        "--spectrum",
        "lip.p",
        "--from",
        "5",
        "--against",
        str(watched),
        "--reference",
        str(tmp_path / "r.csv"),
    ]
    assert cli.execute(["plot", str(watched), *arguments]) == 0
    assert matplotlib.image.imread(watched / "spectrum_lip_p_run.png").shape[1] > 1000
    assert cli.execute(["plot", str(watched), "--spectrum", "lip.p", "--out", str(tmp_path / "s.svg")]) == 0
    assert (tmp_path / "s.svg").read_text().startswith("<?xml")


def test_a_spectrum_without_its_libraries_names_the_extra(watched, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "scipy.signal", None)
    assert cli.execute(["plot", str(watched), "--spectrum", "lip.p"]) == 2
    assert "pip install '.[post]'" in " ".join(capsys.readouterr().err.split())


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
    assert caught.value.hint


@pytest.fixture
def moving(tmp_path):
    for step in range(5):
        blocks = vortex(24)
        blocks[0].state["rho"] += 0.02 * step * np.exp(-((blocks[0].x - 3) ** 2))
        save(tmp_path / "run", blocks, case("Vortex"), step=step, time=step / 10)
    return tmp_path / "run"


@pytest.mark.slow
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


@pytest.mark.slow
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
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
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
    assert "apt install ffmpeg" in caught.value.hint


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


@pytest.mark.slow
def test_the_verb(watched, moving, tmp_path, capsys):
    assert (
        cli.execute(["plot", str(watched), "--spectrum", "lip.p", "--from", "4", "--out", str(tmp_path / "s.png")]) == 0
    )
    assert cli.execute(["plot", str(moving), "--variable", "rho", "--out", str(tmp_path / "f.gif")]) == 0
    assert cli.execute(["plot", str(moving), "--variable", "rho", "--animate", "--json"]) == 0
    assert capsys.readouterr().out.count("wrote") == 2
    assert (tmp_path / "s.png").exists() and (tmp_path / "f.gif").exists() and (moving / "fields_rho.gif").exists()
