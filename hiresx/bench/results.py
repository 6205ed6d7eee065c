"""The information stored with every result: date, hardware, versions and command."""

import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


def header(kind: str) -> dict[str, Any]:
    """Return the entries with which every stored result of a benchmark begins, as a dictionary: `kind` (the name of the
    benchmark), `date` (UTC), `command`, `versions` of the software, and `hardware` without the host name."""
    from hiresx.output.saved.machine_record import hardware, versions

    found = hardware()
    del found["host"]
    found["gpus"] = [{key: value for key, value in gpu.items() if key != "uuid"} for gpu in found["gpus"]]
    return {
        "kind": kind,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command(),
        "versions": versions(),
        "hardware": found,
    }


def command() -> str:
    """Return the command line of this process as a user would write it, for example "hiresx bench --points 32"."""
    module = getattr(sys.modules["__main__"], "__spec__", None)
    if module:
        words = ["python", "-m", module.name.removesuffix(".__main__")]
    else:
        words = ["python", sys.argv[0]] if sys.argv[0].endswith(".py") else [Path(sys.argv[0]).name]
    return shlex.join([*words, *sys.argv[1:]])
