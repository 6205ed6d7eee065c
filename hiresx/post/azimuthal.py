"""`hiresx post azimuthal`: azimuthal modes of the signals of a ring of probes: axisymmetric, helical or flapping."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hiresx.errors import HiresxError
from hiresx.estimate.resolution import POINTS_PER_WAVE
from hiresx.output.show import picture_file
from hiresx.post import grid_cutoff, signal_reading, welch
from hiresx.post.result import Result, as_run, dataset, file_stem

# Tolerance of the distances and angles of the places of a ring, as a fraction of its radius.
_ROUND = 1e-3
# A tone is helical if the difference of the powers of m and -m is at least this fraction of their sum. Otherwise it is
# flapping.
_TURNING = 0.5
# Largest |m| of the modes that are drawn, and number of tones that are named.
_DRAWN, _NAMED = 2, 4


@dataclass(frozen=True, eq=False)
class AzimuthalModes:
    """Power spectra of the azimuthal modes of a pressure at probes on a ring. `m` (modes,): the mode numbers, of waves
    cos(m theta - 2 pi f t) with f > 0; a mode with m > 0 rotates in the direction of increasing theta, and a mode with
    m < 0 in the opposite direction. `frequency` (frequencies,): in c_ref / L. `density` (modes, frequencies): one-sided
    power spectral densities. The sum over all modes of their integrals is the mean square, averaged over the ring.
    `whole`: the spectrum averaged over the ring, in which peaks are searched."""

    m: np.ndarray
    frequency: np.ndarray
    density: np.ndarray
    whole: welch.Spectra


def decompose(
    values: np.ndarray, theta: np.ndarray, dt: float, segments: int = 8, filtered: bool = False
) -> AzimuthalModes:
    """Return the power spectra of the azimuthal modes of signals at n points on a ring. `values` (times, n): the
    signals. `theta` (n,): the angles theta_0 + 2 pi p / n, in any order. `dt`: the time between samples, in units of L
    / c_ref. `segments`: the number of overlapping segments whose spectra are averaged. `filtered`: whether the probe
    has filtered the samples in time; the effect of the filter on the spectra is then removed. The amplitude of mode m
    is p_m = sum over the points of p exp(-i m theta) / n. In the two-sided spectrum of p_m, positive frequencies belong
    to the mode -m and negative frequencies to the mode m. The modes |m| < n/2 are returned. If n is even, the mode n/2
    is left out, since its direction of rotation cannot be determined."""
    n = theta.size
    highest = (n - 1) // 2
    parts = values @ np.exp(-1j * np.outer(theta, np.arange(highest + 1))) / n
    densities: dict[int, np.ndarray] = {}
    for m in range(highest + 1):
        a, b = parts[:, m].real, parts[:, m].imag
        if m == 0:
            found = welch.spectra(a, dt, segments, filtered=filtered)
            densities[0] = found.density[0]
            continue
        found = welch.spectra(np.stack([a, b], axis=1), dt, segments, filtered=filtered)
        both, turn = found.density.sum(axis=0), 2 * found.cross[1].imag
        densities[m], densities[-m] = both + turn, both - turn
    order = np.arange(-highest, highest + 1)
    # Due to round-off the density of the mirror image of a pure mode may be negative.
    density = np.maximum(np.stack([densities[m] for m in order.tolist()]), 0.0)
    single = welch.spectra(values, dt, segments, filtered=filtered)
    return AzimuthalModes(order, single.frequency, density, single.mean())


def ring_angles(places: np.ndarray | None, wanted: str) -> np.ndarray:
    """Return the angles (n,), in radians, of n points on a ring about the x axis, from y to z. `places` (n, 3): the
    coordinates of the points; None if they are unknown, which is an error. `wanted`: the name of the signals, for error
    messages. Raises HiresxError if there are fewer than three points, or if they are not equally spaced on a circle
    around the x axis."""
    hint = "give a probe with points [[x, r cos t, r sin t], ...] at 3 or more equal angles t"
    if places is None or len(places) < 3:
        raise HiresxError(f'"{wanted}" has fewer than three places', hint)
    x, y, z = places.T
    r, theta = np.hypot(y, z), np.arctan2(z, y)
    if np.ptp(r) > _ROUND * r.max() or np.ptp(x) > _ROUND * r.max() or r.max() == 0:
        raise HiresxError(f'the places of "{wanted}" do not lie on a circle around the x axis', hint)
    steps = np.diff(np.sort(theta), append=np.sort(theta)[0] + 2 * np.pi)
    if steps.min() < _ROUND:
        raise HiresxError(
            f'two places of "{wanted}" are one', "leave out the last one of a whole circle: it is the first again"
        )
    if np.ptp(steps) > 2 * _ROUND:
        raise HiresxError(f'the places of "{wanted}" do not lie at equal angles', hint)
    return theta


def azimuthal(
    run: Any,
    signals: str,
    start: float | None = None,
    end: float | None = None,
    segments: int = 8,
    length: float = 1.0,
    velocity: float = 1.0,
) -> Result:
    """Return the power spectra of the azimuthal modes of signals on a ring of probes around the x axis, and the kinds
    of their tones. `run`: a folder or the result of `hiresx.open`. `signals`: "NAME.COLUMN", the names of the history
    and of one of its columns. `start`, `end`: first and last time, in units of L / c_ref (length scale over sound
    speed). `segments`: the number of overlapping segments whose spectra are averaged. `length`, `velocity`: scales of
    the Strouhal number f length / velocity, in units of L and c_ref.

    For each tone of the mean spectrum the result has its modes and its kind: axisymmetric (m = 0 is largest), helical
    (m or -m alone) or flapping (both m and -m). It also has `carried`: whether the grid at the ring resolves the tone
    (its frequency is below the `cutoff`, see `grid_cutoff.cutoffs`); None if that is unknown. Raises HiresxError for
    points that do not lie on such a ring, and for signals that are missing or too short."""
    run = as_run(run)
    if length <= 0 or velocity <= 0:
        raise HiresxError("the scales of the Strouhal number must be above 0", "see --length and --velocity")
    taken = signal_reading.read(run, signals, start, end)
    found = decompose(taken.values, ring_angles(taken.places, signals), taken.dt, segments, taken.filtered)
    scale = length / velocity
    cutoff, held = (
        grid_cutoff.lowest(grid_cutoff.cutoffs(run, taken.places)),
        grid_cutoff.highest_waves(run, taken.places),
    )
    trusted = grid_cutoff.lowest(grid_cutoff.alias_free(taken, held))
    power = found.density.sum(axis=1) * found.frequency[1]
    total = float(found.whole.density.sum() * found.frequency[1])
    tones = []
    for peak in welch.peaks(found.whole):
        lines = slice(max(peak.line - 1, 1), peak.line + 2)
        share = found.density[:, lines].sum(axis=1)
        tones.append({"frequency": peak.frequency, "strouhal": peak.frequency * scale, **_classify(found.m, share),
                      "above_background_db": peak.above_background_db,
                      "carried": grid_cutoff.is_resolved(peak, cutoff, trusted)})  # fmt: skip
    summary: dict[str, Any] = {
        "run": str(run.path), "history": taken.history, "column": taken.column, "places": len(taken.labels),
        "from": float(taken.time[0]), "to": float(taken.time[-1]), "samples": len(taken.values), "dt": taken.dt,
        "resampled": taken.resampled, "segments": found.whole.segments, "resolution": found.whole.resolution,
        "strouhal_length": length, "strouhal_velocity": velocity, "mean_square": total,
        "filtered": taken.filtered, "points_per_wave": POINTS_PER_WAVE, "cutoff": cutoff,
        "warnings": grid_cutoff.warnings(taken, held),
        "shares": [{"m": int(m), "share": float(p / total) if total > 0 else 0.0}
                   for m, p in zip(found.m, power, strict=True)],
        "tones": tones,
    }  # fmt: skip
    square = f"({taken.units})^2"
    data = dataset(
        {"density": (("m", "frequency"), found.density, "power spectral density of the mode", f"{square} L / c_ref")},
        {
            "m": ("m", found.m, "azimuthal mode; positive ones turn from y to z", "1"),
            "frequency": ("frequency", found.frequency, "frequency", "c_ref / L"),
            "strouhal": ("frequency", found.frequency * scale, "Strouhal number", "1"),
        },
        title=run.title,
    )
    return Result(file_stem("azimuthal", signals), summary, data, lambda: _draw(data, summary), case=run.case)


def _classify(m: np.ndarray, share: np.ndarray) -> dict[str, Any]:
    """Return the kind of a tone, from the powers of its modes."""
    by_order = {order: float(share[np.abs(m) == order].sum()) for order in range(int(m.max()) + 1)}
    order = max(by_order, key=lambda key: by_order[key])
    with_theta, against = float(share[m == order][0]), float(share[m == -order][0])
    turning = (with_theta - against) / (with_theta + against) if order else 0.0
    kind = "axisymmetric" if order == 0 else "helical" if abs(turning) > _TURNING else "flapping"
    mode = order if turning >= 0 else -order
    return {"kind": kind, "m": mode, "share": by_order[order] / float(share.sum()), "turning": turning}


def _draw(data: Any, summary: dict[str, Any]) -> Any:
    scale = summary["strouhal_length"] / summary["strouhal_velocity"]
    own = summary["strouhal_length"] != 1 or summary["strouhal_velocity"] != 1
    over = data["strouhal"].values if own else data["frequency"].values
    figure = picture_file.figure(3.6)
    ax = figure.subplots()
    colours = (picture_file.BLUE, *picture_file.OTHERS)
    for m in data["m"].values.tolist():
        if abs(m) <= _DRAWN:
            density = np.maximum(data["density"].sel(m=m).values[1:], np.finfo(float).tiny)
            style = {"color": colours[abs(m)], "ls": "--" if m < 0 else "-"}
            ax.plot(over[1:], 10 * np.log10(density), label=f"m = {m}", **style)
    picture_file.use_frequency_axis(ax, over[1], over[-1])
    highest = 10 * np.log10(float(data["density"].values[:, 1:].max()))
    ax.set_ylim(highest - 80, highest + 3)
    if summary["cutoff"] is not None:
        grid_cutoff.shade(ax, summary["cutoff"] * (scale if own else 1), summary["points_per_wave"])
    named = []
    for tone in summary["tones"][:_NAMED]:
        place = tone["strouhal"] if own else tone["frequency"]
        ax.axvline(place, color="0.5", lw=0.7, ls=":", zorder=0.5)
        text = f"{place:.3g} {tone['kind']}" + (f", m = {tone['m']}" if tone["m"] else "")
        named.append((place, highest, text if tone["carried"] is not False else f"({text})"))
    picture_file.label_points(ax, named)
    ax.set_xlabel("Strouhal number" if own else r"$f\,L/c_\mathrm{ref}$")
    over = picture_file.unit(data["density"].attrs["units"])
    ax.set_ylabel(f"density of the mode\n[dB re {over}]")
    ax.grid(lw=0.3, color="0.85", which="both")
    picture_file.legend_beside(ax)
    figure.suptitle(f"{data.attrs.get('title', '')}\n{summary['history']}.{summary['column']}", fontsize=9)
    return figure
