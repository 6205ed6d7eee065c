"""Times a whole run of one step, with an empty and with a filled kernel cache."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from hiresx.errors import HiresxError

# The README's first command, stopped after one step.
ARGUMENTS = ("run", "planar-jet", "--preset", "quick", "--steps", "1")


def start_up(backend: str, repeats: int) -> dict[str, Any]:
    """Return the wall times of whole processes of `hiresx run` on `backend`: `first_s` with an empty kernel cache, and
    `later_s`, the median of `repeats`, with a filled one. Raises HiresxError if the command fails."""
    arguments = [*ARGUMENTS, "--backend", backend]
    with tempfile.TemporaryDirectory() as folder:
        first, *later = [_wall(arguments, Path(folder), number) for number in range(repeats + 1)]
    return {"run": " ".join(["hiresx", *arguments]), "first_s": first, "later_s": median(later)}


def _wall(arguments: list[str], folder: Path, number: int) -> float:
    command = [
        sys.executable,
        "-c",
        "from hiresx.cli import main; main()",
        *arguments,
        "--out",
        str(folder / f"{number}"),
    ]
    environment = os.environ | {"HIRESX_CACHE": str(folder / "cache")}
    began = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    seconds = time.perf_counter() - began
    if done.returncode:
        raise HiresxError(
            f"hiresx {' '.join(arguments)} fails with status {done.returncode}:\n{done.stderr.strip()}",
            "correct that first: hiresx doctor",
        )
    return seconds
