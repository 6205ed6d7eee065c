"""The part of a run (`hiresx.simulation.Simulation`) that its monitors see."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from hiresx.mpi.communicator import Communicator
from hiresx.solver import Solver


class WatchedRun(Protocol):
    """Interface of a run for its monitors: the attributes that they read."""

    @property
    def comm(self) -> Communicator:
        """The ranks of the run."""

    @property
    def solver(self) -> Solver:
        """The solver, with the state."""

    @property
    def out(self) -> Path | None:
        """The run directory; None without output."""

    @property
    def history(self) -> list[dict[str, Any]]:
        """Records of the run so far, as in run.json."""

    @property
    def monitors(self) -> tuple[Callable[..., Mapping[str, float] | None], ...]:
        """Functions that the user gave to `hiresx.Simulation`. Each is called with the simulation, and returns numbers
        by name, or None."""
