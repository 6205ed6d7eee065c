"""Checks: a flow that is run, a number that is measured, and the limit of that number."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from hiresx.case import Case, load
from hiresx.device import Configuration
from hiresx.output.watch.sampling import Monitor
from hiresx.simulation import Simulation
from hiresx.solver import configuration


@dataclass(frozen=True)
class Limit:
    """The limit of a number that a check measures. `relation`: "<=", ">=" or "in". `threshold`: a number, or (low,
    high) for "in"."""

    relation: str
    threshold: float | tuple[float, float]

    def holds(self, value: float) -> bool:
        """Return whether `value` is within the limit. NaN is not."""
        if not math.isfinite(value):
            return False
        if isinstance(self.threshold, tuple):
            low, high = self.threshold
            return low <= value <= high
        return value <= self.threshold if self.relation == "<=" else value >= self.threshold


def at_most(threshold: float) -> Limit:
    """Return the limit of a check for a number that must be at most `threshold`."""
    return Limit("<=", threshold)


def at_least(threshold: float) -> Limit:
    """Return the limit of a check for a number that must be at least `threshold`."""
    return Limit(">=", threshold)


def between(low: float, high: float) -> Limit:
    """Return the limit of a check for a number that must be between `low` and `high`."""
    return Limit("in", (low, high))


@dataclass(frozen=True)
class CheckRun:
    """A run of a bundled case for a check. `case`: the name of the case. `preset`: the name of its preset, or None.
    `sets`: overrides KEY=VALUE, as for `hiresx run --set`. `monitors`: functions of the simulation that return numbers
    by name, called every `monitor.every` steps."""

    case: str
    preset: str | None = None
    sets: tuple[str, ...] = ()
    monitors: tuple[Callable[[Simulation], dict[str, float]], ...] = ()

    @property
    def command(self) -> str:
        """The command line that makes the same run, such as "hiresx run sod --set time.cfl=0.3"."""
        words = ["hiresx run", self.case, *(["--preset", self.preset] if self.preset else [])]
        return " ".join([*words, *(f"--set {s}" if '"' not in s else f"--set '{s}'" for s in self.sets)])

    @cached_property
    def loaded_case(self) -> Case:
        """The case of this run, with its preset and overrides."""
        return load(self.case, self.preset, self.sets)

    @cached_property
    def configuration(self) -> Configuration:
        """The compile-time choices of the kernels of this run."""
        return configuration(self.loaded_case)


class CompletedRun:
    """A run that is complete, with its initial state. `run`: how it was made. `backend`: the backend. `case`: its case
    if it differs from that of `run`."""

    def __init__(self, run: CheckRun, backend: str, case: Case | None = None):
        self.simulation = Simulation(case or run.loaded_case, backend, monitors=run.monitors)
        self.case, self.blocks = self.simulation.case, self.simulation.blocks
        self._start = [self.simulation.solver.primitives(b) for b in range(len(self.blocks))]
        self.simulation.run(progress=False)

    @property
    def time(self) -> float:
        """Time that the run has reached, in L / c_ref."""
        return self.simulation.time

    def state(self, name: str, block: int = 0) -> np.ndarray:
        """Return the variable `name` (rho, u, v, w, p or a derived variable) at the end of the run, (nk, nj, ni) in the
        scales of the case. `block`: the number of the block."""
        return self.blocks[block].state(name)

    def start(self, name: str, block: int = 0) -> np.ndarray:
        """Return the variable `name` (rho, u, v, w or p) at the start of the run, (nk, nj, ni) in the scales of the
        case. `block`: the number of the block."""
        return self._start[block][name]

    def exact(self, name: str, block: int = 0) -> np.ndarray:
        """Return the exact solution for the variable `name` (rho, u, v, w or p) at the end of the run, from the
        function `exact` of case.py, (nk, nj, ni) in the scales of the case. `block`: the number of the block."""
        b = self.blocks[block]
        values = self.case.evaluate("exact", np.asarray(b.x), np.asarray(b.y), np.asarray(b.z), self.time)
        return values[("rho", "u", "v", "w", "p").index(name)]

    def history(self, name: str) -> dict[str, np.ndarray]:
        """Return the history that the monitor `name` of the case recorded over the run: arrays (samples,) by the name
        of the column."""
        watching = [a for a in self.simulation.attachments if isinstance(a, Monitor)]
        return next(a.history for a in watching if a.history.name == name).table().flat()

    def samples(self, name: str) -> np.ndarray:
        """Return the values of the entry `name` in the records of the run (`Simulation.history`), one for each sample,
        an array (samples,)."""
        return np.array([entry[name] for entry in self.simulation.history])


class Workbench:
    """The environment in which checks run: the backend under test, the plan by which it computes (None: its default
    plan), and the completed runs."""

    def __init__(self, backend: str, plan: str | None = None):
        self.backend = backend
        self.plan = plan
        self._known: dict[Any, Any] = {}

    def case(self, run: CheckRun) -> Case:
        """Return the case of `run` with the order of computation (the key `plan`) that is tested."""
        return run.loaded_case if self.plan is None else run.loaded_case.model_copy(update={"plan": self.plan})

    def command(self, run: CheckRun) -> str:
        """Return the command line that makes the same run with the order of computation (the key `plan`) that is
        tested."""
        return run.command if self.plan is None else f"{run.command} --set plan={self.plan}"

    def once(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return the result of `function` called with this workbench and `arguments`. A second call with the same
        function and arguments returns the first result, or raises the first error again, without another evaluation."""
        key = (function, arguments)
        if key not in self._known:
            try:
                self._known[key] = function(self, *arguments)
            except Exception as error:
                self._known[key] = error
        found = self._known[key]
        if isinstance(found, Exception):
            raise found
        return found

    def complete(self, run: CheckRun) -> CompletedRun:
        """Make the run `run` to its end, and return the completed run. A second call returns the same result."""
        return self.once(_complete, run)

    def forget(self) -> None:
        """Free the memory of completed runs and other stored results."""
        self._known.clear()


def _complete(bench: Workbench, run: CheckRun) -> CompletedRun:
    return CompletedRun(run, bench.backend, bench.case(run))


@dataclass(frozen=True)
class Check:
    """A check of the verification. `limit`: the accepted range of its number. `measure`: a function that returns the
    number. Its arguments are the results of `runs`, one CompletedRun each, or the Workbench if there are none.
    `curves`: a function with the same arguments that returns sequences by name, which are stored with the result for
    pictures. `configurations`: the configurations of the kernels that it needs, which are compiled before it.
    `backends`: a function that returns the names of the backends that it uses, given the one under test."""

    name: str
    limit: Limit
    measure: Callable[..., float]
    runs: tuple[CheckRun, ...] = ()
    curves: Callable[..., Mapping[str, Sequence[float] | np.ndarray]] | None = None
    configurations: tuple[Configuration, ...] = field(default=(), repr=False)
    """What `measure` compiles besides its runs."""
    backends: Callable[[str], Sequence[str]] = field(default=lambda tested: (tested,), repr=False)
    """The names of the backends for which it compiles them, by that of the backend under test."""

    def value(self, bench: Workbench) -> float:
        """Return the number that this check measures. Runs that it needs are made first, except those that `bench` has
        already completed. `bench`: the `Workbench` with the backend under test."""
        return float(self.measure(*self._inputs(bench)))

    def curve_values(self, bench: Workbench) -> Mapping[str, Sequence[float] | np.ndarray]:
        """Return the curves of this check for its picture, a sequence of numbers for each name; empty if it has none.
        `bench`: the `Workbench` with the backend under test and the completed runs."""
        return self.curves(*self._inputs(bench)) if self.curves else {}

    def _inputs(self, bench: Workbench) -> list[Any]:
        return [bench.complete(run) for run in self.runs] if self.runs else [bench]

    def needed_kernels(self, tested: str) -> list[tuple[str, Configuration]]:
        """Return all configurations of kernels that this check needs, each with the name of the backend that needs it.
        `tested`: the name of the backend under test."""
        of_runs = [(tested, run.configuration) for run in self.runs]
        return of_runs + [(name, found) for name in self.backends(tested) for found in self.configurations]
