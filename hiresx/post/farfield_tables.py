"""The tables of a far field: signals, levels by angle, third octaves."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.post.result import csv_text


def columns(data: Any) -> list[str]:
    """Return the names of the columns of `data`, a result of `farfield`: one for each observer, or for each observer
    and end cap if the caps are separate."""
    count = data.sizes["observer"]
    caps = data.sizes.get("cap", 1)
    return [f"p_{n}" + (f"_cap_{m}" if caps > 1 else "") for m in range(caps) for n in range(count)]


def signals(path: Path, data: Any, clocks: dict[str, np.ndarray]) -> None:
    """Write a CSV table of the pressure signals of `data`, the dataset of a result of `farfield`. `clocks`: the columns
    of times by name, each (times,), which are written first. There is one for all observers, or one for each observer.
    """
    values = data["pressure"].values.reshape(-1, data.sizes["time"])
    rows = zip(*(own.tolist() for own in clocks.values()), *values.tolist(), strict=True)
    path.write_text(csv_text([*clocks, *columns(data)], rows), encoding="utf-8")


def records(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write a CSV table of `rows` with the same names: those of observers, with their places and overall levels, or of
    bands that are compared with measured ones."""
    path.write_text(csv_text(rows[0], (row.values() for row in rows)), encoding="utf-8")


def third_octaves(path: Path, data: Any, names: Sequence[str], levels: Sequence[Sequence[float]]) -> None:
    """Write a CSV table with a row for each third-octave band: middle and edge frequencies, whether the sampling
    resolves it, and a column of `levels`, in dB, for each of `names`. `data`: the dataset of a result of `farfield`."""
    bands = (data[name].values.tolist() for name in ("band", "band_from", "band_to", "band_resolved"))
    header = ["middle", "from", "to", "resolved", *names]
    path.write_text(csv_text(header, zip(*bands, *levels, strict=True)), encoding="utf-8")
