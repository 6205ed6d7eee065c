"""What tests of `hiresx launch` share."""

import stat
import sys
from pathlib import Path

import pytest
from ranks import launcher

from hiresx.cli import execute

HIRESX = [sys.executable, "-m", "hiresx"]
needs_mpi = pytest.mark.skipif(not launcher(), reason="no mpi4py with an mpirun of its MPI: pip install '.[mpi]'")


def hiresx(capfd, *arguments: str) -> tuple[int, str, str]:
    status = execute(list(arguments))
    return status, *capfd.readouterr()


def write_program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/bash\n" + text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path
