"""`hiresx post farfield`: the sound at observers outside of a recorded surface (in plane flow, a line)."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hiresx.base.plural import plural
from hiresx.errors import HiresxError
from hiresx.output.watch.surface_file import StoredSurface, describe
from hiresx.post import farfield_means as means
from hiresx.post import farfield_measured, fwh, fwh_plane, welch
from hiresx.post import farfield_tables as tables
from hiresx.post.farfield_picture import draw
from hiresx.post.result import Result, as_run, dataset, file_stem
from hiresx.post.signal_reading import SHORTEST

CAPS = ("average", "each")
DENSITIES = ("flow", "pressure")
# Number of samples per period at which the interpolation between samples is accurate to 0.2 % in amplitude.
PER_PERIOD = 5
# Number of cells of a surface per wavelength at which the sum over the surface is accurate to 2 %.
PER_WAVELENGTH = 8
# Largest fraction of the variance above the frequencies that the samples resolve.
_UNRESOLVED = 0.1
# Number of places of a surface at which this fraction is evaluated.
_LOOKED_AT = 64


@dataclass(frozen=True, eq=False)
class ObserverArc:
    """Observers on an arc with the `radius` around `centre`, both in units of the length scale L, at `n` angles from
    the x axis, equally spaced from `start` to `end`, in degrees. `azimuth` is the angle of the half plane of the arc
    about the x axis, in degrees: 0 is the half plane y > 0, 90 is z > 0. In a plane flow it is 0 or 180. If `azimuths`
    is above 1, there are that many observers at each angle, equally spaced around the axis from `azimuth` on, and their
    levels are averaged as well."""

    radius: float
    start: float
    end: float
    n: int
    centre: tuple[float, float, float] = (0.0, 0.0, 0.0)
    azimuth: float = 0.0
    azimuths: int = 1

    @property
    def angles(self) -> np.ndarray:
        """Angle of each observer from the x axis, in degrees, an array (n * azimuths,). Each of the n angles appears
        `azimuths` times in succession."""
        return np.repeat(np.linspace(self.start, self.end, self.n), self.azimuths)

    @property
    def places(self) -> np.ndarray:
        """Coordinates x, y, z of each observer, in units of the length scale L, an array (n * azimuths, 3). Raises
        HiresxError for a radius that is not positive, and without observers."""
        if not (self.radius > 0 and self.n >= 1 and self.azimuths >= 1):
            raise HiresxError(
                "an arc has a radius above 0 and 1 observer and azimuth or more", "e.g. --arc 50,20,160,15"
            )
        around = np.tile(360.0 / self.azimuths * np.arange(self.azimuths), self.n)
        angle, roll = np.radians(self.angles), np.radians(self.azimuth + around)
        across = np.sin(angle)
        unit = np.stack([np.cos(angle), across * np.cos(roll), across * np.sin(roll)], axis=1)
        return np.array(self.centre) + self.radius * unit


def farfield(
    run: Any,
    surface: str,
    observers: Sequence[Sequence[float]] | np.ndarray | ObserverArc,
    start: float | None = None,
    end: float | None = None,
    caps: str = "average",
    mach: float = 0.0,
    ambient: float | None = None,
    still: bool = False,
    segments: int = 8,
    window: str = "hann",
    overlap: float = 0.5,
    length: float = 1.0,
    velocity: float = 1.0,
    density: str = "flow",
    measured: str | Path | None = None,
) -> Result:
    """Return the sound pressure at observers outside of a surface on which a run recorded the flow, its spectra and
    levels. `run`: a folder or the result of `hiresx.open`. `surface`: the name of the surface. `observers`: coordinates
    (m, 3), in units of the length scale L, or an arc. The method is the equation of Ffowcs Williams and Hawkings in a
    uniform stream of the Mach number `mach` along x (`hiresx.post.fwh`; for a plane run `fwh_plane`). A plane run is
    uniform along z, so its sound decays with the square root of the distance; its observers lie in its plane.

    - `start`, `end`: first and last time of the samples to use, in units of L / c_ref (length scale over sound speed);
      None for no limit.
    - `caps`: for a surface with several end caps. Each cap closes a different surface. The signals of these surfaces
      are averaged ("average": Shur, Spalart & Strelets, Int. J. Aeroacoustics 4 (2005) 213; Mendez, Shoeybi, Lele &
      Moin, ibid. 12 (2013) 1) or returned separately ("each").
    - `ambient`: the ambient pressure in Pa. Signals are then in Pa and levels in dB re 20 uPa. Without it signals are
      in rho_ref c_ref^2, and levels in dB re this unit.
    - `still`: for runs that start from rest. The flow at the surface before the first sample is assumed to be that of
      the first sample. Each observer then has another time window, from its first sound until it no longer receives
      sound from the whole surface. All windows are equally long. `heard_from` is the start of the window, and `time` is
      measured from it.
    - `segments`: the number of segments whose spectra are averaged. `window`: a window of SciPy. `overlap`: the
      fraction by which segments overlap.
    - `length`, `velocity`: the scales of the Strouhal number f length / velocity, in L and c_ref. They also apply to
      the third octaves (`welch.third_octaves`).
    - `density`: the density on the surface: that of the "flow", or the density rho_ref (1 + p' / (rho_ref c_ref^2))
      that follows from the "pressure". With the latter, warm or cold gas that passes the surface causes no sound
      (Spalart & Shur, Int. J. Aeroacoustics 8 (2009) 477).
    - `measured`: a CSV file of measured spectra, with which the third octaves are compared.

    Raises HiresxError for axisymmetric runs, for observers inside or on the surface or outside the plane, and for
    samples that are too few, at unequal intervals, or too far apart for the frequencies in them."""
    run = as_run(run)
    _check_choices(caps, density, length, velocity, ambient)
    known = None if measured is None else farfield_measured.read(measured)
    stored = run.stored_surface(surface)
    if run.case.get("axisymmetric"):
        raise HiresxError(f'surface "{stored.name}" is of an axisymmetric flow', "run it in three dimensions")
    places = _places(observers)
    time, first = _times(stored, start, end)
    around = fwh.Surface(
        stored.fixed_columns("x", "y", "z"), stored.fixed_columns("normal_x", "normal_y", "normal_z"),
        stored.fixed["area"], stored.plane,
    )  # fmt: skip
    _check_outside(stored, around, places, max(len(stored.caps), 1))
    unresolved = _unresolved_share(stored, first, len(time), stored.name)
    stream = fwh.Stream(mach, pressure=1 / run.gamma)
    times, each = _signals(stored, around, time, first, places, stream, density == "pressure", still)
    # p / (rho_ref c_ref^2) = p* / (gamma p_ambient)
    each = each * (1.0 if ambient is None else run.gamma * ambient)
    kept = each if caps == "each" else each.mean(axis=0, keepdims=True)
    dt = float(time[-1] - time[0]) / (len(time) - 1)
    unit = "Pa" if ambient is not None else "rho_ref c_ref^2"
    level_unit = "dB re 20 uPa" if ambient is not None else f"dB re {unit}"
    reference = 1.0 if ambient is None else welch.REFERENCE_PRESSURE
    cell = float(around.cells.max())
    resolved = {
        "highest_frequency_of_samples": float(1 / (PER_PERIOD * dt)),
        "highest_frequency_of_cells": float((1 - abs(mach)) / (PER_WAVELENGTH * cell)),
    }
    spectra = welch.spectra(kept.reshape(-1, times.shape[1]).T, dt, segments, None, window, overlap)
    levels = _levels(kept, spectra, reference, length, velocity, min(resolved.values()))
    directions = _directions(observers, places, stored.plane)
    of_each = _decibels(each.var(axis=2), reference)
    summary: dict[str, Any] = {
        "run": str(run.path), "surface": stored.name, "plane": stored.plane, **describe(stored), "samples": len(time),
        "from": float(time[0]), "to": float(time[-1]), "dt": dt,
        "heard_from": float(times.min()), "heard_to": float(times.max()), "still": still,
        "mach": mach, "density": density, "ambient": ambient,
        "pressure_unit": unit, "level_unit": level_unit, "caps_taken": caps if len(each) > 1 else "one",
        **resolved, "variance_above_samples": unresolved,
        "segments": spectra.segments, "window": window, "overlap": overlap, "resolution": spectra.resolution,
        "strouhal_length": length, "strouhal_velocity": velocity,
        "caps_spread_db": float((of_each.max(axis=0) - of_each.min(axis=0)).max()) if len(each) > 1 else 0.0,
        "warnings": _warnings(stored, spectra, cell),
        "observers": _observer_rows(stored, places, times, kept, levels, directions),
        "third_octaves": _third_octave_rows(levels, directions),
    }  # fmt: skip
    since = dt * np.arange(times.shape[1]) if still else times[0]
    data = _dataset(kept, levels, since, spectra.frequency, places, directions, stored, unit, level_unit)
    octaves = dict(zip(tables.columns(data), levels.bands.reshape(len(kept) * len(places), -1).tolist(), strict=True))
    summary["third_octave_levels_db"] = octaves
    text = {"long_name": "time at the observer of its first sample", "units": "L / c_ref"}
    data = data.assign_coords(heard_from=("observer", times[:, 0], text))
    if still:
        data["time"].attrs["long_name"] = "time since heard_from of the observer"
    data.attrs |= {"title": run.title, "surface": stored.name, "mach": mach}
    if length != 1 or velocity != 1:
        text = {"long_name": f"Strouhal number f {length:g} L / {velocity:g} c_ref", "units": "1"}
        data = data.assign_coords(strouhal=("frequency", spectra.frequency * length / velocity, text))
    azimuths = observers.azimuths if isinstance(observers, ObserverArc) else 1
    if azimuths > 1:
        data = means.add_means(data, azimuths)
        summary["mean_levels"] = means.mean_rows(data)
    name = file_stem("farfield", surface)
    clocks = {f"time_{n}": own for n, own in enumerate(times)} if still else {"time": times[0]}
    more = {
        ".csv": lambda path: tables.signals(path, data, clocks),
        "_directivity.csv": lambda path: tables.records(path, summary["observers"]),
        "_third_octaves.csv": lambda path: tables.third_octaves(path, data, [*octaves], [*octaves.values()]),
    }
    if known is not None:
        summary["measured"] = compared = farfield_measured.compare(data, known)
        more["_measured.csv"] = lambda path: tables.records(path, compared["bands"])
    if azimuths > 1:
        mean = means.columns(data)
        more["_means.csv"] = lambda path: tables.third_octaves(path, data, [*mean], [*mean.values()])
    return Result(name, summary, data, lambda: draw(data, summary), more, case=run.case)


def _check_choices(caps: str, density: str, length: float, velocity: float, ambient: float | None) -> None:
    if caps not in CAPS:
        raise HiresxError(f'end caps cannot be taken by "{caps}"', "give average or each")
    if density not in DENSITIES:
        raise HiresxError(f'the density on a surface cannot be taken by "{density}"', "give flow or pressure")
    if length <= 0 or velocity <= 0:
        raise HiresxError("the scales of the Strouhal number must be above 0", "see --length and --velocity")
    if ambient is not None and ambient <= 0:
        raise HiresxError("an ambient pressure is above 0 Pa", "e.g. --ambient 101325")


def _places(observers: Sequence[Sequence[float]] | np.ndarray | ObserverArc) -> np.ndarray:
    """Return the places of the observers, (m, 3)."""
    places = (
        observers.places if isinstance(observers, ObserverArc) else np.asarray(observers, dtype=float).reshape(-1, 3)
    )
    if not (len(places) and np.isfinite(places).all()):
        raise HiresxError("there are no observers", "give places x,y,z or an arc")
    return places


def _signals(
    stored: StoredSurface, around: fwh.Surface, time: np.ndarray, first: int, places: np.ndarray, stream: fwh.Stream,
    by_pressure: bool, still: bool,
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """Times (m, samples) at the observers, and the pressure there (caps, m, samples) in rho_ref c_ref^2. There is one
    signal for each end cap, and one for a surface without end caps. The arguments are those of `farfield`. `first`: the
    number of the first of the samples at `time`. Raises HiresxError if the observers hear fewer samples than needed."""
    kinds, group = np.unique(stored.fixed_columns("first", "last").astype(int), axis=0, return_inverse=True)
    if stored.plane:
        reader = _reader(stored, first, len(time), 0, stream, by_pressure)
        times, found = fwh_plane.pressure_by_group(around, time, reader, places, stream, group.ravel(), still)
    else:
        dt = float(time[-1] - time[0]) / (len(time) - 1)
        before = fwh.samples_before(around, places, stream, dt) if still else 0
        asked = np.concatenate([time[0] - dt * np.arange(before, 0, -1), time])
        reader = _reader(stored, first, len(time), before, stream, by_pressure)
        times, found = fwh.pressure_by_group(
            around, asked, reader, places, stream, group.ravel(), before if still else None
        )
    heard = times.shape[1]
    if heard < SHORTEST:
        raise HiresxError(
            f"{'each observer hears' if still else 'all observers hear'} all of the surface for "
            f"{plural(heard, 'sample')}, {SHORTEST} are needed",
            "sample it for longer"
            + ("" if still else ", ask for observers at like distances, or give --still to a run from rest"),
        )
    caps = range(1, max(len(stored.caps), 1) + 1)
    return times, np.stack([found[(kinds[:, 0] <= m) & (m <= kinds[:, 1])].sum(axis=0) for m in caps])


class _Levels(NamedTuple):
    """Results for each end cap and each of m observers. Levels are in dB. `rms` (caps, m): the root mean square of the
    pressure. `overall` (caps, m): the overall level. `density` (caps, m, frequencies): power spectral densities.
    `level` (caps, m, frequencies): their levels per Strouhal number. `bands` (caps, m, bands): levels in third octaves.
    `middles` and `edges`: the middle frequencies and the ends of the bands. `resolved`: whether samples and cells
    resolve each band."""

    rms: np.ndarray
    overall: np.ndarray
    density: np.ndarray
    level: np.ndarray
    bands: np.ndarray
    middles: np.ndarray
    edges: np.ndarray
    resolved: np.ndarray


def _decibels(squares: np.ndarray, reference: float) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.asarray(10 * np.log10(squares) - 20 * np.log10(reference))


def _levels(
    kept: np.ndarray, spectra: welch.Spectra, reference: float, length: float, velocity: float, highest: float
) -> _Levels:  # fmt: skip
    """Return the `_Levels` of signals. `kept`: the signals (caps, m, samples). `highest`: the highest frequency that
    samples and cells resolve."""
    powers = spectra.density.reshape(*kept.shape[:2], -1)
    per_strouhal = powers * velocity / length
    bands = welch.third_octaves(spectra.frequency * length / velocity, per_strouhal)
    return _Levels(
        kept.std(axis=2), _decibels(kept.var(axis=2), reference), powers, _decibels(per_strouhal, reference),
        _decibels(bands.squares, reference), bands.middles, bands.edges,
        bands.edges[1:] <= highest * length / velocity,
    )  # fmt: skip


class _Directions(NamedTuple):
    """Numbers of each observer. `angle`: the angle against the x axis in degrees. `distance`: the distance from the
    centre of the arc, or from the origin. `falls`: the decibels by which sound decays over that distance."""

    angle: np.ndarray
    distance: np.ndarray
    falls: np.ndarray


def _directions(
    observers: Sequence[Sequence[float]] | np.ndarray | ObserverArc, places: np.ndarray, plane: bool
) -> _Directions:  # fmt: skip
    centre = np.array(observers.centre) if isinstance(observers, ObserverArc) else np.zeros(3)
    away = places - centre
    distance = np.linalg.norm(away, axis=1)
    if isinstance(observers, ObserverArc):
        angle = observers.angles
    else:
        off = away[:, 1] if plane else np.linalg.norm(away[:, 1:], axis=1)
        angle = np.degrees(np.arctan2(off, away[:, 0]))
    # in the plane, with the square root of the distance
    return _Directions(angle, distance, (10 if plane else 20) * np.log10(np.maximum(distance, 1e-300)))


def _observer_rows(
    stored: StoredSurface, places: np.ndarray, times: np.ndarray, kept: np.ndarray, levels: _Levels,
    directions: _Directions,
) -> list[dict[str, Any]]:  # fmt: skip
    return [
        {"observer": n, **dict(zip("xyz", map(float, places[n]), strict=True)),
         "distance": float(directions.distance[n]), "angle_deg": float(directions.angle[n]),
         "heard_from": float(times[n, 0]), "heard_to": float(times[n, -1]),
         **({"cap": stored.caps[m]} if len(kept) > 1 else {}),
         "rms": float(levels.rms[m, n]), "overall_level_db": float(levels.overall[m, n]),
         "level_at_1_L_db": float(levels.overall[m, n] + directions.falls[n])}
        for m in range(len(kept)) for n in range(len(places))
    ]  # fmt: skip


def _third_octave_rows(levels: _Levels, directions: _Directions) -> list[dict[str, Any]]:
    angle = directions.angle
    return [
        {"middle": float(middle), "from": float(low), "to": float(high), "resolved": bool(known),
         "least_db": float(band.min()), "greatest_db": float(band.max()),
         "greatest_at_deg": float(angle[int(band.argmax()) % len(angle)])}
        for middle, low, high, known, band in zip(
            levels.middles, levels.edges, levels.edges[1:], levels.resolved, np.moveaxis(levels.bands, -1, 0),
            strict=False)
    ]  # fmt: skip


def _times(stored: StoredSurface, start: float | None, end: float | None) -> tuple[np.ndarray, int]:
    """Return the times to use and the number of the first."""
    time = np.array(stored.records["time"], dtype=float)
    chosen = np.flatnonzero(
        (time >= (-np.inf if start is None else start)) & (time <= (np.inf if end is None else end))
    )
    if chosen.size < SHORTEST:
        there = f"there are {time.size}, of t = {time[0]:g} to {time[-1]:g}" if time.size else "there are none"
        raise HiresxError(
            f'{plural(chosen.size, "sample")} of surface "{stored.name}" are too few; {SHORTEST} are needed', there
        )
    time = time[chosen]
    steps = np.diff(time)
    if np.abs(steps - steps.mean()).max() > 1e-6 * steps.mean():
        raise HiresxError(
            f'surface "{stored.name}" was sampled at unequal distances in time, {steps.min():.4g} to {steps.max():.4g}',
            "give the surface every_time instead of every, or the run a constant dt; or leave times out (--from, --to)",
        )
    return time, int(chosen[0])


def _check_outside(stored: StoredSurface, surface: fwh.Surface, observers: np.ndarray, number: int) -> None:
    if surface.plane:
        z = surface.places[0, 2]
        off = np.flatnonzero(np.abs(observers[:, 2] - z) > 1e-9 * np.abs(observers - surface.places[0]).max(axis=1))
        if off.size:
            raise HiresxError(
                f"observer {off[0]} at z = {observers[off[0], 2]:g} lies beside the plane of the flow, z = {z:g}",
                "a plane flow is alike along z: give observers in its plane (an --arc at the --azimuth 0 or 180)",
            )
    first, last = stored.fixed["first"], stored.fixed["last"]
    for m in range(1, number + 1):
        mine = (first <= m) & (m <= last)
        part = fwh.Surface(surface.places[mine], surface.normals[mine], surface.areas[mine], surface.plane)
        turns = fwh.inside(part, observers)
        for n, observer in enumerate(observers):
            away = np.linalg.norm(part.places - observer, axis=1)
            close = bool((away < 2 * part.cells).any())
            if close or turns[n] > 0.5:
                where = "within two cells of the surface" if close else "inside the surface"
                raise HiresxError(
                    f"observer {n} at ({', '.join(f'{c:g}' for c in observer)}) lies {where}",
                    f'observers are outside of surface "{stored.name}"; use a [[probe]] within the grid',
                )


def _reader(
    stored: StoredSurface, first: int, count: int, before: int, stream: fwh.Stream, by_pressure: bool
) -> Any:  # fmt: skip
    """Return a function that reads the flow at some of the places of a surface, at the samples that are used. The first
    sample is repeated `before` times before them. `by_pressure`: whether the density follows from the pressure, as in
    sound."""
    rows = slice(first, first + count)

    def flow(some: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        held = (np.array(stored.records[n][rows, some], dtype=float) for n in ("rho", "u", "v", "w", "p"))
        rho, u, v, w, p = (np.concatenate([np.repeat(n[:1], before, axis=0), n]) for n in held)
        if not np.isfinite(p).all():
            raise HiresxError(
                f"{stored.path} holds values that are no numbers", "see --to: leave out where the run blew up"
            )
        if by_pressure:
            rho = stream.density + (p - stream.pressure) / stream.sound**2
        return rho, np.stack([u, v, w], axis=-1), p

    return flow


def _unresolved_share(stored: StoredSurface, first: int, count: int, name: str) -> float:
    """Return the fraction of the variance of the pressure at frequencies above those that the samples resolve. Raises
    HiresxError if it is too large."""
    places = np.unique(np.linspace(0, len(stored.fixed["x"]) - 1, _LOOKED_AT).astype(int))
    p = np.array(stored.records["p"][first : first + count][:, places], dtype=float)
    p = (p - p.mean(axis=0)) * np.hanning(count)[:, None]
    power = np.sum(np.abs(np.fft.rfft(p, axis=0)) ** 2, axis=1)
    above = np.fft.rfftfreq(count) > 1 / PER_PERIOD
    share = float(power[above].sum() / power.sum()) if power.sum() > 0 else 0.0
    # Fluctuations at the level of round-off are not sound.
    noise = np.finfo(np.float32 if stored.records.dtype["p"].base.itemsize == 4 else np.float64).eps
    if share > _UNRESOLVED and p.std() > 8 * noise:
        dt = float(stored.records["time"][first + 1] - stored.records["time"][first])
        raise HiresxError(
            f'surface "{name}" was sampled too rarely: {100 * share:.0f} % of the variance of its pressure lies above '
            f"{1 / (PER_PERIOD * dt):.4g} c_ref/L, of which a period has fewer than {PER_PERIOD} samples",
            f"sample it more often than every_time = {dt:.4g}",
        )
    return share


def _warnings(stored: StoredSurface, spectra: welch.Spectra, cell: float) -> list[str]:
    texts = [f"the surface is not closed: {gap}; what passes there is not heard" for gap in stored.gaps]
    power = spectra.density.sum(axis=0)
    share = power[spectra.frequency > 1 / (PER_WAVELENGTH * cell)].sum() / max(power.sum(), 1e-300)
    if share > _UNRESOLVED:
        texts.append(f"{100 * share:.0f} % of the sound has fewer than {PER_WAVELENGTH} cells in a wavelength")
    return texts


def _dataset(
    kept: np.ndarray, levels: _Levels, times: np.ndarray, frequency: np.ndarray, places: np.ndarray,
    directions: _Directions, stored: StoredSurface, unit: str, level_unit: str,
) -> Any:  # fmt: skip
    over = ("cap", "observer")
    made = dataset(
        {
            "pressure": ((*over, "time"), kept, "sound pressure", unit),
            "density": ((*over, "frequency"), levels.density, "power spectral density", f"({unit})^2 L / c_ref"),
            "level": ((*over, "frequency"), levels.level, "density per Strouhal number", level_unit),
            "overall_level": (over, levels.overall, "overall sound pressure level", level_unit),
        },
        {
            "time": ("time", times, "time at the observer", "L / c_ref"),
            "frequency": ("frequency", frequency, "frequency", "c_ref / L"),
            **{axis: ("observer", places[:, n], f"{axis} coordinate", "L") for n, axis in enumerate("xyz")},
            "angle": ("observer", directions.angle, "angle against the x axis", "degree"),
        },
    )
    if len(kept) > 1:
        made = made.assign_coords(cap=("cap", list(stored.caps), {"long_name": "x of the end cap", "units": "L"}))
    else:
        made = made.isel(cap=0)
    over = made["overall_level"].dims
    shape = made["overall_level"].shape
    return made.assign(
        band_level=((*over, "band"), levels.bands.reshape(*shape, -1),
                    {"long_name": "sound pressure level in third octaves", "units": level_unit}),
        level_at_1_L=(over, made["overall_level"].values + directions.falls,
                      {"long_name": "overall level, brought to the distance L", "units": level_unit}),
    ).assign_coords(
        band=("band", levels.middles, {"long_name": "middle of the third octave, Strouhal number", "units": "1"}),
        band_from=("band", levels.edges[:-1]), band_to=("band", levels.edges[1:]),
        band_resolved=("band", levels.resolved),
    )  # fmt: skip


def far_field(
    surface: fwh.Surface,
    time: np.ndarray,
    rho: np.ndarray,
    velocity: np.ndarray,
    pressure: np.ndarray,
    observers: np.ndarray,
    stream: fwh.Stream,
) -> tuple[np.ndarray, np.ndarray]:
    """Return k times (k,) and the sound pressure p' (m, k) at these times and m observers outside a surface, by the
    equation of Ffowcs Williams and Hawkings (`hiresx.post.fwh`). The times are all times at which every observer
    receives sound from the whole surface. All quantities are in the scales of the case. `surface`: the points, normals
    and areas. `time` (times,): equally spaced times of the samples. `rho`, `pressure` (times, n) and the total
    `velocity` (times, n, 3): the flow at the n points of the surface. `observers` (m, 3): coordinates. `stream`: the
    flow outside. Samples are interpolated by polynomials of degree 7. For a `plane` surface they are transformed to
    frequencies (`hiresx.post.fwh_plane`). Raises HiresxError for a stream that is not subsonic, for samples at unequal
    intervals, and for too few samples."""

    def flow(some: slice) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return rho[:, some], velocity[:, some], pressure[:, some]

    heard_by = fwh_plane.pressure_by_group if surface.plane else fwh.pressure_by_group
    times, found = heard_by(surface, time, flow, observers, stream)
    return times[0], found[0]
