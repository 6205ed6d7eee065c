"""Levels of a far field averaged around the axis: over the observers at one angle and several azimuths."""

from typing import Any

import numpy as np

# Levels of single observers, and their names as averages.
MEANS = {"level": "mean_level", "overall_level": "mean_overall_level", "band_level": "mean_band_level"}


def add_means(data: Any, azimuths: int) -> Any:
    """Return a dataset of the far field to which levels of the mean power over azimuths, in dB, are added. These have
    the dimension `direction` instead of `observer`. `data`: the dataset of a result of `farfield`. `azimuths`: the
    number of observers at each angle, which follow each other."""
    for name, mean in MEANS.items():
        values = data[name]
        at = values.dims.index("observer")
        apart = values.values.reshape(*values.shape[:at], -1, azimuths, *values.shape[at + 1 :])
        with np.errstate(divide="ignore"):
            levels = 10 * np.log10(np.mean(10 ** (apart / 10), axis=at + 1))
        dims = [*values.dims[:at], "direction", *values.dims[at + 1 :]]
        words = f"{values.attrs['long_name']}, mean of {azimuths} azimuths"
        data = data.assign({mean: (dims, levels, values.attrs | {"long_name": words})})
    text = {"long_name": "angle against the x axis", "units": "degree"}
    return data.assign_coords(direction=("direction", data["angle"].values[::azimuths], text))


def mean_rows(data: Any) -> list[dict[str, Any]]:
    """Return the levels averaged over azimuths as the rows of a table: for each angle and end cap a dictionary with the
    angle in degrees, the overall level, and the levels in third octaves, in dB. `data`: the dataset that `add_means`
    has returned."""
    return [
        {"angle_deg": float(angle), **({"cap": float(one["cap"])} if "cap" in one.coords else {}),
         "overall_level_db": float(one["mean_overall_level"][n]),
         "third_octave_levels_db": one["mean_band_level"][n].values.tolist()}
        for one in _caps(data) for n, angle in enumerate(data["direction"].values)
    ]  # fmt: skip


def columns(data: Any) -> dict[str, list[float]]:
    """Return a dictionary from the names of columns of a table to their values: the third-octave levels averaged over
    azimuths, a list in dB, for each angle and end cap. `data`: the dataset that `add_means` has returned."""
    found: dict[str, list[float]] = {}
    for one in _caps(data):
        cap = f"_cap_{float(one['cap']):g}" if "cap" in one.coords else ""
        names = [f"angle_{angle:g}{cap}" for angle in data["direction"].values]
        found |= dict(zip(names, one["mean_band_level"].values.tolist(), strict=True))
    return found


def _caps(data: Any) -> list[Any]:
    """Yield the data of each end cap."""
    return [data.isel(cap=m) for m in range(data.sizes["cap"])] if "cap" in data.dims else [data]
