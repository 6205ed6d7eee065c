"""Epochs: the intervals of a run between changes of its decomposition, as run.json stores them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from weakref import ref

from hiresx.base import garbage
from hiresx.decomposition import Domain
from hiresx.decomposition.held_arrays import Piece
from hiresx.decomposition.parts import points_by_rank
from hiresx.output.saved import checkpoint
from hiresx.output.saved.attachment import Attachment
from hiresx.output.saved.distributed_arrays import Reader
from hiresx.simulation.prolongation import carry_over
from hiresx.simulation.rebalance import Plan
from hiresx.simulation.redistribution import redistribute
from hiresx.solver import Solver
from hiresx.solver.block_states import Reused
from hiresx.solver.held_blocks import HeldBlock


class HandOver:
    """The data that pass from `solver` to the next solver: the content of a checkpoint, and measured times. `ground`:
    the grid and decomposition of the next solver. If `ground` has other tiles, the state stays on the device, and the
    state of new tiles is interpolated (`carry_over`). `captured`: data that earlier attachments pass on, to which the
    data of `attachments` are added. Collective."""

    def __init__(
        self,
        solver: Solver,
        attachments: Sequence[Attachment],
        captured: Mapping[str, Mapping[str, Any]],
        ground: Domain,
    ):
        self._comm, self._backend = solver.comm, solver.backend
        move = partial(redistribute, parts=ground.cut.parts, comm=self._comm)
        solver.settle()
        self._values = solver.values()
        before, after = solver.decomposition.levels, ground.whole.levels
        self._before = before if after is not None and before is not None and before.tiles != after.tiles else None
        self._read = move(solver.pieces()) if self._before is None else None
        self._stopwatch, self._overlap, self._retaken = solver.stopwatch, solver.overlap, solver.retaken
        self._waited = 0.0
        self.captured = _move(captured, move)
        self.captured |= {a.name: checkpoint.restore_in_memory(a.capture(), move) for a in attachments}

    def move(self, ground: Domain) -> None:
        """Redistribute the stored data over the ranks by the division of the grid among ranks in `ground`. All ranks
        must call this."""
        move = partial(redistribute, parts=ground.cut.parts, comm=self._comm)
        if self._read is not None:
            assert self._read.pieces is not None  # they are in memory
            self._read = move(self._read.pieces)
        self.captured = _move(self.captured, move)

    def close(self, solver: Solver, reused: Reused) -> None:
        """Free the resources of MPI and of the device that `solver`, the previous solver, uses. It cannot make steps
        afterwards. `reused`: the data that the next solver uses. All ranks must call this."""
        solver.backend.synchronize()
        self._waited = solver.halo.seconds_waited
        solver.close()
        # The system and the solver refer to each other.
        vars(solver.system).clear()
        kept = set(reused.states.values())
        unused: list[Any] = [solver, *(state for state in solver.states if state not in kept)]
        self._unused = [ref(one) for one in unused]

    def free(self) -> None:
        """Free the memory of the previous solver, to which no other object may refer any more. Python has freed it
        already, unless objects of the solver refer to each other; only then the garbage collector runs, which takes
        longer."""
        if any(unused() is not None for unused in self._unused):
            garbage.collect()

    def restore(self, solver: Solver, ground: Domain, held: Sequence[HeldBlock]) -> None:
        """Set the state of the new `solver` to the state of the previous solver. `ground`: the grid of the new solver
        and its division. `held`: arrays of the previous solver on the device, from which the state is interpolated if
        the levels of refinement have changed. All ranks must call this."""
        if self._read is not None:
            solver.restore(self._values, self._read)
        else:
            assert self._before is not None
            solver.go_on(self._values, partial(carry_over, held, self._before, ground, solver))
        solver.stopwatch, solver.overlap, solver.retaken = self._stopwatch, self._overlap, self._retaken
        solver.halo.waited_before = self._waited


def _move(
    captured: Mapping[str, Mapping[str, Any]], move: Callable[[Sequence[Piece]], Reader]
) -> dict[str, dict[str, Any]]:
    """Redistribute the captured data of attachments that are in memory. Data in a file can be read with any
    decomposition."""
    return {
        name: {
            key: move(value.pieces) if isinstance(value, Reader) and value.pieces is not None else value
            for key, value in found.items()
        }
        for name, found in captured.items()
    }


@dataclass(frozen=True)
class Epoch:
    """A period of a run with one partition of the blocks. `epoch`: its number, from 0. `step` and `time`: the step and
    the time (in L / c_ref) after which the partition was made. `seconds`: the time that this took. `reason`: "asked
    for" or "speeds". `weights_before`, `weights`: relative speeds of the ranks for which the previous and the present
    partition were made (null: equal speeds, or a partition by a function of the user). If the speeds were measured,
    `speeds` has the points per second of computing of each rank, and `gain` the fraction of the computing time of a
    step that the new partition was expected to save. `points`: the number of points of each rank."""

    epoch: int
    step: int
    time: float
    reason: str
    weights_before: list[float] | None
    weights: list[float] | None
    speeds: list[float] | None
    gain: float | None
    points: list[int]
    seconds: float

    @classmethod
    def of(
        cls,
        solver: Solver,
        number: int,
        reason: str,
        before: list[float] | None,
        weights: list[float] | None,
        plan: Plan | None,
        seconds: float,
    ) -> "Epoch":
        """Return the record of a period of the run that begins with a new division of the grid among ranks. `solver`:
        the solver that continues. `number`: the number of the record, from 0. `reason`: why the grid was divided again.
        `before`, `weights`: relative speeds of the ranks assumed before and now (None: equal speeds, or a division that
        a function of the user made). `plan`: the division that was chosen for measured speeds, or None. `seconds`: how
        long the change took. All ranks must call this."""
        points = points_by_rank(solver.cut.parts, solver.comm.size).tolist()
        speeds, gain = (None, None) if plan is None else (plan.speeds, plan.gain)
        return cls(number, solver.steps, solver.time, reason, before, weights, speeds, gain, points, seconds)

    def document(self) -> dict[str, Any]:
        """Return this record as a dictionary for run.json."""
        return dict(vars(self))

    @property
    def description(self) -> str:
        """One line of text that describes the change of the division of the grid, its reason and its duration."""
        why = self.reason
        if self.speeds is not None and self.gain is not None:
            why = (
                f"ranks compute {min(self.speeds):.3g} to {max(self.speeds):.3g} points a second, {self.gain:.0%} less "
                "computing a step"
            )
        held = f"{min(self.points):,} to {max(self.points):,} points a rank"
        return f"step {self.step}: the grid is cut anew in {self.seconds:.2g} s ({why}): {held}"
