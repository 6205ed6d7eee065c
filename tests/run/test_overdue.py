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

from hiresx.output.saved import checkpoint

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
