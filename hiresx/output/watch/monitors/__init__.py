"""Monitors of a run, one file for each kind. A file defines `build(case, simulation)`, which returns attachments of the
run, and may define `check(case, decomposition)`, which raises an error for faults in the tables of the case before
anything runs."""

import importlib
import pkgutil
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from hiresx.case import Case
from hiresx.decomposition import Decomposition
from hiresx.mpi.communicator import Communicator
from hiresx.output.saved import files
from hiresx.output.saved.attachment import MANY, Attachment
from hiresx.output.watch import history, surface_file, wall_file
from hiresx.output.watch.device_samples import DeviceMonitor, DeviceSamples
from hiresx.output.watch.watched import WatchedRun
from hiresx.solver import Solver


def build(case: Case, simulation: WatchedRun) -> list[Attachment]:
    """Return all monitors of a run, which the tables of `case` define. `simulation`: the run, with its `solver`, `out`
    (the run directory or None), `history` and `monitors` (functions of the user). All ranks must call this function.
    Raises HiresxError on all ranks, for example for a probe outside the grid or for a force on faces without a wall."""
    found = [monitor for kind in _kinds() for monitor in kind.build(case, simulation)]
    found.append(DeviceSamples(simulation.solver, [monitor for monitor in found if isinstance(monitor, DeviceMonitor)]))
    return found if simulation.out is None else [_RemoveEarlier(simulation.solver.comm, simulation.out), *found]


def check(case: Case, decomposition: Decomposition) -> dict[str, Any]:
    """Check the monitors of `case` before the run. `decomposition`: the blocks of the grid. Returns the results of the
    checks by the kind of the monitor: "probe" has the locations of all probes. Raises HiresxError for the first
    error."""
    kinds = [kind for kind in _kinds() if hasattr(kind, "check")]
    return {kind.__name__.rpartition(".")[2]: kind.check(case, decomposition) for kind in kinds}


@cache  # monitors are built again at every change of tiles
def _kinds() -> list[ModuleType]:
    return [importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)]


class _RemoveEarlier(Attachment):
    """Removes the histories, surfaces and distributions along walls that an earlier run left in a new run's directory:
    some might have no successor."""

    name = "earlier histories"

    def __init__(self, comm: Communicator, out: Path):
        self._comm, self._out = comm, out

    def steps_left(self, solver: Solver) -> int:
        return MANY

    def begin(self, solver: Solver, restarted: bool) -> None:
        if not restarted:
            kept = (history.histories, surface_file.surfaces, wall_file.walls)
            left = [path for of in kept for path in of(self._out).values()]
            files.on_root(self._comm, lambda: files.remove(left))
