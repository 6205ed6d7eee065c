"""Compares two results of kernel_costs.py."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hiresx.errors import HiresxError

# The entries that identify a row, in each of the parts that are compared.
_KEYS = {"rhs": ("precision", "viscous", "threads"), "kernels": ("plan", "precision", "kernel", "direction")}
_FIGURE = {"rhs": "ns_per_point_rhs", "kernels": "ns_per_point"}


class Pair(NamedTuple):
    """One figure of both results, ns per point: `part` ("rhs" or "kernels"), its `name`, `before` and `now`. `loop`:
    the time of the calibration loop, now over before (1 where there is none): the machine's part in the change.
    `apart`: whether the samples of the two do not overlap; None where only their medians were kept."""

    part: str
    name: str
    before: float
    now: float
    loop: float
    apart: bool | None

    @property
    def ratio(self) -> float:
        """Time now over time before: below 1 is faster."""
        return self.now / self.before


def read(path: Path) -> dict[str, Any]:
    """Read a stored result of kernel_costs.py --json. Raises HiresxError for another file."""
    hint = "name a file that python docs/make/kernel_costs.py --json wrote"
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise HiresxError(f"{path} cannot be read: {error}", hint) from None
    if not isinstance(found, dict) or found.get("kind") != "bench":
        raise HiresxError(f"{path} holds no result of kernel_costs.py", hint)
    return found


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return in words what differs between two results besides the code: backend, sizes, processor or GPU. Their times
    can be compared only if the list is empty."""
    found = []
    for name, key in (("backend", "backend"), ("points", "points")):
        if before[key] != now[key]:
            found.append(f"{name}: {before[key]} before, {now[key]} now")
    for key in ("cpu", "simd", "gpus"):
        old, new = before["hardware"].get(key), now["hardware"].get(key)
        if old != new:
            found.append(f"{key}: {old} before, {new} now")
    return found


def pairs(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Pair]:
    """Return the pairs of figures that both results have, in the order of `now`."""
    for part, keys in _KEYS.items():
        known = {_key(row, keys): row for row in before.get(part, ())}
        for row in now.get(part, ()):
            old = known.get(_key(row, keys))
            if old is not None:
                yield _pair(part, row, old)


def _key(row: Mapping[str, Any], keys: Sequence[str]) -> tuple[Any, ...]:
    return tuple(row.get(key) for key in keys)


def _pair(part: str, row: Mapping[str, Any], old: Mapping[str, Any]) -> Pair:
    figure = _FIGURE[part]
    loop, before = row.get("calibration_ns"), old.get("calibration_ns")
    apart = None
    if "least" in row and "least" in old:
        apart = row["least"] > old["most"] or row["most"] < old["least"]
    return Pair(part, _name(part, row), old[figure], row[figure], loop / before if loop and before else 1.0, apart)


def _name(part: str, row: Mapping[str, Any]) -> str:
    if part == "rhs":
        threads = "" if row["threads"] is None else f", {row['threads']} thread(s)"
        return f"{row['precision']}, {'viscous' if row['viscous'] else 'inviscid'}{threads}"
    along = f" along {row['direction']}" if row["direction"] else ""
    return f"{row['plan']}, {row['precision']}: {row['kernel']}{along}"
