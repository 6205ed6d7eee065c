"""Flows of one and two dimensions on which implicit steps of unsteady flow are tried, and solvers of them."""

import math
from dataclasses import replace

import numpy as np
from scalar_cases import SCHMIDT

from hiresx import Case
from hiresx.decomposition import domain
from hiresx.decomposition.partition import partition
from hiresx.device import backend
from hiresx.solver import Solver

NU, AGE = 0.01, 0.05
# With the numbers of scalar_cases.py, so that kernels are those of other tests.
SCALARS = [{"name": "s", "schmidt": SCHMIDT["dye"]}, {"name": "one", "schmidt": SCHMIDT["ink"], "initial": 1.0}]
WALLS = [
    {"faces": ["imin"], "type": "no-slip-wall", "temperature": 1.0},
    {"faces": ["imax"], "type": "slip-wall"},
]
BLOWN = [{**WALLS[0], "normal_velocity": "0.05 * sin(8 * t)"}, WALLS[1]]


def line(integrator: str, boundary, stretch: float, n: int, end: float, **tables) -> Case:
    return Case.from_dict(
        {
            "gas": {"reynolds": 1 / NU}, "scheme": {"flux": "hllc"},
            "grid": {"generator": "box", "n": [n, 1, 1], "upper": [1.0, 0.0, 0.0], "lower": [0.0, 0.0, 0.0],
                     "stretch": {"x": {"cluster": "lower", "ratio": stretch}}},
            "time": {"integrator": integrator, "end": end} | tables.pop("time", {}),
            "initial": {"state": {"rho": 1.0, "p": 1 / 1.4}}, "boundary": boundary, **tables,
        }
    )  # fmt: skip


def layer(x, y, z):
    """A Stokes layer of the age AGE at the wall x = 0 that came to rest."""
    return 1.0, 0.0, 0.1 * np.vectorize(math.erf)(x / (2 * math.sqrt(NU * AGE))), 0.0, 1 / 1.4


def wave(x, y, z):
    rho = 1 + 0.05 * np.cos(np.pi * x)
    return rho, 0.05 * np.sin(np.pi * x) ** 2, 0.0, 0.0, rho / 1.4


def after(case: Case, flow, uneven: bool = False, where: str = "cpu") -> Solver:
    """At the end of the case; `uneven`: its steps and 0.45 of them, in turn."""
    solver = Solver(case, backend(where))
    solver.initialize(flow)
    end = case.time.end
    for n in range(100000):
        if solver.time >= end * (1 - 1e-12):
            return solver
        left = end - solver.time
        solver.step(min(left, 0.45 * case.time.dt) if uneven and n % 2 else left)
    raise AssertionError("it never ends")


def blob(x, y, z):
    r2 = (x - 0.5) ** 2 + (y - 0.4) ** 2
    return 1 + 0.2 * np.exp(-20 * r2), 0.5, 0.2 + 0.1 * np.sin(2 * np.pi * x), 0.0, (1 + 0.1 * np.exp(-20 * r2)) / 1.4


def periodic(integrator: str = "bdf2", steps: int = 4, **tables) -> Case:
    return Case.from_dict(
        {
            "gas": {"reynolds": 500.0} | tables.pop("gas", {}), "scheme": {"flux": "hllc"},
            "grid": {"generator": "box", "n": [16, 14, 1], "upper": [1.0, 1.0, 0.0], "lower": [0.0, 0.0, 0.0],
                     "periodic": ["x", "y"]},
            "time": {"integrator": integrator, "dt": 0.05, "steps": steps} | tables.pop("time", {}),
            "initial": {"state": {"rho": 1.0, "p": 1 / 1.4}},
            "boundary": [{"faces": "all", "type": "periodic"}], **tables,
        }
    )  # fmt: skip


def parted(where: str, ranks: int, comm=None, name: str = "bdf2") -> np.ndarray:
    """The flow after three steps, cut for so many ranks in one process or of `comm`."""
    case = periodic(name, steps=3, implicit={"lines": "none", "newton_drop": 1e10})
    parts = (lambda cut: partition(cut, ranks)) if comm else lambda cut: [
        replace(part, rank=0) for part in partition(cut, ranks)
    ]  # fmt: skip
    cut = domain(case, comm, parts=parts) if comm else domain(case, parts=parts)
    solver = Solver(case, backend(where), domain=cut)
    solver.initialize(blob)
    for _ in range(3):
        solver.step()
    found = solver.system.vector()
    solver.system.state(found)
    return solver.system.gather(found)
