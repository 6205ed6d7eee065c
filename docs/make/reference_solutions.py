"""The stored solutions of hiresx/verify/data, computed anew: the default scheme on 6400 points, for the short waves of
titarev-toro TENO weights on 12800, averaged to every fourth:

    python docs/make/reference_solutions.py shu-osher blast-waves titarev-toro
"""

import sys

import numpy as np

from hiresx import __version__
from hiresx.verify.checks import CheckRun, CompletedRun
from hiresx.verify.reference_solutions import FOLDER

# What makes so many intervals or cells of the bundled case, and whether its nodes are cell centres or lie on the
# walls.
FINE = {
    "shu-osher": (("grid.n=[6400,1,1]", "grid.lower=[-4.99921875,0,0]", "grid.upper=[4.99921875,0,0]"), "centres"),
    "blast-waves": (("grid.n=[6401,1,1]",), "walls"),
    "titarev-toro": (
        (
            'scheme.weights="teno"',
            "grid.n=[12800,1,1]",
            "grid.lower=[-4.999609375,0,0]",
            "grid.upper=[4.999609375,0,0]",
        ),
        "centres",
    ),
}


def compute(name: str) -> str:
    """The text of data/<name>.csv."""
    sets, nodes = FINE[name]
    run = CheckRun(name, None, sets)
    end = CompletedRun(run, "cpu")
    columns = {"x": end.blocks[0].x[0, 0], **{v: end.state(v)[0, 0] for v in ("rho", "u", "p")}}
    averaged = {title: _average(values, nodes) for title, values in columns.items()}
    rows = zip(*averaged.values(), strict=True)
    points = len(averaged["x"])
    made_by = f"{4 * points if nodes == 'centres' else 4 * points - 4} points, averaged to {points}; HiResX"
    made_by += f" {__version__}"
    heading = [
        f"# {end.case.title}: weights {end.case.scheme.weights}, t = {end.time:g}, {made_by}",
        f"# {run.command}",
        f"# written by: python docs/make/reference_solutions.py {name}",
        ",".join(averaged),
    ]
    return "\n".join([*heading, *(",".join(f"{value:.7g}" for value in row) for row in rows)]) + "\n"


def _average(values: np.ndarray, nodes: str) -> np.ndarray:
    """Means over four cells, or, with nodes on the walls, over two intervals to each side of every fourth node."""
    if nodes == "centres":
        return np.asarray(values.reshape(-1, 4).mean(axis=1))
    mean = np.convolve(values, [1 / 8, 1 / 4, 1 / 4, 1 / 4, 1 / 8], mode="same")[::4]
    mean[[0, -1]] = values[[0, -1]]
    return mean


if __name__ == "__main__":
    for wanted in sys.argv[1:]:
        (FOLDER / f"{wanted}.csv").write_text(compute(wanted), encoding="utf-8")
