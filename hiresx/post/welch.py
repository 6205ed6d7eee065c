"""Power and cross spectra by Welch's method, their peaks, and third-octave bands.

Welch, IEEE Trans. Audio Electroacoust. 15 (1967) 70; Bendat & Piersol, Random Data (2010), chapters 5 and 9."""

from dataclasses import dataclass, replace

import numpy as np

from hiresx.base.plural import plural
from hiresx.errors import HiresxError
from hiresx.post.lags import vertex
from hiresx.post.signal_reading import SHORTEST
from hiresx.results import needs

# Number of segments on either side of the main lobe's bandwidth: 3 contain more than .999 of Hann's power.
_LOBE = 3
# Probability that noise alone causes a peak anywhere in a spectrum.
FALSE_ALARM = 0.01
# Width of the running median for the background, as a fraction of the frequency, and the least number of its lines.
_BACKGROUND, _LINES = 0.6, 11
# Least number of lines in a third octave.
_LINES_OF_BAND = 3
REFERENCE_PRESSURE = 20e-6  # Pa, of sound pressure levels in air


@dataclass(frozen=True)
class Peak:
    """A peak of a power spectrum. `frequency` and `width`: its frequency and half-power width, in c_ref / L.
    `amplitude`: the amplitude of a sine of the same power. `above_background_db`: its height over the background.
    `prominence_db`: its height over the higher of the two minima beside it. Both heights are in dB. `line`: the index
    of its frequency in the spectrum."""

    frequency: float
    width: float
    amplitude: float
    above_background_db: float
    prominence_db: float
    line: int


@dataclass(frozen=True, eq=False)
class Spectra:
    """One-sided spectra (signals, frequencies) of signals of equal length, by Welch's method. `frequency`
    (frequencies,): in c_ref / L.

    `density`: power spectral density, whose integral is the mean square of the windowed segments. `cross` (signals,
    frequencies): cross spectral density of the first signal with each. `background`: the running median of the density.
    `variance` (signals,): the variance of each signal. `parseval` (signals,): the relative difference between the
    integral of the density and the mean square of the windowed segments. `segments` and `length`: the number of
    segments, and the number of samples of each. `window` and `overlap`: the name of the window, and the fraction by
    which segments overlap. `dt`: the time between samples, in units of L / c_ref (length scale over sound speed)."""

    frequency: np.ndarray
    density: np.ndarray
    cross: np.ndarray
    background: np.ndarray
    variance: np.ndarray
    parseval: np.ndarray
    segments: int
    length: int
    window: str
    overlap: float
    dt: float

    @property
    def resolution(self) -> float:
        """Spacing of the frequencies of the spectra, in c_ref / L."""
        return float(self.frequency[1])

    @property
    def coherence(self) -> np.ndarray:
        """Coherence |S_0n|^2 / (S_00 S_nn) of each signal with the first one, an array (signals, frequencies). If there
        is only one segment, it is 1 for all signals."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.abs(self.cross) ** 2 / (self.density[0] * self.density)

    @property
    def phase(self) -> np.ndarray:
        """Phase by which each signal leads the first one, in degrees, an array (signals, frequencies)."""
        return np.degrees(np.angle(self.cross))

    def threshold_db(self) -> float:
        """Return the height above the background, in dB, that a spectrum of noise without tones exceeds at any
        frequency with a probability of only 1 %. The densities of noise have a chi-squared distribution, with twice the
        number of independent segments as degrees of freedom; the background is its median."""
        chi2 = needs.scipy("stats").chi2
        freedom = 2 * self.independent
        high = chi2.isf(FALSE_ALARM / self.frequency.size, freedom)
        return float(10 * np.log10(high / chi2.median(freedom)))

    @property
    def independent(self) -> float:
        """Number of segments without overlap whose average would have the variance of the average over the overlapping
        segments (Welch 1967, eq. 12)."""
        window = needs.scipy("signal").get_window(self.window, self.length)
        step, total = self.length - int(self.overlap * self.length), 1.0
        power = np.sum(window**2)
        for m in range(1, self.segments):
            if m * step >= self.length:
                break
            shared = np.sum(window[m * step :] * window[: self.length - m * step]) / power
            total += 2 * (1 - m / self.segments) * shared**2
        return self.segments / total

    def only(self, n: int) -> "Spectra":
        """Return the spectrum of the signal with the index `n` alone, as an object of this class."""
        kept = slice(n, n + 1)
        names = ("density", "cross", "background", "variance", "parseval")
        return replace(self, **{name: getattr(self, name)[kept] for name in names})

    def mean(self) -> "Spectra":
        """Return one spectrum whose density is the mean of the densities of all signals, as an object of this class.
        Its cross spectrum is this density, too."""
        density = self.density.mean(axis=0)
        background = _background(self.frequency, density)
        return replace(
            self, density=density[None], cross=density[None].astype(complex), background=background[None],
            variance=self.variance.mean(keepdims=True), parseval=self.parseval.max(keepdims=True),
        )  # fmt: skip


def spectra(
    values: np.ndarray,
    dt: float,
    segments: int = 8,
    length: int | None = None,
    window: str = "hann",
    overlap: float = 0.5,
    filtered: bool = False,
) -> Spectra:
    """Return the power and cross spectra of signals by Welch's method. `values` (times, signals): the signals, sampled
    at intervals `dt`, in units of L / c_ref (length scale over sound speed). They are divided into `segments` segments
    or, if `length` is not None, into segments of `length` samples, which overlap by the fraction `overlap`. The mean of
    each segment is subtracted. `window`: the name of a window of SciPy. `filtered`: whether the probe has filtered the
    samples in time (`hiresx.output.watch.filtered`); the effect of the filter on the densities is then removed. Raises
    HiresxError for segments that are too short or longer than the signal, and for unknown windows."""
    signal = needs.scipy("signal")
    values = np.asarray(values, dtype=float).reshape(len(values), -1)
    if not 0 <= overlap < 1:
        raise HiresxError(f"an overlap of {overlap:g} is not possible", "give 0 or more, and less than 1")
    if segments < 1:
        raise HiresxError(f"{plural(segments, 'segment')} are not possible", "give 1 or more")
    if length is None:
        length = int(len(values) / (1 + (segments - 1) * (1 - overlap)))
    if not SHORTEST <= length <= len(values):
        raise HiresxError(
            f"segments of {length} of {plural(len(values), 'sample')} are not possible",
            f"give fewer segments (--segments N), or run longer: a segment has {SHORTEST} samples or more",
        )
    try:
        shape = signal.get_window(window, length)
    except ValueError:
        raise HiresxError(f'there is no window "{window}"', "hann, hamming, blackman, flattop, boxcar, ...") from None
    how = {"fs": 1 / dt, "window": shape, "nperseg": length, "noverlap": int(overlap * length), "detrend": "constant"}
    frequency, density = signal.welch(values, axis=0, **how)
    _, cross = signal.csd(values[:, :1], values, axis=0, **how)
    starts = range(0, len(values) - length + 1, length - int(overlap * length))
    windowed = np.zeros(values.shape[1])
    for first in starts:
        part = values[first : first + length]
        windowed += np.sum((part - part.mean(axis=0)) ** 2 * shape[:, None] ** 2, axis=0)
    windowed /= len(starts) * np.sum(shape**2)
    power = density.sum(axis=0) * frequency[1]
    with np.errstate(invalid="ignore", divide="ignore"):
        parseval = np.where(windowed > 0, np.abs(power / windowed - 1), 0.0)
    if filtered:  # the fraction of the power that passes the filter: -16 dB at half the sampling rate
        passed = np.sinc(frequency * dt)[:, None] ** 8
        density, cross = density / passed, cross / passed
    background = np.stack([_background(frequency, column) for column in density.T])
    return Spectra(
        frequency, density.T, cross.T, background, values.var(axis=0), parseval,
        len(starts), length, window, overlap, dt,
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class ThirdOctaves:
    """Mean squares of signals in third-octave bands of base ten (IEC 61260-1). `middles` (bands,): the exact middle
    frequencies 10^(n/10). `edges` (bands + 1,): the frequencies between the bands. `squares` (..., bands): the mean
    squares. Only bands that lie completely within the spectrum and contain three frequencies or more are included."""

    middles: np.ndarray
    edges: np.ndarray
    squares: np.ndarray


def third_octaves(frequency: np.ndarray, density: np.ndarray) -> ThirdOctaves:
    """Return the mean squares of signals in third-octave bands, from their power spectral `density` (..., frequencies)
    at the equally spaced frequencies `frequency` (frequencies,), such as Strouhal numbers. The middles of the bands are
    the powers 10^(n/10) in the unit of `frequency`. The last frequency is the highest one that is known. The density at
    a frequency is assumed to be constant up to halfway to its neighbours."""
    line, half = float(frequency[1] - frequency[0]), 10**0.05
    lowest = np.ceil(10 * np.log10(max(_LINES_OF_BAND * line / (half - 1 / half), half * line / 2)))
    highest = np.floor(10 * np.log10(frequency[-1] / half) + 1e-9)
    middles = 10 ** (np.arange(lowest, highest + 1) / 10)
    edges = np.append(middles / half, middles[-1:] * half)
    # The integral up to each edge, for constant density around each line; it is linear between the ends of these
    # intervals.
    summed = np.concatenate([np.zeros((*density.shape[:-1], 1)), np.cumsum(density, axis=-1) * line], axis=-1)
    place = np.clip((edges - frequency[0]) / line + 0.5, 0, frequency.size)
    below = np.minimum(place.astype(int), frequency.size - 1)
    upto = summed[..., below] + (place - below) * (summed[..., below + 1] - summed[..., below])
    return ThirdOctaves(middles, edges, np.diff(upto, axis=-1))


def _background(frequency: np.ndarray, density: np.ndarray) -> np.ndarray:
    """Running median of the density over a band of the width _BACKGROUND times its frequency, without the trend of a
    power law.

    A power law between the ends of the band is removed first, because its slope would shift the median at the ends.
    """
    found = np.empty_like(density)
    size = density.size
    with np.errstate(divide="ignore"):
        level = np.log(np.maximum(density, np.finfo(float).tiny))
        place = np.log(np.maximum(frequency, frequency[1] / 2))
    for n in range(size):
        half = max(int(_BACKGROUND / 2 * n), _LINES // 2)
        first, last = max(1, n - half), min(size, n + half + 1)
        x, y = place[first:last] - place[n], level[first:last]
        slope = _slope(x, y)
        found[n] = np.exp(_median(y - slope * x))
    return found


def _slope(x: np.ndarray, y: np.ndarray) -> float:
    """Return the slope between the medians of the lower and the upper third, which tones do not change; x in ascending
    order."""
    third = max(1, x.size // 3)
    below, above = slice(0, third), slice(x.size - third, None)
    run = _middle(x[above]) - _middle(x[below])
    return (_median(y[above]) - _median(y[below])) / run if run > 0 else 0.0


def _median(values: np.ndarray) -> float:
    """Return the median of finite values. NumPy's own function takes several times as long for the short bands of a
    spectrum."""
    half = values.size // 2
    return _middle(np.partition(values, (half - 1 + values.size % 2, half)))


def _middle(ordered: np.ndarray) -> float:
    """Return the median of values of which only the middle ones are in ascending order."""
    half = ordered.size // 2
    return float(ordered[half]) if ordered.size % 2 else float(ordered[half - 1] + ordered[half]) / 2


def peaks(found: Spectra, prominence: float | None = None) -> list[Peak]:
    """Return the peaks of a power spectrum, the most powerful first. `found`: the spectrum of a single signal.

    A peak is a local maximum that exceeds the higher of its two adjacent minima by `prominence` dB or more. Without
    `prominence`, it must exceed the background by `threshold_db`, which noise does not reach, and the minima by half of
    that, so that the slope of coloured noise is not a peak. The frequency is the maximum of the parabola through three
    values in dB. The width is measured at half of the power, and is at least the width of the window. The amplitude
    follows from the power in the main lobe minus the background."""
    signal = needs.scipy("signal")
    density, frequency, background = found.density[0], found.frequency, found.background[0]
    with np.errstate(divide="ignore"):
        level = 10 * np.log10(np.maximum(density, np.finfo(float).tiny))
        height = level - 10 * np.log10(np.maximum(background, np.finfo(float).tiny))
    limit = found.threshold_db()
    lines, about = signal.find_peaks(level, prominence=limit / 2 if prominence is None else prominence)
    made = []
    for line, over in zip(lines, about["prominences"], strict=True):
        if line < 2 or (prominence is None and height[line] < limit):
            continue  # the window spreads the remainder of the mean over the first two lines
        shift = vertex(level[line - 1 : line + 2])
        first, last = max(line - _LOBE, 1), line + _LOBE + 1
        power = float(np.sum(np.maximum(density[first:last] - background[first:last], 0)) * found.resolution)
        made.append(
            Peak(
                float(frequency[line] + shift * found.resolution), _half_width(frequency, density, line),
                float(np.sqrt(2 * power)), float(height[line]), float(over), int(line),
            )
        )  # fmt: skip
    return sorted(made, key=lambda peak: -peak.amplitude)


def _half_width(frequency: np.ndarray, density: np.ndarray, line: int) -> float:
    """Return the distances on both sides of a line at which the density falls to half of its value."""
    half, ends = density[line] / 2, []
    for step in (-1, 1):
        n = line
        while 0 < n < density.size - 1 and density[n] > half:
            n += step
        inner, drop = n - step, density[n - step] - density[n]
        part = (density[inner] - half) / drop if drop > 0 else 0.0
        ends.append(frequency[inner] + step * min(max(part, 0.0), 1.0) * frequency[1])
    return float(ends[1] - ends[0])
