"""Status of a run of a sweep: its progress, the steps still needed, and the reason of a failure."""

import shutil
from pathlib import Path
from typing import Any, Literal

from hiresx.case import Case
from hiresx.errors import HiresxError
from hiresx.output.saved import checkpoint, record
from hiresx.sweeps.folder import LOGS, refuse_differences
from hiresx.sweeps.members import SweepMember

Need = Literal["nothing", "begin", "go on", "begin again", "removal"]
# The first line of the part of a log that belongs to one start of a run, and the line in it with the reason of a
# failure.
BEGUN = "$ "
_ERROR = "error: "


def log(out: Path, member: SweepMember) -> Path:
    """Return the path of the file with the printed output of the run `member` of a parameter sweep. `out`: the folder
    of the sweep."""
    return out / LOGS / f"{member.name}.txt"


def need(out: Path, member: SweepMember) -> Need:
    """Return what has to be done for the run `member` of a parameter sweep, as a word: "nothing" if it is finished,
    "begin", "go on" from its checkpoint, "begin again" if it was started but has no checkpoint, or "removal" if its
    folder contains a run of another case. `out`: the folder of the sweep."""
    folder = out / member.name
    if not (folder / "run.json").is_file():
        return "begin"
    kept = record.read(folder)
    if other_case(folder, member, kept):
        return "removal"
    if kept.get("status") == "finished":
        return "nothing"
    return "go on" if checkpoint.list_checkpoints(folder) else "begin again"


def other_case(folder: Path, member: SweepMember, kept: dict[str, Any]) -> str:
    """Return, as text, how the case in the record `kept` of the run folder `folder` differs from the case of the run
    `member` of a sweep; "" if it does not differ."""
    if not kept.get("case"):
        return ""
    asked = _with_defaults(member.case)
    try:
        refuse_differences(str(folder), _with_grid_parts(_with_defaults(kept["case"]), asked), asked)
    except HiresxError as error:
        return f"{error.message}; remove {folder}, and the sweep makes this run anew"
    return ""


def _with_defaults(case: dict[str, Any]) -> dict[str, Any]:
    """Return a resolved case with the defaults of keys that an older version did not have."""
    try:
        found = Case.from_dict(case).model_dump(mode="json")
    except HiresxError:
        return case
    return found


def _with_grid_parts(ran: dict[str, Any], asked: dict[str, Any]) -> dict[str, Any]:
    """Return the case of a record in which the names of parts of the grid, as in `asked`, replace the coordinates of
    sponges."""
    sponges = [
        {**there, **{key: here[key] for key in ("start", "end") if isinstance(here[key], dict)}}
        for there, here in zip(ran.get("sponge") or (), asked.get("sponge") or (), strict=False)
    ]
    return {**ran, "sponge": [*sponges, *ran["sponge"][len(sponges) :]]} if sponges else ran


def clear(out: Path, member: SweepMember) -> None:
    """Remove the folder of the run `member` of a sweep, which has no checkpoint. `out`: the folder of the sweep. Raises
    HiresxError if the folder cannot be removed."""
    try:
        shutil.rmtree(out / member.name)
    except OSError as error:
        raise HiresxError(f"cannot remove {out / member.name}: {error.strerror}", "remove it, then continue") from None


def status(out: Path, member: SweepMember) -> tuple[str, str, dict[str, Any]]:
    """Return (status, reason, record) of the run `member` of a sweep. The status is the entry `status` of its run.json;
    or "waiting" if it was not started, "failed" if it ended before its first step, or "other case" if its folder
    contains a run of another case. The reason says why it is not finished. `out`: the folder of the sweep."""
    try:
        kept = record.read(out / member.name) if (out / member.name / "run.json").is_file() else {}
    except HiresxError as error:
        return "failed", error.message, {}
    if kept and (other := other_case(out / member.name, member, kept)):
        return "other case", other, {}
    message = "" if kept.get("status") == "finished" else str(kept.get("error") or last_error(log(out, member)))
    if kept:
        return str(kept.get("status")), message, kept
    return ("failed", message, {}) if message else ("waiting", "", {})


def last_error(path: Path) -> str:
    """Return the text of the error that a run printed when it was started for the last time, "" if there is none.
    `path`: the file with its printed output."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    last = text.rpartition(f"\n{BEGUN}")[2].splitlines()
    return next((line.removeprefix(_ERROR) for line in reversed(last) if line.startswith(_ERROR)), "")
