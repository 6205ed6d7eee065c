"""Comparison of two runs, field files or checkpoints: differences of case, machine and results."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hiresx.errors import HiresxError
from hiresx.output.fields import field_file as fields
from hiresx.output.saved import checkpoint, files, identity, record
from hiresx.output.saved.container import MAGIC, Container
from hiresx.output.show import common_time, compare_checkpoints, measures

# Keys that may differ between two equal runs.
_SAID_ONLY = ("title", "description", "length_symbol")


def compare(first: str | Path, second: str | Path) -> dict[str, Any]:
    """Compare two runs, two field files or two checkpoints, and return the differences as JSON data.

    - `run`, `configuration`, `versions`, `hardware`: lists of {key, first, second} for entries that differ.
    - `functions`: whether case.py differs; None if a run has no copy of it.
    - `grid`: whether the grid is bit-identical, and the digests of both grids.
    - `timings`: wall times and rates of both runs.
    - `results`: the fields of the latest time that both runs have; if there is none, the last fields of each. For every
      common variable: the largest and the root mean square difference over all nodes, the latter also divided by the
      range of the variable, and the node with the largest difference. On different grids: extremes and means instead.
    - `same`: whether configuration, functions, grid and results are equal.

    The number of ranks that wrote a checkpoint is ignored. Raises HiresxError for a path that is not a run, a field
    file or a checkpoint, for a damaged file, for a run without fields, and if only one of the two is a checkpoint."""
    a, b = _Side(first), _Side(second)
    configuration = [
        entry
        for entry in _as_dicts(identity.differences(a.case, b.case))
        # An empty list is not reported if the other run has entries, which are listed themselves.
        if entry["key"] not in _SAID_ONLY and [entry["first"], entry["second"]] not in ([None, []], [[], None])
    ]
    functions = None
    if a.functions is not None and b.functions is not None:
        functions = a.functions != b.functions
    results = _results(a, b)
    found = {
        "first": str(first),
        "second": str(second),
        "run": [
            {"key": key, "first": a.record.get(key), "second": b.record.get(key)}
            for key in ("status", "backend", "points", "steps", "time")
            if a.record.get(key) != b.record.get(key)
        ],
        "configuration": configuration,
        "functions": functions,
        "grid": {"same": results["same_grid"], "hashes": [side.record.get("grid_hash") for side in (a, b)]},
        "versions": _as_dicts(identity.differences(a.record.get("versions") or {}, b.record.get("versions") or {})),
        "hardware": _as_dicts(identity.differences(a.record.get("hardware") or {}, b.record.get("hardware") or {})),
        "timings": [
            {"key": key, "first": a.record.get(key), "second": b.record.get(key)}
            for key in ("wall_s", "ns_per_point_rhs", "point_steps_per_s", "bytes_per_point")
            if a.record.get(key) is not None or b.record.get(key) is not None
        ],
        "results": results,
    }
    found["same"] = not configuration and not functions and results["same"]
    return found


class _Side:
    """One of the two sides: record, case, functions and field files by step of a run, or its checkpoint."""

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.checkpoint: Container | None = None
        self.record: dict[str, Any] = {}
        if _is_checkpoint(self.path):
            self.checkpoint = checkpoint.open_checkpoint(self.path)
            self.record = compare_checkpoints.record(self.checkpoint)
            self.case, self.frames, self.functions = self.record["case"], {}, None
            return
        if self.path.is_file():
            about = fields.describe(self.path)
            self.case, self.frames = about["case"], {about["step"]: self.path}
            self.functions = None
            return
        if not self.path.is_dir():
            raise HiresxError(
                f"{self.path} {files.describe_path(self.path)}",
                "give the folder of a run, or one of its fields or checkpoints",
            )
        self.record, self.frames = record.read(self.path), fields.frames(self.path)
        self.case = self.record.get("case") or {}
        if not self.frames:
            raise fields.no_fields(self.path)
        source = self.path / "case" / "case.py"
        self.functions = source.read_bytes() if source.is_file() else b""

    def times(self) -> dict[int, float]:
        return {step: fields.read_time(path) for step, path in self.frames.items()}


def _is_checkpoint(path: Path) -> bool:
    if not path.is_file():
        return False
    with files.naming_errors(path, "read"), path.open("rb") as file:
        return path.suffix == ".hxc" or file.read(len(MAGIC)) == MAGIC


def _as_dicts(differences: Sequence[tuple[str, Any, Any]]) -> list[dict[str, Any]]:
    return [{"key": key, "first": old, "second": new} for key, old, new in differences]


def _pair(a: _Side, b: _Side) -> tuple[int, int]:
    """Return the steps of the latest fields with a common time after the start; if there are none, those of the last
    fields."""
    times, others = a.times(), b.times()
    for step in sorted(set(times) - {0}, reverse=True):
        near = min(others, key=lambda other: (abs(others[other] - times[step]), abs(other - step)))
        # With local time steps the time does not advance, and the steps must be equal.
        moved = times[step] != 0 or step == near
        if moved and near and common_time.same_time(times[step], others[near]):
            return step, near
    return max(times), max(others)


def _results(a: _Side, b: _Side) -> dict[str, Any]:
    if a.checkpoint is not None and b.checkpoint is not None:
        return compare_checkpoints.results(a.checkpoint, b.checkpoint)
    if a.checkpoint is not None or b.checkpoint is not None:
        one, other = (a, b) if a.checkpoint is not None else (b, a)
        raise HiresxError(
            f"{one.path} is a checkpoint, {other.path} is not", "compare two checkpoints, or two runs or field files"
        )
    steps = _pair(a, b)
    first, second = (fields.read(side.frames[step]) for side, step in zip((a, b), steps, strict=True))
    found: dict[str, Any] = {"steps": list(steps), "times": [first.time, second.time]}
    blocks, others = first.blocks, second.blocks
    alike = [(block.name, block.x.shape) for block in blocks] == [(block.name, block.x.shape) for block in others]
    apart = 0.0
    if alike:
        apart = max(
            float(np.abs(getattr(m, axis) - getattr(n, axis)).max(initial=0.0))
            for m, n in zip(blocks, others, strict=True)
            for axis in "xyz"
        )
        found["greatest_distance_of_nodes"] = apart
    found["same_grid"] = alike and apart == 0
    names = [name for name in blocks[0].state if name in others[0].state]
    compared = _difference if alike else _summary
    found["variables"] = [{"name": name, **compared(name, blocks, others)} for name in names]
    # The time of the fields; the step if the time does not advance.
    found["one_time"] = common_time.same_time(first.time, second.time) and (first.time != 0 or steps[0] == steps[1])
    found["same"] = bool(
        found["same_grid"]
        and found["one_time"]
        and names
        and all(entry["greatest"] == 0 for entry in found["variables"])
    )
    return found


def _difference(name: str, blocks: Sequence[fields.FieldBlock], others: Sequence[fields.FieldBlock]) -> dict[str, Any]:
    pairs = zip(blocks, others, strict=True)
    return measures.difference((block.name, block.state[name], other.state[name]) for block, other in pairs)


def _summary(name: str, blocks: Sequence[fields.FieldBlock], others: Sequence[fields.FieldBlock]) -> dict[str, Any]:
    return {
        side: measures.summary([block.state[name] for block in part])
        for side, part in (("first", blocks), ("second", others))
    }
