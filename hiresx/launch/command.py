"""The command line that starts a run on several ranks of this machine."""

import os
import sys
from collections.abc import Sequence

from hiresx.launch.mpi_library import INTEL, OPEN_MPI, Mpirun

# -P: the current folder may contain files named like modules; hiresx run does not import from it either.
PROGRAM = (sys.executable, "-P", "-m", "hiresx", "run")
# Environment variable of the ranks: the beginning of the shell command that started them, such as "hiresx launch -n 4".
LAUNCHED_BY = "HIRESX_LAUNCHED_BY"


def command(
    mpirun: Mpirun | None, ranks: int, cores: int, arguments: Sequence[str], program: Sequence[str] = PROGRAM
) -> list[str]:
    """Return the command line that starts `program` (by default `hiresx run`) with `arguments` on `ranks` ranks of this
    machine. A single rank is started without mpirun. The launcher is told not to bind ranks to cores: the run binds
    them itself when it knows which ranks exchange data. `mpirun`: the launcher; None: the program is started without
    one. `cores`: the number of available cores; more ranks than cores need a further option of Open MPI."""
    program = [*program, *arguments]
    if ranks == 1 or mpirun is None:
        return program
    found = [mpirun.path, "-n", str(ranks)]
    if mpirun.kind == OPEN_MPI:
        if os.geteuid() == 0:
            found.append("--allow-run-as-root")
        if ranks > cores:
            found.append("--oversubscribe")
        found += ["--bind-to", "none"]
    elif mpirun.kind == INTEL:
        found += ["-genv", "I_MPI_PIN", "0"]
    else:
        found += ["-bind-to", "none"]
    return found + program
