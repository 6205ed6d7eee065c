"""Tiles of refinement that follow the flow of a run."""

import time as wall
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from hiresx.base import garbage
from hiresx.decomposition import Decomposition, Domain, Part
from hiresx.decomposition.domain import with_tiles
from hiresx.decomposition.partition import partition
from hiresx.errors import HiresxError
from hiresx.output.saved.attachment import MANY
from hiresx.output.saved.checkpoint import Checkpoints
from hiresx.simulation import kept_integrals
from hiresx.simulation.flow_flags import tiles_of_flow
from hiresx.simulation.recut_run import RecutRun

# Fraction of the time of a run above which a warning reports the cost of changes of the levels.
LARGE_SHARE = 0.3


@dataclass
class Adaptations:
    """Record of the changes of the refinement in a run. `looks`: number of evaluations of the criterion. `changes`:
    number of changes of the tiles. `look_s`, `change_s` and `step_s`: the seconds of evaluations, changes and steps.
    `node_steps`: sum over the `steps` of the number of nodes of all levels. `most_nodes`: largest number of nodes at
    any time. `blocks` and `points`: the present numbers of tiles and of nodes of each level."""

    looks: int = 0
    changes: int = 0
    look_s: float = 0.0
    change_s: float = 0.0
    step_s: float = 0.0
    node_steps: int = 0
    steps: int = 0
    most_nodes: int = 0
    blocks: list[int] = field(default_factory=list)
    points: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, ground: Domain) -> "Adaptations | None":
        """Return the record of refinement changes for a run that begins with the blocks `ground`; None if its tiles do
        not change."""
        if ground.hierarchy is None:
            return None
        made = cls()
        made.count(ground.whole)
        return made

    def count(self, whole: Decomposition) -> None:
        """Record the present numbers of tiles and of nodes of each level of refinement. `whole`: the present blocks."""
        assert whole.levels is not None
        self.blocks, self.points = ([0] * (whole.levels.finest + 1) for _ in range(2))
        for block, tile in zip(whole.blocks, whole.levels.tiles, strict=True):
            self.blocks[tile.level] += 1
            self.points[tile.level] += block.points
        self.most_nodes = max(self.most_nodes, whole.points)

    def remark(self) -> str | None:
        """Return a warning if the changes of the refinement took a large part of the time of the run; None
        otherwise."""
        changing = self.look_s + self.change_s
        if changing <= LARGE_SHARE * (changing + self.step_s):
            return None
        return (
            f"{self.looks} evaluations of the criterion and {self.changes} changes of the levels took "
            f"{100 * changing / (changing + self.step_s):.0f} % of the time of this run; larger refine.every and "
            "refine.tile take less"
        )

    def document(self) -> dict[str, Any]:
        """Return the record of refinement changes as a dictionary for run.json."""
        mean = self.node_steps / self.steps if self.steps else None
        return {key: value for key, value in vars(self).items() if key != "node_steps"} | {"mean_nodes": mean}


class AdaptedRun(RecutRun):
    """Base class of `hiresx.Simulation` that changes the tiles (boxes of nodes of finer levels) during the run.
    `adaptations`: record of the changes, as in run.json; None if the tiles do not change."""

    adaptations: Adaptations | None
    _checkpoints: Checkpoints | None
    _cutting: Callable[[Decomposition], Sequence[Part]] | None

    def adapt(self) -> bool:
        """Evaluate the criterion of refinement and change the tiles (boxes of nodes of finer levels) accordingly, as
        `run` does before every `refine.every`-th step, and return whether any tile has changed. If so, `solver`,
        `blocks` and `attachments` are new objects. The states of tiles that remain are not changed; the states of new
        tiles are interpolated. All ranks must call this. Raises HiresxError for a case without a criterion, for more
        nodes than `refine.most_nodes`, and if the memory is too small. The run is then unchanged; in the last two cases
        a checkpoint is written."""
        if self.adaptations is None or self._ground.hierarchy is None:
            raise HiresxError("the levels of this run do not change", "give refine.criterion")
        began = wall.monotonic()
        self.solver.complete_if_set()
        hierarchy, levels = self._ground.hierarchy, self._ground.whole.levels
        assert levels is not None
        wanted = tiles_of_flow(self._ground, self.solver)
        there = hierarchy.of(levels.tiles)
        same = all((a == b).all() for of in zip(wanted, there, strict=True) for a, b in zip(*of, strict=True))
        self.adaptations.looks += 1
        looked = wall.monotonic()
        self.adaptations.look_s += looked - began
        if same:
            return False
        try:
            ground = with_tiles(self.comm, hierarchy, lambda _: wanted, self._cut_by())
            with self.comm.together():
                self._refuse_oversized(ground)
        except HiresxError:
            if self._checkpoints is not None and self._open:
                self._checkpoints.write(self.solver)
            raise
        if not self.solver.step_size.state_cache.permits_step:
            self._check()
        before = kept_integrals.integrals(self.solver)
        with garbage.paused():
            self._go_to(ground)
        if before is not None:
            kept_integrals.keep(self.solver, before[0])
        self._rebalancing.begin(self.solver)
        self.adaptations.changes += 1
        self.adaptations.count(ground.whole)
        self.adaptations.change_s += wall.monotonic() - looked
        return True

    def _cut_by(self) -> Callable[[Decomposition], Sequence[Part]] | None:
        """Return the function that divides the blocks among the ranks."""
        if self._cutting is not None or self.comm.size == 1:
            return self._cutting
        return partial(partition, ranks=self.comm.size, weights=self._weights)

    def _adapt_if_due(self) -> bool:
        """Adapt the tiles before a step if that is due. Returns True if the tiles changed. A checkpoint of the same
        step contains the tiles before."""
        table = self.case.refine
        if self.adaptations is None or table is None or self.step_count % table.every:
            return False
        return self.adapt()

    def _steps_to_adaptation(self) -> int:
        table = self.case.refine
        if self.adaptations is None or table is None:
            return MANY
        return table.every - self.step_count % table.every

    def _count_steps(self, steps: int, seconds: float) -> None:
        if self.adaptations is not None:
            self.adaptations.steps += steps
            self.adaptations.step_s += seconds
            self.adaptations.node_steps += steps * self._ground.whole.points
