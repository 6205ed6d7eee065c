"""Published shock-cell spacings and screech Strouhal numbers of jets for comparison, which are stored with the package
or read from a user's file.

The stored values have sources that are freely available; no measurement of a planar jet is among them."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hiresx.errors import HiresxError
from hiresx.output.show import lines
from hiresx.post.jet_theory import Shape

KEPT = Path(__file__).parent / "data" / "jet-points.csv"


@dataclass(frozen=True, eq=False)
class MeasuredPoints:
    """Published values of jets over the fully expanded Mach number Mj. `source`: the name of the publication.
    `columns`: "Ls" (Ls/h, Ls/D), the shock-cell spacing, and "St", the Strouhal number of the screech, each a pair of
    arrays Mj and value."""

    source: str
    columns: Mapping[str, tuple[np.ndarray, np.ndarray]]

    @property
    def is_measured(self) -> bool:
        """True if the values are from an experiment, and not from a computation or a formula."""
        return self.source.startswith("measured")

    @property
    def label(self) -> str:
        """Short name of the publication for a legend."""
        kind, _, rest = self.source.partition(": ")
        return f"{rest.split(',')[0].split(';')[0]} ({kind})" if rest else self.source


def stored_points(shape: Shape) -> list[MeasuredPoints]:
    """Return the published shock-cell spacings and screech Strouhal numbers that are stored with the package, for
    "planar" or "round" jets."""
    found: dict[str, list[dict[str, str]]] = {}
    with KEPT.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["shape"] == shape:
                found.setdefault(row["source"], []).append(row)
    return [MeasuredPoints(source, {key: _pair(rows, key) for key in ("Ls", "St")}) for source, rows in found.items()]


def read_points(paths: Sequence[str | Path]) -> list[MeasuredPoints]:
    """Return the shock-cell spacings and screech Strouhal numbers of jets in the CSV files `paths`. Columns: Mj, the
    fully expanded Mach number, and Ls, the length of a shock cell, or St, the Strouhal number of the screech, or both.
    Raises HiresxError for a file without these columns."""
    found = []
    for path in map(Path, paths):
        table = lines.read_table(path, "Mj", "Ls,St")
        columns = {str(key): (table["Mj"], table[key]) for key in ("Ls", "St") if key in table}
        if not columns:
            raise HiresxError(f"{path} has neither a column Ls nor St", "name its columns: Mj,Ls,St")
        found.append(MeasuredPoints(path.stem, columns))
    return found


def _pair(rows: Sequence[Mapping[str, str]], key: str) -> tuple[np.ndarray, np.ndarray]:
    pairs = [(float(row["Mj"]), float(row[key])) for row in rows if row[key]]
    mach, values = np.array(pairs).reshape(-1, 2).T
    return mach, values
