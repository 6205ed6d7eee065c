"""Progress of a run that is under way, from the newest sample of its histories, since run.json is written only every 30
seconds or so."""

import time as wall
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from hiresx.output.watch import history

# Least time, in s, and least fraction of a run after which its mean rate is used.
SECONDS, SHARE = 2.0, 1e-3


def run_status(directory: Path, entries: Mapping[str, Any], now: float | None = None) -> dict[str, Any]:
    """Return the progress of the run in `directory` as a dictionary: "steps" and "time" reached, and, while it is
    running, "percent" done and "left_s", the estimated seconds of wall time that remain. Unknown values are left out.
    The result is empty for a run that has ended. `entries`: the content of run.json
    (`hiresx.output.saved.record.read`). `now`: the present time in seconds since 1970, by default the time of the
    system."""
    if entries.get("status") not in ("running", "lost"):
        return {}
    steps, time, seen = entries.get("steps") or 0, entries.get("time") or 0.0, None
    for file in history.histories(directory).values():
        written = file.stat().st_mtime
        table = history.read(file)
        if table.samples and table.data["step"][-1] >= steps:
            steps, time, seen = int(table.data["step"][-1]), float(table.data["time"][-1]), written
    found: dict[str, Any] = {"steps": steps, "time": time}
    if entries["status"] == "lost":
        return found
    done = _done_fraction(entries, steps, time)
    if done is None:
        return found
    found["percent"] = round(100 * done, 1)
    before = (entries.get("restarts") or [{"step": 0, "time": 0.0}])[-1]
    gained = done - (_done_fraction(entries, before["step"], before["time"]) or 0.0)
    if seen is not None:
        took = seen - datetime.fromisoformat(entries["started"]).timestamp()
        if took >= SECONDS and gained >= SHARE:
            now = wall.time() if now is None else now
            found["left_s"] = max(round(took * (1 - done) / gained - (now - seen)), 0)
    return found


def _done_fraction(entries: Mapping[str, Any], steps: int, time: float) -> float | None:
    """Return the fraction of the run that is done at `steps` or `time`, whichever is larger; None without an end."""
    spec = (entries.get("case") or {}).get("time") or {}
    done = []
    if entries.get("last_step"):
        done.append(steps / entries["last_step"])
    if spec.get("end") and not spec.get("local"):
        done.append(time / spec["end"])
    return min(max(done), 1.0) if done else None
