"""The data with which a run continues from a checkpoint, and with which it writes checkpoints."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hiresx import __version__
from hiresx.base.json_types import to_json_types
from hiresx.case import Case, load
from hiresx.decomposition.held_arrays import LazyArray, Piece
from hiresx.errors import HiresxError
from hiresx.mpi.communicator import Communicator
from hiresx.output.saved import checkpoint, distributed_arrays, identity, record
from hiresx.output.saved.attachment import Attachment
from hiresx.output.saved.container import Container
from hiresx.simulation import blow_up_error
from hiresx.simulation.stored_tiles import stored_tiles
from hiresx.solver import Solver


class Continuation:
    """The continuation of a run of the case `resolved` from the checkpoint `found` (None: a new run). `notes`: lines
    that name the checkpoint and the files that were ignored. `restarts`, `retries`, `epochs`: as in run.json.
    `captured`: data that attachments will restore. `source`: the path of the checkpoint. `passed`: checkpoints that
    were damaged. `grid_given`: whether Python gives the grid of the run; None if only the case is compared. Raises
    HiresxError for a checkpoint of another case, and of a run whose grid Python gave and does not give now."""

    def __init__(
        self,
        comm: Communicator,
        resolved: Mapping[str, Any],
        found: checkpoint.FoundCheckpoint | None,
        grid_given: bool | None = None,
    ):
        self._comm, self._resolved, self._found = comm, resolved, found
        self.notes: list[str] = []
        self.restarts: list[dict[str, Any]] = []
        self.retries: list[dict[str, Any]] = []
        self.epochs: list[dict[str, Any]] = []
        self.captured: dict[str, dict[str, Any]] = {}
        self.source: Path | None = None
        self.passed: list[tuple[Path, str]] = []
        self._grid_given = grid_given
        self._changed = {} if found is None else self._compare_case(found)
        if found is not None and grid_given is False and found.container.values.get("grid_given"):
            raise HiresxError(
                f"{found.container.path} is of a run whose grid was given in Python: its case has another grid",
                "continue the run in Python, with the same grid: Simulation(restart=..., grid=...)",
            )

    def _compare_case(self, found: checkpoint.FoundCheckpoint) -> dict[str, list[Any]]:
        """Raises HiresxError for a checkpoint of another case. Returns the keys that differ and may differ, each with
        [value of the checkpoint, present value]."""
        place, values = str(found.container.path), found.container.values
        with checkpoint.reading_contents(found.container.path):
            try:
                # keys that only the present version has get their defaults
                old = Case.from_dict(values["case"]).model_dump(mode="json")
            except HiresxError:
                old = values["case"]
            changed = identity.check_case(old, self._resolved, place)
            steps, time = values["solver"]["steps"], values["solver"]["time"]
            self.notes.append(f"going on from {place}: step {steps}, time {time:.6g}")
        self.notes += [f"passed over: {reason}" for _, reason in found.passed]
        self.notes += [identity.format_difference(difference) for difference in changed]
        return {key: [old, new] for key, old, new in changed}

    def compare_grid(self, prints: Any) -> None:
        """Raise HiresxError if the grid of the checkpoint differs from the present grid. `prints`: the description of
        the present grid that `identity.fingerprint` returns."""
        if self._found is None:
            return
        container = self._found.container
        with checkpoint.reading_contents(container.path):
            same = identity.check_grid(container.values["grid"], prints, str(container.path))
        if not same:
            self.notes.append("the grid agrees to round-off only: the run goes on, but not to the last bit")

    def begin(self, solver: Solver, out: Path | None) -> list[dict[str, Any]]:
        """Set the state of `solver` to the state in the checkpoint, and return the history of the run up to the
        checkpoint: a dictionary of results for each sample. The restart is added to the restarts of the run. `out`: the
        directory of the run, with the record run.json before the restart; None without one. All ranks must call
        this."""
        assert self._found is not None
        container = self._found.container
        history = self.restore(container, solver)
        self.passed = self._found.passed
        before = self._comm.bcast(record.read_or_empty(out) if self._comm.root else None)
        self.restarts += before.get("restarts") or []
        self.epochs += before.get("epochs") or []
        self.restarts.append(
            {
                "checkpoint": str(container.path),
                "step": solver.steps,
                "time": solver.time,
                "at": record.utc_now(),
                "changed": self._changed,
                "before": {key: before.get(key) for key in ("status", "error", "steps", "started", "ended", "wall_s")},
            }
        )
        return history

    def restore(self, container: Container, solver: Solver) -> list[dict[str, Any]]:
        """Restore the state of `solver`, the record of failures and the data of monitors from `container`, an open
        checkpoint of this run, and return the history of the run up to the checkpoint. All ranks must call this."""
        values = container.values
        with checkpoint.reading_contents(container.path):
            solver.restore(values["solver"], distributed_arrays.read_from_file(container, "solver/"))
            real = solver.configuration.real
            identity.check_functions(values["given"], solver.profile_statistics(), real, str(container.path))
            history = [{"step": entry["step"], **entry} for entry in values["run"]["history"]]
            self.retries = [{"checkpoint": entry["checkpoint"], **entry} for entry in values["run"]["retries"]]
            self.captured = checkpoint.unpack(container)
        self.source = container.path
        return history

    def contents(
        self, solver: Solver, prints: Any, history: list[dict[str, Any]], attachments: Sequence[Attachment]
    ) -> checkpoint.Contents:
        """Return the content of a checkpoint of the current state of `solver`: nested dictionaries of values, and the
        arrays of this rank as pairs (name, array). `prints`: the result of `identity.fingerprint` for the grid.
        `history`: the history of the run so far. `attachments`: monitors and other objects whose data are stored as
        well. All ranks must call this."""
        attached, arrays = checkpoint.pack({a.name: a.capture() for a in attachments}, self._comm)
        values = {
            "hiresx": __version__,
            "backend": solver.backend.name,
            "written": record.utc_now(),
            "case": self._resolved,
            "grid": prints,
            "grid_given": self._grid_given,
            "given": solver.profile_statistics(),
            "solver": solver.values(),
            "tiles": stored_tiles(solver.decomposition),
            "run": {"history": to_json_types(history, finite=False), "retries": self.retries},
            "attachments": attached,
        }
        return values, [
            *distributed_arrays.label_pieces("solver/", (_alive(solver, piece) for piece in solver.pieces())),
            *arrays,
        ]


def _alive(solver: Solver, piece: Piece) -> Piece:
    """Return `piece` with an array that raises BlowUp when it is read, if a value is not finite."""

    def make() -> np.ndarray:
        array = np.asarray(piece.array)
        if not np.isfinite(array).all():
            raise blow_up_error.nowhere(solver, "a momentum is not finite")
        return array

    return Piece(piece.name, piece.box, LazyArray(piece.array.shape, piece.array.dtype, make))


def as_case(case: Any, found: checkpoint.FoundCheckpoint | None) -> Case:
    """Return `case` as a `Case`. It may be a `Case`, or the name, file or folder of one; if it is None, the result is
    the case that is stored with the run of the checkpoint `found`. Raises HiresxError for anything else."""
    if not isinstance(found, checkpoint.FoundCheckpoint | None):
        raise HiresxError(f"restart: {found!r:.60} is neither a run nor a checkpoint", "name a run directory or a file")
    if case is None:
        return kept_case(found)
    if isinstance(case, Case):
        return case
    if isinstance(case, str | Path):
        return load(case)
    raise HiresxError(
        f"Simulation takes a case, not a {type(case).__name__}",
        "give the name of a bundled case, a case file, or hiresx.Case.from_dict(...)",
    )


def kept_case(
    found: checkpoint.FoundCheckpoint | None, overrides: Sequence[str] = (), unset: Sequence[str] = ()
) -> Case:
    """Return the case that is stored with the run of the checkpoint `found`, with `overrides` and without the keys
    `unset` (see hiresx.case.load). Functions that the case names but does not contain may be given by the Python
    caller. Raises HiresxError if there is no such case."""
    if found is None:
        raise HiresxError("Simulation needs a case, or a run to restart", "give the name of a case, or restart=DIR")
    folder = None if found.directory is None else found.directory / "case"
    if folder is None or not folder.is_dir():
        raise HiresxError(
            f"{found.container.path} is not in a run directory that holds its case", "name the case as well"
        )
    return load(folder, overrides=overrides, complete=False, unset=unset)
