"""The part of a run (`hiresx.simulation.Simulation`) that its monitors see."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from hiresx.mpi.communicator import Communicator
from hiresx.solver import Solver


class WatchedRun(Protocol):
    """The part of a run that monitors can read. `history` has the entries of run.json; `monitors` are functions of the
    user."""

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
        """Functions of the user."""
