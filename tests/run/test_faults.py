"""Runs that come to grief: killed, interrupted, out of disk, their directory taken away, blown up. What was there stays
and goes on.

HIRESX_KILLS: how often the run of the kill test is killed (5).
"""

import ctypes
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from hiresx import Case, HiresxError, Simulation
from hiresx.base.termination_signals import Requests, Terminated, raise_on_termination
from hiresx.case.toml import dumps
from hiresx.output.fields import field_file as fields
from hiresx.output.saved import checkpoint, directories, distributed_arrays
from hiresx.simulation.blow_up_error import BlowUp

COMMAND = [sys.executable, "-c", "from hiresx.cli import main; main()"]
KILLS = int(os.environ.get("HIRESX_KILLS", "5"))
ROOT = os.geteuid() == 0
WAVES = """import numpy as np


def initial(x, y, z):
    p = 1 / 1.4 + 0.01 * np.sin(2 * np.pi * x) * np.cos(2 * np.pi * y)
    return (1.4 * p) ** (1 / 1.4), 0.3, 0.1, 0.0, p


def mass(simulation):
    return {"mass": float(simulation.blocks[0].state("rho").mean())}
"""
CASE = {
    "title": "waves",
    "grid": {
        "generator": "box", "n": [16, 16, 1], "lower": [0.0, 0.0, 0.0], "upper": [1.0, 1.0, 0.0],
        "periodic": ["x", "y"],
    },
    "time": {"steps": 1_000_000, "cfl": 0.5},
    "initial": {"function": "initial"},
    "boundary": [{"faces": "all", "type": "periodic"}],
    "monitors": ["mass"],
    "monitor": {"every": 5},
    "probe": [{"name": "middle", "x": 0.5, "y": 0.5, "every": 3}],
    "average": {"every": 1},
}  # fmt: skip


@pytest.fixture
def place(tmp_path):
    """A folder that holds the case waves."""
    (tmp_path / "waves").mkdir()
    (tmp_path / "waves/case.toml").write_text(dumps(CASE))
    (tmp_path / "waves/case.py").write_text(WAVES)
    return tmp_path


def begun(place: Path, *arguments: object, **options) -> subprocess.Popen:
    log = (place / "log").open("w")
    with log:
        return subprocess.Popen(
            [*COMMAND, "run", *map(str, arguments), "--backend", "cpu"], cwd=place, stdout=log, stderr=log, **options
        )


def done(place: Path, *arguments: object, status: int = 0, **options) -> str:
    """What a command that ends by itself says."""
    process = begun(place, *arguments, **options)
    try:
        found = process.wait(timeout=120)
    finally:
        process.kill()
    said = (place / "log").read_text()
    assert found == status and "Traceback" not in said, (found, said)
    return said


def wait_for(process: subprocess.Popen, ready, place: Path) -> None:
    end = time.monotonic() + 60
    while not ready():
        assert process.poll() is None and time.monotonic() < end, (place / "log").read_text()
        time.sleep(0.002)


def ended(place: Path, process: subprocess.Popen, status: int) -> str:
    """What a process says that is about to end with `status`."""
    try:
        found = process.wait(timeout=60)
    finally:
        process.kill()
    said = (place / "log").read_text()
    assert found == status and "Traceback" not in said and said.count("error: ") == 1, (found, said)
    return said


def last_step(directory: Path) -> int:
    """Step of the newest whole checkpoint, -1 without one."""
    try:
        return checkpoint.find(directory).container.values["solver"]["steps"]
    except HiresxError:
        return -1


def same_results(ours: Path, reference: Path) -> None:
    """Both runs ended in the same state to the last bit, and left the same frames and histories."""
    found = [checkpoint.find(directory).container for directory in (ours, reference)]
    assert found[0].names == found[1].names
    for name in found[0].names:
        assert found[0].array(name).tobytes() == found[1].array(name).tobytes(), name
    for key in ("solver", "run"):
        assert found[0].values[key] == found[1].values[key]
    assert list(fields.frames(ours)) == list(fields.frames(reference))
    for step, path in fields.frames(ours).items():
        a, b = fields.read(path), fields.read(fields.frames(reference)[step])
        assert a.time == b.time and all(np.array_equal(v, b.blocks[0].state[n]) for n, v in a.blocks[0].state.items())
    for path in sorted((reference / "history").glob("*.nc")):
        assert (ours / "history" / path.name).read_bytes() == path.read_bytes(), path.name


# --- killed


@pytest.mark.slow
@pytest.mark.parametrize("kills", [1, KILLS])
def test_killed_at_any_moment_a_run_goes_on_to_the_same_end(place, kills):
    out, clock = place / "out", random.Random(kills)
    often = ("--set", "checkpoint.every_steps=1", "--set", "output.every_steps=7")
    reached, writing, started = -1, 0, 0
    for n in range(kills):
        if last_step(out) >= 0:
            process = begun(place, "--restart", out, *often)
        else:
            shutil.rmtree(out, ignore_errors=True)
            process = begun(place, "waves", "--out", out, *often)
        if n % 10 == 9:  # while it starts
            time.sleep(clock.uniform(0, 1))
        else:
            before = reached
            wait_for(process, lambda: len(checkpoint.list_checkpoints(out)) and last_step(out) > before, place)  # noqa: B023
            time.sleep(clock.uniform(0, 0.2))
        process.kill()
        assert process.wait() == -signal.SIGKILL
        writing += bool(list(out.glob("checkpoints/.*.part")))
        started += last_step(out) >= 0
        assert last_step(out) >= reached, "a checkpoint was lost"
        reached = last_step(out)
        assert not checkpoint.find(out).passed, "a file in a checkpoint's place is whole"
    steps = reached + 10
    done(place, "--restart", out, *often, "--set", f"time.steps={steps}")
    assert not list(out.rglob(".*.part"))
    done(place, "waves", "--out", "whole", "--set", f"time.steps={steps}", "--set", "output.every_steps=7")
    same_results(out, place / "whole")
    print(f"{kills} kills, {writing} of them while a checkpoint was written, {reached} steps")


@pytest.mark.slow
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_a_run_in_order(place, number, status):
    process = begun(place, "waves", "--out", "out")
    wait_for(process, lambda: "step 1 " in (place / "log").read_text(), place)
    process.send_signal(number)
    said = ended(place, process, status)
    assert "to go on: hiresx run --restart out" in said
    record = json.loads((place / "out/run.json").read_text())
    assert record["status"] == "interrupted" and record["steps"] == last_step(place / "out") > 0
    steps = record["steps"] + 5
    done(place, "--restart", "out", "--set", f"time.steps={steps}")
    done(place, "waves", "--out", "whole", "--set", f"time.steps={steps}")
    same_results(place / "out", place / "whole")
    assert json.loads((place / "out/run.json").read_text())["restarts"][0]["before"]["status"] == "interrupted"


def test_terminated_before_the_run_begins_nothing_is_left(place):
    compiler = place / "compiler"
    compiler.write_text('#!/bin/sh\n[ "$1" = --version ] || exec sleep 60\n')
    compiler.chmod(0o755)
    cache = place / "cache"
    process = begun(place, "waves", env=os.environ | {"CXX": str(compiler), "HIRESX_CACHE": str(cache)})
    wait_for(process, lambda: any(cache.glob("*/kernels.cpp")), place)
    process.terminate()
    first, *others = ended(place, process, 143).splitlines()
    assert first.startswith("note: compiling") and others == ["error: terminated by SIGTERM"]
    assert not (place / "runs").exists()


def test_the_second_signal_acts_at_once():
    with pytest.raises(KeyboardInterrupt), Requests() as requests:
        signal.raise_signal(signal.SIGTERM)
        assert requests.signal == signal.SIGTERM
        signal.raise_signal(signal.SIGINT)
    with pytest.raises(Terminated), raise_on_termination():
        signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


@pytest.mark.slow
def test_the_wall_clock_limit_of_the_command(place):
    said = done(place, "waves", "--out", "out", "--set", "time.wall_limit=0.2", status=3)
    assert "the wall-clock limit time.wall_limit = 0.2 s is reached" in said and "hiresx run --restart out" in said
    first = last_step(place / "out")
    done(place, "--restart", "out", status=3)
    assert last_step(place / "out") > first


@pytest.mark.slow
def test_one_process_at_a_time(place):
    process = begun(place, "waves", "--out", "out")
    wait_for(process, lambda: "step 1 " in (place / "log").read_text(), place)
    try:
        for of in (["--restart", "out"], ["waves", "--out", "out"]):
            said = subprocess.run([*COMMAND, "run", *of], cwd=place, capture_output=True, text=True, timeout=60)
            assert said.returncode == 2 and "another process is running in out" in said.stderr
    finally:
        process.kill()
        process.wait()
    done(place, "--restart", "out", "--steps", 1)


@pytest.mark.slow
def test_what_a_killed_run_left_half_written_is_swept(place):
    done(place, "waves", "--out", "out", "--steps", 1)
    (place / "out/checkpoints/.checkpoint_000009_step_000100.hxc.123.part").write_bytes(b"half")
    (place / "out/.run.json.123.part").write_bytes(b"half")
    (place / "out/.mine.part").write_bytes(b"not of the run")
    done(place, "--restart", "out", "--steps", 1)
    assert [path.name for path in (place / "out").rglob(".*")] == [".mine.part"]


# --- where nothing can be written any more


@pytest.fixture
def small_disk(place):
    """A file system of a megabyte."""
    disk = place / "disk"
    disk.mkdir()
    mounted = ROOT and shutil.which("mount")
    if not mounted or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", disk], check=False).returncode:
        pytest.skip("a small file system cannot be mounted here")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


@pytest.mark.slow
def test_disk_full(place, small_disk):
    often = ("--set", "checkpoint.every_steps=1", "--set", "output.every_steps=3")
    said = done(place, "waves", "--out", small_disk / "out", *often, status=3)
    assert "disk is full" in said and said.count("error: ") == 1
    out = small_disk / "out"
    step = last_step(out)
    assert step > 5 and not checkpoint.find(out).passed and not list(out.rglob(".*.part"))
    frames = fields.frames(out)
    for path in frames.values():
        fields.read(path)
    for path in list(frames.values())[:-2]:
        path.unlink()  # room is made
    done(place, "--restart", out, "--steps", 3)
    assert last_step(out) == step + 3


@pytest.mark.slow
def test_no_file_may_grow_so_large(place):
    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))

    (place / "waves/case.toml").write_text(dumps({key: value for key, value in CASE.items() if key != "average"}))
    often = ("--set", "checkpoint.every_steps=1", "--set", "monitor.every=1")  # the history makes them grow
    said = done(place, "waves", "--out", "out", *often, status=3, preexec_fn=limited)
    assert "cannot write out/checkpoints/" in said and "largest size allowed" in said
    assert last_step(place / "out") > 10 and not checkpoint.find(place / "out").passed
    done(place, "--restart", "out", "--steps", 1)


@pytest.mark.slow
def test_directory_moved_away(place):
    process = begun(place, "waves", "--out", "out", "--set", "checkpoint.every_steps=1")
    wait_for(process, lambda: last_step(place / "out") > 3, place)
    (place / "out").rename(place / "moved")
    said = ended(place, process, 3)
    assert re.search("cannot write (to )?out/.*: its directory is gone", said), said
    assert not (place / "out").exists()
    done(place, "--restart", "moved", "--steps", 2)


@pytest.mark.slow
def test_directory_removed(place):
    process = begun(place, "waves", "--out", "out", "--set", "checkpoint.every_steps=1")
    wait_for(process, lambda: last_step(place / "out") > 3, place)
    while (place / "out").exists():
        shutil.rmtree(place / "out", ignore_errors=True)
    said = ended(place, process, 3)
    assert "out/" in said and not (place / "out").exists()
    assert "what was computed is in" not in said


def without_root_s_privilege() -> None:
    """In a child of root: permissions bind it too (PR_CAPBSET_DROP of CAP_DAC_OVERRIDE takes hold with exec)."""
    if ROOT and ctypes.CDLL(None).prctl(24, 1, 0, 0, 0):
        os._exit(99)


@pytest.mark.slow
def test_directory_made_read_only(place):
    often = ("--set", "checkpoint.every_steps=1")
    process = begun(place, "waves", "--out", "out", *often, preexec_fn=without_root_s_privilege)
    wait_for(process, lambda: last_step(place / "out") > 3 or process.poll() == 99, place)
    if process.poll() == 99:
        pytest.skip("permissions bind nobody here")
    folders = [place / "out", place / "out/checkpoints"]
    for path in folders:
        path.chmod(0o555)
    said = ended(place, process, 3)
    assert re.search("cannot (write|remove) out.*: permission denied", said), said
    step = last_step(place / "out")
    assert step > 3 and not checkpoint.find(place / "out").passed
    said = done(place, "--restart", "out", "--steps", 1, status=2, preexec_fn=without_root_s_privilege)
    assert "cannot write to out: permission denied" in said
    for path in folders:
        path.chmod(0o755)
    done(place, "--restart", "out", "--steps", 1)
    assert last_step(place / "out") == step + 1


# --- blown up


def blowing(**changes) -> Case:
    """A strong pulse, with steps that are too large unless `changes` say otherwise."""
    tables = {
        "grid": {"generator": "box", "n": [20, 12, 1], "lower": [0.0, 0.0, 0.0], "upper": [2.0, 1.0, 0.0]},
        "time": {"dt": 0.2, "steps": 60},
        "monitor": {"every": 1},
        "initial": {"state": {"rho": 1.0, "u": 0.2, "p": 1 / 1.4}},
        "boundary": [{"faces": "all", "type": "far-field", "state": {"rho": 1.0, "u": 0.2, "p": 1 / 1.4}}],
    }
    return Case.from_dict(tables | changes)


def pulse(x, y, z):
    p = 1 / 1.4 + np.exp(-20 * ((x - 1) ** 2 + (y - 0.5) ** 2))
    return (1.4 * p) ** (1 / 1.4), 0.2, 0.0, 0.0, p


def test_a_blow_up_leaves_its_neighbourhood_and_the_last_good_checkpoint(tmp_path):
    case = blowing(checkpoint={"every_steps": 1, "keep": 2})
    simulation = Simulation(case, backend="cpu", out=tmp_path, initial=pulse)
    with pytest.raises(BlowUp) as error:
        simulation.run(progress=False)
    b, (i, j, k) = error.value.block, error.value.node
    around = fields.read(tmp_path / "blow-up.nc")
    assert around.step == simulation.step_count and str(tmp_path / "blow-up.nc") in error.value.hint
    block = around.blocks[0]
    x, y, _ = simulation.solver.decomposition.blocks[b].node(i, j, k)
    place = np.argwhere((block.x == x) & (block.y == y))
    assert len(place) == 1
    values = [block.state[name][tuple(place[0])] for name in ("rho", "p")]
    assert not all(np.isfinite(v) and v > 0 for v in values)
    good = checkpoint.find(tmp_path)
    assert good.container.values["solver"]["steps"] == simulation.step_count  # with which the fatal step began
    assert good.container.path.name in error.value.hint
    read = distributed_arrays.read_from_file(good.container, "solver/")
    q = read("q.0", read.whole("q.0"))
    assert np.isfinite(q).all() and (q[0] > 0).all()


@pytest.mark.parametrize("clock", ["dt", "cfl"])
def test_a_blow_up_is_found_though_nobody_looks(clock):
    case = blowing(time={clock: 0.2 if clock == "dt" else 9.0, "steps": 10**6}, monitor={"every": 10**6})
    simulation = Simulation(case, backend="cpu", initial=pulse)
    if clock == "dt":
        case = None  # a fixed step goes on with NaN until somebody looks
        with pytest.raises(BlowUp):
            simulation.run(steps=60, progress=False)
    else:
        with pytest.raises(BlowUp, match=r"no step can be taken|blew up: (rho|p)"):
            simulation.run(progress=False)
        assert simulation.step_count < 1000 and np.isfinite(simulation.time)


def test_retries_take_smaller_steps_from_the_last_good_checkpoint(tmp_path):
    case = blowing(
        time={"dt": 0.2, "steps": 60, "retries": 8}, checkpoint={"every_steps": 4, "keep": 3}, probe=PROBE
    )  # fmt: skip
    simulation = Simulation(case, backend="cpu", out=tmp_path / "run", initial=pulse)
    record = simulation.run(progress=False)
    retries = record["retries"]
    assert record["status"] == "finished" and record["steps"] == 60 and 1 <= len(retries) <= 8
    assert [entry["factor"] for entry in retries] == [0.5 ** (n + 1) for n in range(len(retries))]
    assert "blew up" in retries[0]["error"] and retries[0]["checkpoint"].startswith("checkpoint_")
    assert json.loads((tmp_path / "run/run.json").read_text())["retries"] == retries
    steps = [entry["step"] for entry in simulation.history]
    assert steps == list(range(61)), "no step twice, none missing"
    # and a restart keeps the smaller step
    states = {entry: path for entry, path in enumerate(checkpoint.list_checkpoints(tmp_path / "run"))}
    again = Simulation(case, backend="cpu", restart=shutil.copy(states[1], tmp_path / "copy.hxc"))
    assert again.solver.step_factor == retries[-1]["factor"] and again.step_count < 60
    again.run(progress=False)
    assert np.array_equal(again.blocks[0].state("p"), simulation.blocks[0].state("p"))


PROBE = [{"name": "middle", "x": 1.0, "y": 0.5, "every": 1}]


def test_too_few_retries_end_in_the_blow_up(tmp_path):
    case = blowing(time={"dt": 5.0, "steps": 60, "retries": 2})
    with pytest.raises(BlowUp):
        Simulation(case, backend="cpu", out=tmp_path, initial=pulse).run(progress=False)
    record = json.loads((tmp_path / "run.json").read_text())
    assert record["status"] == "failed" and len(record["retries"]) == 2
    assert last_step(tmp_path) == 0


# --- an attachment that fails


def test_a_failure_is_recorded_and_the_others_are_finished(place, monkeypatch):
    from hiresx.output.fields.field_output import FieldOutput

    finished = []
    monkeypatch.setattr(FieldOutput, "finish", lambda self, solver: finished.append(self.name))

    def fails(simulation):
        if simulation.step_count:
            raise HiresxError("the monitor has enough", "ask it less")
        return {"a": 1.0}

    simulation = Simulation(str(place / "waves"), backend="cpu", out=place / "out", monitors=[fails])
    with pytest.raises(HiresxError, match="has enough"):
        simulation.run(progress=False)
    record = json.loads((place / "out/run.json").read_text())
    assert record["status"] == "failed" and "has enough" in record["error"] and finished == ["fields"]


def test_a_lock_goes_with_its_holder(tmp_path):
    refused = pytest.raises(HiresxError, match="another process is running")
    with directories.lock_directory(tmp_path), refused, directories.lock_directory(tmp_path):
        pass
    with directories.lock_directory(tmp_path):
        pass
