"""The decision whether a run gets a new decomposition: the measured speeds of its ranks, the expected gain, and the
cost."""

import math
import time as wall
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from hiresx.decomposition import Domain, Part
from hiresx.decomposition.partition import partition
from hiresx.decomposition.parts import points_by_rank
from hiresx.errors import HiresxError
from hiresx.output.saved.attachment import MANY
from hiresx.solver import Solver

# "auto", "never", or the number of steps between two comparisons.
Rule: TypeAlias = str | int

# Fraction of the computing time of a step that a new partition must save.
GAIN = 0.1
# Steps before the first comparison, and between two comparisons that must agree; and seconds within which the load of
# the machine by other programs averages out.
WARM_UP, LONG = 20, 2.0
# Steps between comparisons: at least this many, and so many that comparisons take no more than this fraction of the
# run.
EVERY, SHARE = 100, 0.01
# In the rest of the run a new partition must save at least this multiple of its cost.
PAYS = 2.0
# Number of right-hand sides that are timed if the device makes complete steps, whose parts are not timed.
TIMED = 5
# Parts of a step in which no rank waits for another one.
_COMPUTING = ("inviscid", "viscous", "update", "axisymmetric", "sponge")


@dataclass(frozen=True)
class Plan:
    """A new partition of the grid among the ranks. `parts`: the boxes of nodes with their ranks. `speeds`: the measured
    speeds of the ranks, in points per second of computing. `gain`: the fraction of the computing time of a step that is
    saved."""

    parts: tuple[Part, ...]
    speeds: list[float]
    gain: float


def parse_rule(rule: Rule) -> Rule:
    """Return the rule by which the grid is divided among ranks again during a run: "auto", "never", or a number of
    steps. A string of digits becomes an int. Raises HiresxError for an invalid rule."""
    if isinstance(rule, str) and rule.isdecimal():
        rule = int(rule)
    if rule in ("auto", "never") or (isinstance(rule, int) and not isinstance(rule, bool) and rule > 0):
        return rule
    raise HiresxError(f"rebalance: {rule!r} is not a rule", "give auto, never, or a number of steps from 1 on")


def plan_cut(ground: Domain, points: np.ndarray, seconds: np.ndarray) -> Plan | None:
    """Return a better division of the grid among the ranks for their measured speeds, or None if it would save less
    than a tenth of the computing time of a step. `ground`: the grid and its present division. `points` and `seconds`
    (ranks,): the nodes of each rank, and its computing time for a step. All ranks must call this; the result is the
    same on all."""
    comm = ground.comm
    busy = (points > 0) & (seconds > 0)
    speeds = points / np.where(busy, seconds, 1.0)
    # The speed of a rank without points is not known.
    speeds[~busy] = speeds[busy].mean()
    slowest = seconds.max()
    if 1 - points.sum() / speeds.sum() / slowest <= GAIN:
        return None  # not even with parts of exactly fitting sizes
    parts: tuple[Part, ...] | None = None
    with comm.together():
        if comm.root:
            parts = partition(ground.whole, comm.size, speeds.tolist())
    parts = comm.bcast(parts)
    assert parts is not None
    held = points_by_rank(parts, comm.size)
    gain = float(1 - (held / speeds).max() / slowest)
    return Plan(parts, speeds.tolist(), gain) if gain > GAIN else None


class Rebalancing:
    """Compares the speeds of the ranks at intervals, by `rule`. `cost`: expected time of a new partition, in s."""

    def __init__(self, rule: Rule, cost: float):
        self._rule, self._cost = rule, cost
        self._every = rule if isinstance(rule, int) else 0
        self._apart = EVERY
        self._seen: np.ndarray | None = None  # seconds by rank of the comparison that is to be confirmed
        # The step of the next comparison; step, wall time and stopwatch of the last one.
        self._next, self._from = 0, (0, 0.0)
        self._stopwatch: dict[str, float] = {}

    def _never(self, solver: Solver) -> bool:
        return self._rule == "never" or solver.comm.size == 1

    def begin(self, solver: Solver) -> None:
        """Start to measure the speeds of the ranks. The caller does this before the first step, and after it has
        replaced the state."""
        self._seen = None
        self._later(solver, WARM_UP if self._rule == "auto" else self._every)

    def steps_left(self, solver: Solver) -> int:
        """Return the largest number of steps that `solver` may make before `look` must be called."""
        return MANY if self._never(solver) else max(1, self._next - solver.steps)

    def look(self, solver: Solver, ground: Domain, left: float) -> Plan | None:
        """Compare the speeds of the ranks if this is due, and return a better division of the grid, or None if no
        comparison is due or no division is better. Call it after a step. `ground`: the grid and its present division.
        `left`: number of steps until the end of the run. All ranks must call this."""
        if self._never(solver) or solver.steps < self._next or left < 1:
            return None
        step, began = self._from
        elapsed = float(solver.comm.max(wall.monotonic() - began))
        pace = elapsed / max(solver.steps - step, 1)
        if self._rule == "auto" and elapsed < LONG:
            self._next = solver.steps + max(1, math.ceil(min((LONG - elapsed) / max(pace, 1e-9), EVERY)))
            return None
        if self._rule == "auto" and left * pace < PAYS * self._cost:
            self._later(solver, self._apart)
            return None
        looked = wall.monotonic()
        seconds = self._computing_time(solver)
        points = points_by_rank(ground.cut.parts, solver.comm.size)
        found = plan_cut(ground, points, seconds) if seconds.max() > 0 else None
        if self._rule != "auto":
            self._later(solver, self._every)
            return found
        if found is not None and self._seen is not None:
            found = plan_cut(ground, points, 0.5 * (seconds + self._seen))
        took = float(solver.comm.max(wall.monotonic() - looked))
        self._apart = max(self._apart, min(math.ceil(took / (SHARE * pace)), MANY)) if pace > 0 else self._apart
        if found is None or found.gain * pace * left < PAYS * self._cost:
            self._seen = None
            self._later(solver, self._apart)
            return None
        if self._seen is None:
            self._seen = seconds
            self._later(solver, WARM_UP)
            return None
        return found

    def follow(self, solver: Solver, seconds: float) -> None:
        """Record that the grid was divided again, which took `seconds`. `solver`: the solver that continues."""
        self._cost, self._seen = seconds, None
        self._apart *= 2  # a plan that was wrong so soon would be wrong again
        self._later(solver, self._every or self._apart)

    def _later(self, solver: Solver, steps: int) -> None:
        """Set the step of the next comparison, which concerns the steps from now on."""
        self._next = solver.steps + steps
        self._from = solver.steps, wall.monotonic()
        self._stopwatch = dict(solver.stopwatch.seconds)

    def _computing_time(self, solver: Solver) -> np.ndarray:
        """Return the seconds (ranks,) that each rank has computed since the last comparison, without waiting: those of
        a step, or of a right-hand side if steps are timed as a whole."""
        count = solver.steps - self._from[0]
        if solver.device_resident_steps.possible:
            self._stopwatch = dict(solver.stopwatch.seconds)
            for _ in range(TIMED):
                solver.right_hand_side()
            solver.settle()
            count = TIMED
        now = solver.stopwatch.seconds
        own = sum(now.get(name, 0.0) - self._stopwatch.get(name, 0.0) for name in _COMPUTING)
        return np.array(solver.comm.allgather(max(own, 0.0) / max(count, 1)))
