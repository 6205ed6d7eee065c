"""The command line in this process: what a verb says and ends with, without the start of another Python."""

import contextlib
import io
import os
from pathlib import Path

from hiresx.cli import execute


def command(*words: object, cwd: Path | str = ".") -> tuple[int, str, str]:
    """(exit status, stdout, stderr) of `hiresx *words` in the folder `cwd`; what it raises is raised."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(cwd), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = execute([os.fspath(word) if isinstance(word, Path) else str(word) for word in words])
    return status, out.getvalue(), err.getvalue()
