"""Comparison of the spectra of a far field with measured ones: differences between angles, and the shapes of the
spectra."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hiresx.errors import HiresxError
from hiresx.output.show import lines

# Largest difference of angles that count as the same, in degrees.
_SAME_ANGLE = 0.5
# Factor by which tables round the middles of bands: 0.2 is 10^-0.7 = 0.1995.
_ROUNDED = 1.01
_STROUHAL, _ANGLE, _EXAMPLE = "strouhal", "angle_", "angle_30,angle_60"


class MeasuredSpectra(NamedTuple):
    """Measured spectra of sound. `strouhal` (n,): Strouhal numbers, ascending. `levels`: for each angle from the x
    axis, in degrees, the levels (n,) of the power spectral density in dB, re any unit."""

    strouhal: np.ndarray
    levels: Mapping[float, np.ndarray]


def read(path: str | Path) -> MeasuredSpectra:
    """Return the measured spectra in a CSV file with the columns `strouhal`, `angle_30`, `angle_60` and so on (levels
    in dB). Raises HiresxError for a file without these columns, for an angle with two columns, for levels that are not
    finite, and for Strouhal numbers that are not positive and ascending."""
    table = lines.read_table(Path(path), _STROUHAL, _EXAMPLE)
    levels = {}
    try:
        for name in table:
            if name != _STROUHAL:
                angle = float(name.removeprefix(_ANGLE))
                if angle in levels:
                    raise HiresxError(f"{path}: two columns are for the angle {angle:g}", "remove one of them")
                levels[angle] = table[name]
    except ValueError:
        levels = {}
    if not levels or _STROUHAL not in table:
        raise HiresxError(f"{path} is no table of measured spectra", f"name its columns {_STROUHAL},{_EXAMPLE},...")
    strouhal = table[_STROUHAL]
    if not (strouhal[0] > 0 and (np.diff(strouhal) > 0).all()):
        raise HiresxError(
            f"{path}: its Strouhal numbers are not positive and ascending",
            "sort the lines, each with another Strouhal number above 0",
        )
    if bad := [angle for angle, values in levels.items() if not np.isfinite(values).all()]:
        raise HiresxError(f"{path}: a level at {bad[0]:g} degrees is not finite", "remove the line, or correct it")
    return MeasuredSpectra(strouhal, levels)


def compare(data: Any, measured: MeasuredSpectra) -> dict[str, Any]:
    """Return the differences between computed third-octave levels and measured spectra at the same angles, in the bands
    that samples and cells resolve and whose middles lie in the measured range. `data`: the dataset of a result of
    `farfield`. Levels averaged around the axis are used if there are any. The result is a dictionary with

    - `bands`: a row for each band and angle: its middle and angle, the computed level of the band divided by its width
      in Strouhal numbers, the measured level, interpolated linearly over the logarithm of the Strouhal number, and
      `difference_db`, their difference without its mean over all rows.
    - `offset_db`: the mean difference over all rows, which is due to other distances and reference values, too.
    - `between_angles_db`: how much the difference of the levels at two angles, in one band, deviates from the measured
      one at most.
    - `along_spectra_db`: how much the difference of the levels in two bands, at one angle, deviates from the measured
      one at most.

    Raises HiresxError if the computed and the measured spectra have no angle or no band in common, and for several end
    caps that are not averaged."""
    if "cap" in data.dims:
        raise HiresxError("measured spectra are compared with one result", "let end caps be averaged: --caps average")
    averaged = "mean_band_level" in data
    own = data["direction" if averaged else "angle"].values
    middles, edges = data["band"].values, (data["band_from"].values, data["band_to"].values)
    first, last = measured.strouhal[0], measured.strouhal[-1]
    chosen = data["band_resolved"].values & (middles >= first / _ROUNDED) & (middles <= last * _ROUNDED)
    angles = [angle for angle in measured.levels if np.abs(own - angle).min() <= _SAME_ANGLE]
    if not angles:
        raise HiresxError(
            "nothing to compare: no angle of an observer is measured",
            f"measured: {', '.join(f'{angle:g}' for angle in measured.levels)} degrees off the x axis; put observers "
            "there, by --arc or --observers",
        )
    if not chosen.any():
        raise HiresxError(
            "nothing to compare: no resolved third octave is measured",
            f"measured: Strouhal numbers {first:g} to {last:g}; --velocity and --length define them, longer segments "
            "(--segments) resolve lower ones",
        )
    density = data["mean_band_level" if averaged else "band_level"].values - 10 * np.log10(edges[1] - edges[0])
    computed = np.stack([density[int(np.abs(own - angle).argmin())][chosen] for angle in angles])
    at = np.log(middles[chosen])
    known = np.stack([np.interp(at, np.log(measured.strouhal), measured.levels[angle]) for angle in angles])
    apart = computed - known
    offset = float(apart.mean())
    return {
        "offset_db": offset,
        "between_angles_db": float(np.ptp(apart, axis=0).max()),
        "along_spectra_db": float(np.ptp(apart, axis=1).max()),
        "bands": [
            {"middle": float(middle), "angle_deg": float(angle), "computed_db": float(computed[n, m]),
             "measured_db": float(known[n, m]), "difference_db": float(apart[n, m] - offset)}
            for n, angle in enumerate(angles) for m, middle in enumerate(middles[chosen])
        ],
    }  # fmt: skip
