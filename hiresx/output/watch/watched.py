"""The attributes of a run (`hiresx.simulation.Simulation`) that its monitors use."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from hiresx.mpi.communicator import Communicator
from hiresx.solver import Solver


class WatchedRun(Protocol):
    """Interface of a run for its monitors: the attributes that they read."""

    @property
    def comm(self) -> Communicator:
        """The communicator of the ranks that compute the run."""

    @property
    def solver(self) -> Solver:
        """The solver, which has the state of the flow."""

    @property
    def out(self) -> Path | None:
        """The run directory; None for a run that writes no files."""

    @property
    def history(self) -> list[dict[str, Any]]:
        """The steps at which the run computed its residual norms: a list with a dictionary of step, time and norms for
        each."""

    @property
    def monitors(self) -> tuple[Callable[..., Mapping[str, float] | None], ...]:
        """Functions that the user passed to `hiresx.Simulation`. Each is called with the simulation, and returns
        numbers by name, or None."""
