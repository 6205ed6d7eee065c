"""The far field end to end: a run keeps surfaces in files, `hiresx post farfield` hears them."""

import csv
import json

import numpy as np
import pytest
import reported
from acoustic_sources import OBSERVERS, OMEGA, SMALL, dipole, fitted, monopole, pressure

from hiresx import Case, HiresxError, Simulation
from hiresx import open as open_run
from hiresx.cli import execute
from hiresx.cli.observers import read
from hiresx.output.watch import monitors
from hiresx.output.watch.device_samples import DeviceSamples
from hiresx.post import farfield_picture
from hiresx.post.farfield import ObserverArc, farfield

P = 1 / 1.4
MACH, DT, SAMPLES = 0.3, 0.2, 150
WALLS = [{"faces": "all", "type": "far-field", "state": {"rho": 1.0, "u": MACH, "p": P}}]
ENDS = {"lower": [-1.0, -0.8, -0.9], "upper": [1.0, 0.9, 0.8], "spacing": 0.125}
SURFACES = {
    "capped": {"box": {**ENDS, "caps": [0.7, 0.85]}},
    "cylinder": {"cylinder": {"start": -1.0, "end": 1.0, "radius": 0.7, "end_radius": 1.0, "spacing": 0.125}},
    "nodes": {
        "nodes": [
            {"faces": [face], "index": index, "range": {a: [4, 21] for a in "ijk" if a != face[0]}}
            for face, index in ((f"{d}{end}", at) for d in "ijk" for end, at in (("min", 4), ("max", 20)))
        ]
    },
    "open": {"box": {**ENDS, "open": ["xmax"]}, "precision": "fp32"},
}
HEARD = {monopole: ("capped", "cylinder", "nodes"), dipole: ("capped", "nodes")}


def case(names, n=25, half=1.4) -> Case:
    grid = {"generator": "wavy", "n": [n] * 3, "lower": [-half] * 3, "upper": [half] * 3, "amplitude": [0.02] * 3}
    return Case.from_dict(
        {
            "grid": {**grid, "periodic": []}, "time": {"steps": 1, "dt": DT}, "boundary": WALLS,
            "initial": {"state": {"rho": 1.0, "p": P}},
            "surface": [{"name": name, "every": 1, **SURFACES[name]} for name in names],
        }
    )  # fmt: skip


def filled(out, source, made: Case) -> None:
    """A run whose state is at each sample the exact field of a source in a stream."""
    simulation = Simulation(made, backend="cpu", out=out)
    simulation.run(steps=0, progress=False)  # leaves run.json
    solver = simulation.solver
    built = monitors.build(simulation.case, simulation)
    watching = [m for m in built if m.name.startswith("surface.") or isinstance(m, DeviceSamples)]
    block = solver.states[0].block
    x = np.stack([c.ravel() for c in (block.x, block.y, block.z)], axis=1)
    x[np.linalg.norm(x, axis=1) < 0.2] = 0.3  # at the source itself the field is without bounds
    _, *gradient = source(x, MACH)
    sound = pressure(source, x, MACH)
    for n in range(SAMPLES):
        turn = SMALL * np.exp(1j * OMEGA * DT * n)
        p, u, v, w = ((turn * part).real.reshape(block.x.shape) for part in (sound, *gradient))
        solver.steps, solver.time = n, n * DT
        solver.set_state(0, 1 + p, MACH + u, v, w, P + p)
        for monitor in watching:
            monitor.after_step(solver) if n else monitor.begin(solver, False)
    for monitor in watching:
        monitor.finish(solver)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    out = tmp_path_factory.mktemp("filled")
    for source, names in HEARD.items():
        filled(out / source.__name__, source, case((*names, "open") if source is monopole else names))
    return out


@pytest.fixture(scope="module")
def run(runs):
    return runs / "monopole"


@pytest.mark.parametrize(("source", "name"), [(source, name) for source, names in HEARD.items() for name in names])
def test_a_source_in_a_stream_is_heard_through_the_files(runs, source, name):
    """Amplitude within 1 %, phase within 2 degrees."""
    observers = OBSERVERS if source is monopole else OBSERVERS[1:]  # a dipole along y is not heard on the x axis
    found = farfield(runs / source.__name__, name, observers, mach=MACH, segments=1)
    amplitude, residual = fitted(found.data["time"].values, found.data["pressure"].values)
    exact = SMALL * pressure(source, observers, MACH)
    assert np.abs(np.abs(amplitude / exact) - 1).max() < 0.01
    assert np.abs(np.degrees(np.angle(amplitude / exact))).max() < 2.0
    assert residual < 2e-3
    assert found.summary["gaps"] == [] and found.summary["warnings"] == []


def test_end_caps_are_surfaces_of_their_own_and_the_mean_is_that_of_their_signals(run):
    each = farfield(run, "capped", OBSERVERS, mach=MACH, segments=1, caps="each")
    mean = farfield(run, "capped", OBSERVERS, mach=MACH, segments=1)
    assert each.data["cap"].values.tolist() == [0.7, 0.85, 1.0]
    for signals in each.data["pressure"].values:  # every one is closed
        amplitude, _ = fitted(each.data["time"].values, signals)
        assert np.abs(amplitude / (SMALL * pressure(monopole, OBSERVERS, MACH)) - 1).max() < 0.01
    np.testing.assert_allclose(each.data["pressure"].mean("cap").values, mean.data["pressure"].values, atol=1e-18)
    assert 0 < mean.summary["caps_spread_db"] < 0.1 and mean.summary["caps_taken"] == "average"


def test_an_open_surface_is_heard_with_a_warning_that_names_the_gap(run):
    found = farfield(run, "open", OBSERVERS, mach=MACH, segments=1)
    assert any("it is open at xmax" in text for text in found.summary["warnings"])


def test_levels_are_of_the_ambient_pressure(run):
    """A tone of known amplitude: its overall level, and where it is heard."""
    arc = ObserverArc(11.0, 30.0, 150.0, 3, azimuth=90.0)
    found = farfield(run, "nodes", arc, mach=MACH, ambient=101325.0, segments=1, window="boxcar")
    np.testing.assert_allclose(found.data["angle"].values, [30, 90, 150])
    np.testing.assert_allclose(found.data["y"].values, 0.0, atol=1e-14)
    amplitude, _ = fitted(found.data["time"].values, found.data["pressure"].values)
    pascal = np.abs(SMALL * pressure(monopole, arc.places, MACH)) * 1.4 * 101325
    np.testing.assert_allclose(np.abs(amplitude), pascal, rtol=0.01)
    # over some periods and a part of one the variance is that of the tone but for a little
    level = 20 * np.log10(pascal / np.sqrt(2) / 20e-6)
    np.testing.assert_allclose(found.data["overall_level"].values, level, atol=0.3)
    assert found.summary["level_unit"] == "dB re 20 uPa" and found.summary["pressure_unit"] == "Pa"
    reported.check("post-farfield", reported.figures({"summary": found.summary, "data": found.data.drop_vars("level")}))


@pytest.mark.parametrize("caps", ["average", "each"])
def test_levels_are_averaged_around_the_axis(run, caps):
    arc = ObserverArc(11.0, 40.0, 100.0, 2, azimuth=10.0, azimuths=3)
    np.testing.assert_allclose(np.linalg.norm(arc.places, axis=1), 11.0)
    rolls = np.degrees(np.arctan2(arc.places[:, 2], arc.places[:, 1])) % 360
    np.testing.assert_allclose(rolls, [10, 130, 250] * 2)
    np.testing.assert_allclose(arc.places[:, 0], np.repeat(11 * np.cos(np.radians([40, 100])), 3))
    found = farfield(run, "capped", arc, mach=MACH, segments=1, caps=caps)
    assert found.data["direction"].values.tolist() == [40, 100]
    for name in ("level", "overall_level", "band_level"):
        powers = 10 ** (found.data[name] / 10)
        for n in range(2):
            mean = powers.isel(observer=slice(3 * n, 3 * n + 3)).mean("observer")
            np.testing.assert_allclose(10 ** (found.data[f"mean_{name}"].isel(direction=n) / 10), mean, rtol=1e-12)
    rows = found.summary["mean_levels"]
    assert [row["angle_deg"] for row in rows] == [40, 100] * (3 if caps == "each" else 1)
    assert [row.get("cap") for row in rows] == ([0.7, 0.7, 0.85, 0.85, 1.0, 1.0] if caps == "each" else [None] * 2)
    overall = found.data["mean_overall_level"].values.ravel()
    assert [row["overall_level_db"] for row in rows] == overall.tolist() and len(set(overall)) == len(rows)


def test_the_command_averages_around_the_axis_and_refuses_azimuths_without_an_arc(run, capsys, tmp_path):
    arguments = ["post", "farfield", str(run), "capped", "--segments", "1", "--json"]
    assert execute([*arguments, "--arc", "11,40,100,2", "--azimuths", "3", "--out", str(tmp_path)]) == 0
    said = json.loads(capsys.readouterr().out)
    with (tmp_path / "farfield_capped_means.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["middle"] for row in rows] == [str(band["middle"]) for band in said["third_octaves"]]
    for angle, mean in zip(("40", "100"), said["mean_levels"], strict=True):
        assert [float(row[f"angle_{angle}"]) for row in rows] == mean["third_octave_levels_db"]
    assert execute([*arguments, "--observers", "10,0,0", "--azimuths", "3"]) == 2
    assert "--azimuths belong to an --arc" in json.loads(capsys.readouterr().out)["error"]


def test_the_command_compares_with_measured_spectra(run, capsys, tmp_path):
    measured = tmp_path / "measured.csv"
    measured.write_text("strouhal,angle_40,angle_100,angle_120\n0.1,80,70,60\n1.0,60,70,60\n")
    arguments = ["post", "farfield", str(run), "capped", "--segments", "1", "--json", "--measured", str(measured)]
    assert execute([*arguments, "--arc", "11,40,100,2", "--azimuths", "3", "--out", str(tmp_path)]) == 0
    said = json.loads(capsys.readouterr().out)
    with (tmp_path / "farfield_capped_measured.csv").open() as file:
        rows = [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]
    assert rows == said["measured"]["bands"] and {row["angle_deg"] for row in rows} == {40.0, 100.0}
    bands = {band["middle"]: n for n, band in enumerate(said["third_octaves"]) if band["resolved"]}
    for row in rows:
        level = said["mean_levels"][[40.0, 100.0].index(row["angle_deg"])]["third_octave_levels_db"][
            bands[row["middle"]]
        ]
        width = row["middle"] * (10**0.05 - 10**-0.05)
        assert row["computed_db"] == pytest.approx(level - 10 * np.log10(width), abs=1e-9)
        known = 80 - 20 * np.log10(row["middle"] / 0.1) if row["angle_deg"] == 40 else 70
        assert row["measured_db"] == pytest.approx(known, abs=0.02)
    assert execute([*arguments, "--observers", "10,0,0"]) == 2
    assert "no angle of an observer is measured" in json.loads(capsys.readouterr().out)["error"]


def test_the_command_writes_numbers_signals_and_a_picture(run, capsys, tmp_path):
    table = tmp_path / "heard.csv"
    table.write_text("x, y, z\n0, 10, 0\n4, -6, 7\n")
    arguments = ["post", "farfield", str(run), "capped", "--mach", "0.3", "--segments", "1", "--ambient", "101325"]
    assert execute([*arguments, "--observers", str(table), "--out", str(tmp_path), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert {path.rsplit("capped")[-1] for path in said["files"]} == {
        ".nc", ".csv", ".png", "_directivity.csv", "_third_octaves.csv"
    }  # fmt: skip
    assert [o["y"] for o in said["observers"]] == [10.0, -6.0] and said["caps"] == [0.7, 0.85, 1.0]
    with (tmp_path / "farfield_capped.csv").open() as file:
        rows = list(csv.DictReader(file))
    found = farfield(run, "capped", [[0, 10, 0], [4, -6, 7]], mach=0.3, segments=1, ambient=101325.0)
    for data, title in ((found.data, "observers"), (found.data.isel(observer=[0]), None)):
        legend = farfield_picture.draw(data, found.summary).axes[0].get_legend()
        assert (legend and legend.get_title().get_text()) == title
    assert list(rows[0]) == ["time", "p_0", "p_1"] and len(rows) == found.data.sizes["time"]
    assert float(rows[5]["p_1"]) == float(found.data["pressure"].values[1, 5])
    assert execute([*arguments, "--arc", "11,30,150,4", "--caps", "each", "--out", str(tmp_path / "each.png")]) == 0
    assert "overall_level_db" in capsys.readouterr().out and (tmp_path / "each.png").stat().st_size > 10_000


def test_observers_as_a_command_line_names_them(tmp_path):
    assert read("1,2,3; 4,5,6", None).tolist() == [[1, 2, 3], [4, 5, 6]]
    np.testing.assert_allclose(read(None, "2,0,90,2", "1,0,0").places, [[3, 0, 0], [1, 2, 0]], atol=1e-15)
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    for observers, arc, said in (
        (None, None, "--observers or by --arc"),
        ("1,2,3", "1,2,3,4", "--observers or by --arc"),
        ("1,2", None, "not 3 numbers"),
        (None, "1,2,3,4.5", "whole one"),
        (None, "1,2,x,4", "not 4 numbers"),
        (str(tmp_path / "a.csv"), None, "no table of observers"),
        (str(tmp_path / "b.csv"), None, "b.csv"),
    ):
        with pytest.raises(HiresxError, match=said):
            read(observers, arc)
    with pytest.raises(HiresxError, match="radius above 0"):
        _ = read(None, "-1,0,90,2").places


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"observers": [[0, 10, 0], [0.2, 0.1, 0.0]]}, r"observer 1 at \(0.2, 0.1, 0\) lies inside the surface"),
        ({"observers": [[0, 1.0, 0]]}, "within two cells of the surface"),
        ({"observers": np.empty((0, 3))}, "no observers"),
        ({"surface": "caped"}, 'did you mean "capped"'),
        ({"caps": "last"}, "average or each"),
        ({"mach": 1.2}, r"Mach number 1\.2"),
        ({"ambient": -1.0}, "above 0 Pa"),
        ({"start": 29.0}, "5 samples of surface .* too few; 16 are needed"),
        ({"end": 9.0}, "less time than sound takes"),
        ({"end": 12.0, "start": 1.0}, "hear all of the surface for 3 samples, 16 are needed"),
        ({"length": 0.0}, "Strouhal"),
    ],
)
def test_what_cannot_be_heard_is_said(run, changes, said):
    with pytest.raises(HiresxError, match=said):
        farfield(run, **{"surface": "capped", "observers": OBSERVERS, "mach": MACH, "segments": 1, **changes})


def short(out, listed, n=(16, 15, 14), initial=None, **time) -> None:
    grid = {"generator": "box", "n": list(n), "lower": [0.0] * 3, "upper": [1.5, 1.4, 1.3 if n[2] > 1 else 0.0]}
    tables = {
        "grid": {**grid, "periodic": []}, "time": {"steps": 40, **time}, "initial": {"state": {"rho": 1.0, "p": P}},
        "boundary": [{"faces": "all", "type": "slip-wall"}], "surface": [listed],
    }  # fmt: skip
    Simulation(Case.from_dict(tables), backend="cpu", out=out, initial=initial).run(progress=False)


def bang(x, y, z):
    p = P * (1 + 0.2 * np.exp(-60 * ((x - 0.7) ** 2 + (y - 0.6) ** 2 + (z - 0.6) ** 2)))
    return (1.4 * p) ** P, 0.0, 0.0, 0.0, p


INNER = {"lower": [0.3] * 3, "upper": [1.1, 1.0, 1.0], "spacing": 0.2}


def test_samples_too_far_apart_are_refused(tmp_path):
    short(tmp_path / "a", {"name": "box", "every": 1, "box": INNER}, initial=bang, cfl=0.5)
    with pytest.raises(HiresxError, match="sampled at unequal distances in time"):
        farfield(tmp_path / "a", "box", OBSERVERS)
    short(tmp_path / "b", {"name": "box", "every": 8, "box": INNER}, initial=bang, dt=0.03, steps=200)
    with pytest.raises(HiresxError, match=r"(?s)sampled too rarely: .* more often than every_time = 0\.24"):
        farfield(tmp_path / "b", "box", 2 * OBSERVERS)


def test_after_rest_each_observer_hears_from_its_own_first_sound(tmp_path):
    """Far observers hear the same as near ones, by 1/r, later."""
    short(tmp_path, {"name": "box", "every": 1, "box": INNER}, initial=bang, dt=0.03, steps=60)
    places = [[1e3, 0.6, 0.6], [4e3, 0.6, 0.6], [1e9, 0.6, 0.6]]
    found = farfield(tmp_path, "box", places, still=True, segments=1)
    first, last = (np.array([o[key] for o in found.summary["observers"]]) for key in ("heard_from", "heard_to"))
    np.testing.assert_allclose(first[:2], [998.9, 3998.9], atol=0.2)
    np.testing.assert_allclose(last - first, (last - first)[0], rtol=1e-6)
    np.testing.assert_array_equal(found.data["heard_from"].values, first)
    levels = found.data["overall_level"].values
    np.testing.assert_allclose(levels[0] - levels[1:], 20 * np.log10([4.0, 1e6]), atol=0.2)
    assert levels[0] == farfield(tmp_path, "box", places[:1], still=True, segments=1).data["overall_level"].values[0]
    found.write(tmp_path / "out")
    with (tmp_path / "out" / "farfield_box.csv").open() as file:
        row = next(csv.DictReader(file))
    assert [float(row[f"time_{n}"]) for n in range(3)] == first.tolist()


def test_help_names_the_table(capsys):
    execute(["post", "farfield", "--help"])
    assert "[[surface]]" in capsys.readouterr().out


def pulse(x, y, z):
    p = P * (1 + 1e-3 * np.exp(-np.log(2) * ((x - 0.05) ** 2 + y**2 + z**2) / 0.35**2))
    return (1.4 * p) ** P, 0.0, 0.0, 0.0, p


def check_against_probes(folder, grid, box, end, places, least, share):
    """The pulse in a box at rest, as far fields give it at `places` and as probes see it there until `end`: signals of
    at least `least`, which differ by less than `share` of the largest value."""
    tables = {
        "grid": {"generator": "box", "periodic": [], **grid}, "scheme": {"weights": "linear"},
        "time": {"end": end, "cfl": 0.8},
        "initial": {"state": {"rho": 1.0, "p": P}}, "boundary": [{"faces": "all", "type": "slip-wall"}],
        "probe": [{"name": "near", "points": places, "every_time": 0.05, "variables": ["p"], "filter": "none"}],
        "surface": [{"name": "box", "every_time": 0.05, "box": box}],
    }  # fmt: skip
    Simulation(Case.from_dict(tables), backend="cpu", out=folder, initial=pulse).run(progress=False)
    heard = farfield(folder, "box", places, still=True, segments=1).data
    near = open_run(folder).history("near")
    for n in range(len(places)):
        time = heard["time"].values + heard["heard_from"].values[n]
        seen = np.interp(time[time < end], near["time"].values, near["p"].values[:, n] - P)
        assert np.abs(seen).max() > least
        sound = heard["pressure"].values[n, time < end]
        np.testing.assert_allclose(sound, seen, atol=share * np.abs(seen).max())


@pytest.mark.slow
def test_a_pulse_in_a_box_at_rest_is_heard_as_a_probe_sees_it(tmp_path):
    """Outside the surface, inside the grid: the signals differ by less than 2 % of the largest value."""
    places = [[1.7, 0.0, 0.0], [0.0, -1.7, 0.0], [-1.4, 1.4, 0.9]]
    grid = {"n": [42] * 3, "lower": [-2.5] * 3, "upper": [2.5] * 3}
    box = {"lower": [-1.25] * 3, "upper": [1.25] * 3, "spacing": 0.125}
    check_against_probes(tmp_path, grid, box, 2.15, places, 2.5e-5, 0.02)


def test_an_observer_within_the_longest_surface_alone_is_refused(run):
    """Behind the first end cap, before the last."""
    with pytest.raises(
        HiresxError, match=r"observer 1 at \(0.98, 0, 0\) lies (inside|within two cells of) the surface"
    ):
        farfield(run, "capped", [[0.0, 5.0, 0.0], [0.98, 0.0, 0.0]], mach=MACH, segments=1)


def test_strouhal_numbers_and_levels_have_their_scales(run):
    found = farfield(run, "nodes", OBSERVERS[:2], mach=MACH, segments=1, length=2.0, velocity=1.25)
    data = found.data
    np.testing.assert_allclose(data["strouhal"].values, data["frequency"].values * 2.0 / 1.25, rtol=1e-14)
    # the level is per Strouhal number: it integrates to the same power
    power = np.sum(10 ** (data["level"].values / 10), axis=-1) * data["strouhal"].values[1]
    np.testing.assert_allclose(power, data["density"].values.sum(axis=-1) * data["frequency"].values[1], rtol=1e-10)
