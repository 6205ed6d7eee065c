"""Spectra of the kinetic energy in a periodic box: of waves of known energy, and of noise."""

import numpy as np
import pytest

pytest.importorskip("xarray", reason="pip install '.[post]'")

from watched_runs import tables

from hiresx import Case, HiresxError, Simulation
from hiresx.cli import execute
from hiresx.post import energy_spectrum
from hiresx.post.energy_spectrum import shells

SIDES = (2.0, 1.0, 2.0)
SPACING = np.pi  # of the longest sides


def run(folder, initial, n=(16, 9, 12), periodic=("x", "y", "z"), **changes):
    case = Case.from_dict(tables(n, SIDES, periodic=periodic, time={"steps": 1, "dt": 1e-9}, **changes))
    Simulation(case, "cpu", initial=initial, out=folder).run(progress=False)
    return folder


def test_waves_have_their_energy_and_scales(tmp_path):
    """u = cos(2 K y) and v = 0.5 cos(K x + K z), K one wave in the side 2: shells 2 and 1.41, that is 1. The mean
    velocity counts for nothing."""

    def waves(x, y, z):
        return 1.0, 0.3 + 0.1 * np.cos(2 * SPACING * y), 0.05 * np.cos(SPACING * (x + z)), 0.0, 1 / 1.4

    found = energy_spectrum(run(tmp_path / "waves", waves, gas={"reynolds": 50.0}), end=0.0)
    k = found.data["wavenumber"].values
    held = found.data["E"].values[0] * SPACING
    np.testing.assert_allclose(k, SPACING * np.arange(k.size))
    np.testing.assert_allclose(held[[0, 1, 2]], [0, 0.05**2 / 4, 0.1**2 / 4], rtol=1e-6, atol=1e-18)
    assert held[3:].max() < 1e-12
    (row,) = found.summary["spectra"]
    square = 2 / 3 * (held[1] + held[2])
    mean_square = SPACING**2 * (held[1] + 4 * held[2])
    assert row["fluctuation"] == pytest.approx(square**0.5)
    assert row["integral_length"] == pytest.approx(np.pi / (2 * square) * (held[1] + held[2] / 2) / SPACING)
    assert row["taylor_length"] == pytest.approx((15 * square / (2 * mean_square)) ** 0.5)
    assert row["reynolds_taylor"] == pytest.approx(50 * row["fluctuation"] * row["taylor_length"])
    assert found.summary["largest_sphere"] == pytest.approx(5 * SPACING)
    assert len(found.draw().axes) == 1


def test_the_sum_over_all_shells_is_the_energy(tmp_path):
    rng = np.random.default_rng(3)

    def noise(x, y, z):
        u, v, w = 0.01 * rng.random((3, *x.shape))
        return 1.0, 5 + u, v, w, 100.0

    found = energy_spectrum(run(tmp_path / "noise", noise))
    assert [row["parseval_error"] < 1e-12 for row in found.summary["spectra"]] == [True, True]
    assert found.summary["spectra"][0]["reynolds_taylor"] is None


def test_a_box_may_be_oblique():
    """A wave vector along two directions that lean against each other has the size that it has in space."""
    periods = np.array([[0.0, 0.0, 1.0], [0.5, 1.0, 0.0], [1.0, 0.0, 0.0]])  # along k, j and i
    share = np.arange(8) / 8
    c, b, a = np.meshgrid(share, share, share, indexing="ij")
    u = np.cos(2 * np.pi * (2 * a + 3 * b + 0 * c))
    places = np.tensordot(np.stack([c, b, a]), periods, ([0], [0]))
    wave = 2 * np.pi * np.array([2.0, 2.0, 0.0])  # of x, y, z: two along i, three along j
    np.testing.assert_allclose(u, np.cos(places @ wave), atol=1e-12)
    k, held = shells([u, 0 * u, 0 * u], periods)
    n = int(np.rint(np.linalg.norm(wave) / k[1]))
    assert held[n] == pytest.approx(0.25) and held.sum() == pytest.approx(0.25)
    longer, _ = shells([u, 0 * u, 0 * u], periods * np.array([[1.0], [2.0], [1.0]]))
    assert longer[1] == pytest.approx(np.pi), "shells are as far apart as the waves of the longest period"


def test_walls_are_refused(tmp_path, capsys):
    folder = run(tmp_path / "gap", lambda x, y, z: (1.0, 0.0, 0.0, 0.0, 1 / 1.4), periodic=("x", "z"))
    with pytest.raises(HiresxError, match='"j" is not periodic and uniform'):
        energy_spectrum(folder)
    assert execute(["post", "energy-spectrum", str(folder)]) != 0
    assert "is not periodic" in "".join(capsys.readouterr())
