"""The file run.json: the case of a run, its hardware, its progress and its speed."""

import json
import time as wall
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from hiresx.base.json_types import to_json_types
from hiresx.errors import HiresxError
from hiresx.output.saved import directories, files, process
from hiresx.output.saved.machine_record import hardware, versions

if TYPE_CHECKING:
    from hiresx.case import Case

_NO_RECORD = "copy it again, or give the folder of another run; a restart needs the checkpoints alone"
_KEYS = (
    "status",
    "case",
    "backend",
    "points",
    "steps",
    "time",
    "wall_s",
    "ns_per_point_rhs",
    "point_steps_per_s",
    "bytes_per_point",
    "stages",
    "versions",
    "hardware",
)

Status = Literal["finished", "stopped", "interrupted", "failed"]


class Record:
    """The record of a run, the file run.json in `directory`. It is rewritten during the run, and is complete at any
    time.

    - status: running; finished (the end of the run was reached); stopped (at the wall-clock limit); interrupted;
      failed.
    - case: the case with defaults filled in.
    - backend, points, steps, time (L / c_ref), last_step (or null), wall_s, ns_per_point_rhs, point_steps_per_s,
      bytes_per_point, stages (seconds by part of the step), versions, hardware.
    - grid_hash: SHA-256 of the coordinates.
    - ranks: for each rank where it computes, its boxes of nodes, neighbours, transports and bytes per exchange, and at
      the end its stages and the seconds that it waited for others.
    - restarts: from which checkpoint, and how the run had ended before.
    - retries: repetitions of steps after the flow became invalid.
    - epochs: changes of the partition during the run (see `hiresx.simulation.epochs.Epoch`).
    - started and ended (UTC), error, process (which writes the record, see `hiresx.output.saved.process`).

    Seconds and rates are of the last process. Values that are not known yet are null. `entries`: initial values of any
    of these entries except status, which is "running". `clock`: a function that returns seconds. Raises HiresxError
    with the path if the file cannot be written."""

    def __init__(self, directory: str | Path, clock: Callable[[], float] = wall.monotonic, **entries: Any):
        self.path = Path(directory) / "run.json"
        self._clock = clock
        self.entries: dict[str, Any] = dict.fromkeys(_KEYS)
        self.entries |= {"steps": 0, "time": 0.0, "stages": {}, "versions": versions(), "hardware": hardware()}
        self.entries |= {"started": utc_now(), "ended": None, "error": None, "process": process.current_process()}
        self.entries |= entries | {"status": "running"}
        self.write()

    def update(self, entries: Callable[[], Mapping[str, Any]], every: float = 30.0) -> None:
        """Change entries of the record of the run and rewrite the file run.json, if it was last written at least
        `every` seconds ago. `entries`: a function that returns the entries; it is called only then, since timings make
        the host wait for the device. Raises HiresxError if the file cannot be written."""
        if self._clock() - self._written >= every:
            self.entries |= entries()
            self.write()

    def finish(self, status: Status, error: str | None = None, **entries: Any) -> None:
        """Write the record at the end of the run. `status`: how the run ended: "finished", "stopped", "interrupted" or
        "failed". `error`: why the run did not finish, in one or two lines; None if it did. `entries`: further changes
        of the record. Raises HiresxError if the file cannot be written."""
        self.entries |= entries | {"status": status, "error": error, "ended": utc_now()}
        self.write()

    def write(self) -> None:
        """Write run.json with the present entries. Raises HiresxError, with the path, if this fails."""
        files.write_text(self.path, _text(self.entries))
        self._written = self._clock()


# Tables that are in the case of every record.
_TABLES = ("grid", "gas", "time", "output", "parameters")


def read(directory: str | Path) -> dict[str, Any]:
    """Return the content of run.json, the record of the run in `directory`. If its status is "running" but the process
    has ended, the status is changed to "lost". Raises HiresxError if there is no record, or if it cannot be parsed."""
    path = Path(directory) / "run.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise HiresxError(f"cannot read {path}: it does not exist", "give the folder that hiresx run made") from None
    except OSError as error:
        raise files.io_error(path, error, "read") from None
    except (ValueError, RecursionError) as error:
        raise HiresxError(f"{path} is not a run record: {error}", _NO_RECORD) from None
    if not isinstance(found, dict):
        raise HiresxError(f"{path} is not a run record: it holds no table", _NO_RECORD)
    case = found.get("case") or {}
    if not isinstance(case, dict) or not all(isinstance(case.get(key, {}), dict) for key in _TABLES):
        raise HiresxError(f"{path} is not a run record: its case is not valid", _NO_RECORD)
    keeper = found.get("process")
    if found.get("status") == "running" and isinstance(keeper, dict) and process.has_ended(keeper):
        found |= {"status": "lost", "error": f"process {keeper['pid']} on {keeper['host']} ended without a record"}
    return found


def read_or_empty(directory: str | Path | None) -> dict[str, Any]:
    """Return the content of run.json, the record of the run in `directory`; an empty dictionary if `directory` is None,
    or if there is no record that can be parsed."""
    try:
        return {} if directory is None else read(directory)
    except HiresxError:
        return {}


def no_averages(directory: Path) -> HiresxError:
    """Return the error for a run in `directory` without the file averages.nc. Its hint says whether the case must be
    changed or the run be continued."""
    kept = read_or_empty(directory)
    asked = (kept.get("case") or {}).get("average")
    if asked:
        from hiresx.output.saved import checkpoint  # which imports this module

        command = checkpoint.command_to_continue(directory, "time.end=...")
        return HiresxError(
            f"{directory} has no averages yet: the run is at time {kept.get('time') or 0.0:g}, and average.start is "
            f"{asked.get('start') or 0.0:g}",
            f"continue it beyond that time: {command}" if command else "run it again, beyond that time",
        )
    return HiresxError(
        f"{directory} has no averages", "add [average] to the case (start = ..., every = ...) and run it again"
    )


def mark_failed(directory: str | Path, status: str, error: str) -> None:
    """Set status and error in the record of the run in `directory`, for a run whose process could not do this. Nothing
    is done if there is no record. Raises HiresxError if the record cannot be written."""
    entries = read_or_empty(directory)
    if entries:
        ended = {"status": status, "error": error, "ended": utc_now()}
        files.write_text(Path(directory) / "run.json", _text(entries | ended))


def keep_resolved(directory: str | Path, case: "Case") -> Path:
    """Store the case of a run, with all its default values, in the folder `directory`/case, with its case.py and with
    absolute paths of grid files. Returns this folder. Raises HiresxError, with the path, if a file cannot be
    written."""
    from hiresx.case.toml import dumps

    dump = case.document()
    functions = None
    if case.directory is not None:
        for key in ("file", "connectivity"):
            if dump["grid"].get(key) is not None:
                dump["grid"][key] = str((case.directory / dump["grid"][key]).absolute())
        for condition in dump["boundary"]:
            if condition.get("file"):
                condition["file"] = str((case.directory / condition["file"]).absolute())
        functions = case.directory / "case.py"
    return keep_case(directory, dumps(dump), functions if functions is not None and functions.is_file() else None)


def keep_case(directory: str | Path, text: str, functions: Path | None) -> Path:
    """Store a case in the folder `directory`/case, so that the run can be repeated, and plotted with its exact
    solution, even if its directory is moved. Returns this folder. `text`: the content of case.toml. `functions`: the
    path of its case.py, or None. A grid file is not copied, since it may be large. Raises HiresxError, with the path,
    if a file cannot be written."""
    folder = directories.make_directory(Path(directory) / "case")
    files.write_text(folder / "case.toml", text)
    if functions is not None:
        files.write_text(folder / "case.py", functions.read_text(encoding="utf-8"))
    else:
        (folder / "case.py").unlink(missing_ok=True)
    return folder


def _text(entries: dict[str, Any]) -> str:
    return json.dumps(to_json_types(entries), indent=2, allow_nan=False) + "\n"


def utc_now() -> str:
    """Return the present time in UTC as a text in ISO format, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")
