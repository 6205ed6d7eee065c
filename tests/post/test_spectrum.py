"""Spectra: amplitudes, Parseval's theorem, peaks in noise, pairs, and what a user sees of them."""

import json

import netCDF4
import numpy as np
import pytest
import reported

pytest.importorskip("xarray", reason="pip install '.[post]'")

import made_runs

from hiresx import cli
from hiresx.errors import HiresxError
from hiresx.post import result as post_result
from hiresx.post import signal_reading, spectrum, welch

PLACES = [[0.0, 1.0, 0.0], [0.0, -1.0, 0.0]]


def coloured(random, samples, power=2.0):
    """Noise of a density that falls as 1 / f^power, of variance 1."""
    amplitudes = np.fft.rfft(random.standard_normal(samples))
    amplitudes[1:] /= np.arange(1, amplitudes.size) ** (power / 2)
    amplitudes[0] = 0
    made = np.fft.irfft(amplitudes, samples)
    return made / made.std()


@pytest.mark.parametrize("shift", [0.0, 0.13, 0.5, 0.77])
@pytest.mark.parametrize("window", ["hann", "hamming", "blackman"])
def test_the_amplitude_of_a_sine_is_within_a_tenth_of_a_decibel(shift, window):
    dt, samples, amplitude = 0.05, 4000, 0.01
    length = int(samples / 4.5)
    f = (40 + shift) / (length * dt)
    t = dt * np.arange(samples)
    found = welch.spectra(0.7 + amplitude * np.sin(2 * np.pi * f * t + 0.3), dt, window=window)
    assert found.length == length and found.segments == 8
    best = welch.peaks(found)[0]
    assert abs(20 * np.log10(best.amplitude / amplitude)) < 0.1
    assert best.frequency == pytest.approx(f, abs=0.1 * found.resolution)


@pytest.mark.parametrize("window", ["boxcar", "hann", "flattop"])
@pytest.mark.parametrize("samples", [1000, 1001])
def test_parseval(window, samples):
    values = coloured(np.random.default_rng(3), samples)
    found = welch.spectra(values, 0.1, segments=5, window=window)
    assert found.parseval.max() < 1e-10
    one = welch.spectra(values, 0.1, segments=1, window="boxcar")
    assert one.density.sum() * one.resolution == pytest.approx(values.var(), rel=1e-10)


@pytest.mark.parametrize("seed", range(5))
def test_a_tone_six_decibels_above_coloured_noise_is_found_and_nothing_else(seed):
    random = np.random.default_rng(seed)
    dt, samples, f = 0.05, 1 << 14, 2.0
    noise = coloured(random, samples)
    quiet = welch.spectra(noise, dt, segments=32)
    assert welch.peaks(quiet) == [], "the flank of the noise is no peak"
    line = round(f / quiet.resolution)
    f = line * quiet.resolution
    # Three times the noise's own density at the line of the tone, with the noise itself: 6 dB above.
    density = 3 * quiet.background[0][line]
    amplitude = np.sqrt(2 * density * quiet.resolution * 1.5)  # Hann's noise bandwidth is 1.5 lines
    tone = amplitude * np.sin(2 * np.pi * f * dt * np.arange(samples))
    found = welch.peaks(welch.spectra(noise + tone, dt, segments=32))
    assert len(found) == 1 and found[0].frequency == pytest.approx(f, abs=quiet.resolution)
    assert 4.0 < found[0].above_background_db < 8.0


def test_half_power_width_is_that_of_a_resonance():
    """A density 1 / ((f - f0)^2 + b^2) has the half-power width 2 b."""
    random = np.random.default_rng(0)
    dt, samples, f0, b = 0.1, 1 << 17, 1.0, 0.05
    f = np.fft.rfftfreq(samples, dt)
    shaped = np.fft.rfft(random.standard_normal(samples)) / np.sqrt((f - f0) ** 2 + b**2)
    found = welch.spectra(np.fft.irfft(shaped, samples), dt, segments=200)
    best = welch.peaks(found, prominence=6.0)[0]
    assert best.width == pytest.approx(2 * b, rel=0.3) and best.frequency == pytest.approx(f0, abs=b / 2)


def test_coherence_and_phase_of_a_delayed_signal():
    random = np.random.default_rng(5)
    source = random.standard_normal(20001)
    first, later = source[5:], source[:-5]  # the second is what the first was five samples ago
    found = welch.spectra(np.stack([first, later], axis=1), 0.1, segments=40)
    line = 20
    expected = -360 * found.frequency[line] * 0.5
    assert found.phase[1, line] == pytest.approx(expected, abs=5), "it lags"
    assert found.coherence[1, line] > 0.9
    alone = welch.spectra(random.standard_normal((20000, 2)), 0.1, segments=40)
    assert np.median(alone.coherence[1]) < 0.1
    assert alone.independent == pytest.approx(0.95 * 40, rel=0.1)


@pytest.fixture
def lips(tmp_path):
    dt, f = 0.05, 1.7
    time = dt * np.arange(2000)
    noise = 1e-4 * np.random.default_rng(2).standard_normal((time.size, 2))
    tone = 1e-3 * np.sin(2 * np.pi * f * time)
    made_runs.probe(made_runs.run(tmp_path), "lips", time, PLACES, p=1 / 1.4 + noise + np.stack([tone, -tone], axis=1))
    return tmp_path


def test_a_cross_spectrum_is_told_where_both_signals_are(tmp_path):
    """Not where the first one is loudest."""
    time = 0.05 * np.arange(2000)
    both, one = (1e-3 * np.sin(2 * np.pi * f * time) for f in (1.7, 3.1))
    noise = 1e-5 * np.random.default_rng(2).standard_normal((time.size, 2))
    signals = noise + np.stack([both + 5 * one, both], axis=1)
    made_runs.probe(made_runs.run(tmp_path), "lips", time, PLACES, p=1 / 1.4 + signals)
    (found,) = spectrum(tmp_path, "lips.p", cross=True).summary["cross"]
    assert found["frequency"] == pytest.approx(1.7, abs=0.02) and abs(found["phase_deg"]) < 1


def test_levels_are_sound_pressure_levels(lips):
    found = spectrum(lips, "lips.p_0", ambient=101325.0).summary
    pascals = 1e-3 * 1.4 * 101325.0
    assert found["peaks"][0]["level_db"] == pytest.approx(20 * np.log10(pascals / np.sqrt(2) / 20e-6), abs=0.1)
    assert found["level_unit"] == "dB re 20 uPa"
    assert found["peaks"][0]["frequency"] == pytest.approx(1.7, abs=0.02)


def test_strouhal_numbers_have_their_scales(lips):
    found = spectrum(lips, "lips.p_0", length=2.0, velocity=1.25)
    assert found.summary["peaks"][0]["strouhal"] == pytest.approx(1.7 * 2 / 1.25, rel=0.01)
    data = found.data
    # The level is per Strouhal number: it integrates to the same power.
    power = np.sum(10 ** (data["level"].values / 10)) * float(data["strouhal"][1])
    assert power == pytest.approx(float(data["density"].sum() * data["frequency"][1]), rel=1e-12)


def test_samples_at_unequal_distances_are_brought_to_equal_ones(tmp_path):
    random = np.random.default_rng(4)
    time = np.cumsum(0.05 * (1 + 0.2 * random.random(3000)))
    made_runs.probe(made_runs.run(tmp_path), "one", time, [[0, 0, 0]], p=np.sin(2 * np.pi * 1.1 * time)[:, None])
    whole = spectrum(tmp_path, "one")
    reported.check("post-spectrum-resampled", reported.figures({"summary": whole.summary, "data": whole.data}))
    found = whole.summary
    assert found["resampled"] and found["peaks"][0]["amplitude"] == pytest.approx(1.0, rel=0.012)


def test_the_command_writes_numbers_arrays_and_a_picture(lips, capsys):
    command = ["post", "spectrum", str(lips), "lips.p", "--cross", "--from", "10", "--json"]
    assert cli.execute(command) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["from"] >= 10 and found["segments"] == 8 and found["window"] == "hann"
    assert found["parseval_error"] < 1e-10
    assert abs(abs(found["cross"][0]["phase_deg"]) - 180) < 3 and found["cross"][0]["coherence"] > 0.99
    reported.check("post-spectrum", reported.figures(found))
    names = [path.rpartition("/")[2] for path in found["files"]]
    assert names == ["spectrum_lips.p.nc", "spectrum_lips.p.png"]
    with netCDF4.Dataset(lips / "post" / names[0]) as file:
        assert file["density"].shape == (2, file.dimensions["frequency"].size)
        assert file["frequency"].units == "c_ref / L"
    assert cli.execute(["post", "spectrum", str(lips), "lips.p_0", "--out", str(lips / "s.csv")]) == 0
    table = np.genfromtxt(lips / "s.csv", delimiter=",", names=True)
    assert table.dtype.names[:2] == ("frequency", "density") or "density" in table.dtype.names
    assert (table["density"] >= 0).all()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nose.p"], 'no history "nose"'),
        (["lips.q"], 'no column "q"'),
        (["lips.p_7"], "2 places"),
        (["lips.p", "--from", "1e9"], "0 samples"),
        (["lips.p", "--segments", "2000"], "fewer segments"),
        (["lips.p", "--window", "round"], 'no window "round"'),
        (["lips.p_0", "--cross"], "no cross-spectrum"),
        (["lips.p", "--overlap", "1"], "overlap"),
        (["lips.p_0", "--out", "x.bmp"], "cannot be written"),
        (["lips.p", "--ambient", "-5"], "above 0 Pa"),
    ],
)
def test_faults_name_the_place_and_the_mend(lips, words, message, capsys):
    assert cli.execute(["post", "spectrum", str(lips), *words]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert message in said, said
    assert not (lips / "post").exists()


@pytest.mark.parametrize("segments", [2, 5, 40])
def test_segments_that_overlap_by_half_count_for_less(segments):
    """Of a window without a taper neighbours share half: 1/(1 + 2 (1 - 1/K)/4) of the K segments (Welch, eq. 12)."""
    values = np.random.default_rng(5).standard_normal(4100)
    found = welch.spectra(values, 0.1, segments=segments, window="boxcar", length=2 * (4100 // (segments + 1)))
    assert found.segments == segments
    assert found.independent == pytest.approx(segments / (1 + 0.5 * (1 - 1 / segments)), rel=1e-3)


def test_curves_of_other_runs_have_the_scale_of_the_own(lips):
    """The same run beside itself lies on its own curve, over the Strouhal number too."""
    pytest.importorskip("matplotlib", reason="pip install '.[post]'")
    figure, _ = spectrum(lips, "lips.p_0", others=[lips], length=2.0, velocity=1.25, ambient=101325.0).plot()
    assert figure.get_size_inches() == pytest.approx((7.0, 3.4), abs=0.01) and len(figure.axes) == 1
    own, other = figure.axes[0].lines[:2]
    for mine, theirs in zip(own.get_xydata(), other.get_xydata(), strict=True):
        np.testing.assert_allclose(theirs, mine, rtol=1e-12)


def test_too_many_segments_name_the_option():
    with pytest.raises(HiresxError) as caught:
        welch.spectra(np.zeros(40), 0.1, segments=8)
    assert "--segments" in caught.value.hint


def test_files_that_are_replaced_are_named(tmp_path):
    data = post_result.dataset({"a": ("n", np.arange(3.0), "a", "1")}, {})
    for again in (False, True):
        made = post_result.Result("a", {}, data, lambda: None)
        written = made.write(tmp_path / "a.csv")
        assert made.replaced == (written if again else [])


def test_the_sample_at_the_end_of_a_run_does_not_have_the_others_resampled():
    time = np.append(0.5 * np.arange(20), 9.7)
    even, values, resampled = signal_reading._resample_evenly(time, np.sin(time)[:, None])
    assert not resampled and even.tolist() == time[:-1].tolist() and len(values) == 20


@pytest.mark.parametrize("start", [0.0, 1000.0])
@pytest.mark.parametrize(("off", "wanted"), [(2e-7, False), (5e-6, True)])
def test_what_counts_as_evenly_spaced_does_not_depend_on_the_time(start, off, wanted):
    time = start + 0.5 * np.arange(20)
    time[7] += off
    assert signal_reading._resample_evenly(time, np.zeros((20, 1)))[2] == wanted
