"""The last measured times per node on this machine, from which the cost of a run is estimated."""

import json
import math
import os
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from hiresx.base.notify import notify
from hiresx.device.cache import directory
from hiresx.errors import HiresxError


def _file() -> Path:
    return directory() / "rates.json"


def store_rates(result: dict[str, Any]) -> None:
    """Store measured times per node in a file of the cache, for later estimates on this machine. `result`: the result
    of `hiresx.bench.run`, which contains them. Of several numbers of threads only the largest is stored, for each
    combination of viscous or inviscid flow and precision. Nothing is stored if the cache cannot be written."""
    path = _file()
    known = _read(path)
    for row in sorted(result["rhs"], key=lambda row: row["threads"] or 0):
        known[_key(result["backend"], row["viscous"], row["precision"])] = {
            "ns_per_point_rhs": row["ns_per_point_rhs"],
            "threads": row["threads"],
            "from": "hiresx bench",
        }
    # Without a writable cache there are no estimates, but the measurement is valid.
    temporary = path.with_name(f"{path.name}.{os.getpid()}")
    with suppress(OSError):
        temporary.write_text(json.dumps(known, indent=2) + "\n")
        temporary.replace(path)


def known_rate(backend: str, viscous: bool, precision: str) -> dict[str, Any] | None:
    """Return the time per node of a right-hand side that `hiresx bench` measured last on this machine, as a dictionary:
    `ns_per_point_rhs` in ns, `threads` and `from` (the origin of the figure). Return None if there is none, or with a
    warning if the cache cannot be used. `backend`: the name of the backend. `viscous`: whether the flow is viscous.
    `precision`: the value of `scheme.precision` of the case, such as "fp64"."""
    try:
        path = _file()
    except HiresxError as error:
        _announce_once(f"{error.message}; {error.hint}")
        return None
    entry = _read(path).get(_key(backend, viscous, precision))
    if not isinstance(entry, dict):
        return None
    rate = entry.get("ns_per_point_rhs")
    whole = isinstance(rate, int | float) and 0 < rate < math.inf and "from" in entry
    return entry if whole else None


@cache
def _announce_once(text: str) -> None:
    notify(text)


def _key(backend: str, viscous: bool, precision: str) -> str:
    return f"{backend}/{precision}/{'viscous' if viscous else 'inviscid'}"


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
