"""Signals of schedulers and of terminals that are gone: a run ends after its step, with a checkpoint."""

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ending import needs_mpi, written
from paths import ROOT
from ranks import ENVIRONMENT, launcher

from hiresx import Simulation
from hiresx.base.termination_signals import ENDING, Requests, Terminated, handle_signals, raise_on_termination
from hiresx.case import load
from hiresx.launch import job
from hiresx.output.saved import checkpoint, record
from hiresx.simulation.ends import Ends


@pytest.mark.parametrize("number", ENDING, ids=lambda number: signal.Signals(number).name)
def test_a_signal_ends_a_run_after_its_step_with_a_checkpoint(tmp_path, number):
    def warns(simulation):
        if simulation.step_count == 5:
            signal.raise_signal(number)
            if number not in (signal.SIGINT, signal.SIGTERM):
                signal.raise_signal(number)  # they come in pairs

    case = load(written(tmp_path))
    simulation = Simulation(case, "cpu", out=tmp_path / "out", monitors=[warns])
    with pytest.raises(KeyboardInterrupt if number == signal.SIGINT else Terminated) as caught:
        simulation.run(progress=False)
    kept = json.loads((tmp_path / "out/run.json").read_text())
    assert kept["status"] == "interrupted" and kept["steps"] == 5
    assert checkpoint.find(tmp_path / "out").container.values["solver"]["steps"] == 5
    if number != signal.SIGINT:
        assert caught.value.code == 128 + number
        assert kept["error"] == f"terminated by {signal.Signals(number).name}"
    assert signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler)


def test_a_signal_that_comes_while_the_ranks_are_asked_is_not_lost(tmp_path):
    """Ranks spend much of their time waiting for each other there."""

    class Pair:  # of ranks, the other of which hears nothing
        size, root = 2, True

        def __init__(self):
            self.asked = 0

        def max(self, values):
            self.asked += 1
            if self.asked == 1:
                signal.raise_signal(signal.SIGTERM)
            return values

    ends = Ends(load(written(tmp_path)), Pair(), time.monotonic(), None)
    with Requests() as requests:
        assert not ends.is_stop_requested(requests)
        requests.act()  # nothing yet: the other rank does not know
        assert ends.is_stop_requested(requests)
        with pytest.raises(Terminated):
            requests.act()


def test_what_is_ignored_or_handled_by_the_program_is_left_alone():
    def mine(number, frame):
        raise AssertionError

    before = {n: signal.getsignal(n) for n in (signal.SIGHUP, signal.SIGUSR1)}
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGUSR1, mine)
    try:
        with raise_on_termination(), Requests() as requests:
            signal.raise_signal(signal.SIGHUP)
            assert requests.signal is None and signal.getsignal(signal.SIGUSR1) is mine
            signal.raise_signal(signal.SIGUSR2)
            assert requests.signal == signal.SIGUSR2
            signal.raise_signal(signal.SIGTERM)  # a scheduler's, some time after its warning
            assert requests.signal == signal.SIGUSR2
            with pytest.raises(Terminated):
                signal.raise_signal(signal.SIGTERM)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_the_second_of_a_pair_does_not_interrupt_the_tidying_up():
    with raise_on_termination():
        with pytest.raises(Terminated) as caught:
            signal.raise_signal(signal.SIGHUP)
        signal.raise_signal(signal.SIGHUP)
        with pytest.raises(Terminated):
            signal.raise_signal(signal.SIGTERM)
    assert caught.value.code == 129 and str(caught.value) == "terminated by SIGHUP"


def waiting(process: subprocess.Popen, there) -> None:
    end = time.monotonic() + 60
    while not there():
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.005)


def steps(out: Path) -> int:
    return record.read_or_empty(out).get("steps") or 0


def test_a_run_whose_terminal_goes_away_ends_with_a_checkpoint(tmp_path):
    """As when ssh is cut: the kernel sends SIGHUP, and whatever is written to the terminal fails."""
    written(tmp_path / "ends", monitor={"every": 1})
    master, slave = pty.openpty()
    program = "import fcntl, os, sys, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
    program += "from hiresx.cli import main; main()"
    words = ["run", "ends", "--backend", "cpu", "--out", "out"]
    process = subprocess.Popen(
        [sys.executable, "-c", program, *words], cwd=tmp_path, stdin=slave, stdout=slave, stderr=slave
    )
    os.close(slave)
    try:
        shown = b""
        while b"step 1" not in shown:
            shown += os.read(master, 4096)
        os.close(master)
        assert process.wait(timeout=60) == 129
    finally:
        process.kill()
    kept = record.read(tmp_path / "out")
    assert kept["status"] == "interrupted" and kept["error"] == "terminated by SIGHUP"
    assert checkpoint.find(tmp_path / "out").container.values["solver"]["steps"] == kept["steps"] > 0


def test_a_run_under_nohup_goes_on_without_its_terminal(tmp_path):
    written(tmp_path / "ends", time={"steps": 400, "cfl": 0.5})
    process = subprocess.Popen(
        [sys.executable, "-m", "hiresx", "run", "ends", "--backend", "cpu", "--out", "out"], cwd=tmp_path,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )  # fmt: skip
    try:
        waiting(process, lambda: checkpoint.list_checkpoints(tmp_path / "out"))
        for stream in (process.stdout, process.stderr):
            stream.close()  # nobody reads any more
        process.send_signal(signal.SIGHUP)
        assert process.wait(timeout=60) == 0
    finally:
        process.kill()
    assert record.read(tmp_path / "out")["status"] == "finished" and steps(tmp_path / "out") == 400


@needs_mpi
@pytest.mark.parametrize("by", ["launch", pytest.param("mpirun", marks=pytest.mark.slow)])
def test_a_warning_reaches_the_ranks(tmp_path, by):
    """`hiresx launch` passes on what it gets; a plain mpirun passes on SIGUSR1."""
    written(tmp_path / "ends")
    words = ["ends", "--backend", "cpu", "--out", "out"]
    program = [sys.executable, "-m", "hiresx"]
    command = [*program, "launch", "-n", "2", *words]
    if by == "mpirun":
        command = [*launcher(), "-n", "2", *program, "run", *words]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        env={**os.environ, **ENVIRONMENT},
    )  # fmt: skip
    number = signal.SIGHUP if by == "launch" else signal.SIGUSR1
    try:
        waiting(process, lambda: checkpoint.list_checkpoints(tmp_path / "out"))
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    name = signal.Signals(number).name
    assert process.returncode == 128 + number and f"error: terminated by {name}" in err, (process.returncode, err)
    kept = record.read(tmp_path / "out")
    assert kept["status"] == "interrupted" and kept["error"] == f"terminated by {name}"
    assert checkpoint.find(tmp_path / "out").container.values["solver"]["steps"] == kept["steps"]


def test_only_who_presses_gets_the_ranks_killed(monkeypatch):
    """Signals that come on their own are passed on as often as they come; the third Ctrl-C or SIGTERM kills."""
    sent = []
    monkeypatch.setattr(job, "_send", lambda ranks, number: sent.append(number))

    class Process:
        pid = os.getpid()
        terminate = staticmethod(lambda: sent.append("terminated"))
        send_signal = staticmethod(lambda number: None)

    passed = job._Job(1)
    passed._process, passed._started = Process(), True
    for number in (signal.SIGHUP, signal.SIGHUP, signal.SIGHUP, signal.SIGTERM):
        passed.pass_on(number, None)
    assert sent == [signal.SIGHUP] * 3 + [signal.SIGTERM] and passed._kill_after == float("inf")
    passed.pass_on(signal.SIGTERM, None)
    assert sent == [signal.SIGHUP] * 3 + [signal.SIGTERM] * 2 and passed._kill_after < float("inf")
    passed.pass_on(signal.SIGTERM, None)
    assert sent[-2:] == [signal.SIGKILL, "terminated"]


def test_handlers_are_put_back():
    before = [signal.getsignal(number) for number in ENDING]
    with contextlib.suppress(RuntimeError), handle_signals(lambda number, frame: None):
        raise RuntimeError
    assert [signal.getsignal(number) for number in ENDING] == before


@pytest.mark.slow
def test_tests_hear_signals_in_a_background_job_too():
    """A script's `pytest &` has SIGINT ignored, nohup SIGHUP; so has all that it starts."""

    def ignore() -> None:
        for number in (signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)

    asked = "test_a_signal_ends_a_run_after_its_step and (SIGINT or SIGHUP)"
    done = subprocess.run(
        [sys.executable, "-m", "pytest", __file__, "-p", "no:cacheprovider", "-k", asked], cwd=ROOT,
        capture_output=True, text=True, timeout=60, preexec_fn=ignore,
    )  # fmt: skip
    assert done.returncode == 0 and "2 passed" in done.stdout, done.stdout


def test_no_test_waits_without_an_end(request):
    assert 60 <= float(request.config.getini("timeout")) < float(request.config.getini("faulthandler_timeout")) <= 3600
    assert request.config.pluginmanager.hasplugin("timeout") and request.config.getini("faulthandler_exit_on_timeout")
