"""One signal ends a rank that cannot hear of it, for it waits for another one."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from ending import needs_mpi, written
from ranks import ENVIRONMENT, launcher

from hiresx.output.saved import checkpoint, process
from hiresx.simulation import stopped_ranks

SCRIPT = """
import sys, threading
from hiresx import Simulation, load
from hiresx.simulation import watchdog as overdue

overdue.PATIENCE, overdue.FIRST = 1.0, 1.0

def stuck(simulation):
    if simulation.step_count == {step}:
        print("stuck", flush=True)
        {wait}

Simulation(load({case!r}), "cpu", out={out!r}, monitors=[stuck]).run(progress=False)
"""
# A lock that nobody gives back; Python's handlers are called meanwhile, but no step ends.
LOCK = "(lambda lock: (lock.acquire(), lock.acquire()))(threading.Lock())"


@pytest.mark.parametrize("step", [0, pytest.param(5, marks=pytest.mark.slow)])
def test_a_run_that_is_stuck_is_ended_by_one_signal(tmp_path, step):
    case = written(tmp_path / "case", checkpoint={"every_steps": 2})
    script = SCRIPT.format(step=step, wait=LOCK, case=str(case), out=str(tmp_path / "out"))
    process = subprocess.Popen(
        [sys.executable, "-c", script], env=os.environ | ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    assert process.stdout.readline() == "stuck\n"
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 143 and err.count("error: terminated by SIGTERM; no step came to its end") == 1, err
    if step:
        assert json.loads((tmp_path / "out/run.json").read_text())["status"] == "interrupted"
        assert checkpoint.find(tmp_path / "out").container.values["solver"]["steps"] == 4


def ranks_of(out) -> list[int]:
    marker, found = os.fsencode(out), []
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{number}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if marker in words and b"python" in words[0]:
            found.append(int(number))
    return sorted(found)


@pytest.mark.slow
@needs_mpi
@pytest.mark.parametrize("transport", ["window", "signals", "mpi"])
def test_one_signal_ends_a_rank_that_waits_for_a_stopped_one(tmp_path, transport):
    case, out = written(tmp_path / "case", checkpoint={"every_steps": 20}), tmp_path / "out"
    words = ["run", case, "--backend", "cpu", "--transport", transport, "--out", out]
    process = subprocess.Popen(
        [*launcher(), "-n", "2", sys.executable, "-m", "hiresx", *words], env=os.environ | ENVIRONMENT,
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 120
        while len(checkpoint.list_checkpoints(out)) < 2:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.01)
        waits, stopped = ranks_of(out)
        os.kill(stopped, signal.SIGSTOP)
        time.sleep(0.5)
        began = time.monotonic()
        os.kill(waits, signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 143 and time.monotonic() - began < 30, (process.returncode, err)
    assert err.count("terminated by SIGTERM") == 1 and "hiresx run --restart" in err, err
    assert json.loads((out / "run.json").read_text())["status"] == "interrupted"
    steps = checkpoint.find(out).container.values["solver"]["steps"]
    assert steps > 0 and steps % 20 == 0
    assert not ranks_of(out)


# A signal before the steps end, and another one between their end and that of the run.
LATER = """
import os, signal, time
from hiresx.mpi.communicator import single_process
from hiresx.simulation.watchdog import Watchdog

signal.signal(signal.SIGTERM, lambda number, frame: None)
with Watchdog(single_process(), None) as watchdog:
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.2)
    watchdog.stop()
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.2)
"""


def test_a_signal_after_the_last_step_is_taken_in_silence():
    ended = subprocess.run([sys.executable, "-c", LATER], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, "")


class Ranks:
    """A communicator whose ranks are processes that tests have started."""

    def __init__(self, rank, processes):
        self.rank, self._processes, self.local = rank, processes, self

    def allgather(self, own):
        assert own == (self.rank, process.current_process())
        return list(self._processes.items())


def wait_until_stopped(known: dict, stopped: bool) -> None:
    deadline = time.monotonic() + 10
    while process.is_stopped(known) != stopped:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_stopped_rank_is_told_once_by_the_lowest_that_runs(capfd):
    code = "import json, time; from hiresx.output.saved import process\n"
    code += "print(json.dumps(process.current_process()), flush=True); time.sleep(60)"
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        ranks = {0: process.current_process(), 1: json.loads(child.stdout.readline()), 2: process.current_process()}
        lowest, other = (stopped_ranks.StoppedRanks(Ranks(rank, ranks)) for rank in (0, 2))

        def told(looks: int) -> str:
            for _ in range(looks):
                lowest.look()
                other.look()
            return capfd.readouterr().err

        for _ in range(2):
            child.send_signal(signal.SIGSTOP)
            wait_until_stopped(ranks[1], True)
            for key in ("since", "host"):
                assert not process.is_stopped(ranks[1] | {key: "another"})
            assert told(stopped_ranks.LOOKS - 1) == ""
            said = told(1)
            assert said.startswith(f"note: rank 1, process {child.pid} on ") and said.count("note:") == 1
            assert said.endswith(f"kill -CONT {child.pid}\n")
            assert told(20) == ""
            child.send_signal(signal.SIGCONT)
            wait_until_stopped(ranks[1], False)
            assert told(20) == ""
    finally:
        child.kill()
        child.wait()
