"""Tones that the grid at a probe cannot carry: the cut-off is that of `hiresx check`, what lies beyond is marked."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
import reported

pytest.importorskip("xarray", reason="pip install '.[post]'")

import made_runs

from hiresx import cli, grid, load
from hiresx.decomposition import decompose
from hiresx.errors import HiresxError
from hiresx.estimate import resolution
from hiresx.output.watch import history
from hiresx.output.watch.locate import Locator
from hiresx.post import azimuthal, grid_cutoff, spectrum
from hiresx.post.jet_screech import screech
from hiresx.results import Run

TIME = 0.05 * np.arange(4000)
# Of the grid `coarse`: eight points to a wave over the longest of its cells' edges.
CUTOFF = 1 / (8 * 0.2)


def ring(n):
    theta = 2 * np.pi * np.arange(n) / n
    return theta, np.stack([0 * theta, 0.65 * np.cos(theta), 0.65 * np.sin(theta)], axis=1)


def heard(folder, n, *tones):
    """A run with a ring of `n` places that hears tones (frequency, azimuthal mode) in noise."""
    theta, places = ring(n)
    values = 1e-5 * np.random.default_rng(0).standard_normal((TIME.size, n))
    values += sum(1e-3 * np.cos(m * theta - 2 * np.pi * f * TIME[:, None]) for f, m in tones)
    return made_runs.probe(made_runs.run(folder), "lip", TIME, places, p=1 / 1.4 + values)


@pytest.fixture
def coarse(monkeypatch):
    """A grid whose cells are .05 by .2 by .1."""
    z, y, x = np.meshgrid(np.linspace(-1, 1, 21), np.linspace(-1, 1, 11), np.linspace(-1, 1, 41), indexing="ij")
    monkeypatch.setattr(grid_cutoff, "_coordinates", lambda run: [(x, y, z)])


@pytest.mark.parametrize("name", ["planar-jet", "round-jet"])
def test_it_is_what_check_says(name, monkeypatch):
    """In cells, on nodes and between blocks; the nearest node is not always a corner of the cell at its lower end, so
    that the edges looked at may be one further on: they grow by less than a seventh."""
    case = load(name, "quick")
    decomposition = decompose(case, grid.build(case.grid, case.directory))
    blocks, locator = decomposition.blocks, Locator(decomposition)
    monkeypatch.setattr(grid_cutoff, "_coordinates", lambda run: [(b.x, b.y, b.z) for b in blocks])
    for probe in case.probe:
        places = np.array(probe.places)[:: len(probe.places) // 7 + 1]
        located = [locator.find(place) for place in places]
        expected = [1 / (8 * resolution.spacing_at(blocks[at.block], at.index)) for at in located]
        np.testing.assert_allclose(
            grid_cutoff.cutoffs(SimpleNamespace(), places), expected, rtol=1 / 7, err_msg=probe.name
        )


def test_more_points_and_what_is_not_known(coarse):
    places = np.array([[0.01, 0.03, 0.02], [0.5, -0.5, 0.5], [7.0, 0.0, 0.0]])
    np.testing.assert_allclose(grid_cutoff.cutoffs(None, places), [CUTOFF, CUTOFF, np.nan])
    np.testing.assert_allclose(grid_cutoff.cutoffs(None, places, 16), [CUTOFF / 2, CUTOFF / 2, np.nan])
    assert grid_cutoff.cutoffs(None, None) is None and grid_cutoff.lowest(None) is None
    with pytest.raises(HiresxError, match="1 points per wavelength make no wave"):
        grid_cutoff.cutoffs(None, places, 1)


def test_a_run_without_fields_does_not_know(tmp_path):
    found = spectrum(heard(tmp_path, 2, (0.4, 0)), "lip.p_0").summary
    assert found["cutoff"] == [None] and found["peaks"][0]["carried"] is None


def test_spectrum_marks_what_lies_beyond(tmp_path, coarse, capsys):
    pytest.importorskip("matplotlib", reason="pip install '.[plot]'")
    run = heard(tmp_path, 2, (0.4, 0), (2.1, 0))
    assert cli.execute(["post", "spectrum", str(run), "lip.p", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["cutoff"] == pytest.approx([CUTOFF] * 2) and found["points_per_wave"] == 8
    reported.check("post-spectrum-carried", reported.figures(found))
    said = {(round(peak["frequency"], 1), peak["carried"]) for peak in found["peaks"]}
    assert said == {(0.4, True), (2.1, False)}
    assert cli.execute(["post", "spectrum", str(run), "lip.p", "--points-per-wave", "2"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip().startswith("p_")]
    assert [row[-1] for row in rows] == ["yes"] * 4
    _, axes = spectrum(run, "lip.p").plot()
    texts = {text.get_text() for text in axes.texts}
    assert "(2.1)" in texts and "fewer than 8 points per wave" in texts
    assert len([text for text in texts if text.startswith("(")]) == 1


def kept_as(run, how):
    """The same run, its samples filtered, or not, as its files say."""
    path = run / "history" / "lip.nc"
    table = history.read(path)
    path.unlink()
    made = history.History("lip", "probe", [table.columns["p"]], table.places, path.parent)
    made.filter = how
    made.start()
    for n, t in enumerate(table.data["time"]):
        made.add(n, float(t), {"p": table.data["p"][n]})
    made.close()
    return run


def every_fourth(folder, n, *tones):
    """As `heard`, of which every fourth sample is kept: the grid holds 10, samples tell 2.5 apart."""
    path = heard(folder, n, *tones) / "history" / "lip.nc"
    table = history.read(path)
    made_runs.probe(folder, "lip", table.data["time"][::4], table.places, p=table.data["p"][::4])
    return folder


@pytest.mark.parametrize("how", ["none", "running-means"])
def test_a_tone_that_may_have_been_folded_is_not_known_to_be_carried(how, tmp_path, coarse, capsys):
    run = kept_as(every_fourth(tmp_path, 16, (4.6, 1), (1.1, 0)), how)
    found = spectrum(run, "lip.p_0").summary
    carried_by = {round(peak["frequency"], 1): peak["carried"] for peak in found["peaks"]}
    assert carried_by[0.4] is (True if how == "running-means" else None)  # 5 - 4.6, were it not filtered
    assert len(found["warnings"]) == (how == "none")
    tones = azimuthal(run, "lip.p").summary
    said = {round(tone["frequency"], 1): tone["carried"] for tone in tones["tones"]}
    assert said[0.4] is carried_by[0.4] and said[1.1] is False  # beyond what the grid carries, folded or not
    found = screech(Run(run), 0.4, 1.0, "lip.p_0,p_8").summary
    assert found["fundamental"]["carried"] is carried_by[0.4]
    assert cli.execute(["post", "spectrum", str(run), "lip.p_0"]) == 0
    warned = "warning: the samples of" in capsys.readouterr().out
    assert warned is (how == "none")


def test_levels_are_those_ahead_of_the_filter(tmp_path, coarse):
    run = heard(tmp_path, 2, (4.0, 0), (1.0, 0))
    as_is = spectrum(run, "lip.p_0")
    mended = spectrum(kept_as(run, "running-means"), "lip.p_0")
    passed = np.sinc(as_is.data["frequency"].values * 0.05) ** 8
    np.testing.assert_allclose(mended.data["density"] * passed, as_is.data["density"], rtol=1e-12)


def test_the_jet_and_its_modes_mark_them_too(tmp_path, coarse):
    run = Run(heard(tmp_path, 16, (0.4, 1), (2.1, 0)))
    assert {(t["kind"], t["carried"]) for t in azimuthal(run, "lip.p").summary["tones"]} == {
        ("helical", True), ("axisymmetric", False)
    }  # fmt: skip
    found = screech(run, 0.4, 1.0, "lip.p_0,p_8").summary
    assert found["cutoff"] == pytest.approx(CUTOFF) and found["fundamental"]["carried"]
    assert [tone["carried"] for tone in found["other_tones"]] == [False]


def test_labels_of_tones_do_not_lie_on_each_other(tmp_path, coarse):
    pytest.importorskip("matplotlib", reason="pip install '.[plot]'")
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    run = heard(tmp_path, 16, (0.33, 1), (0.38, 0), (0.43, -1), (9.4, 2))
    figure, axes = azimuthal(run, "lip.p").plot()
    FigureCanvasAgg(figure).draw()
    texts = [text for text in axes.texts if "points per wave" not in text.get_text()]
    assert len(texts) == 4 and texts[-1].get_text() == "(9.4 helical, m = 2)"
    boxes = [text.get_window_extent() for text in texts] + [axes.get_legend().get_window_extent()]
    assert not any(a.overlaps(b) for n, a in enumerate(boxes) for b in boxes[:n])
    inside = axes.get_window_extent()
    assert all(inside.x0 <= box.x0 and box.x1 <= inside.x1 for box in boxes[:-1])
