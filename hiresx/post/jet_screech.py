"""Screech of a jet: symmetric and antisymmetric part of the pressure on both sides of the nozzle, its tones and its
mode."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hiresx.base.plural import plural
from hiresx.errors import HiresxError
from hiresx.estimate.resolution import POINTS_PER_WAVE
from hiresx.post import grid_cutoff, signal_reading, welch
from hiresx.post.jet_theory import Shape
from hiresx.results import Run

# Least number of periods of the expected tone in a segment, if the run is long enough.
_PERIODS = 4
# Ratio of the powers of the two parts above which the stronger one is the mode.
_RULES = 2.0
_HARMONICS, _OTHERS, _HIGHEST = 4, 4, 10
# Tolerance of the frequency of a harmonic: this many lines of the spectrum, or this fraction of its frequency.
_LINES, _SHARE = 0.5, 0.03
# The fundamental is searched between these multiples of the frequency that formulas predict.
_NEAR = (0.6, 1.6)


@dataclass(frozen=True, eq=False)
class Screech:
    """Tones of the screech of a jet. `spectra`: the spectra of half the sum and half the difference of the pressures at
    both lips of the nozzle. `summary`: the tones and how they were found, as numbers. Its entry "stronger" is the
    Strouhal number of a tone that is louder than the fundamental, but too far from the frequency of the formulas to be
    the fundamental."""

    spectra: welch.Spectra
    summary: dict[str, Any]


def lips(run: Run, name: str | None = None, shape: Shape = "planar") -> str:
    """Return the name "NAME.p_0,p_1" of the pressure signals at the two probe points nearest to the lip of the nozzle,
    one on each side of the axis. `shape`: "planar" or "round"; at a round jet the two points are opposite each other.
    `name`: the only history to search; None for all. Raises HiresxError if there are no such points."""
    best, signals = np.inf, ""
    for history_name in run.histories if name is None else [name]:
        history = run.history(history_name)
        if "place" not in history.dims or "p" not in history.data_vars:
            continue
        x, y, z = (history[axis].values for axis in "xyz")
        for m in range(x.size):
            beside = z[m] if shape == "planar" else -z[m]
            apart = np.max([np.abs(x - x[m]), np.abs(y + y[m]), np.abs(z - beside)], axis=0)
            mirrored = np.flatnonzero(apart < 1e-6)
            height = y[m] if shape == "planar" else np.hypot(y[m], z[m])
            if height < 0.45 or not y[m] > 0 or not mirrored.size:
                continue
            far = np.hypot(x[m], height - 0.55)
            if far < best and (far < 2.0 or name is not None):
                best, signals = far, f"{history_name}.p_{m},p_{mirrored[0]}"
    if not signals:
        raise HiresxError(
            f"{run.path} has no probe of p on both sides of the nozzle's lip",
            'add one: [[probe]] name = "lips", points = [[-0.1, 0.8, 0.0], [-0.1, -0.8, 0.0]], variables = ["p"]',
        )
    return signals


def screech(
    run: Run,
    expected: float,
    height_over_velocity: float,
    signals: str,
    start: float | None = None,
    end: float | None = None,
    segments: int | None = None,
) -> Screech:
    """Return the tones of the screech of a jet from the pressure at the two lips of the nozzle. `expected`: the
    frequency that formulas predict, in c_ref / L. `height_over_velocity`: the factor from frequency to Strouhal number:
    h / Uj with the nozzle height h (planar) or Dj / Uj with the diameter Dj of the expanded jet (round). `signals`: the
    two signals, "NAME.p_0,p_1". `start`, `end`: first and last time, in units of L / c_ref (length scale over sound
    speed). `segments`: the number of overlapping segments whose spectra are averaged; None: four, or more and shorter
    ones if these show no tone near `expected`. `carried` in the summary: whether the grid at the lips resolves a tone
    (its frequency is below the `cutoff`, see `grid_cutoff.cutoffs`); None if this is not known. Raises HiresxError if
    `signals` are not two."""
    taken = signal_reading.read(run, signals, start, end)
    cutoff, held = (
        grid_cutoff.lowest(grid_cutoff.cutoffs(run, taken.places)),
        grid_cutoff.highest_waves(run, taken.places),
    )
    ends = cutoff, grid_cutoff.lowest(grid_cutoff.alias_free(taken, held))
    if len(taken.labels) != 2:
        raise HiresxError(f'"{signals}" is {plural(len(taken.labels), "signal")}', "name the two lips: NAME.p_0,p_1")
    parts = np.stack([taken.values.sum(axis=1), taken.values[:, 0] - taken.values[:, 1]], axis=1) / 2
    for found in _spectra_by_length(parts, taken, expected, segments):
        peaks = [(peak, n) for n in (0, 1) for peak in welch.peaks(found.only(n))]
        near = [entry for entry in peaks if _NEAR[0] <= entry[0].frequency / expected <= _NEAR[1]]
        if near:
            break
    periods = len(parts) * taken.dt * expected
    summary: dict[str, Any] = {
        "signals": signals, "from": float(taken.time[0]), "to": float(taken.time[-1]),
        "segments": found.segments, "resolution": found.resolution, "threshold_db": found.threshold_db(),
        "expected_frequency": expected, "expected_periods": periods,
        "antisymmetric_part": float(parts[:, 1].var() / parts.var(axis=0).sum()),
        "fundamental": None, "harmonics": [], "other_tones": [], "stronger": None,
        "dt": taken.dt, "filtered": taken.filtered, "points_per_wave": POINTS_PER_WAVE, "cutoff": cutoff,
        "warnings": grid_cutoff.warnings(taken, held),
    }  # fmt: skip
    known = []
    if near:
        first, n = max(near, key=lambda entry: entry[0].amplitude)
        summary["fundamental"] = _tone(first, n, found, height_over_velocity, ends)
        known.append(first.frequency)
        for order in range(2, _HARMONICS + 1):
            at = order * first.frequency
            near_it = max(_LINES * found.resolution, _SHARE * at)
            there = [e for e in peaks if abs(e[0].frequency - at) <= near_it]
            if there:
                peak, m = max(there, key=lambda entry: entry[0].amplitude)
                summary["harmonics"].append({"order": order, **_tone(peak, m, found, height_over_velocity, ends)})
                known.append(peak.frequency)
    for peak, n in sorted(peaks, key=lambda entry: -entry[0].amplitude):
        if peak.frequency > _HIGHEST * expected or len(summary["other_tones"]) == _OTHERS:
            continue
        if all(abs(peak.frequency - f) > 2 * found.resolution for f in known):
            summary["other_tones"].append(_tone(peak, n, found, height_over_velocity, ends))
            known.append(peak.frequency)
    others = summary["other_tones"]
    if near and others and others[0]["amplitude"] > first.amplitude:
        summary["stronger"] = others[0]["strouhal"]
    return Screech(found, summary)


def _spectra_by_length(
    parts: np.ndarray, taken: signal_reading.Signals, expected: float, segments: int | None
) -> Iterator[welch.Spectra]:
    """Yield spectra of four segments, which overlap by half, and then of segments half as long, repeatedly, as long as
    a segment contains enough periods: a tone whose frequency varies is broader than the lines of the first spectra. If
    `segments` is given, only the spectra of so many segments are returned."""
    dt, filtered = taken.dt, taken.filtered
    if segments is not None:
        yield welch.spectra(parts, dt, segments, filtered=filtered)
        return
    least = min(len(parts), int(_PERIODS / expected / dt))
    length = max(int(len(parts) / 2.5), least)
    yield welch.spectra(parts, dt, length=length, filtered=filtered)
    while length > least:
        length = max(length // 2, least)
        yield welch.spectra(parts, dt, length=length, filtered=filtered)


def _tone(
    peak: welch.Peak, part: int, found: welch.Spectra, scale: float, ends: tuple[float | None, ...]
) -> dict[str, Any]:
    about = slice(max(peak.line - 1, 1), peak.line + 2)
    symmetric, antisymmetric = found.density[:, about].sum(axis=1)
    mode = "mixed"
    if antisymmetric > _RULES * symmetric:
        mode = "flapping"
    elif symmetric > _RULES * antisymmetric:
        mode = "symmetric"
    return {
        "frequency": peak.frequency, "strouhal": peak.frequency * scale, "half_power_width": peak.width,
        "amplitude": peak.amplitude, "above_background_db": peak.above_background_db, "mode": mode,
        "antisymmetric_part": float(antisymmetric / (symmetric + antisymmetric)),
        "carried": grid_cutoff.is_resolved(peak, *ends),
    }  # fmt: skip
