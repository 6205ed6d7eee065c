"""CSV tables of a far field: pressure signals, levels by angle, third-octave levels."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.post.result import csv_text


def columns(data: Any) -> list[str]:
    """Return the names of the columns for the pressure signals of a far field: one for each observer, or for each
    observer and end cap if the caps are separate. `data`: the dataset of a result of `farfield`."""
    count = data.sizes["observer"]
    caps = data.sizes.get("cap", 1)
    return [f"p_{n}" + (f"_cap_{m}" if caps > 1 else "") for m in range(caps) for n in range(count)]


def signals(path: Path, data: Any, clocks: dict[str, np.ndarray]) -> None:
    """Write the pressure signals of a far field to the CSV file `path`. `data`: the dataset of a result of `farfield`.
    `clocks`: the columns of times, arrays (times,) by name, which are written first: one for all observers, or one for
    each."""
    values = data["pressure"].values.reshape(-1, data.sizes["time"])
    rows = zip(*(own.tolist() for own in clocks.values()), *values.tolist(), strict=True)
    path.write_text(csv_text([*clocks, *columns(data)], rows), encoding="utf-8")


def records(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write a CSV file with a line for each of `rows`, which are dictionaries with the same keys. The keys are the
    header."""
    path.write_text(csv_text(rows[0], (row.values() for row in rows)), encoding="utf-8")


def third_octaves(path: Path, data: Any, names: Sequence[str], levels: Sequence[Sequence[float]]) -> None:
    """Write the third-octave levels of a far field to the CSV file `path`, with a line for each band: middle and edge
    frequencies, whether samples and cells resolve it, and the levels. `data`: the dataset of a result of `farfield`.
    `names`: the names of the columns of levels. `levels`: for each column the levels, in dB."""
    bands = (data[name].values.tolist() for name in ("band", "band_from", "band_to", "band_resolved"))
    header = ["middle", "from", "to", "resolved", *names]
    path.write_text(csv_text(header, zip(*bands, *levels, strict=True)), encoding="utf-8")
