"""Slices, profiles, x-t pictures, films and modes: what they show is what the fields hold."""

import json
import shutil

import netCDF4
import numpy as np
import pytest
import reported

pytest.importorskip("xarray", reason="pip install '.[post]'")
pytest.importorskip("matplotlib", reason="pip install '.[post]'")

import made_runs

from hiresx import HiresxError, cli
from hiresx.output.fields import field_file
from hiresx.output.fields.field_file import FieldBlock
from hiresx.output.fields.formats import netcdf
from hiresx.output.show import colours, raster
from hiresx.output.show.run_plot import plot_run
from hiresx.post import Look, animate, correlate, modes, profile, signal_reading, spod, xt
from hiresx.post.correlate import _integral as integral

F, K = 0.25, 1.5
ENDS = (("left", 0.0, 4.0), ("right", 4.1, 8.0))


def mesh(low, high, wavy=0.1):
    y, x = np.meshgrid(np.linspace(-2, 2, 33), np.linspace(low, high, 41), indexing="ij")
    return x, y + wavy * np.sin(np.pi * y / 2) * np.sin(x)


def wave(x, y, t):
    """A wave that travels along x under a Gaussian in y."""
    return 0.05 * np.exp(-(y**2)) * np.cos(K * x - 2 * np.pi * F * t)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """64 fields of the wave with noise on two curvilinear blocks, which share no nodes, and a probe along y = 0."""
    folder = made_runs.run(tmp_path_factory.mktemp("run"))
    random = np.random.default_rng(0)
    for n, t in enumerate(0.5 * np.arange(64)):
        blocks = []
        for name, low, high in ENDS:
            x, y = (f[None] for f in mesh(low, high))
            p = 1 / 1.4 + wave(x, y, t) + 2e-3 * random.standard_normal(x.shape)
            state = {"rho": np.ones_like(x), "u": 0.5 * x, "v": 0 * x, "w": 0 * x, "p": p}
            blocks.append(FieldBlock(name, x, y, 0 * x, state))
        field_file.write(netcdf.frame(folder, n), blocks, float(t), n, made_runs.CASE)
    time, x = 0.1 * np.arange(640), np.linspace(0, 8, 33)
    places = np.stack([x, 0 * x, 0 * x], axis=1)
    made_runs.probe(folder, "line", time, places, p=1 / 1.4 + wave(x[None], 0.0, time[:, None]))
    return folder


def test_pixels_are_the_interpolated_field():
    pieces = [{"x": x, "y": y} for x, y in (mesh(low, high) for _, low, high in ENDS)]
    found = raster.raster(pieces, "x", "y", wide=300)
    picture = found([2 * piece["x"] - 3 * piece["y"] for piece in pieces])
    rows, columns = picture.shape
    x = (np.arange(columns) + 0.5) / columns * 8
    y = found.box[2] + (np.arange(rows) + 0.5) / rows * (found.box[3] - found.box[2])
    exact = 2 * x - 3 * y[:, None]
    inside = np.isfinite(picture)
    whole = (x < 3.99) | (x > 4.11)
    assert np.abs(picture - exact)[:, whole][inside[:, whole]].max() < 1e-12, "linear fields are exact"
    middle = np.abs(y) < 1.5
    assert inside[middle].all(), "the gap of one cell between the blocks is closed"
    assert np.abs(picture - exact)[middle].max() < 2 * 0.06 + 3 * 0.07


def test_a_wall_stays_free():
    """Two blocks with a body between them, three cells wide."""
    pieces = [{"x": x, "y": y} for x, y in (mesh(0.0, 4.0, 0.0), mesh(4.3, 8.0, 0.0))]
    picture = raster.raster(pieces, "x", "y", wide=400)([piece["x"] for piece in pieces])
    x = (np.arange(400) + 0.5) / 400 * 8
    assert not np.isfinite(picture[:, (x > 4.01) & (x < 4.29)]).any()
    assert np.isfinite(picture[:, (x < 4.0) | (x > 4.3)]).all()


@pytest.mark.parametrize("window", [slice(0, 31), slice(31, 62)])
def test_modes_of_a_travelling_wave(window):
    """Its frequency, its shape with the right direction, all energy in one mode."""
    dt, times = 0.5, 256
    x = np.linspace(0, 8, 62)
    t = dt * np.arange(times)
    values = np.cos(K * x - 2 * np.pi * F * t[:, None])
    noise = 1e-3 * np.random.default_rng(1).standard_normal(values.shape)
    weights = np.linspace(1, 2, x.size)

    def slabs():
        for part in (slice(0, 31), slice(31, 62)):
            yield (values + noise)[:, part], weights[part]

    found = modes.spod(slabs, times, dt, 64)
    line = int(np.argmax(found.energy[:, 0]))
    assert found.frequency[line] == pytest.approx(F)
    assert found.energy[line, 0] > 1e4 * found.energy[line, 1]
    # Its mean square is 1/2 everywhere.
    assert found.energy.sum() * found.frequency[1] == pytest.approx(0.5 * weights.sum(), rel=0.02)
    shape = np.concatenate([found.shape(part, line, 2) for part, _ in slabs()], axis=1)
    gram = np.einsum("mn,ln,n->ml", shape.conj(), shape, weights)
    assert abs(gram[0] - [1, 0]).max() < 1e-11, "orthonormal under the weights"
    assert abs(gram[1, 1] - 1) < 1e-7, "round-off over the part of its energy, 1e-8"
    # exp(i w t) times the mode travels along +x when its phase falls with x.
    expected = np.exp(-1j * K * x)
    assert abs(np.vdot(shape[0, window], expected[window])) == pytest.approx(
        np.linalg.norm(shape[0, window]) * np.linalg.norm(expected[window]), rel=1e-4
    )
    with pytest.raises(HiresxError, match="1 realisation"):
        modes.spod(slabs, times, dt, 200)


@pytest.mark.slow
def test_spod_of_a_run(run, monkeypatch):
    from hiresx.post import spod as function

    assert function is spod
    result = spod(run, "p", length=16)
    found = result.summary
    assert found["frequency"] == pytest.approx(F) and found["first_mode_part"] > 0.99
    for name, low, high in ENDS:
        x, y = mesh(low, high)
        block = result.data[name]
        mode = (block["real"].values + 1j * block["imaginary"].values)[0]
        expected = np.exp(-(y**2) - 1j * K * x)
        likeness = abs(np.vdot(expected, mode)) / (np.linalg.norm(expected) * np.linalg.norm(mode))
        assert likeness > 0.995, "each block has its part, in place"
    # Read in slabs of eleven rows it is the same.
    import sys

    monkeypatch.setattr(sys.modules["hiresx.post.spod"], "_SLAB", 8 * 64 * 41 * 11)
    again = spod(run, "p", length=16)
    np.testing.assert_allclose(again.data["energy"].values, result.data["energy"].values, rtol=1e-10, atol=1e-16)


def test_a_slice_of_what_a_run_has_not_is_refused_with_what_it_has(run, capsys):
    assert cli.execute(["post", "slice", str(run), "shock_sensr"]) == 2
    said = capsys.readouterr().err
    assert 'no variable "shock_sensr"' in said and "mach" in said and "shock_sensor" not in said


def test_a_slice_is_the_field(run, tmp_path, capsys):
    command = ["post", "slice", str(run), "mach", "--time", "3.4", "--contours", "p", "--levels", "0.7,0.72"]
    command += ["--zoom", "1,7,-1,1", "--range", "0,4", "--colours", "inferno", "--out", str(tmp_path), "--json"]
    assert cli.execute(command) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["time"] == 3.5 and len(found["files"]) == 2
    reported.check("post-slice", reported.figures(found))
    expected = field_file.read(netcdf.frame(run, 7), ["mach"]).blocks
    with netCDF4.Dataset(found["files"][0]) as file:
        for block in expected:
            np.testing.assert_array_equal(np.asarray(file[f"{block.name}/mach"]), block.state["mach"][0])
    assert found["greatest"] == max(block.state["mach"].max() for block in expected)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["slice", "machh"], 'no variable "machh"'),
        (["slice", "p", "--zoom", "1,2,3"], "not 2 or 4 numbers"),
        (["slice", "p", "--zoom", "20,30,0,1"], "no flow"),
        (["slice", "p", "--range", "2,1"], "not possible"),
        (["slice", "p", "--colours", "mud"], 'no colour map "mud"'),
        (["slice", "p", "--averages"], "no averages"),
        (["animate", "p", "--out", "film.avi"], "cannot be written"),
        (["animate", "p", "--from", "900"], "no fields from 900"),
        (["spod", "p", "--length", "60"], "realisation"),
        (["profile", "y=0", "--variable", "q", "--step", "-1"], 'no variable "q"'),
        (["profile", "y=90", "--step", "-1"], "does not meet the grid"),
        (["xt", "line.q"], 'no column "q"'),
        (["correlate", "line.p_0,p_1"], "fewer than three places"),
    ],
)
def test_faults_name_the_place(run, words, message, capsys):
    verb, *others = words
    assert cli.execute(["post", verb, str(run), *others]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_profiles_are_the_field_along_lines(run, tmp_path, capsys):
    command = ["post", "profile", str(run), "x=1.01", "--variable", "u,p", "--step", "3", "--out", str(tmp_path)]
    assert cli.execute([*command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    reported.check("post-profile", reported.figures(found), run=run)
    table = np.genfromtxt(next(p for p in found["files"] if p.endswith(".csv")), delimiter=",", names=True)
    assert table.dtype.names[0] == "y" and np.abs(table["u"] - 0.505).max() < 1e-12
    assert abs(table["p"] - 1 / 1.4 - wave(1.01, table["y"], 1.5)).max() < 0.01
    both = [*command[:4], "x=2", "--variable", "u", "--step", "3", "--with", str(run), "--out", str(tmp_path / "a.png")]
    assert cli.execute(both) == 0 and (tmp_path / "a.png").stat().st_size > 10_000


def test_profiles_of_several_runs_are_of_one_time(run, tmp_path):
    """The other run goes on: the last fields of both would be of different times."""
    for name, last in (("shorter", 9), ("other", 3)):
        short = made_runs.run(tmp_path / name)
        for n in range(last + 1):
            (short / netcdf.frame(run, n).name).symlink_to(netcdf.frame(run, n))
    found = profile(tmp_path / "shorter", "y=0", ("p",), -1, [run, tmp_path / "other"])
    assert found.summary["of"] == "fields of t = 1.5, step 3"
    place = found.data["x"].values
    assert abs(found.data["p"].values - 1 / 1.4 - wave(place, 0.0, 1.5)).max() < 0.01
    figure, _ = found.plot()
    ours, *others = (line.get_ydata() for line in figure.axes[0].lines)
    assert all(np.array_equal(ours, theirs) for theirs in others) and len(others) == 2
    with pytest.raises(HiresxError, match="no fields of one time"):
        profile(run, "y=0", ("p",), 9, [tmp_path / "other"])


@pytest.mark.parametrize("given", [{"longest": -1.0}, {"reach": 0.0}, {"at": 99.0}, {"at": -0.1}])
def test_distances_and_lags_that_the_line_does_not_have_are_refused(run, given):
    with pytest.raises(HiresxError, match=r"above 0|no place is at the distance"):
        correlate(run, "line.p", **given)


def test_x_t_and_correlations_of_the_wave(run):
    seen = xt(run, "line.p", fluctuations=True)
    # The wave's root mean square, of a whole number of periods.
    assert seen.summary["largest_rms"] == pytest.approx(0.05 / 2**0.5, rel=1e-3)
    assert seen.data["p"].dims == ("time", "place")
    (drawn,) = seen.plot()[0].axes[0].collections
    assert drawn.get_rasterized(), "one picture in a PDF, not one shape for each sample"
    found = correlate(run, "line.p").summary
    assert found["convection_velocity"] == pytest.approx(2 * np.pi * F / K, rel=0.02)
    # A quarter of a wave's cosine, on both sides.
    assert found["integral_length"] == pytest.approx(1 / K, rel=0.03)


@pytest.mark.parametrize("ending", [".mp4", ".gif"])
@pytest.mark.slow
def test_a_film_has_all_frames_and_moves(run, tmp_path, ending):
    if ending == ".mp4":
        pytest.importorskip("imageio_ffmpeg", reason="pip install '.[post]'")
    target = tmp_path / f"film{ending}"
    look = Look(symmetric=False, limits=(0.66, 0.77))
    assert animate(run, "p", target, end=4.0, look=look) == target
    if ending == ".gif":
        from PIL import Image

        with Image.open(target) as film:
            assert film.n_frames == 9
        return
    import imageio_ffmpeg

    frames = imageio_ffmpeg.read_frames(str(target))
    width, height = next(frames)["size"]
    pictures = [np.frombuffer(frame, np.uint8).reshape(height, width, 3).astype(int) for frame in frames]
    assert len(pictures) == 9 and width > 900
    # F dt = 1/8: after eight frames the wave is where it was, after four it is reversed.
    same, reversed_ = (np.abs(pictures[n] - pictures[0])[height // 4 : -height // 4].mean() for n in (8, 4))
    assert reversed_ > 5 * same


@pytest.fixture(scope="module")
def space(tmp_path_factory):
    """Three fields in space: u = x + 10 y + 100 z + t."""
    folder = made_runs.run(tmp_path_factory.mktemp("space"))
    z, y, x = np.meshgrid(np.linspace(0, 1, 7), np.linspace(-1, 1, 9), np.linspace(0, 2, 11), indexing="ij")
    for n in range(3):
        state = {"rho": np.ones_like(x), "u": x + 10 * y + 100 * z + n, "v": 0 * x, "w": 0 * x, "p": np.ones_like(x)}
        field_file.write(netcdf.frame(folder, n), [FieldBlock("box", x, y, z, state)], float(n), n, made_runs.CASE)
    return folder


@pytest.mark.parametrize(("plane", "cut"), [("z=0.25", "z"), ("y", "y"), (None, "z")])
@pytest.mark.slow
def test_planes_of_fields_in_space(space, tmp_path, plane, cut):
    import hiresx
    from hiresx.post import slice as sliced

    found = sliced(space, "u", which=1, look=Look(plane=plane))
    block = found.data["box"]
    at = {"z=0.25": 0.25, "y": 0.0, None: 0.5}[plane]
    assert np.abs(block[cut].values - at).max() < 1e-12
    expected = block["x"].values + 10 * block["y"].values + 100 * block["z"].values + 1
    assert np.abs(block["u"].values - expected).max() < 1e-12
    assert len(found.write(tmp_path)) == 2
    if plane is None:
        assert animate(space, "u", tmp_path / "film.gif").is_file()
        line = hiresx.open(space).fields(2).hiresx.line("y=0,z=0.5", "u")
        assert np.abs(line["u"].values - line["x"].values - 52).max() < 1e-12
        with pytest.raises(HiresxError, match="too few"):
            spod(space, "u")


def test_places_of_a_line_lie_one_behind_the_other(monkeypatch):
    places = np.array([[0.0, 0, 0], [2, 0, 0], [1, 0, 0]])
    taken = signal_reading.Signals("h", "p", "", 0.0, 0.1, np.zeros((20, 3)), ("a", "b", "c"), places, False, False)
    monkeypatch.setattr(signal_reading, "read", lambda *arguments: taken)
    with pytest.raises(HiresxError, match=r'the places of "h\.p" do not lie one behind the other'):
        signal_reading.read_line("run", "h.p", None, None, 2, "")


def test_a_film_of_schlieren_says_its_exponent(tmp_path, monkeypatch):
    run = made_runs.run(tmp_path / "run")
    x, y = (f[None] for f in mesh(0.0, 4.0))
    one = np.ones_like(x)
    state = {"rho": 1 + 0.1 * np.exp(-20 * ((x - 2) ** 2 + y**2)), "u": 0 * x, "v": 0 * x, "w": 0 * x, "p": one}
    field_file.write(netcdf.frame(run, 0), [FieldBlock("box", x, y, 0 * x, state)], 0.0, 0, made_runs.CASE)
    kept = []
    draw = colours.draw
    monkeypatch.setattr(colours, "draw", lambda *how: kept.append(draw(*how)) or kept[-1])
    animate(run, "schlieren", tmp_path / "film.gif", look=Look(exponent=0.3))
    assert any("(shade: power 0.3)" in ax.get_ylabel() for ax in kept[0].axes)


@pytest.mark.parametrize("length", [16, 17])
def test_all_energy_of_the_modes_is_the_mean_square_of_the_blocks(length):
    """Parseval, to round-off, where much of it lies at the highest frequency."""
    random = np.random.default_rng(4)
    times, weights = 160, np.array([1.0, 2.0, 0.5])
    values = random.standard_normal((times, 3)) + 3.0 * (-1.0) ** np.arange(times)[:, None]
    found = modes.spod(lambda: [(values, weights)], times, 0.25, length)
    parts = [found.window[:, None] * (values - values.mean(axis=0))[n : n + length] for n in found.starts]
    square = np.mean([np.sum(part**2 @ weights) for part in parts]) / np.sum(found.window**2)
    assert found.energy.sum() * found.frequency[1] == pytest.approx(square, rel=1e-12)


def test_an_integral_is_the_mean_of_both_sides_to_their_first_zeros():
    over = np.linspace(-2.0, 3.0, 501)
    row = np.where(over < 0, 1 + over, 1 - over / 2)  # zeros at -1 and 2
    assert integral(row, over, int(np.argmax(row))) == pytest.approx((0.5 + 1.0) / 2, abs=0.01)
    assert integral(row[200:], over[200:], 0) == pytest.approx(1.0, abs=0.01), "of one side alone, that side"


def test_curves_of_two_runs_are_named_by_run_and_line(run, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(run, other)
    figure, _ = profile(run, ["x=1", "x=2"], ["u"], which=3, others=[other]).plot()
    assert [line.get_label() for line in figure.axes[0].lines] == [
        f"{name}: {line}" for line in ("x=1", "x=2") for name in (run.name, "other")
    ]
    (legend,) = figure.legends
    assert legend._ncols == 4
    alone, _ = profile(run, ["x=1", "x=2"], ["u"], which=3).plot()
    assert [line.get_label() for line in alone.axes[0].lines] == ["x=1", "x=2"]


def test_two_faces_are_joined_up_to_their_ends():
    """The last nodes face each other, however far one lies past the other; those before it do not."""
    along = np.array([0.0, 1, 2, 3, 4, 5, 6, 8])
    x, y = np.repeat([0.0, 0.1], [8, 7]), np.concatenate([along, along[:-1]])
    one, other = (
        raster._BlockSide(nodes, np.full(len(nodes), 3.0), n, 1 - n)
        for n, nodes in enumerate((np.arange(8), 8 + np.arange(7)))
    )
    (found,) = raster._strip(one, other, x, y)
    assert found.shape == (14, 3) and found.max() == 14
    y[6] = 7.5
    (found,) = raster._strip(one, other, x, y)
    assert found.shape == (10, 3)


def test_passive_scalars_are_drawn_and_a_field_that_is_not_stored_says_how(tmp_path):
    from hiresx.post import slice as sliced

    run = made_runs.run(tmp_path / "run")
    x, y = (f[None] for f in mesh(0.0, 4.0))
    one = np.ones_like(x)
    state = {"rho": one, "u": 0 * x, "v": 0 * x, "w": 0 * x, "p": one, "dye": 0.5 + 0.1 * x}
    scalars = [{"name": "dye", "initial": 0.5}, {"name": "soot", "initial": 0.0}]  # of which soot is not stored
    case = made_runs.CASE | {"scalar": scalars, "output": {"variables": list(state)}}
    field_file.write(netcdf.frame(run, 0), [FieldBlock("box", x, y, 0 * x, state)], 0.0, 0, case)
    assert sliced(run, "dye", look=Look(contours="p")).summary["greatest"] == pytest.approx(0.9)
    assert animate(run, "dye", tmp_path / "film.gif").is_file()
    for draw in sliced, animate, plot_run:
        with pytest.raises(HiresxError, match="soot was not stored") as caught:
            draw(run, "soot")
        assert caught.value.hint.startswith('write "soot" in output.variables')
        with pytest.raises(HiresxError, match=r"eddy_viscosity was not stored") as caught:
            draw(run, "eddy_viscosity")
        assert caught.value.hint.startswith('write "eddy_viscosity" in output.variables')
        with pytest.raises(HiresxError, match='there is no variable "dya"') as caught:
            draw(run, "dya")
        assert caught.value.hint.startswith('did you mean "dye"?')
