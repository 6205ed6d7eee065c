"""Reference solutions that are stored with the project, in hiresx/verify/data/*.csv."""

from functools import cache
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent / "data"


@cache
def table(name: str) -> dict[str, np.ndarray]:
    """Return the columns of the reference solution that is stored in hiresx/verify/data/<name>.csv, by the name of the
    column, each (rows,)."""
    lines = (FOLDER / f"{name}.csv").read_text(encoding="utf-8").splitlines()
    titles, *rows = (line.split(",") for line in lines if not line.startswith("#"))
    values = np.array(rows, dtype=float)
    return dict(zip(titles, values.T, strict=True))
