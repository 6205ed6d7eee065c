"""Monitors of the user: functions of case.py that the key `monitors` names, and functions given to Simulation."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from hiresx.case import Case
from hiresx.case.functions import wrap_user_call
from hiresx.case.monitors import RESIDUAL
from hiresx.errors import HiresxError
from hiresx.output.watch.history import STEP, TIME, Column
from hiresx.output.watch.sampling import Monitor, MonitorToTheEnd
from hiresx.output.watch.watched import WatchedRun
from hiresx.solver import Solver

# Relative difference up to which values of two ranks count as equal.
SAME = 1e-9
# Time, in s, that a rank waits for the others after the function failed on it, since they may wait for it in a sum.
PATIENCE = 3.0
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_UNITS = "as the function has it"
_WANTED = "a monitor returns numbers by name, {name: number}, with the same names at every call, or nothing"


def build(case: Case, simulation: WatchedRun) -> list[Monitor]:
    """Return a monitor for each function that the user gave to the run `simulation` or the case to compute numbers from
    the flow. Raises HiresxError on all ranks if two monitors have the same name."""
    calls = [*(case.function(name) for name in case.monitors), *simulation.monitors]
    names = [_name(call, n) for n, call in enumerate(calls)]
    taken = [*names, RESIDUAL, *(table.name for table in case.probe), *(table.name for table in case.force)]
    taken += case.histories()
    with simulation.solver.comm.together():
        for name in names:
            if taken.count(name) > 1:
                raise HiresxError(f'two monitors are called "{name}"', "give every monitor a name of its own")
    return [UserMonitor(name, call, case, simulation) for name, call in zip(names, calls, strict=True)]


def _name(call: Callable[..., Any], n: int) -> str:
    name = getattr(call, "__name__", type(call).__name__)
    return name if _NAME.fullmatch(name) else f"monitor_{n}"  # a lambda


class UserMonitor(MonitorToTheEnd):
    """Monitor called `name` that calls `function(simulation, *, <parameters>)` on every rank. The result of its first
    call defines the columns of its history."""

    def __init__(self, name: str, function: Callable[..., Any], case: Case, simulation: WatchedRun):
        super().__init__(simulation.solver.comm, name, "function", (), case.monitor.every, out=simulation.out)
        self._function, self._simulation = function, simulation
        self._arguments = case.arguments(function)
        self._found: tuple[int, dict[str, float]] | None = None
        self._restarted = False

    def values(self, solver: Solver) -> dict[str, float]:
        """Return the numbers that the user's function computes at the present step, by name. The function is called
        once per step. Raises HiresxError if it fails, if it returns anything else than numbers by name, or if its
        results differ between ranks. All ranks must call this method."""
        if self._found is None or self._found[0] != solver.steps:
            with self._comm.together(PATIENCE), wrap_user_call(self._function, f'monitor "{self.history.name}"'):
                found = self._call()
            by_rank = self._comm.allgather(found)
            if error := self._difference(by_rank):
                error.everywhere = True
                raise error
            solver.complete_if_set()  # the function may set blocks of its rank
            self._found = solver.steps, by_rank[0]
        return self._found[1]

    def _difference(self, by_rank: list[dict[str, float]]) -> HiresxError | None:
        """Return the error for a result that differs between rank 0 and another rank; None if all ranks have the
        same."""
        first, who = by_rank[0], f'monitor "{self.history.name}"'
        for rank, found in enumerate(by_rank):
            if found.keys() != first.keys():
                here, there = (", ".join(names) or "nothing" for names in (first, found))
                return HiresxError(
                    f"{who} returned {here} on rank 0 and {there} on rank {rank}", "return the same names on all ranks"
                )
            for name, value in found.items():
                if not np.isclose(value, first[name], rtol=SAME, atol=0, equal_nan=True):
                    return HiresxError(
                        f"{who} returned {name} = {first[name]:.9g} on rank 0 and {value:.9g} on rank {rank}: each has "
                        "blocks of its own",
                        "bring together what the ranks have: simulation.comm.sum(...), max, min, or share",
                    )
        return None

    def _call(self) -> dict[str, float]:
        result = self._function(self._simulation, **self._arguments)
        if result is None:
            return {}
        if not isinstance(result, Mapping):
            raise HiresxError(f'monitor "{self.history.name}" returned {type(result).__name__}', _WANTED)
        found = {}
        for key, value in result.items():
            if not (isinstance(key, str) and _NAME.fullmatch(key)) or key in (STEP.name, TIME.name):
                raise HiresxError(
                    f'monitor "{self.history.name}" returned a value called "{key}"',
                    "use letters, digits and _, and neither step nor time",
                )
            try:
                found[key] = float(value)
            except (TypeError, ValueError):
                raise HiresxError(f'monitor "{self.history.name}" returned {key} = {value!r:.60}', _WANTED) from None
        columns = [column.name for column in self.history.columns]
        for key in found if columns else ():
            if key not in columns:
                raise HiresxError(f'monitor "{self.history.name}" returned "{key}", which it did not at first', _WANTED)
        return found

    def _start(self, restarted: bool) -> None:
        self._restarted = restarted
        if self.history.columns:
            super()._start(restarted)

    def _sample(self, solver: Solver) -> None:
        values = self.values(solver)
        if not values:
            return
        if not self.history.columns:
            self.history.define([Column(name, name, _UNITS) for name in values])
            super()._start(self._restarted)
        self._add(solver.steps, solver.time, values)

    def capture(self) -> dict[str, Any]:
        """Return the data for a checkpoint: the samples so far, and the names of the numbers in a sample."""
        return super().capture() | {"columns": ",".join(column.name for column in self.history.columns)}

    def restore(self, captured: Mapping[str, Any]) -> None:
        """Restore the samples and the names of their numbers from a checkpoint. `captured`: the result of `capture`."""
        names = [name for name in captured["columns"].split(",") if name]
        self.history.define([Column(name, name, _UNITS) for name in names])
        super().restore(captured)
