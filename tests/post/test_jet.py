"""hiresx post jet: formulas, cells, screech and convection of flows in which they are known, and the page."""

import csv
import json
import re

import numpy as np
import pytest
import reported
from paths import SHARED

pytest.importorskip("xarray", reason="pip install '.[post]'")

import made_runs

import hiresx
from hiresx import HiresxError, Simulation, cli, load
from hiresx.post import jet, jet_page, jet_points, jet_shape, jet_theory, lags
from hiresx.post.jet_screech import lips

CASE = made_runs.CASE | {"parameters": {"pressure_ratio": 2.09, "exit_mach": 1.0}}
STATE = jet_theory.expand_jet(2.09)

# Ls/h, St of uc = .55 and .70 Uj, St of K = 5.2 and 5.0, over Mj: Tam's formulas and Powell's, computed elsewhere.
FORMULAS = """
1.1 1.128 0.924 .386 .448 .396 .412
1.3 1.464 1.771 .192 .221 .183 .190
1.5 1.939 2.630 .124 .142 .116 .120
1.8 3.035 4.307 .072 .082 .070 .073
"""


@pytest.mark.parametrize("row", [line.split() for line in FORMULAS.strip().splitlines()], ids=lambda row: row[0])
def test_formulas_are_those_of_the_reference(row):
    mach, ratio, spacing, slow, fast, powell, krothapalli = map(float, row)
    state = jet_theory.of_mach(mach)
    found = [state.pressure_ratio, jet_theory.spacing(state)]
    found += [jet_theory.strouhal(state, 0.55), jet_theory.strouhal(state, 0.70)]
    found += [jet_theory.empirical(state, 5.2), jet_theory.empirical(state, 5.0)]
    assert found == pytest.approx([ratio, spacing, slow, fast, powell, krothapalli], abs=6e-4)
    (_, whole), (named, shorter) = jet_theory.spacings("planar")
    assert named == "0.8 of it" and shorter(state) == pytest.approx(0.8 * whole(state))


# Dj/D, Ls/D, St of Tam, Seiner and Yu over Mj: Prandtl's and Pack's formulas, computed elsewhere.
ROUND = """
1.1 1.004 .601 .865
1.19 1.014 .854 .599
1.42 1.061 1.398 .361
1.5 1.085 1.584 .320
"""


@pytest.mark.parametrize("row", [line.split() for line in ROUND.strip().splitlines()], ids=lambda row: row[0])
def test_formulas_of_round_jets_are_those_of_the_reference(row):
    mach, diameter, spacing, strouhal = map(float, row)
    state = jet_theory.of_mach(mach, shape="round")
    found = [state.height, jet_theory.spacing(state), jet_theory.screech_strouhal(state)]
    assert found == pytest.approx([diameter, spacing, strouhal], abs=6e-4)


@pytest.mark.skipif(not (SHARED / "reference").is_dir(), reason="the reference curves are not part of the project")
def test_formulas_are_those_of_the_curves():
    with (SHARED / "reference" / "jet_tam_curves.csv").open() as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            state = jet_theory.of_mach(float(row["Mj"]))
            found = (
                state.npr,
                state.velocity,
                state.height,
                jet_theory.spacing(state),
                jet_theory.strouhal(state, 0.7),
            )
            names = ("NPR", "Uj_over_cinf", "hj_over_h", "Ls_planar", "St_k0.70")
            assert found == pytest.approx([float(row[name]) for name in names], rel=2e-4)


def test_the_state_of_the_bundled_jet():
    """Exit of Mach 1 at 2.09 times the ambient pressure and the ambient total temperature."""
    assert (STATE.npr, STATE.mach, STATE.velocity, STATE.height) == pytest.approx(
        (3.95622, 1.55134, 1.274619, 1.21256), abs=2e-5
    )
    hot = jet_theory.expand_jet(2.09, total_temperature=1.2)
    assert hot.velocity == pytest.approx(1.274619 * 1.2**0.5, rel=1e-6)


def train(x, length=2.6, start=0.5):
    """Pressure and velocity of shock cells that fade: the gas leaves the exit above the ambient pressure."""
    wave = start * np.exp(-x / 6) * np.cos(2 * np.pi * x / length)
    return 1 / 1.4 + wave, 1.27 - 0.5 * wave - 0.02 * np.maximum(x - 9, 0)


def test_cells_are_found_between_the_nodes():
    x = np.linspace(0.05, 12, 97)
    p, u = train(x)
    flow = jet_shape.Mean(x, p, u, np.empty(0), np.empty(0), 12.0, "made")
    found = jet_shape.cells(flow, 1 / 1.4, 2.9)
    # A damped cosine has its maxima 2.6 apart, each a little before that of the cosine.
    early = 2.6 / (2 * np.pi) * np.arctan(2.6 / (2 * np.pi * 6))
    assert found.ends == pytest.approx([2.6 * n - early for n in (1, 2, 3, 4)], abs=2e-3)
    assert found.lengths[1:] == pytest.approx([2.6] * 3, abs=2e-3)
    assert found.expansions == pytest.approx([1.3 + 2.6 * n - early for n in range(4)], abs=3e-3)
    assert found.deviation == pytest.approx(np.std(found.lengths, ddof=1))
    core = jet_shape.Mean(x, p, 1.27 * (1.02 - 0.04 * np.maximum(x - 6, 0)), x, x, 12.0, "made")
    assert jet_shape.core_end(core, 1.27) == pytest.approx(6 + 0.07 / 0.04, abs=1e-9)
    assert jet_shape.core_end(flow, 1.0) is None
    smooth = jet_shape.Mean(x, np.full_like(x, 1 / 1.4), u, x, x, 12.0, "made")
    assert jet_shape.cells(smooth, 1 / 1.4, 2.9).ends == []


def test_a_shock_before_the_end_of_a_cell_and_a_rise_far_downstream_are_no_cells():
    """As round jets have it: the pressure on the axis rises to a first maximum where the shock meets it, then on."""
    x = np.linspace(0.05, 24, 481)
    p, u = train(x)
    p = 1 / 1.4 + (p - 1 / 1.4) * np.exp(-((x / 12) ** 8))
    bare = jet_shape.cells(jet_shape.Mean(x, p, u, x, x, 24.0, "made"), 1 / 1.4, 2.9)
    shock = 0.5 * np.exp(-(((x - 1.7) / 0.12) ** 2))
    rise = 0.05 * np.exp(-(((x - 21) / 1.0) ** 2))
    flow = jet_shape.Mean(x, p + shock + rise, u, x, x, 24.0, "made")
    found = jet_shape.cells(flow, 1 / 1.4, 2.9)
    assert len(found.ends) == len(bare.ends) == 4
    assert found.ends == pytest.approx(bare.ends, abs=0.02) and found.lengths == pytest.approx(bare.lengths, abs=0.03)
    assert found.depths == pytest.approx(bare.depths, abs=0.05)


def made_of(x, *, at, rises, width=0.4):
    """A mean flow whose pressure falls before the first of these places, and rises and falls again at each."""
    p = 1 / 1.4 + sum(r * np.exp(-(((x - a) / width) ** 2)) for a, r in zip(at, rises, strict=True))
    p -= 0.05 * np.exp(-(((x - 0.5 * at[0]) / width) ** 2))
    return jet_shape.Mean(x, p, x, x, x, float(x[-1]), "made")


def test_a_faint_rise_is_no_cell_of_a_strong_jet():
    """As a domain of 24 h had it: a rise of .03 ten heights behind the exit, within reach of a long vortex sheet."""
    x, ambient, sheet = np.linspace(0.05, 24, 481), 1 / 1.4, 7.0
    flow = made_of(x, at=[10.0], rises=[0.03], width=2.0)
    assert len(jet_shape.cells(flow, ambient, sheet).ends) == 1  # of a jet that leaves at the ambient pressure
    found = jet_shape.cells(flow, ambient, sheet, 2.09 * ambient)
    assert found.ends == [] and found.mean is None
    (left,) = found.discarded
    assert left.at == pytest.approx(10.0, abs=0.05) and "of a cell of this exit pressure" in left.why


@pytest.mark.parametrize(
    ("at", "rises", "count", "why"),
    [
        ([2.6, 5.2, 7.7, 10.1], [0.5, 0.4, 0.2, 0.1], 4, None),  # falls off as trains do
        ([2.6, 5.2, 7.8, 10.4], [0.5, 0.4, 0.06, 0.06], 2, "of the cell before it"),
        ([2.6, 5.2, 9.3, 11.8], [0.5, 0.4, 0.3, 0.2], 2, "4.1 long, the cell before it 2.6"),
        ([2.6, 5.2, 6.9, 8.6], [0.5, 0.4, 0.3, 0.2], 2, "1.7 long, the cell before it 2.6"),
        ([2.6, 8.0], [0.5, 0.4], 1, "times the 2.9 of the vortex sheet"),
    ],
)
def test_the_train_ends_where_it_is_no_longer_like_one(at, rises, count, why):
    flow = made_of(np.linspace(0.05, 14, 561), at=at, rises=rises)
    found = jet_shape.cells(flow, 1 / 1.4, 2.9, 1.3 / 1.4)
    assert len(found.ends) == count and len(found.discarded) == len(at) - count
    if why:
        assert why in found.discarded[0].why
        assert all("behind the last shock cell" in left.why for left in found.discarded[1:])


def test_half_width_and_spreading():
    y = np.linspace(-5, 5, 401)
    assert jet_shape._half_width(y, 0.5 ** ((y / np.where(y > 0, 0.6, 1.0)) ** 2)) == pytest.approx(0.8, abs=1e-3)
    assert jet_shape._half_width(y, np.ones_like(y)) is None
    x = np.linspace(1, 12, 23)
    flow = jet_shape.Mean(x, x, x, x, 0.5 + 0.1 * (x - 2), 12.0, "made")
    found = jet_shape.spreading(flow, 6.0)
    assert found["rate"] == pytest.approx(0.1) and found["virtual_origin"] == pytest.approx(-3.0)
    assert found["from"] >= 6.0 and found["rate_uncertainty"] < 1e-9 and found["why"] == ""


def grown(ends, n, width, behind):
    x = np.linspace(*ends, n)
    return jet_shape.spreading(jet_shape.Mean(x, x, x, x, width(x), float(x[-1]), "made"), behind)


@pytest.mark.parametrize(
    ("ends", "n", "width", "behind", "known", "why"),
    [
        ((10.7, 11.9), 11, lambda x: 0.005 * (x + 113), 10.0, False, "stations reach over 1.9 half-widths, 4"),
        ((6, 20), 30, lambda x: 1 + 0.1 * np.sin(2.4 * x), 6.0, False, "it grows by"),  # cells alone
        (
            (6, 20),
            30,
            lambda x: 0.012 * (x + 60) + 0.015 * np.sin(1.1 * x),
            6.0,
            True,
            "virtual origin is uncertain by",
        ),
        ((6, 20), 30, lambda x: 0.1 * x, None, False, "core does not end"),
        ((6, 20), 30, lambda x: 0.1 * x, 19.0, False, "there are 3 half-widths behind the core"),
    ],
)
def test_a_growth_that_the_half_widths_do_not_carry_is_not_known(ends, n, width, behind, known, why):
    found = grown(ends, n, width, behind)
    assert found["virtual_origin"] is None and why in found["why"]
    assert (found["rate"] is not None) == known


def test_a_station_at_the_end_of_the_core_is_behind_it():
    x = np.linspace(6, 20, 30)
    found = grown((6, 20), 30, lambda x: 0.1 * (x + 3), float(x[3]))
    assert found["from"] == x[3] and found["to"] == 20 and found["rate"] == pytest.approx(0.1)
    assert found["half_widths"] == pytest.approx([0.1 * (x[3] + 3), 2.3])


def test_the_growth_lies_within_its_uncertainty():
    """Of half-widths whose errors are alike at neighbours: in nine of ten at least."""
    random, within = np.random.default_rng(1), []
    for _ in range(100):
        noise = np.convolve(random.standard_normal(34), np.ones(4) / 2, "valid")[:30]
        found = grown((6, 20), 30, lambda x, noise=noise: 0.1 * (x + 3) + 0.03 * noise, 6.0)
        within.append(
            (
                abs(found["rate"] - 0.1) <= found["rate_uncertainty"],
                abs(found["virtual_origin"] + 3) <= found["virtual_origin_uncertainty"],
            )
        )
        assert found["rate_uncertainty"] < 0.05
    assert (np.mean(within, axis=0) >= 0.9).all()


@pytest.mark.parametrize("velocity", [0.5, 0.83, 1.2])
def test_convection_velocity_of_a_frozen_pattern_with_sound_against_it(velocity):
    random = np.random.default_rng(1)
    x, dt = np.linspace(0, 6, 61), 0.05
    t = dt * np.arange(1500)
    wavenumbers = random.uniform(1.0, 8.0, 30)
    phases = random.uniform(0, 2 * np.pi, 30)
    pattern = sum(np.cos(k * (x - velocity * t[:, None]) + a) for k, a in zip(wavenumbers, phases, strict=True))
    sound = 2.0 * np.cos(1.3 * (x + t[:, None]))
    noise = 0.5 * random.standard_normal(pattern.shape)
    found = lags.convection(pattern + sound + noise, dt, x, 1.5, 6.0)
    assert np.nanmedian(found) == pytest.approx(velocity, rel=0.05)
    one = lags.space_time(pattern, dt, x, 20, 6.0)
    assert one.coefficients[20].max() == pytest.approx(1.0) and one.lag[np.argmax(one.coefficients[20])] == 0
    assert one.coefficients.max() < 1.2


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A jet that is known: cells of 2.6, a flapping tone with its harmonic, a pattern carried at .8."""
    folder = made_runs.run(tmp_path_factory.mktemp("jet"), CASE)
    random = np.random.default_rng(2)
    time = 0.05 * np.arange(6000)
    f = 0.113 * STATE.velocity
    flap, twice = 2e-3 * np.sin(2 * np.pi * f * time), 6e-4 * np.sin(4 * np.pi * f * time + 1)
    noise = 2e-4 * random.standard_normal((time.size, 2))
    lips = 1 / 1.4 + noise + np.stack([flap + twice, -flap + twice], axis=1)
    made_runs.probe(folder, "lips", time, [[-0.1, 0.8, 0.0], [-0.1, -0.8, 0.0]], p=lips)
    x = np.linspace(0.05, 11.95, 120)
    p, u = train(x)
    places = np.stack([x, 0 * x, 0 * x], axis=1)
    made_runs.probe(folder, "axis", time[:50], places, p=np.tile(p, (50, 1)), u=np.tile(u, (50, 1)))
    x = np.linspace(0.5, 6.5, 41)
    k = random.uniform(1, 6, 20)
    carried = sum(np.cos(n * (x - 0.8 * time[:1200, None]) + 10 * n) for n in k)
    made_runs.probe(folder, "shear", time[:1200], np.stack([x, 0 * x + 0.55, 0 * x], axis=1), v=carried)
    return folder


def test_a_round_jet_has_its_own_lengths_and_formulas(tmp_path):
    """Two tones at places around the lip: the helical one is found in what is opposite, over the diameter's scale."""
    case = CASE | {"parameters": {"pressure_ratio": 1.729}, "grid": {"generator": "round-jet"}}
    folder = made_runs.run(tmp_path, case)
    state = jet_theory.expand_jet(1.729, shape="round")
    time = 0.05 * np.arange(6000)
    f = 0.351 * state.velocity / state.length
    angles = np.arange(8) * np.pi / 4
    turning = 2e-3 * np.sin(2 * np.pi * f * time[:, None] - angles)
    noise = 2e-4 * np.random.default_rng(2).standard_normal(turning.shape)
    ring = np.stack([0 * angles - 0.1, 0.7 * np.cos(angles), 0.7 * np.sin(angles)], axis=1)
    made_runs.probe(folder, "ring", time, ring, p=1 / 1.4 + turning + noise)
    found = jet(folder)
    summary = found.summary
    assert summary["shape"] == "round" and summary["Mj"] == pytest.approx(1.42, abs=1e-3)
    tone = summary["screech"]["fundamental"]
    assert tone["strouhal"] == pytest.approx(0.351, rel=0.01) and tone["mode"] == "flapping"
    assert tone["amplitude"] == pytest.approx(2e-3, rel=0.03)
    assert "D_j" in found.plot()[1][1].get_ylabel()
    found.write(tmp_path / "page")
    text = (tmp_path / "page" / "jet.html").read_text()
    assert "Panda 1999" in text and "over the diameter D" in text and "holds no fields" not in text
    with pytest.raises(HiresxError, match='not "square"'):
        jet(folder, shape="square")


def test_a_louder_tone_elsewhere_is_named_and_is_no_harmonic(tmp_path):
    """A short run: the lines of the spectrum are wide against the distance of tones from others' harmonics."""
    folder = made_runs.run(tmp_path, CASE)
    time = 0.05 * np.arange(1800)
    f = 0.113 * STATE.velocity
    parts = [1e-3 * np.sin(2 * np.pi * f * time), 3e-3 * np.sin(2 * np.pi * 1.78 * f * time),
             1e-3 * np.sin(2 * np.pi * 3.56 * f * time)]  # fmt: skip
    noise = 1e-4 * np.random.default_rng(3).standard_normal((time.size, 2))
    lips = 1 / 1.4 + noise + np.outer(parts[0] + parts[1], [1, -1]) + np.outer(parts[2], [1, 1])
    made_runs.probe(folder, "lips", time, [[-0.1, 0.8, 0.0], [-0.1, -0.8, 0.0]], p=lips)
    found = jet(folder)
    heard = found.summary["screech"]
    assert heard["fundamental"]["strouhal"] == pytest.approx(0.113, rel=0.02)
    assert heard["harmonics"] == [] and heard["stronger"] == pytest.approx(1.78 * 0.113, rel=0.02)
    found.write(tmp_path / "page")
    assert "a louder tone" in (tmp_path / "page" / "jet.html").read_text()


def test_a_tone_that_wanders_is_found_with_shorter_segments(tmp_path):
    """Between .75 and 1.25 of its mean frequency, over 70 periods."""
    folder = made_runs.run(tmp_path, CASE)
    time = 0.1 * np.arange(5000)
    f = 0.113 * STATE.velocity
    random = np.random.default_rng(8)
    drift = np.repeat(random.uniform(0.75, 1.25, 50), 100)
    phase = 2 * np.pi * np.cumsum(f * drift) * 0.1
    noise = 2e-3 * random.standard_normal((time.size, 2))
    lips = 1 / 1.4 + noise + 2e-3 * np.outer(np.sin(phase), [1, -1])
    made_runs.probe(folder, "lips", time, [[-0.1, 0.8, 0.0], [-0.1, -0.8, 0.0]], p=lips)
    heard = jet(folder).summary["screech"]
    assert heard["fundamental"]["frequency"] == pytest.approx(f * drift.mean(), abs=heard["resolution"])
    assert heard["fundamental"]["mode"] == "flapping" and heard["segments"] > 4


def test_a_line_out_of_order_is_refused(tmp_path):
    folder = made_runs.run(tmp_path, CASE)
    time = 0.05 * np.arange(400)
    x = np.linspace(0.5, 6.5, 41)
    x[[20, 21]] = x[[21, 20]]
    places = np.stack([x, 0 * x + 0.55, 0 * x], axis=1)
    made_runs.probe(folder, "shear", time, places, v=np.sin(x - time[:, None]))
    with pytest.raises(HiresxError, match="do not lie one behind the other"):
        jet(folder, line="shear.v")


def test_points_that_are_kept_have_a_source():
    for shape in ("planar", "round"):
        for points in jet_points.stored_points(shape):
            assert points.source.partition(": ")[0] in ("measured", "computed")
            assert all(np.isfinite(values).all() for pair in points.columns.values() for values in pair)
    (measured,) = jet_points.stored_points("round")
    assert measured.is_measured and measured.label == "Panda 1999 (measured)"
    assert dict(zip(*measured.columns["St"], strict=True)) == {1.19: 0.596, 1.42: 0.351}


def test_the_jet_is_found_as_it_was_made(made):
    found = jet(made).summary
    assert found["Mj"] == pytest.approx(1.55134, abs=1e-5)
    assert found["cell_spacing"] == pytest.approx(2.6, rel=0.01)
    heard = found["screech"]
    tone = heard["fundamental"]
    assert tone["strouhal"] == pytest.approx(0.113, rel=0.01) and tone["mode"] == "flapping"
    assert tone["amplitude"] == pytest.approx(2e-3, rel=0.02) and heard["antisymmetric_part"] > 0.8
    assert [line["order"] for line in heard["harmonics"]] == [2]
    assert heard["harmonics"][0]["mode"] == "symmetric"
    assert heard["harmonics"][0]["strouhal"] == pytest.approx(0.226, rel=0.01) and heard["stronger"] is None
    assert found["convection"]["velocity"] == pytest.approx(0.8, rel=0.03)
    last = found["predictions"][-1]
    expected = jet_theory.strouhal(STATE, found["convection"]["over_Uj"], found["cell_spacing"])
    assert last["strouhal"] == pytest.approx(expected) and found["missing"] == []


def test_other_parameters_and_faults(made, tmp_path):
    assert jet(made, pressure_ratio=1.5).summary["Mj"] == pytest.approx(1.3177, abs=2e-3)
    with pytest.raises(HiresxError, match="no supersonic jet"):
        jet(made, pressure_ratio=0.5)
    with pytest.raises(HiresxError, match="no parameter pressure_ratio") as caught:
        jet(made_runs.run(tmp_path / "a"))
    assert "--pressure-ratio" in caught.value.hint
    with pytest.raises(HiresxError, match="neither averages nor a probe"):
        jet(made_runs.run(tmp_path / "b", CASE))
    (tmp_path / "p.csv").write_text("Mj,Q\n1.5,2\n")
    with pytest.raises(HiresxError, match="neither a column Ls nor St"):
        jet(made, points=[tmp_path / "p.csv"])


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The bundled jet, coarse, small and short."""
    folder = tmp_path_factory.mktemp("run")
    overrides = ["time.steps=40", "grid.points_per_height=12", "grid.length=6", "average.every=2", "time.cfl=0.4"]
    overrides += ["output.every_steps=10", "average.start=0.0", "probe=[]"]
    case = load("planar-jet", preset="quick", overrides=overrides)
    Simulation(case, backend="cpu", out=folder).run(progress=False)
    return folder


def test_one_command_writes_the_page(run, made, tmp_path, capsys):
    points = tmp_path / "measured.csv"
    points.write_text("Mj,Ls\n1.3,1.6\n1.5,2.4\n")
    command = ["post", "jet", str(run), str(made), "--points", str(points), "--json"]
    assert cli.execute(command) == 0
    found = json.loads(capsys.readouterr().out)
    assert [path.rpartition(".")[2] for path in found["files"]] == ["nc", "csv", "png", "html"]
    assert found["mean_flow"] == "averages" and found["Mj"] == pytest.approx(1.55134, abs=1e-5)
    # The run has no probes, and says what it needs.
    assert found["others"][0]["cell_spacing"] == pytest.approx(2.6, rel=0.01)
    assert cli.execute([*command[:-1], "--out", str(tmp_path / "jet.csv")]) == 0
    printed = capsys.readouterr().out
    reported.check("post-jet", reported.figures(found), run=run, made=made)
    assert "others.0.screech.fundamental.strouhal" in printed and "{'" not in printed
    assert len(found["missing"]) == 2 and "[[probe]]" in found["missing"][0]
    page = (run / "post" / "jet.html").read_text()
    assert page.count("data:image/png;base64,") == 5 and "http" not in page.replace("http-equiv", "")
    assert "no probe along the shear layer" in page and page.endswith("</html>\n")
    points.write_text("Mj,Q\n1.5,2\n")
    assert cli.execute(command) == 2 and "measured.csv has neither" in capsys.readouterr().out


@pytest.mark.parametrize("velocity", [0.53, 0.61, 0.97])
def test_convection_between_two_lags(velocity):
    """Delays that are no multiples of the samples' distance are found by the vertex, not to the nearest sample."""
    x, dt = np.linspace(0, 3, 31), 0.1
    t = dt * np.arange(2000)
    waves = [(k, 2.4 * k) for k in (1.1, 1.7, 2.3)]
    pattern = sum(np.cos(k * (x - velocity * t[:, None]) + a) for k, a in waves)
    assert np.nanmedian(lags.convection(pattern, dt, x, 0.5, 4.0)) == pytest.approx(velocity, rel=1e-2)


def test_lips_of_a_round_jet_lie_opposite_each_other(tmp_path):
    """Of a ring of probes those that are half a turn apart, not those that are mirrored at a plane."""
    turns = np.radians(45 + 90 * np.arange(4))
    places = np.stack([np.full(4, -0.1), 0.8 * np.cos(turns), 0.8 * np.sin(turns)], axis=1)
    folder = made_runs.probe(made_runs.run(tmp_path), "ring", 0.1 * np.arange(20), places, p=np.ones((20, 4)))
    run = hiresx.open(folder)
    signals = lips(run, shape="round").partition(".p_")[2].split(",p_")
    one, other = (places[int(n)] for n in signals)
    np.testing.assert_allclose(other, one * [1, -1, -1], atol=1e-12)
    made_runs.probe(folder, "ring", 0.1 * np.arange(20), places[:2], p=np.ones((20, 2)))
    with pytest.raises(HiresxError, match="no probe of p on both sides"):
        lips(hiresx.open(folder), shape="round")


def test_the_page_says_of_each_tone_whether_the_grid_carries_it():
    def tone(carried):
        return {"strouhal": 0.1, "frequency": 0.2, "amplitude": 1e-3, "above_background_db": 20.0, "mode": "flapping",
                "carried": carried}  # fmt: skip

    found = {
        "fundamental": tone(True), "harmonics": [{"order": 2, **tone(False)}], "other_tones": [tone(None)],
        "expected_periods": 100.0, "threshold_db": 10.0, "resolution": 0.01, "segments": 4, "antisymmetric_part": 0.9,
        "stronger": None, "cutoff": 0.3, "points_per_wave": 8.0, "from": 0.0, "to": 10.0, "signals": "lips.p_0,p_1",
    }  # fmt: skip
    page = str(jet_page.template("jet-parts.html").module.screech(found, "h"))
    assert re.findall(r">(yes|no|not known)<", page) == ["yes", "no", "not known"]


@pytest.mark.parametrize(
    ("shape", "places", "taken"),
    [
        ("planar", [[-0.1, 0.8, 0.2], [-0.1, -0.8, 0.2]], (0, 1)),
        ("planar", [[-0.1, -0.8, 0.2], [-0.1, 0.8, 0.2]], (1, 0)),
        ("planar", [[-0.1, 0.8, 0.2], [-0.1, -0.8, -0.2]], None),
        ("round", [[-0.1, 0.8, 0.2], [-0.1, -0.8, -0.2]], (0, 1)),
        ("round", [[-0.1, 0.8, 0.2], [-0.1, -0.8, 0.2]], None),
        ("planar", [[-0.1, 0.8, 0.0], [0.1, -0.8, 0.0]], None),
        ("planar", [[-0.1, 0.8, 0.0], [-0.1, -0.9, 0.0]], None),
        ("planar", [[-0.1, 0.44, 0.0], [-0.1, -0.44, 0.0]], None),  # inside the jet
        ("planar", [[-0.1, 0.46, 0.0], [-0.1, -0.46, 0.0]], (0, 1)),
        ("round", [[-0.1, 0.4, 0.4], [-0.1, -0.4, -0.4]], (0, 1)),
        ("planar", [[-1.99, 0.55, 0.0], [-1.99, -0.55, 0.0]], (0, 1)),
        ("planar", [[-2.01, 0.55, 0.0], [-2.01, -0.55, 0.0]], None),  # too far from the lip
        ("planar", [[0.0, 2.56, 0.0], [0.0, -2.56, 0.0]], None),
        ("planar", [[-0.5, 0.8, 0], [-0.5, -0.8, 0], [-0.1, 0.8, 0], [-0.1, -0.8, 0]], (2, 3)),  # the nearest
        ("planar", [[0, 0.6, 0], [0, -0.6, 0], [0, 0.47, 0], [0, -0.47, 0]], (0, 1)),
    ],
)
def test_the_lips_are_the_nearest_places_on_both_sides(tmp_path, shape, places, taken):
    values = np.ones((20, len(places)))
    folder = made_runs.probe(made_runs.run(tmp_path), "lips", 0.1 * np.arange(20), places, p=values)
    if taken is None:
        with pytest.raises(HiresxError, match="no probe of p on both sides"):
            lips(hiresx.open(folder), shape=shape)
    else:
        assert lips(hiresx.open(folder), shape=shape) == "lips.p_{},p_{}".format(*taken)


def test_the_lips_may_be_named(tmp_path):
    """However far they are; and not those of another history."""
    folder = made_runs.run(tmp_path)
    for name, x in (("near", -0.1), ("far", -5.0)):
        made_runs.probe(folder, name, 0.1 * np.arange(20), [[x, 0.8, 0], [x, -0.8, 0]], p=np.ones((20, 2)))
    run = hiresx.open(folder)
    assert lips(run) == "near.p_0,p_1" and lips(run, "far") == "far.p_0,p_1"


def test_the_uncertainty_of_the_spreading_is_that_of_a_jackknife():
    """Half of the 95 % interval of Student's t for the five runs of stations that are left out in turn."""
    x = np.linspace(6, 30, 25)
    width = 0.1 * (x - 2) + 0.02 * np.sin(1.7 * x)
    left_out = [np.polyfit(np.delete(x, run), np.delete(width, run), 1)[0] for run in np.array_split(np.arange(25), 5)]
    error = np.sqrt(4 / 5 * np.sum((left_out - np.mean(left_out)) ** 2))
    found = jet_shape.spreading(jet_shape.Mean(x, x, x, x, width, 30.0, "made"), 6.0)
    assert found["rate_uncertainty"] == pytest.approx(2.7764451 * error, rel=1e-6)  # t for 4 degrees of freedom
