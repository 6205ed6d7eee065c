"""Histories of a run over time, and their spectra."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.case.faults import did_you_mean
from hiresx.errors import HiresxError
from hiresx.output.fields import derived
from hiresx.output.saved import record
from hiresx.output.show import lines, page
from hiresx.output.watch import history

# Panels of one picture, and curves in one panel: more cannot be told apart.
PANELS, CURVES = 8, 10
# What every history has, and what is drawn only when it is asked for.
_CLOCK, _ASIDE = ("step", "time"), ("dt",)
# Samples of the shortest spectrum, and segments of which one is averaged where the samples suffice.
SHORTEST, SEGMENTS = 16, 4
# Periods in a segment of a peak that can be told from a drift.
PERIODS = 2


def plot_history(
    directory: str | Path,
    columns: str,
    out: str | Path | None = None,
    reference: str | Path | None = None,
    against: str | Path | None = None,
    start: float | None = None,
) -> list[Path]:
    """Draw columns of a history of the run in `directory` over time (over steps where the time stands still).

    `columns`: "NAME" (every column of that history: residual, a probe's or force's name, ...) or "NAME.COLUMN,...".
    Norms are drawn on a logarithmic axis. `reference`: a CSV file with a column time. `against`: another run, drawn
    beside. `start`: the time to begin at. `out`: see `plot.plot_run`. Returns the files written.

    Raises HiresxError when matplotlib, the history or a column is missing.
    """
    page.require_matplotlib()
    ours = _chosen(directory, columns, start)
    compared = [] if against is None else [(Path(against).name, _chosen(against, columns, start))]
    clock = ours.clock
    points = lines.read_table(Path(reference), clock) if reference else {}
    panels = ours.panels
    with page.style():
        figure = page.figure(0.9 + 1.75 * len(panels))
        axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
        for ax, names in zip(axes, panels, strict=True):
            for label, other in compared:
                _draw(ax, other, [name for name in names if name in other.data], page.OTHERS, f"{label}: ", "--")
            _draw(ax, ours, names, (page.BLUE, *page.OTHERS), "", "-")
            for name in names:
                if name in points:
                    ax.plot(points[clock], points[name], color="0.55", lw=1.6, label=Path(reference).stem, zorder=1)
            if len(names) == 1:
                ax.set_ylabel(ours.label(names[0]))
            if names[0] in ours.norms:
                ax.set_yscale("log")
                ax.set_ylabel("residual norms")
            if len(ax.lines) > 1:
                ax.legend(loc="best", ncols=2)
            _finish(ax)
        axes[-1].set_xlabel(page.TIME if clock == "time" else "step")
        figure.suptitle(f"{ours.title}\nhistory {ours.name}", fontsize=10)
        return [page.save(figure, _target(directory, out, "history", columns, against))]


def plot_spectrum(
    directory: str | Path,
    columns: str,
    out: str | Path | None = None,
    reference: str | Path | None = None,
    against: str | Path | None = None,
    start: float | None = None,
) -> list[Path]:
    """Draw the power spectral density of columns of a history, and name its highest peak; see `spectrum`.

    Arguments as those of `plot_history`; a `reference` has a column f. Leave out the time in which the flow develops:
    `start`.
    """
    page.require_matplotlib()
    ours = _chosen(directory, columns, start)
    compared = [] if against is None else [(Path(against).name, _chosen(against, columns, start))]
    points = lines.read_table(Path(reference), "f") if reference else {}
    if ours.clock != "time":
        raise HiresxError(f"{directory} has local time steps: there is no spectrum", "draw the history")
    names = [name for panel in ours.panels for name in panel]
    with page.style():
        figure = page.figure(0.9 + 2.2 * len(names))
        axes = figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0]
        for ax, name in zip(axes, names, strict=True):
            for (label, other), colour in zip(compared, cycle(page.OTHERS), strict=False):
                if name in other.data:
                    found = spectrum(other.data["time"], other.data[name])
                    ax.loglog(found.frequency[1:], found.density[1:], color=colour, label=label)
            found = spectrum(ours.data["time"], ours.data[name])
            if name in points:
                ax.loglog(points["f"], points[name], color="0.55", lw=1.6, label=Path(reference).stem, zorder=1)
            ax.loglog(found.frequency[1:], found.density[1:], color=page.BLUE, label=ours.run, zorder=3)
            if found.resolved:
                ax.axvline(found.peak, color="0.6", lw=0.6, zorder=0)
            ax.set_title(_said(found), loc="left")
            ax.set_ylabel(f"density of {ours.label(name)}")
            if len(ax.lines) > 2:
                ax.legend(loc="best")
            _finish(ax)
        axes[-1].set_xlabel(r"$f\,L/c_\mathrm{ref}$")
        figure.suptitle(f"{ours.title}\nspectrum of {ours.name}", fontsize=10)
        return [page.save(figure, _target(directory, out, "spectrum", columns, against))]


@dataclass(frozen=True)
class Spectrum:
    """One-sided power spectral density over frequency, both (n,), in c_ref/L; `peak`: the frequency of the highest
    value but that of frequency 0; of how many samples and segments."""

    frequency: np.ndarray
    density: np.ndarray
    peak: float
    samples: int
    segments: int

    @property
    def resolved(self) -> bool:
        """Whether `peak` is one: a segment holds PERIODS of it or more. With fewer Hann's window spreads it as far as
        frequency 0, and a drift looks the same."""
        return bool(self.peak > (PERIODS - 0.5) * self.frequency[1])


def spectrum(time: np.ndarray, values: np.ndarray) -> Spectrum:
    """Spectrum of the fluctuations of `values` (n,) at `time` (n,), rising.

    Welch's method (IEEE Trans. Audio Electroacoust. 15 (1967) 70): means of half-overlapping segments under Hann's
    window, from each of which its mean is taken; the density integrates to the variance. Samples at unequal distances
    are brought to equal ones by cubic interpolation (of the four nearest). Raises HiresxError for too few samples.
    """
    known = np.isfinite(values)
    time, values = time[known], values[known]
    if time.size < SHORTEST:
        raise HiresxError(
            f"{time.size} samples are too few for a spectrum, which needs {SHORTEST}",
            "sample more often, or run longer",
        )
    even = np.linspace(time[0], time[-1], time.size)
    step = even[1] - even[0]
    if np.abs(time - even).max() > 1e-6 * step:
        values = _cubic(time, values, even)
    # Half-overlapping, so that SEGMENTS of them reach over all samples.
    length = max(SHORTEST, 2 * time.size // (SEGMENTS + 1))
    starts = range(0, time.size - length + 1, length // 2)
    window = np.hanning(length + 1)[:-1]
    density = np.zeros(length // 2 + 1)
    for first in starts:
        part = values[first : first + length]
        density += np.abs(np.fft.rfft((part - part.mean()) * window)) ** 2
    density *= 2 * step / (len(starts) * np.sum(window**2))
    density[0] /= 2
    if length % 2 == 0:
        density[-1] /= 2
    frequency = np.fft.rfftfreq(length, step)
    return Spectrum(frequency, density, float(frequency[1 + np.argmax(density[1:])]), time.size, len(starts))


def _said(found: Spectrum) -> str:
    """What stands above a spectrum."""
    place = f"highest at $f = {found.peak:.4g}\\,c_\\mathrm{{ref}}/L$"
    if found.resolved:
        place += f" (resolution {found.frequency[1]:.2g})"
    else:
        place += f", the lowest:\nno peak is resolved, a segment holds fewer than {PERIODS} periods"
    return f"{place}; {found.samples} samples, {found.segments} segment(s)"


def _cubic(x: np.ndarray, f: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Lagrange's interpolation of degree 3 from the four nodes around each place."""
    first = np.clip(np.searchsorted(x, at) - 2, 0, x.size - 4)
    nodes = [first + m for m in range(4)]
    found = np.zeros(at.shape)
    for m in range(4):
        weight = np.ones(at.shape)
        for n in range(4):
            if n != m:
                weight *= (at - x[nodes[n]]) / (x[nodes[m]] - x[nodes[n]])
        found += weight * f[nodes[m]]
    return found


@dataclass
class _Chosen:
    """Columns that were asked for, and what they are."""

    run: str
    title: str
    name: str
    kind: str
    data: dict[str, np.ndarray]
    columns: dict[str, history.Column]
    asked: list[str]

    @property
    def clock(self) -> str:
        time = self.data["time"]
        return "time" if time.size < 2 or time[-1] > time[0] else "step"

    @property
    def norms(self) -> set[str]:
        """Columns that want a logarithmic axis."""
        residual = {"rho", "rho_u", "rho_v", "rho_w", "e"} if self.kind == "residual" else set()
        return {name for name in residual if name in self.data and (self.data[name] > 0).any()}

    @property
    def panels(self) -> list[list[str]]:
        """Names of the curves in each panel: norms together, the places of a probe together."""
        found: dict[str, list[str]] = {}
        for name in self.asked:
            group = "norms" if name in self.norms else self.columns[name].name if name in self.columns else name
            found.setdefault(group, []).append(name)
        return [names[:CURVES] for names in list(found.values())[:PANELS]]

    def label(self, name: str) -> str:
        about = self.columns.get(name)
        if about is None:
            return name
        if about.name in derived.VARIABLES and self.kind == "probe":
            return page.symbol(about.name)
        return f"{about.name} [{about.units}]" if about.units not in ("", "1") else about.name


def _chosen(directory: str | Path, wanted: str, start: float | None) -> _Chosen:
    directory = Path(directory)
    if not directory.is_dir():
        raise HiresxError(f"{directory} is not the folder of a run", "give the folder that hiresx run made")
    name, _, listed = wanted.partition(".")
    there = history.histories(directory)
    if name not in there:
        raise HiresxError(f'{directory} has no history "{name}"', did_you_mean(name, list(there), "histories there"))
    table = history.read(there[name])
    data = table.flat()
    columns = {key: table.columns[key if key in table.columns else key.rpartition("_")[0]] for key in data}
    groups: dict[str, list[str]] = {}
    for key in data:
        groups.setdefault(columns[key].name, []).append(key)
    # In two dimensions there is no w: a residual that is always zero shows nothing.
    idle = {key for key, values in data.items() if table.kind == "residual" and not values.any()}
    asked = [key for key in data if key not in (*_CLOCK, *_ASIDE) and key not in idle]
    if listed:
        asked = []
        for column in (part.strip().removeprefix(f"{name}.") for part in listed.split(",")):
            if column not in data and column not in groups:
                raise HiresxError(
                    f'history "{name}" has no column "{column}"', did_you_mean(column, list(groups), "columns")
                )
            asked += [column] if column in data else groups[column]
    if start is not None:
        data = {key: values[table.data["time"] >= start] for key, values in data.items()}
    if not data["time"].size:
        raise HiresxError(
            f'history "{name}" of {directory} has no samples to draw', "let the run go on, or begin earlier"
        )
    title = (record.found(directory).get("case") or {}).get("title") or directory.name
    return _Chosen(directory.name, title, name, table.kind, data, columns, asked)


def _draw(ax: Any, chosen: _Chosen, names: Sequence[str], colours: Sequence[str], prefix: str, style: str) -> None:
    for name, colour in zip(names, cycle(colours), strict=False):
        values = chosen.data[name]
        if name in chosen.norms:
            values = np.where(values > 0, values, np.nan)  # nothing changes yet: no place on a logarithmic axis
        marker = {"marker": "o", "ms": 2.6} if values.size <= 30 else {}
        ax.plot(chosen.data[chosen.clock], values, style, color=colour, label=f"{prefix}{name}", **marker)


def _finish(ax: Any) -> None:
    ax.margins(x=0)
    ax.grid(lw=0.3, color="0.85")
    ax.set_axisbelow(True)


def _target(directory: str | Path, out: str | Path | None, kind: str, columns: str, against: Any) -> Path:
    said = columns.replace(".", "_").replace(",", "_").replace(" ", "")
    name = f"{kind}_{said}" + (f"_{Path(against).name}" if against else "") + ".png"
    if out is None:
        return Path(directory) / name
    out = Path(out)
    return out if out.suffix and not out.is_dir() else out / name
