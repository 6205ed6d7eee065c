"""The part of a run (`hiresx.simulation.Simulation`) that its monitors see."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from hiresx.mpi.communicator import Communicator
from hiresx.solver import Solver


class WatchedRun(Protocol):
    """`solver`; `out`, the run directory, or None; `history` as of run.json; `monitors`, functions of the user."""

    @property
    def comm(self) -> Communicator: ...
    @property
    def solver(self) -> Solver: ...
    @property
    def out(self) -> Path | None: ...
    @property
    def history(self) -> list[dict[str, Any]]: ...
    @property
    def monitors(self) -> tuple[Callable[..., Mapping[str, float] | None], ...]: ...
