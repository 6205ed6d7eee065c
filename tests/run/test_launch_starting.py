"""What ends a job whose ranks are still being started, and how many ranks are too many."""

import os
import signal
import stat
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
        while not pids.exists() or len(pids.read_text().split()) <= stop:
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
    many = ["launch", "-n", str(2 * MOST_ON_A_CORE + 1), "--mpirun", sys.executable, "--dry-run", "sod"]
    execute(many)
    assert "too many" in capfd.readouterr().err
    execute([*many, "--oversubscribe"])
    assert "too many" not in capfd.readouterr().err
