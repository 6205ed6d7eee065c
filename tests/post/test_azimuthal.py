"""Azimuthal modes of a ring of probes: waves that are known, their direction, and what is no ring."""

import json

import numpy as np
import pytest
import reported

pytest.importorskip("xarray", reason="pip install '.[post]'")

import made_runs

from hiresx import cli
from hiresx.errors import HiresxError
from hiresx.post import azimuthal
from hiresx.post.azimuthal import decompose, ring_angles

F, DT, SAMPLES = 0.4, 0.05, 4000
TIME = DT * np.arange(SAMPLES)


def circle(n, start=0.0):
    theta = start + 2 * np.pi * np.arange(n) / n
    return theta, np.stack([0 * theta, 0.65 * np.cos(theta), 0.65 * np.sin(theta)], axis=1)


def wave(m, theta, amplitude=1e-3, f=F, phase=0.3):
    """What turns from y to z when m > 0."""
    return amplitude * np.cos(m * theta - 2 * np.pi * f * TIME[:, None] + phase)


def noise(n, size=1e-5):
    return size * np.random.default_rng(4).standard_normal((SAMPLES, n))


@pytest.mark.parametrize(("m", "start"), [(0, 0.3), (1, 0.0), (-1, 0.3), (2, 0.3), (-3, 0.3)])
def test_a_wave_is_found_in_its_mode_alone(m, start):
    theta, _ = circle(8, start)
    found = decompose(wave(m, theta), theta, DT)
    assert found.m.tolist() == [-3, -2, -1, 0, 1, 2, 3]
    power = found.density.sum(axis=1) * found.frequency[1]
    assert power[found.m == m] == pytest.approx(0.5e-6, rel=0.02)
    assert power[np.abs(found.m) != abs(m)].max() < 1e-20 * power.max()
    if m:  # between f and -f there is what a window leaves of a line far from it
        assert power[found.m == -m] < 1e-3 * power.max()


def test_all_modes_add_up_to_the_mean_square():
    """Nine places see |m| <= 4: nothing is lost, and the order in which they are given does not matter."""
    theta, _ = circle(9)
    values = noise(9, 1.0)
    found = decompose(values, theta, DT)
    np.testing.assert_allclose(found.density.sum(axis=0)[2:], found.whole.density[0][2:], rtol=1e-9)
    shuffled = np.random.default_rng(0).permutation(9)
    again = decompose(values[:, shuffled], theta[shuffled], DT)
    np.testing.assert_allclose(again.density, found.density, rtol=1e-9)


@pytest.fixture(scope="module")
def jets(tmp_path_factory):
    """Runs with a ring of 16 places, by what they do."""
    there = tmp_path_factory.mktemp("jets")
    theta, places = circle(16)
    waves = {
        "axisymmetric": wave(0, theta),
        "helical": wave(1, theta),
        "against": wave(-1, theta) + wave(1, theta, 3e-4, phase=1.0),
        "flapping": wave(1, theta) + wave(-1, theta, phase=1.0),
    }
    for name, values in waves.items():
        made_runs.probe(made_runs.run(there / name), "lip", TIME, places, p=1 / 1.4 + values + noise(16))
    return there


@pytest.mark.parametrize(
    ("name", "kind", "m"),
    [("axisymmetric", "axisymmetric", 0), ("helical", "helical", 1), ("against", "helical", -1)],
)
def test_tones_are_named(jets, name, kind, m):
    (tone,) = azimuthal(jets / name, "lip.p", velocity=1.2).summary["tones"]
    assert (tone["kind"], tone["m"]) == (kind, m) and tone["share"] > 0.99
    assert tone["frequency"] == pytest.approx(F, abs=0.01) and tone["strouhal"] == pytest.approx(F / 1.2, abs=0.01)


def test_a_flapping_jet_and_the_command(jets, capsys):
    pytest.importorskip("matplotlib", reason="pip install '.[plot]'")
    assert cli.execute(["post", "azimuthal", str(jets / "flapping"), "lip.p", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    (tone,) = found["tones"]
    assert tone["kind"] == "flapping" and abs(tone["m"]) == 1 and abs(tone["turning"]) < 0.05
    assert {entry["m"]: entry["share"] for entry in found["shares"]}[-1] == pytest.approx(0.5, abs=0.01)
    assert sorted(path.rsplit(".", 1)[1] for path in found["files"]) == ["nc", "png"]
    reported.check("post-azimuthal", reported.figures(found))


def test_what_is_no_ring_is_refused():
    _, places = circle(8)
    for wrong, message in (
        (None, "fewer than three"),
        (places[:2], "fewer than three"),
        (places * [1, 1, 2], "do not lie on a circle"),
        (places + np.linspace(0, 0.1, 8)[:, None] * [1, 0, 0], "do not lie on a circle"),
        (places[:-1], "do not lie at equal angles"),
        (np.concatenate([places, places[:1]]), 'two places of "lip.p" are one'),
    ):
        with pytest.raises(HiresxError, match=message):
            ring_angles(wrong, "lip.p")
