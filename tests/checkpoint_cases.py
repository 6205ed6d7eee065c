"""Cases whose checkpoints are tested, and a finished run with some."""

import numpy as np

from hiresx import Case, Simulation, Waves, load
from hiresx.output.saved import checkpoint

CHANNEL = {
    "grid": {"generator": "box", "n": [16, 9, 1], "lower": [0.0, 0.0, 0.0], "upper": [2.0, 1.0, 0.0]},
    "time": {"steps": 6, "cfl": 0.5},
    "monitor": {"every": 2},
    "initial": {"state": {"rho": 1.0, "u": 1.5, "p": 1 / 1.4}},
    "boundary": [
        {"faces": ["imin"], "type": "profile-inflow", "function": "gust", "steady": False},
        {"faces": ["imax"], "type": "supersonic-outflow"},
        {"faces": ["jmin", "jmax"], "type": "slip-wall"},
    ],
}


def gust(x, y, z, t):
    return 1.0, 1.5 + 0.1 * np.sin(20 * t) * y, 0.0, 0.0, 1 / 1.4


def swell(x, y, z, t):
    """As waves, of frequencies that two quantities share and of one that is another's alone."""
    u = Waves(1.5, [3.0, 5.2], cos=[0.1 * y, 0.0], sin=[0.05, 0.1 * y])
    return Waves(1.0 + 0.1 * y, [3.0], [0.05 * y]), u, 0.0, 0.0, Waves(1 / 1.4, [7.7], sin=[0.05 * y * (1 - y)])


def vortex(**changes) -> Case:
    overrides = ["grid.n=[16,16,1]", "monitor.every=3"]
    return load("isentropic-vortex", overrides=overrides + [f"{k.replace('__', '.')}={v}" for k, v in changes.items()])


def bits(simulation: Simulation) -> list[bytes]:
    solver = simulation.solver
    states = [np.asarray(piece.array).tobytes() for piece in solver.pieces()]
    for averages in (a.capture() for a in simulation.attachments if a.name == "averages"):
        values, arrays, spread = checkpoint.split_captured("averages", averages)
        states += [repr(values).encode(), *(array.tobytes() for array in arrays.values())]
        states += [np.asarray(piece.array).tobytes() for found in spread.values() for piece in found]
    return [*states, repr((solver.time, solver.steps, solver.dt, simulation.history)).encode()]
