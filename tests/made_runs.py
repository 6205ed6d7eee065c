"""Run directories made by hand, for tests of results and analysis."""

import json
from pathlib import Path

import numpy as np

from hiresx.output.watch.history import Column, History

CASE = {
    "title": "Made",
    "gas": {"gamma": 1.4},
    "output": {"variables": ["rho", "u", "v", "w", "p"], "subset": []},
    "parameters": {},
}


def run(folder: Path, case: dict | None = None) -> Path:
    """A folder with a record."""
    folder.mkdir(parents=True, exist_ok=True)
    record = {"status": "finished", "case": case or CASE, "steps": 1, "time": 1.0, "points": 1, "backend": "cpu"}
    (folder / "run.json").write_text(json.dumps(record))
    return folder


def probe(folder: Path, name: str, time: np.ndarray, places, **columns: np.ndarray) -> Path:
    """A history of a probe at `places` (place, 3): columns (time, place)."""
    (folder / "history").mkdir(exist_ok=True)
    made = [Column(key, "pressure", "rho_ref c_ref^2") for key in columns]
    history = History(name, "probe", made, np.asarray(places, float), folder / "history")
    history.start()
    for n, t in enumerate(time):
        history.add(n, float(t), {key: np.asarray(values[n]) for key, values in columns.items()})
    history.close()
    return folder
