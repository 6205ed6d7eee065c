"""What ends a job whose ranks are still being started, and how many ranks are too many."""

import contextlib
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from hiresx.cli import execute
from hiresx.cli.launch import MOST_ON_A_CORE
from hiresx.launch import counts, job

# Stands for an mpirun that starts one rank in a while and does not heed what should end it.
DEAF = """#!/bin/bash
trap '' TERM INT
for rank in 0 1 2 3; do
  PMIX_RANK=$rank sleep 600 &
  echo $! >> {pids}
  sleep 1
  [ $rank = {stop} ] && sleep 600
done
wait
"""


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("stop", [0, 1])
def test_a_signal_while_ranks_are_started_ends_all_of_them(tmp_path, monkeypatch, number, stop):
    monkeypatch.setattr(job, "PATIENCE", 0.5)
    pids, mpirun = tmp_path / "pids", tmp_path / "mpirun"
    mpirun.write_text(DEAF.format(pids=pids, stop=stop))
    mpirun.chmod(mpirun.stat().st_mode | stat.S_IXUSR)
    asked = []

    def interrupt() -> None:
        deadline = time.monotonic() + 120
        while not pids.exists() or len(pids.read_text().split()) <= stop:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        asked.append(time.monotonic())
        os.kill(os.getpid(), number)

    thread = threading.Thread(target=interrupt)
    thread.start()
    ended = job.run([str(mpirun), "-n", "4"], 4)
    thread.join()
    assert ended.status == 128 + number
    assert time.monotonic() - asked[0] < 10
    assert not [pid for pid in map(int, pids.read_text().split()) if alive(pid)]


def test_processes_are_searched_only_until_all_ranks_are_found(tmp_path, monkeypatch):
    """Every search reads all processes of the machine, which would take time from the ranks."""
    found, search = [], job.ranks_of

    def counted(root):
        found.append(len(ranks := search(root)))
        if found[-1] == 2:
            (tmp_path / "both").touch()
        return ranks

    monkeypatch.setattr(job, "POLL", 0.02)
    monkeypatch.setattr(job, "ranks_of", counted)
    start = "PMIX_RANK=0 sleep 600 & a=$!; PMIX_RANK=1 sleep 600 & b=$!; "
    wait = f"while [ ! -e {tmp_path}/both ]; do sleep 0.1; done; sleep 0.5; kill $a $b"
    assert job.run(["bash", "-c", start + wait], 2) == job.JobEnd(0)
    assert found.index(2) == len(found) - 1


def test_more_ranks_than_a_machine_holds_are_refused_before_anything_is_started(monkeypatch, capfd, tmp_path):
    monkeypatch.setattr(counts, "cores", lambda: 2)
    started = tmp_path / "started"
    mpirun = tmp_path / "mpirun"
    mpirun.write_text(f"#!/bin/bash\ntouch {started}\n")
    mpirun.chmod(mpirun.stat().st_mode | stat.S_IXUSR)
    status = execute(["launch", "-n", str(2 * MOST_ON_A_CORE + 1), "--mpirun", str(mpirun), "sod"])
    err = capfd.readouterr().err
    assert status == 2 and not started.exists()
    assert f"{2 * MOST_ON_A_CORE + 1} ranks are too many for 2 cores" in err and "--oversubscribe" in err


def test_who_insists_gets_them(monkeypatch, capfd):
    monkeypatch.setattr(counts, "cores", lambda: 2)
    many = [
        "launch",
        "-n",
        str(2 * MOST_ON_A_CORE + 1),
        "--mpirun",
        sys.executable,
        "--dry-run",
        "sod",
        "--set",
        "grid.n=[400,1,1]",
    ]
    execute(many)
    assert "too many" in capfd.readouterr().err
    execute([*many, "--oversubscribe"])
    assert "too many" not in capfd.readouterr().err


# Stands for an mpirun that was stopped while its ranks run: they end when they are told to, it does not see it.
STOPPED = """#!/bin/bash
for rank in 0 1; do
  PMIX_RANK=$rank sleep {seconds} &
done
kill -STOP $$
wait
echo went on
exit 3
"""
RUNS = """
import sys
from hiresx.launch import job
job.PATIENCE = float(sys.argv[2])
print(job.run([sys.argv[1]], 2))
"""


@pytest.mark.parametrize("way", ["asked", "gone", "told"])
def test_an_mpirun_that_was_stopped(tmp_path, way):
    """It goes on where an end is asked for and where all ranks are gone; else the user is told, once."""
    script = tmp_path / "mpirun"
    script.write_text(STOPPED.format(seconds=1.5 if way == "gone" else 600))
    script.chmod(0o755)
    started = subprocess.Popen(
        [sys.executable, "-c", RUNS, str(script), "0.5" if way == "told" else "60"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    limit = threading.Timer(30.0, started.kill)
    limit.start()
    if way == "told":
        assert started.stderr is not None
        err = started.stderr.readline()
        number = int(err.rpartition("kill -CONT ")[2])
        assert f"note: mpirun, process {number}, is stopped: nothing that the ranks write is shown" in err
    elif way == "asked":
        time.sleep(2.0)
    if way != "gone":
        started.send_signal(signal.SIGTERM)
    try:
        out, rest = started.communicate(timeout=20)
    finally:
        limit.cancel()
        for pid in (*job._below(started.pid), started.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    assert "went on" in out and "status=3" in out and "note" not in rest


# Stands for Hydra, which names the process that ended first, and not its rank.
HYDRA = """#!/bin/bash
ranks=()
for rank in 0 1 2; do
  PMI_RANK=$rank sleep 60 &
  ranks+=($!)
done
sleep 2
kill -9 ${ranks[1]}
cat << END
===================================================================================
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   PID ${ranks[1]} RUNNING AT vm
=   EXIT CODE: 9
===================================================================================
YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)
Please see the FAQ page for debugging suggestions
END
kill -9 ${ranks[0]} ${ranks[2]}
exit 9
"""


def test_the_rank_that_hydra_names_by_its_process_is_told(tmp_path, capfd):
    """Ranks are noted while they live: who looks for them at the end finds none."""
    mpirun = tmp_path / "mpirun"
    mpirun.write_text(HYDRA)
    mpirun.chmod(mpirun.stat().st_mode | stat.S_IXUSR)
    ended = job.run([str(mpirun), "-n", "3"], 3)
    assert (ended.status, ended.rank, ended.signal) == (137, 1, signal.SIGKILL)
    assert "BAD TERMINATION" not in capfd.readouterr().out
