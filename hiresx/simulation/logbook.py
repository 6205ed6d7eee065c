"""Information about a run: the file run.json, and messages about its ranks."""

import math
import time as wall
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from hiresx.base.termination_signals import SIGNALLED
from hiresx.errors import HiresxError, describe, error_text
from hiresx.output.saved import identity, record
from hiresx.placement import Placement
from hiresx.solver import Solver

if TYPE_CHECKING:
    from hiresx.simulation.simulation import Simulation


class Logbook:
    """The writer of run.json during one `Simulation.run`. Without a run directory the record is only returned.
    `last_step`: the latest step after which the run ends; None if there is no limit."""

    def __init__(self, simulation: "Simulation", last_step: int | None = None):
        self.simulation, self._last_step = simulation, last_step
        self._began, self._first_step = wall.perf_counter(), simulation.step_count
        self._first_node_steps = 0 if simulation.adaptations is None else simulation.adaptations.node_steps
        self._ranks: list[dict[str, Any]] = []
        self._record: record.Record | None = None
        self._begun = False
        simulation.solver.stopwatch.reset()

    def begin(self) -> list[str]:
        """Write the file run.json for the first time, and return messages that say where each rank computes. All ranks
        must call this."""
        s = self.simulation
        self._begun = True
        held = float(s.comm.sum(float(s.solver.bytes)))
        self._gather()
        with s.comm.together():
            if s.out is not None and s.comm.root:
                self._record = record.Record(
                    s.out, case=s.resolved, backend=s.backend.name, points=s.solver.points,
                    bytes_per_point=held / s.solver.points, **self._entries(),
                )  # fmt: skip
        return [] if s.comm.size == 1 else _placement_lines(s.placement, self._ranks, s.solver.integrator.stages)

    def _gather(self) -> None:
        """Gather the parts that each rank computes. Collective."""
        s = self.simulation
        seats = s.placement.document()["ranks"]
        self._ranks = [seat | own for seat, own in zip(seats, s.comm.allgather(_own(s.solver)), strict=True)]

    def cut(self) -> None:
        """Record in run.json that the grid was divided among the ranks again. All ranks must call this."""
        self._gather()
        self.progress()

    def _entries(self) -> dict[str, Any]:
        s = self.simulation
        steps, seconds = s.step_count - self._first_step, wall.perf_counter() - self._began
        stages = s.solver.stopwatch.seconds
        rhs = sum(value for name, value in stages.items() if name not in ("time step", "update"))
        node_steps = steps * s.solver.points
        if s.adaptations is not None:
            node_steps = s.adaptations.node_steps - self._first_node_steps
        evaluations = s.solver.integrator.stages * node_steps
        known = "step" not in stages and not s.solver.integrator.implicit
        return {
            "steps": s.step_count,
            "time": s.time,
            "last_step": self._last_step,
            "wall_s": seconds,
            # For steps that are timed as a whole the time of the right-hand side is not known, and for steps that solve
            # equations the number of right-hand sides is not known.
            "ns_per_point_rhs": 1e9 * rhs / evaluations if steps > 0 and known else None,
            "point_steps_per_s": node_steps / sum(stages.values()) if steps > 0 else None,
            "stages": stages,
            "grid_hash": identity.grid_hash(s.prints),
            "restarts": s.restarts,
            "retries": s.retries,
            "epochs": s.epochs,
            "adaptations": None if s.adaptations is None else s.adaptations.document(),
            "implicit": s.solver.integrator.report or _end_of_iteration(s.solver) or None,
            "ranks": self._ranks,
        }

    def progress(self) -> None:
        """Update the file run.json with the progress of the run. All ranks must call this."""
        if self.simulation.out is None:
            return
        with self.simulation.comm.together():
            if self._record is not None:
                self._record.update(self._entries)

    def finish(self, status: record.Status, error: str | None = None) -> dict[str, Any]:
        """Write the end of the run into run.json, and return the record of the run. `status`: how it ended. `error`:
        the text of the error that ended it, or None. All ranks must call this (`fail` also calls it, on a single
        rank)."""
        if error is None:
            s = self.simulation
            own = {"stages": s.solver.stopwatch.seconds, "waited_s": s.solver.halo.seconds_waited}
            self._ranks = [rank | more for rank, more in zip(self._ranks, s.comm.allgather(own), strict=True)]
        entries = self._entries()
        if self._record is not None:
            self._record.finish(status, error, history=self.simulation.history, **entries)
            return self._record.entries
        return {"status": status, "error": error, **entries}

    def fail(self, error: BaseException, others: Sequence[Exception]) -> None:
        """Record in run.json that the run ended with `error`. `others`: errors that occurred after it. A failure to
        write the record is ignored, so that it does not hide `error`. A restart that was rejected does not change the
        record of the run."""
        if not self._begun and self.simulation.restarts:
            return
        status: record.Status = "failed"
        message = error_text(error) if isinstance(error, HiresxError) else describe(error)
        if isinstance(error, SIGNALLED):
            status, message = "interrupted", error_text(error) or "interrupted by the user"
        message = "; ".join([message, *map(error_text, others)])
        s = self.simulation
        with suppress(HiresxError):
            if not self._begun and (s.comm.size == 1 or getattr(error, "everywhere", False)):
                self.begin()
                s.begun = True
            self.finish(status, message)
            if not s.comm.root and s.out is not None and not getattr(error, "everywhere", False):
                # Rank 0, which writes the record, does not know this error.
                record.mark_failed(s.out, status, f"rank {s.comm.rank}: {message}")


def _own(solver: Solver) -> dict[str, Any]:
    """Return the entries of run.json for this rank besides its place."""
    return {
        "points": sum(state.block.points for state in solver.states),
        "parts": [
            {"block": state.name, "nodes": [list(range_) for range_ in state.part.box]} for state in solver.states
        ],
        "neighbours": [neighbour._asdict() for neighbour in solver.halo.neighbours],
    }


def _placement_lines(placement: Placement, ranks: Sequence[Mapping[str, Any]], stages: int) -> list[str]:
    """Return lines that say where every rank computes, with which backend, and how its halos are transferred in a step
    of this number of stages."""
    links = [rank["neighbours"] for rank in ranks]
    return placement.lines(
        {
            "points": [f"{rank['points']:,}" for rank in ranks],
            "halos by": [", ".join(sorted({link["transport"] for link in mine})) or "-" for mine in links],
            "kB/step": [
                f"{stages * sum(link['state_bytes'] + link['flux_bytes'] for link in mine) / 1000:,.0f}"
                for mine in links
            ],
        }
    )


def _end_of_iteration(solver: Solver) -> dict[str, float]:
    """Return the data of an iteration that has made no step since the checkpoint: one that had converged makes none."""
    memory = solver.integrator.memory
    first, last = memory.get("first_residual"), memory.get("residual")
    if not solver.integrator.converged or first is None or last is None:
        return {}
    return {"cfl": memory["cfl"], "residual": last, "drop": first / last if last > 0 else math.inf}
