"""The far field of plane runs end to end, and what is told of a far field: levels by angle, third octaves."""

import csv
import dataclasses
import json

import numpy as np
import pytest
import reported
from acoustic_sources import IN_PLANE, SMALL, derivative, fitted, line_monopole, pressure
from drawn_texts import over_curves
from test_farfield_runs import DT, MACH, WALLS, P, check_against_probes, filled

from hiresx import Case, HiresxError
from hiresx import open as open_run
from hiresx.cli import execute
from hiresx.post import welch
from hiresx.post.farfield import ObserverArc, farfield

NODES = {
    "nodes": [
        {"faces": [face], "index": index, "range": {a: [8, 41] for a in "ij" if a != face[0]}}
        for face, index in ((f"{d}{end}", at) for d in "ij" for end, at in (("min", 8), ("max", 40)))
    ]
}
BOX = {"box": {"lower": [-1.0, -0.8, 0.0], "upper": [1.0, 0.9, 0.0], "spacing": 0.0625, "caps": [0.7, 0.85]}}
SOURCES = {"monopole": line_monopole, "dipole": derivative(line_monopole, 1)}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    out = tmp_path_factory.mktemp("plane")
    grid = {"generator": "wavy", "n": [49, 49, 1], "lower": [-1.4, -1.4, 0.0], "upper": [1.4, 1.4, 0.0]}
    tables = {
        "grid": {**grid, "amplitude": [0.02, 0.02, 0.0], "periodic": []}, "time": {"steps": 1, "dt": DT},
        "boundary": WALLS, "initial": {"state": {"rho": 1.0, "p": P}},
        "surface": [{"name": "box", "every": 1, **BOX}, {"name": "nodes", "every": 1, **NODES}],
    }  # fmt: skip
    for name, source in SOURCES.items():
        filled(out / name, source, Case.from_dict(tables))
    return out


@pytest.mark.parametrize("surface", ["box", "nodes"])
@pytest.mark.parametrize("name", SOURCES)
def test_a_line_source_in_a_stream_is_heard_through_the_files(runs, name, surface):
    """Amplitude within 1 %, phase within 1 degree."""
    observers = IN_PLANE if name == "monopole" else IN_PLANE[1:]  # a dipole along y is not heard on the x axis
    found = farfield(runs / name, surface, observers, mach=MACH, segments=1)
    amplitude, residual = fitted(found.data["time"].values, found.data["pressure"].values)
    exact = SMALL * pressure(SOURCES[name], observers, MACH)
    assert np.abs(np.abs(amplitude / exact) - 1).max() < 0.01
    assert np.abs(np.degrees(np.angle(amplitude / exact))).max() < 1.0
    assert residual < 3e-3
    assert found.summary["gaps"] == [] and found.summary["warnings"] == [] and found.summary["plane"]


def test_levels_by_angle_are_those_of_the_source(runs, tmp_path, capsys):
    """All round, also below the x axis; brought to the distance L with its root."""
    arc = ObserverArc(11.0, 10.0, 340.0, 34)
    found = farfield(runs / "monopole", "box", arc, mach=MACH, ambient=101325.0, segments=1, window="boxcar")
    pascal = np.abs(SMALL * pressure(line_monopole, arc.places, MACH)) * 1.4 * 101325
    level = 20 * np.log10(pascal / np.sqrt(2) / 20e-6)
    np.testing.assert_allclose(found.data["overall_level"].values, level, atol=0.3)
    np.testing.assert_allclose(found.data["level_at_1_L"].values, level + 10 * np.log10(11), atol=0.3)
    np.testing.assert_allclose(found.data["angle"].values, np.linspace(10, 340, 34))
    reported.check(
        "post-farfield-plane", reported.figures({"summary": found.summary, "data": found.data.drop_vars("level")})
    )
    command = ["post", "farfield", str(runs / "monopole"), "box", "--mach", "0.3", "--segments", "1", "--json"]
    assert execute([*command, "--arc", "11,-30,210,3", "--out", str(tmp_path)]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [o["angle_deg"] for o in said["observers"]] == [-30, 90, 210] and said["observers"][0]["y"] < -5
    with (tmp_path / "farfield_box_directivity.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["overall_level_db"]) for row in rows] == [o["overall_level_db"] for o in said["observers"]]
    with (tmp_path / "farfield_box_third_octaves.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [float(row["p_1"]) for row in rows] == said["third_octave_levels_db"]["p_1"]
    bands = said["third_octaves"]
    assert bands[0]["to"] - bands[0]["from"] >= 3 * said["resolution"]
    assert bands[0]["resolved"] and not bands[-1]["resolved"]


@pytest.mark.parametrize("caps", ["average", "each"])
def test_nothing_is_written_over_the_curves(runs, caps):
    arc = ObserverArc(11.0, 10.0, 170.0, 9)
    figure, axes = farfield(runs / "monopole", "box", arc, mach=MACH, segments=1, caps=caps).plot()
    assert over_curves(figure) == [] and len(axes) == 4
    labels = " ".join(ax.get_ylabel() for ax in axes)
    assert r"dB re $\rho_\mathrm{ref}\,c_\mathrm{ref}^{2}$" in labels and "third octaves" in labels


def test_what_is_warm_on_the_line_does_not_sound_where_the_density_is_that_of_the_pressure(runs, monkeypatch):
    asked = {"observers": IN_PLANE, "mach": MACH, "segments": 1}
    whole = open_run(runs / "monopole")
    clean = {how: farfield(whole, "box", density=how, **asked).data["pressure"].values for how in ("flow", "pressure")}
    np.testing.assert_allclose(clean["pressure"], clean["flow"], atol=1e-4 * np.abs(clean["flow"]).max())
    stored = whole.stored_surface("box")
    spotted = np.array(stored.records)
    spotted["rho"] -= SMALL * np.exp(-((np.arange(len(spotted))[:, None] - 75) ** 2) / 50)
    monkeypatch.setattr(type(whole), "stored_surface", lambda *_: dataclasses.replace(stored, records=spotted))
    np.testing.assert_array_equal(
        farfield(whole, "box", density="pressure", **asked).data["pressure"], clean["pressure"]
    )
    warm = farfield(whole, "box", **asked).data["pressure"].values
    assert np.abs(warm - clean["flow"]).max() > 0.1 * np.abs(clean["flow"]).max()
    with pytest.raises(HiresxError, match="flow or pressure"):
        farfield(whole, "box", density="p", **asked)


def test_third_octaves_hold_the_power_between_their_ends():
    frequency = np.linspace(0, 50, 2001)
    density = np.stack([np.ones_like(frequency), frequency**2, np.where(np.arange(2001) == 400, 7.0, 0.0)])
    found = welch.third_octaves(frequency, density)
    low, high = found.edges[:-1], found.edges[1:]
    np.testing.assert_allclose(found.middles, np.sqrt(low * high))
    np.testing.assert_allclose(10 * np.log10(found.middles), np.arange(-5, 17)[-found.middles.size :], atol=1e-9)
    np.testing.assert_allclose(found.squares[0], high - low, rtol=1e-12)
    np.testing.assert_allclose(found.squares[1], (high**3 - low**3) / 3, rtol=0.02)
    assert found.squares[2].sum() == pytest.approx(7 * 0.025) and found.squares[2].argmax() == np.argmin(
        abs(found.middles - 10)
    )
    assert (high - low)[0] >= 3 * 0.025 > (high - low)[0] / 1.2589 and high[-1] <= 50 < high[-1] * 1.2589
    assert welch.third_octaves(np.arange(6.0), np.ones((2, 6))).squares.shape == (2, 0)


@pytest.mark.parametrize(
    ("observers", "said"),
    [
        ([[0, 10, 0], [0, 10, 0.1], [0, 9, 0.2]], r"(?s)observer 1 at z = 0.1 lies beside the plane .* in its plane"),
        ([[0.2, 0.1, 0.0]], "inside the surface"),
        ([[0, 1.0, 0]], "within two cells of the surface"),
    ],
)
def test_observers_of_a_plane_flow_lie_in_its_plane_and_outside(runs, observers, said):
    with pytest.raises(HiresxError, match=said):
        farfield(runs / "monopole", "box", observers, mach=MACH, segments=1)


@pytest.mark.slow
def test_a_pulse_in_a_plane_box_at_rest_is_heard_as_a_probe_sees_it(tmp_path):
    """Outside the line, inside the grid, the wake of the pulse included: to .5 % of the largest value."""
    places = [[2.2, 0.0, 0.0], [0.0, -2.2, 0.0], [-1.9, 1.7, 0.0]]
    grid = {"n": [121, 121, 1], "lower": [-4.0, -4.0, 0.0], "upper": [4.0, 4.0, 0.0]}
    box = {"lower": [-1.25, -1.25, 0.0], "upper": [1.25, 1.25, 0.0], "spacing": 0.05}
    check_against_probes(tmp_path, grid, box, 4.0, places, 5e-5, 0.005)
