"""Third octaves of a far field beside measured spectra."""

import numpy as np
import pytest
import xarray

from hiresx import HiresxError
from hiresx.post import farfield_measured, welch

DT, TONE = 0.1, 0.98
GAINS = {30.0: 0.0, 60.0: -10.0, 90.0: -16.0}


def heard(signals: np.ndarray) -> xarray.Dataset:
    """What `farfield` has of the signals (observers, samples) at the angles of GAINS in its third octaves."""
    spectra = welch.spectra(signals.T, DT, 400, None, "hann", 0.5)
    bands = welch.third_octaves(spectra.frequency, spectra.density)
    return xarray.Dataset(
        {"band_level": (("observer", "band"), 10 * np.log10(bands.squares))},
        {
            "angle": ("observer", list(GAINS)), "band": bands.middles, "band_from": ("band", bands.edges[:-1]),
            "band_to": ("band", bands.edges[1:]), "band_resolved": ("band", bands.edges[1:] <= 2.0),
        },
    )  # fmt: skip


def noise() -> np.ndarray:
    """White noise, of another level at each angle."""
    given = np.random.default_rng(3).normal(size=(len(GAINS), 400_000))
    return given * 10 ** (np.array(list(GAINS.values()))[:, None] / 20)


@pytest.fixture
def measured(tmp_path):
    """White noise, whose density does not depend on the frequency, 100 dB above that of `noise`."""
    density = 100 + 10 * np.log10(2 * DT)
    rows = [f"{strouhal},{','.join(f'{density + gain}' for gain in GAINS.values())}" for strouhal in (0.2, 0.5, 1.6)]
    path = tmp_path / "measured.csv"
    path.write_text("\n".join(["strouhal,angle_30,angle_60,angle_90", *rows]))
    return farfield_measured.read(path)


def test_white_noise_has_the_density_of_white_noise_at_all_angles(measured):
    found = farfield_measured.compare(heard(noise()), measured)
    middles = sorted({row["middle"] for row in found["bands"]})
    np.testing.assert_allclose(middles, 10 ** (np.arange(-7, 3) / 10))  # .2 to 1.58: what is measured
    assert found["offset_db"] == pytest.approx(-100, abs=0.05)
    assert found["between_angles_db"] < 0.6 and found["along_spectra_db"] < 0.6
    assert max(abs(row["difference_db"]) for row in found["bands"]) < 0.4
    assert len(found["bands"]) == 3 * len(middles)


def test_a_tone_raises_its_band_at_its_angle(measured):
    """By what its mean square adds to that of the noise in the band."""
    signals, time = noise(), DT * np.arange(400_000)
    plain = farfield_measured.compare(heard(signals), measured)["bands"]
    signals[1] += 0.3 * np.sqrt(2) * np.sin(2 * np.pi * TONE * time)
    found = farfield_measured.compare(heard(signals), measured)
    rises = {
        (row["angle_deg"], row["middle"]): row["computed_db"] - before["computed_db"]
        for row, before in zip(found["bands"], plain, strict=True)
    }
    (band,) = (key for key, rise in rises.items() if abs(rise) > 0.01)
    width = band[1] * (10**0.05 - 10**-0.05)
    wanted = 10 * np.log10(1 + 0.09 / (0.1 * 2 * DT * width))
    assert band[0] == 60.0 and abs(band[1] - 1.0) < 1e-9 and rises[band] == pytest.approx(wanted, abs=0.1)
    assert found["between_angles_db"] == pytest.approx(wanted, abs=0.6)
    assert found["along_spectra_db"] == pytest.approx(wanted, abs=0.6)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("strouhal,30\nx,1", "not numbers"),
        ("strouhal,p\n1,2", "no table of measured spectra"),
        ("strouhal\n1", "no table of measured spectra"),
        ("strouhal,angle_30\n", "has no numbers\n  .*strouhal,angle_30,angle_60$"),
        ("strouhal,angle_30,angle_30\n1,2,3", "two columns are called angle_30"),
        ("strouhal,angle_30,angle_30.0\n1,2,3", "two columns are for the angle 30"),
        ("strouhal,angle_30\n1,nan", "a level at 30 degrees is not finite"),
        ("strouhal,angle_30\n0,2\n1,3", "not positive and ascending"),
        ("strouhal,angle_30\n1,2\n0.5,3", "not positive and ascending"),
    ],
)
def test_other_tables_are_refused(tmp_path, text, said):
    path = tmp_path / "other.csv"
    path.write_text(text)
    with pytest.raises(HiresxError, match=said):
        farfield_measured.read(path)


@pytest.mark.parametrize(
    ("angles", "strouhal", "said"),
    [
        ([40.0], [0.2, 1.0], "no angle of an observer is measured\n  .*40 degrees.*by --arc"),
        ([30.0], [3.0, 4.0], "no resolved third octave is measured\n  .*3 to 4; --velocity and --length"),
    ],
)
def test_spectra_without_a_common_band_are_refused(angles, strouhal, said):
    levels = {angle: np.zeros(2) for angle in angles}
    with pytest.raises(HiresxError, match=said):
        farfield_measured.compare(heard(noise()), farfield_measured.MeasuredSpectra(np.array(strouhal), levels))
