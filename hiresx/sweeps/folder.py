"""The folder of a sweep: a copy of its case, from which every run is started, and whether a sweep that is there already
is the same one.

DIR/case: the case as it was when the sweep began. DIR/sweep.json: its keys and runs, and the digests of grid files.
DIR/<run>: the run directories. DIR/logs/<run>.txt: what they said. DIR/table.csv, table.json, table.png.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hiresx import __version__
from hiresx.base.plural import plural
from hiresx.case.loader import FILE, find
from hiresx.case.toml import dumps, read
from hiresx.errors import HiresxError
from hiresx.output.saved import directories, files, identity, record
from hiresx.sweeps.members import GRID_FILES, SweepPlan
from hiresx.sweeps.values import PRESET, format_value

NAME = "sweep.json"
CASE = "case"
# Keys of a case that are for people.
PROSE = ("title", "description", "length_symbol")
LOGS = "logs"
# Differences named in a refusal.
_NAMED = 5
_ELSEWHERE = "a sweep is of one case: leave that as it was, or begin another sweep with --out DIR"


@dataclass(frozen=True)
class _Case:
    """A case as a sweep keeps it: its `document`, the text of its `functions` in the file `beside` it, and the digests
    of its grid files."""

    document: dict[str, Any]
    functions: str | None
    beside: Path
    digests: dict[str, str | None]


def _read(case: str | Path, plan: SweepPlan) -> _Case:
    path = find(case)
    document = _document(path)
    beside = path.parent / "case.py"
    functions = beside.read_text(encoding="utf-8") if beside.is_file() else None
    digests = {name: _digest(Path(name)) for name in sorted(_grid_files(document, plan))}
    return _Case(document, functions, beside, digests)


def compare(out: Path, case: str | Path, plan: SweepPlan) -> bool:
    """Whether the sweep `plan` of `case` is in `out`, perhaps with other values; False where nothing is. Raises
    HiresxError for a folder that holds something else, and for another sweep, naming the difference."""
    if not holds_sweep(out):
        return False
    _compare(out, _read(case, plan), plan)
    return True


def claim(out: Path, case: str | Path, plan: SweepPlan) -> None:
    """Make `out` the folder of the sweep `plan` of `case`, or prove that it is that; values may have been added. Raises
    HiresxError as `compare` does, and for what cannot be written."""
    found = _read(case, plan)
    keys, runs, digests = dict(plan.axes), [member.name for member in plan.members], found.digests
    if holds_sweep(out):
        _compare(out, found, plan)
        # what this plan leaves out stays a part of the sweep
        before = read_entries(out)
        keys = {key: [*before["keys"][key], *(v for v in keys[key] if v not in before["keys"][key])] for key in keys}
        runs = list(dict.fromkeys([*before.get("runs", ()), *runs]))
        digests = {**before["grid_files"], **digests}
    directories.make_directory(out)
    entries = {
        "hiresx": __version__,
        "case": str(case),
        "title": plan.title,
        "keys": {key: record.to_json_types(values, finite=False) for key, values in keys.items()},
        "named_by": list(named_by(out) or plan.named_by),
        "grid_files": digests,
        "runs": runs,
    }
    write(out / NAME, json.dumps(entries, indent=2) + "\n")
    if not (out / CASE / FILE).is_file():
        record.keep_case(out, dumps(found.document), found.beside if found.functions is not None else None)


def holds_sweep(out: Path) -> bool:
    """Whether a sweep is in `out`; False where nothing is. Raises HiresxError for anything else."""
    if (out / NAME).is_file():
        return True
    if os.path.lexists(out / "run.json"):
        raise HiresxError(f"{out} holds a run, not a sweep", "name another folder with --out DIR")
    try:
        # what was half-written when a sweep was ended in its first moment is nothing
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
    """What sweep.json says. Raises HiresxError when it cannot be understood."""
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
    """The keys that name the runs of the sweep in `out`; None without one. Raises HiresxError as `read_entries`."""
    if not (out / NAME).is_file():
        return None
    entries = read_entries(out)
    varied = [key for key, values in entries["keys"].items() if len(values) > 1] or list(entries["keys"])
    return [str(key) for key in entries.get("named_by", varied)]


def others(out: Path, plan: SweepPlan) -> list[str]:
    """The runs of the sweep in `out` that `plan` leaves out."""
    mine = {member.name for member in plan.members}
    return [str(name) for name in read_entries(out).get("runs", ()) if name not in mine]


def _document(path: Path) -> dict[str, Any]:
    """The case file with its grid files named by absolute paths, also in presets."""
    document = read(path)
    presets = document.get("presets", {})
    for table in (document, *(presets.values() if isinstance(presets, Mapping) else ())):
        grid = table.get("grid") if isinstance(table, Mapping) else None
        if isinstance(grid, dict):
            grid |= {
                key: str((path.parent / grid[key]).absolute()) for key in GRID_FILES if isinstance(grid.get(key), str)
            }
    return document


def _grid_files(document: Mapping[str, Any], plan: SweepPlan) -> Iterator[str]:
    """Those that a run reads."""
    found = [document.get("grid"), *(member.case["grid"] for member in plan.members)]
    return iter(
        {
            str(grid[key])
            for grid in found
            if isinstance(grid, Mapping)
            for key in GRID_FILES
            if isinstance(grid.get(key), str) and os.path.isabs(grid[key])
        }
    )


def _digest(path: Path) -> str | None:
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return None  # a run that needs it will say so


def _compare(out: Path, case: _Case, plan: SweepPlan) -> None:
    entries = read_entries(out)
    _compare_keys(out, entries["keys"], plan)
    used = plan.axes.get(PRESET, [])
    path = out / CASE / FILE
    if path.is_file():
        # presets that no run has may be changed
        old, new = (_without_presets(_without_prose(found), used) for found in (read(path), case.document))
        refuse(str(out), identity.differences(old, new))
        beside = out / CASE / "case.py"
        if (beside.read_text(encoding="utf-8") if beside.is_file() else None) != case.functions:
            raise HiresxError(f"{out} is of another case: its case.py was changed since it began", _ELSEWHERE)
    for name, digest in entries["grid_files"].items():
        if name in case.digests and case.digests[name] != digest:
            raise HiresxError(f"{out} is of another case: {name} was changed since it began", _ELSEWHERE)


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
            told = f"{key} is {format_value(values[0])}, there {format_value(old[key][0])}"
            raise HiresxError(f"{out} is of another case: {told}", _ELSEWHERE)
        raise HiresxError(
            f"{out} is another sweep: {key} has one value there, here {len(values)}",
            f"the runs are named by {', '.join(named)}: name another folder with --out DIR",
        )


def _without_prose(document: Mapping[str, Any]) -> dict[str, Any]:
    """What is computed: words about it may change."""
    return {key: value for key, value in document.items() if key not in PROSE}


def _without_presets(document: Mapping[str, Any], used: list[Any]) -> dict[str, Any]:
    presets = document.get("presets", {})
    there = {name: _without_prose(presets[name]) if name in presets else None for name in used}
    return {**document, "presets": there}


def refuse(place: str, found: list[tuple[str, Any, Any]]) -> None:
    """Raises HiresxError for differences (key, there, here) to what is in `place`."""
    if not found:
        return
    said = [f"{key} is {_said(new)}, there {_said(old)}" for key, old, new in found[:_NAMED]]
    more = f"; and {plural(len(found) - _NAMED, 'key')} more" if len(found) > _NAMED else ""
    raise HiresxError(f"{place} is of another case: {'; '.join(said)}{more}", _ELSEWHERE)


def _said(value: Any) -> str:
    return "absent" if value is None else format_value(value)[:80]


def write(path: Path, text: str) -> None:
    """Write a file, whole or not at all. Raises HiresxError naming it."""
    try:
        with files.replacing(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
    except OSError as error:
        raise files.io_error(path, error) from None
