"""The folder of a sweep: a copy of its case, from which every run is started, and whether a sweep in it is the same.

DIR/case: the case as it was when the sweep began. DIR/sweep.json: its keys and runs, and the digests of grid files.
DIR/<run>: the run directories. DIR/logs/<run>.txt: their messages. DIR/table.csv, table.json, table.png.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hiresx import __version__
from hiresx.base.json_types import to_json_types
from hiresx.base.plural import plural
from hiresx.case.loader import FILE, find
from hiresx.case.toml import dumps, read
from hiresx.errors import HiresxError
from hiresx.output.saved import directories, files, identity, record
from hiresx.sweeps.members import GRID_FILES, SweepPlan, load_member
from hiresx.sweeps.values import PRESET, format_value

NAME = "sweep.json"
CASE = "case"
LOGS = "logs"
# Keys of a case that do not change results; those of the second kind are texts for people.
_FREE = ("time.wall_limit", "title", "description", "length_symbol")
# Largest number of differences that an error message names.
_NAMED = 5
_ELSEWHERE = "a sweep is of one case: leave that as it was, or begin another sweep with --out DIR"


def compare(out: Path, case: str | Path, plan: SweepPlan) -> bool:
    """Return whether the folder `out` contains the parameter sweep `plan` of `case`; the values of its keys may differ.
    Return False if the folder is empty or missing. Raises HiresxError, with the difference, for another sweep, and for
    a folder with other contents. `case`: its name, file or folder."""
    if not holds_sweep(out):
        return False
    entries = read_entries(out)
    _compare_keys(out, entries["keys"], plan)
    if (out / CASE / FILE).is_file():
        # One run of each preset: the other runs have the same case except for the values of the sweep.
        for member in {str(member.values.get(PRESET)): member for member in reversed(plan.members)}.values():
            preset = {PRESET: member.values[PRESET]} if PRESET in member.values else {}
            kept = load_member(out / CASE, member.name, preset | member.overrides)
            refuse_differences(str(out), kept.case, member.case)
        if _functions(out / CASE) != _functions(find(case).parent):
            raise HiresxError(f"{out} is of another case: its case.py was changed since it began", _ELSEWHERE)
    for name, digest in _digests(plan).items():
        if entries["grid_files"].get(name, digest) != digest:
            raise HiresxError(f"{out} is of another case: {name} was changed since it began", _ELSEWHERE)
    return True


def claim(out: Path, case: str | Path, plan: SweepPlan) -> None:
    """Prepare the folder `out` for the parameter sweep `plan` of `case` (its name, file or folder). If it contains a
    sweep, check that it is the same one; values of its keys may have been added. Raises HiresxError for a folder with
    another sweep or other contents, and if it cannot be written."""
    keys, runs, digests = dict(plan.axes), [member.name for member in plan.members], _digests(plan)
    if compare(out, case, plan):
        # runs that this plan leaves out remain part of the sweep
        before = read_entries(out)
        keys = {key: [*before["keys"][key], *(v for v in keys[key] if v not in before["keys"][key])] for key in keys}
        runs = list(dict.fromkeys([*before.get("runs", ()), *runs]))
        digests = {**before["grid_files"], **digests}
    directories.make_directory(out)
    entries = {
        "hiresx": __version__,
        "case": str(case),
        "title": plan.title,
        "keys": {key: to_json_types(values, finite=False) for key, values in keys.items()},
        "named_by": list(named_by(out) or plan.named_by),
        "grid_files": digests,
        "runs": runs,
    }
    files.write_text(out / NAME, json.dumps(entries, indent=2) + "\n")
    if not (out / CASE / FILE).is_file():
        path = find(case)
        record.keep_case(out, dumps(_document(path)), path.parent / "case.py" if _functions(path.parent) else None)


def holds_sweep(out: Path) -> bool:
    """Return whether the folder `out` contains a parameter sweep, that is, a file sweep.json. Return False if the
    folder is empty or missing. Raises HiresxError for other contents."""
    if (out / NAME).is_file():
        return True
    if os.path.lexists(out / "run.json"):
        raise HiresxError(f"{out} holds a run, not a sweep", "name another folder with --out DIR")
    try:
        # a file of a sweep that was ended at once does not count
        held = sorted(entry.name for entry in os.scandir(out) if not entry.name.endswith(".part"))
    except FileNotFoundError:
        return False
    except OSError as error:
        raise files.io_error(out, error) from None
    if held:
        raise HiresxError(
            f"{out} holds something else than a sweep: {held[0]}", "name an empty or new folder: --out DIR"
        )
    return False


def read_entries(out: Path) -> dict[str, Any]:
    """Return the content of the file sweep.json in the folder `out`: the keys, values and runs of a parameter sweep.
    Raises HiresxError if it cannot be read or parsed."""
    path = out / NAME
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found["keys"], dict) or not isinstance(found["grid_files"], dict):
            raise TypeError("its entries are of another kind")
    except OSError as error:
        raise files.io_error(path, error, "read") from None
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise HiresxError(
            f"{path} does not describe a sweep: {error}", "bring it back, or begin another sweep with --out DIR"
        ) from None
    return dict(found)


def named_by(out: Path) -> list[str] | None:
    """Return the keys whose values are part of the names of the runs of the sweep in the folder `out`; None if it
    contains no sweep. Raises HiresxError if its file sweep.json cannot be read or parsed."""
    if not (out / NAME).is_file():
        return None
    entries = read_entries(out)
    varied = [key for key, values in entries["keys"].items() if len(values) > 1] or list(entries["keys"])
    return [str(key) for key in entries.get("named_by", varied)]


def others(out: Path, plan: SweepPlan) -> list[str]:
    """Return the names of those runs of the sweep in the folder `out` that are not in `plan`."""
    mine = {member.name for member in plan.members}
    return [str(name) for name in read_entries(out).get("runs", ()) if name not in mine]


def _functions(folder: Path) -> str | None:
    path = folder / "case.py"
    return path.read_text(encoding="utf-8") if path.is_file() else None


def _document(path: Path) -> dict[str, Any]:
    """Return the case file with absolute paths of its grid files, also in presets."""
    document = read(path)
    presets = document.get("presets", {})
    for table in (document, *(presets.values() if isinstance(presets, Mapping) else ())):
        grid = table.get("grid") if isinstance(table, Mapping) else None
        if isinstance(grid, dict):
            grid |= {
                key: str((path.parent / grid[key]).absolute()) for key in GRID_FILES if isinstance(grid.get(key), str)
            }
    return document


def _digests(plan: SweepPlan) -> dict[str, str | None]:
    """Return the SHA-256 digests of the grid files that the runs read, by path; None for one that cannot be read."""
    names = {member.case["grid"].get(key) for member in plan.members for key in GRID_FILES}
    found: dict[str, str | None] = {}
    for name in sorted(name for name in names if name is not None and os.path.isabs(name)):
        try:
            with Path(name).open("rb") as stream:
                found[name] = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError:
            found[name] = None  # the run that needs it reports the error
    return found


def _compare_keys(out: Path, old: Mapping[str, Any], plan: SweepPlan) -> None:
    if list(old) != list(plan.axes):
        raise HiresxError(
            f"{out} is a sweep over {', '.join(old)}, not over {', '.join(plan.axes)}",
            "values may be added, keys not: name another folder with --out DIR",
        )
    named = named_by(out) or ()
    for key, values in plan.axes.items():
        if key in named or values == old[key]:
            continue
        if len(values) == 1:
            refuse_differences(str(out), {key: old[key][0]}, {key: values[0]})
        raise HiresxError(
            f"{out} is another sweep: {key} has one value there, here {len(values)}",
            f"the runs are named by {', '.join(named)}: name another folder with --out DIR",
        )


def refuse_differences(place: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    """Raise HiresxError if the cases `old` and `new`, nested dictionaries with all defaults, differ in a key that
    changes results. `place`: the name of the run that computed `old`, for the message."""
    found = [difference for difference in identity.differences(old, new) if difference[0] not in _FREE]
    if found:
        named = [f"{key} is {_format(here)}, there {_format(there)}" for key, there, here in found[:_NAMED]]
        more = f"; and {plural(len(found) - _NAMED, 'key')} more" if len(found) > _NAMED else ""
        raise HiresxError(f"{place} is of another case: {'; '.join(named)}{more}", _ELSEWHERE)


def _format(value: Any) -> str:
    return "absent" if value is None else format_value(value)[:80]
