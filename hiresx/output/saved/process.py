"""The identity of a process, by which another process can determine whether it still runs."""

import os
import platform
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any


def current_process() -> dict[str, Any]:
    """Return data that identify this process: host name, boot id, PID namespace, process id, and start time in clock
    ticks since boot (since process ids are reused). Values that the system does not provide are None."""
    return {"host": platform.node(), "boot": _boot(), "space": _space(), "pid": os.getpid(), "since": _since("self")}


def has_ended(process: Mapping[str, Any] | None) -> bool:
    """Return True if a process is known to have ended. `process`: the data of the process that `current_process`
    returned in it; None if they are missing. False if the process runs, or if this cannot be known, for instance
    because it ran on another host or in another container."""
    if not process or process.get("host") != platform.node() or not process.get("boot") or not process.get("since"):
        return False
    if process["boot"] != _boot():
        return True
    return process.get("space") == _space() and _since(str(process.get("pid"))) != process["since"]


def is_stopped(process: Mapping[str, Any]) -> bool:
    """Return True if a process is known to be stopped by a signal, such as SIGSTOP. `process`: the data of the process
    that `current_process` returned in it. False if this cannot be known, for instance on another host."""
    if process["host"] != platform.node() or process["boot"] != _boot() or process["space"] != _space():
        return False
    state, since = _state(str(process["pid"]))
    return state == "T" and since == process["since"]


def _boot() -> str | None:
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return None


def _space() -> str | None:
    with suppress(OSError):
        return os.readlink("/proc/self/ns/pid")
    return None


def _since(pid: str) -> int | None:
    """Return the start time of a process; None if it does not exist or is a zombie."""
    state, since = _state(pid)
    return None if state in ("Z", "X") else since


def _state(pid: str) -> tuple[str | None, int | None]:
    """Return state and start time of a process (proc(5), /proc/pid/stat); None for both if it does not exist."""
    with suppress(OSError, ValueError, IndexError):
        # The name of the program, in brackets, may contain any character.
        state, *rest = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return state, int(rest[18])
    return None, None
