"""The runs of a sweep: their names, their values, and the case that each of them computes."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hiresx.case import load
from hiresx.case.loader import plain
from hiresx.case.toml import value_text
from hiresx.errors import HiresxError
from hiresx.sweeps.values import PRESET, combinations, format_value

# Longer names of folders are shortened and end in a digest.
_LONGEST = 100
# Keys of [grid] with names of files, relative to the case.
GRID_FILES = ("file", "connectivity")


@dataclass(frozen=True)
class SweepMember:
    """One run of a sweep. `name`: the name of its folder. `values`: the values of the keys of the sweep, with the
    preset if one is named. `case`: the resolved case. `title`: its title. Paths of grid files in it are absolute."""

    name: str
    values: dict[str, Any]
    case: dict[str, Any]
    title: str = ""

    @property
    def overrides(self) -> dict[str, Any]:
        """The values of the keys of the sweep in this run, by dotted key, without the preset. Paths of grid files are
        absolute, so that a copy of the case in another folder can use them."""
        files = {f"grid.{key}": self.case["grid"].get(key) for key in GRID_FILES}
        return {key: files.get(key, value) for key, value in self.values.items() if key != PRESET}

    @property
    def words(self) -> tuple[str, ...]:
        """The options `--preset` and `--set` of `hiresx run` that select this run, as words of a command line."""
        preset = ("--preset", self.values[PRESET]) if PRESET in self.values else ()
        sets = (("--set", f"{key}={value_text(value)}") for key, value in self.overrides.items())
        return (*preset, *(word for pair in sets for word in pair))


@dataclass(frozen=True)
class SweepPlan:
    """The runs of a sweep. `title`: the title of the case. `axes`: the keys that vary, in the order of the columns of a
    table, with the values of each. `members`: the runs. `named_by`: the keys whose values are part of the names of the
    runs."""

    title: str
    axes: dict[str, list[Any]]
    members: tuple[SweepMember, ...]
    named_by: tuple[str, ...]


def plan(
    case: str | Path,
    values: Mapping[str, Sequence[Any]],
    presets: Sequence[str] = (),
    zipped: bool = False,
    named_by: Sequence[str] | None = None,
) -> SweepPlan:
    """Return the runs of a sweep of `case` over `values`, a list for each dotted key, and `presets`, names of presets
    of the case; nothing is run. If `zipped` is true the first values of all keys are combined, then the second ones,
    and so on; otherwise all combinations are made. `named_by`: the keys whose values are part of the names of the runs,
    as in a sweep that exists already (`folder.named_by`); None: the keys with several values. Raises HiresxError for an
    invalid case and for two equal runs. The hint for an unknown key has the most similar one."""
    axes: dict[str, list[Any]] = {PRESET: list(presets)} if presets else {}
    axes |= {key: plain(entry) for key, entry in values.items()}
    rows = list(combinations(axes, zipped))
    varied = [key for key, entry in axes.items() if len(entry) > 1] or list(axes)
    keys = list(named_by) if named_by is not None and set(named_by) <= set(axes) else varied
    names = _names([*keys, *(key for key in varied if key not in keys and len(axes[key]) > 1)], rows)
    members: list[SweepMember] = []
    first: dict[str, str] = {}
    for name, row in zip(names, rows, strict=True):
        member = load_member(case, name, row)
        same = first.setdefault(repr(sorted(member.case.items())), name)
        if any(other.name in (same, name) for other in members):
            duplicate = f"{same} and {name} are the same case" if same != name else f"{_describe(row)} is there twice"
            raise HiresxError(f"the sweep: {duplicate}", "give each value once")
        members.append(member)
    return SweepPlan(members[-1].title, axes, tuple(members), tuple(keys))


def load_member(case: str | Path, name: str, values: Mapping[str, Any]) -> SweepMember:
    """Return the run of a sweep called `name`: `case` (name, file or folder) with these `values` by dotted key. Raises
    HiresxError for an invalid case."""
    loaded = load(case, values.get(PRESET), {key: value for key, value in values.items() if key != PRESET})
    resolved = loaded.model_dump(mode="json")
    for key in GRID_FILES:
        if resolved["grid"].get(key) is not None and loaded.directory is not None:
            resolved["grid"][key] = str((loaded.directory / resolved["grid"][key]).absolute())
    return SweepMember(name, dict(values), resolved, loaded.title or loaded.name)


def _describe(row: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={format_value(value)}" for key, value in row.items())


def _names(keys: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of folders: the keys that vary, by their last part if that is unique, with the values."""
    lasts = [key.rpartition(".")[2] for key in keys]
    short = {key: last if lasts.count(last) == 1 else key for key, last in zip(keys, lasts, strict=True)}
    found = ["_".join(f"{short[key]}={_plain_text(row[key])}" for key in keys) for row in rows]
    return [
        name if len(name) <= _LONGEST and found.count(name) == 1 else f"{name[:_LONGEST]}-{_digest(keys, row)}"
        for name, row in zip(found, rows, strict=True)
    ]


def _plain_text(value: Any) -> str:
    return re.sub(r"[^A-Za-z0-9.+-]+", "_", format_value(value)).strip("_") or "_"


def _digest(keys: Sequence[str], row: Mapping[str, Any]) -> str:
    return hashlib.sha256(repr([row[key] for key in keys]).encode()).hexdigest()[:8]
