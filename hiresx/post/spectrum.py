"""`hiresx post spectrum`: power spectra of probes and other histories, their peaks, and cross spectra."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from hiresx.base.plural import plural
from hiresx.errors import HiresxError
from hiresx.estimate.resolution import POINTS_PER_WAVE
from hiresx.output.show import lines, picture_file
from hiresx.output.show.look import Look
from hiresx.post import grid_cutoff, signal_reading, welch
from hiresx.post.result import Result, as_run, dataset, file_stem

# Largest numbers of curves in one picture, and of peaks that it labels.
_CURVES, _NAMED = 8, 4
# Curves for comparison: a label, frequencies in c_ref / L, levels, number of the signal (-1: another) and of the run.
Curve: TypeAlias = tuple[str, np.ndarray, np.ndarray, int, int]
_DASHES = ("--", ":", "-.")


def spectrum(
    run: Any,
    signals: str,
    start: float | None = None,
    end: float | None = None,
    segments: int = 8,
    window: str = "hann",
    overlap: float = 0.5,
    ambient: float | None = None,
    length: float = 1.0,
    velocity: float = 1.0,
    prominence: float | None = None,
    cross: bool = False,
    others: Sequence[Any] = (),
    reference: str | Path | None = None,
    look: Look | None = None,
    points_per_wave: float | None = None,
) -> Result:
    """Return the power spectra of signals of `run` (a folder or the result of `hiresx.open`), their levels and peaks.
    `signals`: "NAME.COLUMN", the names of a history and of one of its columns, see `signal_reading.read`. The integral
    of the density over frequency is the mean square.

    - `start`, `end`: the first and the last time to use, in units of L / c_ref (length scale over sound speed).
    - `segments`: the number of segments whose spectra are averaged. `window`: a window of SciPy. `overlap`: the
      fraction by which segments overlap.
    - `ambient`: the ambient pressure in Pa; levels of the pressure are then in dB re 20 uPa. Without it, and for other
      columns, levels are in dB re the unit of the column.
    - `length`, `velocity`: scales of the Strouhal number f length / velocity, in units of the length scale L and c_ref.
    - `prominence`: by how many dB a peak exceeds the higher of its two adjacent minima; by default it must exceed the
      noise.
    - `cross`: whether coherence and phase of the first signal with each of the others are computed, too.
    - `others`: runs whose spectra of the same signals, with the same number of segments, are drawn for comparison.
    - `reference`: a CSV file that is drawn for comparison. It has a column f and a column with the level, named "level"
      or like the column of the history.
    - `look`: the appearance of the picture.
    - `points_per_wave`: nodes per wavelength of sound that a resolved frequency needs (default 8).

    A peak is `carried` (resolved by the grid) if its frequency is below the `cutoff` at its point, up to which the grid
    has `points_per_wave` nodes per wavelength (`hiresx check` prints it, too). Peaks above it may be caused by the
    grid. `carried` is None if points or grid are not known, and if the peak may be an alias of a higher frequency
    (`grid_cutoff.alias_free`; `warnings`). Raises HiresxError for a history or column that does not exist, and for
    signals that are too short."""
    run = as_run(run)
    points_per_wave = POINTS_PER_WAVE if points_per_wave is None else points_per_wave
    if length <= 0 or velocity <= 0:
        raise HiresxError("the scales of the Strouhal number must be above 0", "see --length and --velocity")
    taken = signal_reading.read(run, signals, start, end)
    found = welch.spectra(
        taken.values, taken.dt, segments, window=window, overlap=overlap, filtered=taken.filtered
    )  # fmt: skip
    if cross and len(taken.labels) < 2:
        raise HiresxError(f'"{signals}" is one signal: it has no cross-spectrum', "name two places: NAME.p_0,p_1")
    if ambient is not None and (taken.column != "p" or ambient <= 0):
        raise HiresxError("levels re 20 uPa are those of the pressure p, for an ambient above 0 Pa", "leave it out")
    # p / (rho_ref c_ref^2) = p* / (gamma p_ambient).
    reference_level = 1.0 if ambient is None else welch.REFERENCE_PRESSURE / (run.gamma * ambient)
    zero = 20 * np.log10(reference_level)
    unit = "dB re 20 uPa" if ambient is not None else f"dB re {taken.units or '1'}"
    scale = length / velocity
    cutoff = grid_cutoff.cutoffs(run, taken.places, points_per_wave)
    ends = [grid_cutoff.lowest(None if cutoff is None else cutoff[[n]]) for n in range(len(taken.labels))]
    held = grid_cutoff.highest_waves(run, taken.places)
    trusted = grid_cutoff.alias_free(taken, held)
    tones = []
    for n, label in enumerate(taken.labels):
        for peak in welch.peaks(found.only(n), prominence):
            tones.append(
                {
                    "signal": label, "frequency": peak.frequency, "strouhal": peak.frequency * scale,
                    "half_power_width": peak.width, "amplitude": peak.amplitude,
                    "level_db": 20 * np.log10(peak.amplitude / np.sqrt(2) / reference_level),
                    "above_background_db": peak.above_background_db, "prominence_db": peak.prominence_db,
                    "carried": grid_cutoff.is_resolved(peak, ends[n], None if trusted is None else float(trusted[n])),
                }
            )  # fmt: skip
    summary: dict[str, Any] = {
        "run": str(run.path), "history": taken.history, "signals": list(taken.labels),
        "from": float(taken.time[0]), "to": float(taken.time[-1]), "samples": len(taken.values), "dt": taken.dt,
        "resampled": taken.resampled, "filtered": taken.filtered, "window": window, "overlap": overlap,
        "segments": found.segments, "segment_samples": found.length, "independent_segments": found.independent,
        "resolution": found.resolution,
        "highest_frequency": float(found.frequency[-1]), "parseval_error": float(found.parseval.max()),
        "peak_threshold_db": found.threshold_db() if prominence is None else prominence, "level_unit": unit,
        "strouhal_length": length, "strouhal_velocity": velocity,
        "points_per_wave": points_per_wave, "cutoff": ends, "warnings": grid_cutoff.warnings(taken, held),
        "variance": found.variance.tolist(),
        "overall_level_db": (10 * np.log10(np.maximum(found.variance, 1e-300)) - zero).tolist(),
        "peaks": tones,
    }  # fmt: skip
    with np.errstate(divide="ignore"):
        level = 10 * np.log10(found.density / scale) - zero
    over, square = ("signal", "frequency"), f"({taken.units})^2"
    kept = {
        "density": (over, found.density, f"power spectral density of {taken.column}", f"{square} L / c_ref"),
        "level": (over, level, "density per Strouhal number", unit),
        "background": (over, found.background, "running median of the density", f"{square} L / c_ref"),
    }
    if cross:
        kept["coherence"] = (over, found.coherence, f"coherence with {taken.labels[0]}", "1")
        kept["phase"] = (over, found.phase, f"phase by which it leads {taken.labels[0]}", "degree")
        at = int(np.argmax(np.where(np.arange(found.frequency.size) >= 2, np.abs(found.cross[1]), 0)))
        summary["cross"] = [
            {"pair": [taken.labels[0], label], "frequency": float(found.frequency[at]),
             "coherence": float(found.coherence[n, at]), "phase_deg": float(found.phase[n, at])}
            for n, label in enumerate(taken.labels) if n
        ]  # fmt: skip
    data = dataset(
        kept,
        {
            "signal": ("signal", list(taken.labels), "signal", "1"),
            "frequency": ("frequency", found.frequency, "frequency", "c_ref / L"),
            "strouhal": ("frequency", found.frequency * scale, "Strouhal number", "1"),
        },
        title=run.title,
        window=window,
        segments=found.segments,
    )
    if len(taken.labels) == 1:
        data = data.isel(signal=0)
    beside = []
    for m, other in enumerate(map(as_run, others)):
        same = signal_reading.read(other, signals, start, end)
        spectra = welch.spectra(
            same.values, same.dt, segments, window=window, overlap=overlap, filtered=same.filtered
        )  # fmt: skip
        for n, label in enumerate(same.labels):
            with np.errstate(divide="ignore"):
                density = 10 * np.log10(spectra.density[n] / scale) - zero
            named = other.path.name + (f": {label}" if len(same.labels) > 1 else "")
            beside.append((named, spectra.frequency[1:], density[1:], n, m))
    if reference is not None:
        beside.append(_points(Path(reference), taken.column))
    look = look or Look()
    return Result(
        file_stem("spectrum", signals),
        summary,
        data,
        lambda: _draw(data, summary, cross, beside, look),
        style=look.style,
        case=run.case,
    )


def _points(path: Path, column: str) -> Curve:
    """Return the curve in a CSV file. Raises HiresxError if it does not exist."""
    table = lines.read_table(path, "f", column)
    for name in (column, "level"):
        if name in table:
            return path.stem, table["f"], table[name], -1, 0
    raise HiresxError(f'{path} has no column "{column}", nor "level"', f"name its columns: f,{column}")


def _draw(data: Any, summary: dict[str, Any], cross: bool, beside: Sequence[Curve], look: Look) -> Any:
    data = data if "signal" in data.dims else data.expand_dims("signal")
    own = summary["strouhal_length"] != 1 or summary["strouhal_velocity"] != 1
    over = data["strouhal"].values if own else data["frequency"].values
    panels = ["level", *(["coherence", "phase"] if cross else [])]
    figure = look.figure(3.4 + 1.6 * (len(panels) - 1))
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False, height_ratios=[2.2, *[1] * (len(panels) - 1)])
    colours = (picture_file.BLUE, *picture_file.OTHERS, "0.35", "#b0417a", "#4d8fb0")
    count = data.sizes["signal"]
    for panel, ax in zip(panels, axes[:, 0], strict=True):
        shown = range(1 if panel != "level" else 0, min(count, _CURVES))
        for n in shown:
            label = str(data["signal"].values[n])
            values = data[panel].values[n]
            style = {"ls": "", "marker": ".", "ms": 2.5} if panel == "phase" else {}
            ax.plot(over[1:], values[1:], color=colours[n % len(colours)], label=label, **style)
        picture_file.add_grid(ax, minor=True)
    ax = axes[0, 0]
    picture_file.use_frequency_axis(ax, over[1], over[-1])
    scale = summary["strouhal_length"] / summary["strouhal_velocity"]
    for label, frequency, level, signal, run in beside:
        if signal < _CURVES:
            colour = "0.45" if signal < 0 else colours[signal % len(colours)]
            dashes = "-" if signal < 0 else _DASHES[run % len(_DASHES)]
            ax.plot(frequency * (scale if own else 1), level, dashes, color=colour, lw=1.0, label=label, zorder=1)
    ax.set_ylabel(f"level per Strouhal number\n[{picture_file.level(summary['level_unit'])}]")
    strongest: list[dict[str, Any]] = []
    for peak in sorted(summary["peaks"], key=lambda peak: -peak["amplitude"]):
        near = any(abs(peak["frequency"] - kept["frequency"]) < 2 * summary["resolution"] for kept in strongest)
        if not near and len(strongest) < _NAMED:
            strongest.append(peak)
    named = []
    for peak in strongest:
        n = list(map(str, data["signal"].values)).index(peak["signal"])
        at = peak["frequency"] * (scale if own else 1)
        height = float(np.interp(peak["frequency"], data["frequency"].values, data["level"].values[n]))
        text = f"{at:.4g}" if peak["carried"] is not False else f"({at:.4g})"
        named.append((at, height, text))
    picture_file.label_points(ax, named)
    known = [end for end in summary["cutoff"][:_CURVES] if end is not None]
    if known:
        grid_cutoff.shade(ax, min(known) * (scale if own else 1), summary["points_per_wave"])
    if count > 1 or beside:
        picture_file.legend_beside(ax, title=f"{_CURVES} of {count} signals" if count > _CURVES else None)
    look.curves([ax])
    if cross:
        axes[1, 0].set_ylim(0, 1.05)
        axes[1, 0].set_ylabel("coherence")
        axes[2, 0].set_ylim(-190, 190)
        axes[2, 0].set_yticks([-180, -90, 0, 90, 180])
        axes[2, 0].set_ylabel("phase [deg]")
    axes[-1, 0].set_xlabel(
        f"$\\mathrm{{St}} = f\\,\\ell/U$,  $\\ell = {summary['strouhal_length']:.4g}\\,L$, "
        f"$U = {summary['strouhal_velocity']:.4g}\\,c_\\mathrm{{ref}}$"
        if own
        else r"$f\,L/c_\mathrm{ref}$"
    )
    heading = look.heading(
        f"{data.attrs.get('title', '')}\n{summary['history']}: {plural(summary['segments'], 'segment')} of "
        f"{plural(summary['segment_samples'], 'sample')}, {summary['window']}, overlap {summary['overlap']:g}, "
        f"resolution {summary['resolution']:.3g}$\\,c_\\mathrm{{ref}}/L$"
    )
    if heading:
        figure.suptitle(heading)
    return figure
