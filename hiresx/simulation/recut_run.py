"""A new partition of the grid during a run, with which the run continues."""

import math
import time as wall
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from hiresx.base import garbage
from hiresx.base.argument_types import check_types
from hiresx.decomposition import Decomposition, Domain, Part
from hiresx.decomposition.domain import cut_again
from hiresx.decomposition.partition import partition
from hiresx.decomposition.parts import points_by_rank
from hiresx.estimate import refuse_oversized
from hiresx.output.fields.field_output import FieldOutput
from hiresx.simulation.attached_run import AttachedRun
from hiresx.simulation.epochs import Epoch, HandOver
from hiresx.simulation.rebalance import Plan, Rebalancing


class RecutRun(AttachedRun):
    """Base class of `hiresx.Simulation` that partitions the blocks again during a run. `epochs`: the partitions so far,
    as in run.json."""

    epochs: list[dict[str, Any]]
    _ground: Domain
    _rebalancing: Rebalancing
    _weights: list[float] | None
    # Arguments of a `rebuild` that was requested during a step, and whether a step is in progress.
    _wanted: tuple[Callable[[Decomposition], Sequence[Part]], list[float] | None] | None
    _stepping: bool

    def _refuse_oversized(self, ground: Domain) -> None:
        own = points_by_rank(ground.cut.parts, self.comm.size)[self.comm.rank]
        refuse_oversized(self.case, self.backend.name, int(own))

    @check_types
    def rebuild(
        self,
        weights: Sequence[float] | None = None,
        parts: Callable[[Decomposition], Sequence[Part]] | None = None,
    ) -> None:
        """Divide the blocks among the ranks again between two steps. `weights`: relative speeds of the ranks. `parts`:
        a function that returns the division. A step in progress is completed first. All ranks must call this.

        Fields move from rank to rank in memory, and monitors continue as after a restart. Ranks keep their GPUs, cores,
        threads and kernels, and choose the transport of ghost nodes again. Afterwards `solver`, `blocks` and
        `attachments` are new objects, and `epochs` has a new entry.

        Raises HiresxError, with everything unchanged, for weights or a division that are not valid and if a rank has
        too little memory for its nodes. Raises BlowUp if the flow is invalid.
        """
        chosen = None if weights is None else [float(w) for w in weights]
        by = partial(partition, ranks=self.comm.size, weights=chosen) if parts is None else parts
        if self._stepping:
            self._wanted = by, chosen
        else:
            self._cut_again(by, "asked for", chosen)

    def _cut_again(
        self,
        parts: Callable[[Decomposition], Sequence[Part]],
        reason: str,
        weights: list[float] | None,
        plan: Plan | None = None,
    ) -> Epoch:
        began = wall.monotonic()
        self.solver.complete_if_set()
        ground = cut_again(self._ground, parts)
        with self.comm.together():
            self._refuse_oversized(ground)
        self._check()
        self._go_to(ground)
        seconds = float(self.comm.max(wall.monotonic() - began))
        epoch = Epoch.of(self.solver, len(self.epochs) + 1, reason, self._weights, weights, plan, seconds)
        self._weights = weights
        self.epochs.append(epoch.document())
        self._rebalancing.follow(self.solver, seconds)
        return epoch

    def _go_to(self, ground: Domain) -> None:
        """Continue with another decomposition, or other tiles. Collective; raises HiresxError."""
        before = self._ground
        opened = bool(self._open)
        carried = HandOver(self.solver, self.attachments if opened else [], self._continuation.captured, ground)
        self._tell_outputs("pausing")
        if opened:
            for failed in self._finish_attachments():
                raise failed
        # The device has memory for only one of them.
        self.attachments, self.blocks = [], []
        reused = self.solver.reusable(ground)
        carried.close(self.solver, reused)
        del self.solver, self._trace
        carried.free()
        fault = None
        try:
            self._build(ground, None, reused)
        except Exception as error:
            # The same partition as before, so that results can be reused.
            fault = error.with_traceback(None)
            garbage.collect()
            carried.move(before)
            self._build(before, None, reused)
        carried.restore(self.solver, self._ground, reused.held)
        del reused
        self._trace.remember()
        self._continuation.captured = carried.captured
        self.attachments = self._build_attachments()
        if opened:
            self._restore_attachments(Path("what was kept in memory"))
            self._tell_outputs("resuming")
            self._open_attachments(True)
        if fault is not None:
            raise fault

    def _tell_outputs(self, flag: str) -> None:
        """Set the attribute `flag` of all outputs of fields, "pausing" or "resuming"."""
        for attachment in self.attachments:
            if isinstance(attachment, FieldOutput):
                setattr(attachment, flag, True)

    def _most_steps(self, last_step: int | None) -> float:
        """Return the largest possible number of steps until the end."""
        left = math.inf if last_step is None else last_step - self.step_count
        end = self.case.time.end
        if end is not None and self.solver.dt > 0:
            left = min(left, (end - self.time) / self.solver.dt)
        return left
