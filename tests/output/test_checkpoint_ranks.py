"""Checkpoints that several ranks write and several read: the same nodes however they are cut; faults end all alike.

HIRESX_KILLS: how often a rank is killed (4).
"""

import itertools
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from checkpoint_pieces import cut, inside
from ranks import ENVIRONMENT, launcher, run_ranks

from hiresx import HiresxError, load
from hiresx.decomposition.held_arrays import LazyArray, Piece
from hiresx.grid.blocks import slices
from hiresx.mpi.communicator import Communicator, world
from hiresx.output.saved import checkpoint, container, directories, distributed_arrays, files

KILLS = int(os.environ.get("HIRESX_KILLS", "4"))
# Blocks (ni, nj, nk) of no handy size, one of them plane.
SIZES = ((23, 14, 9), (31, 8, 1))


def whole(size: tuple[int, int, int], step: int = 0) -> np.ndarray:
    """A value of its own for each of five variables at each node, (5, nk, nj, ni)."""
    ni, nj, nk = size
    return np.arange(5.0 * ni * nj * nk).reshape(5, nk, nj, ni) * (1 + step) + 1 / 3


def held(ranks: int, rank: int, dice: random.Random, step: int = 0, name: str = "q") -> list[Piece]:
    """What `rank` of `ranks` has of the blocks; all ranks throw the same dice."""
    found = []
    for b, size in enumerate(SIZES):
        for box in cut(size, dice.randint(1, 3 * ranks), dice):
            if dice.randrange(ranks) == rank:
                array = whole(size, step)[(..., *slices(box))]
                found.append(Piece(f"{name}.{b}", box, LazyArray(array.shape, array.dtype, lambda array=array: array)))
    return found


# --- what the ranks run


class Steps:
    """What a checkpoint asks of a solver."""

    time, steps = 0.0, 0


def writer(folder: Path, comm: Communicator, seed: int = 0, **options) -> tuple[checkpoint.Checkpoints, Steps]:
    """Checkpoints of blocks whose values follow from the step, cut anew each time, and of an attachment."""
    solver, spec = (
        Steps(),
        load("isentropic-vortex").checkpoint.model_copy(update={"keep": 4, **options.pop("spec", {})}),
    )

    def contents() -> checkpoint.Contents:
        dice = random.Random(f"{seed} {solver.steps} {comm.size}")
        state = held(comm.size, comm.rank, dice, solver.steps)
        mean = [Piece("0", p.box, np.asarray(p.array)[:2]) for p in held(comm.size, comm.rank, dice) if p.name == "q.0"]
        captured = {"averages": {"weight": 0.5, "mean": mean, "plain": np.arange(3)}}
        values, arrays = checkpoint.pack(captured, comm)
        kept = {"hiresx": "0", "solver": {"steps": solver.steps, "time": 0.0}, "attachments": values, "rank": comm.rank}
        return kept, [*distributed_arrays.label_pieces("solver/", state), *arrays]

    return checkpoint.Checkpoints(folder, spec, contents, lambda: None, comm=comm, **options), solver


def same(found: container.Container, dice: random.Random) -> None:
    """Asserts that random boxes of a checkpoint hold what belongs there."""
    step = found.values["solver"]["steps"]
    assert found.values["rank"] == 0
    read, averages = distributed_arrays.read_from_file(found, "solver/"), checkpoint.unpack(found)["averages"]
    assert averages["weight"] == 0.5 and averages["plain"].tolist() == [0, 1, 2]
    for b, size in enumerate(SIZES):
        for box in (*cut(size, 3, dice), inside(size, dice)):
            assert np.array_equal(read(f"q.{b}", box), whole(size, step)[(..., *slices(box))])
            if b == 0:
                assert np.array_equal(averages["mean"]("0", box), whole(size)[(slice(2), *slices(box))])


def sub(comm: Communicator, ranks: int) -> Communicator | None:
    """The first `ranks` of the communicator, as one; None to the others."""
    mpi_comm = comm.mpi_comm.Split(0 if comm.rank < ranks else 1, comm.rank)
    return Communicator(mpi_comm) if comm.rank < ranks else None


def said(comm: Communicator, work) -> list[str]:
    """What each rank gets told by the error of `work`, and the kind of error."""
    try:
        work()
    except Exception as error:
        told = f"{type(error).__name__} {error} {getattr(error, 'everywhere', None)}"
    else:
        told = ""
    return comm.allgather(told)


def crossed(comm: Communicator, folder: Path) -> None:
    """1 to 4 ranks write, 1 to 4 read."""
    for ranks, readers in itertools.product(range(1, 5), repeat=2):
        out = folder / f"{ranks}"
        if readers == 1 and (part := sub(comm, ranks)):
            checkpoints, solver = writer(out, part)
            checkpoints.start(solver, None, True)
            for solver.steps in (1, 2, 3, 4, 5):
                checkpoints.write(solver)
        comm.barrier()
        if part := sub(comm, readers):
            found = checkpoint.find(out, part)
            assert found.container.values["solver"]["steps"] == 5 and not found.passed
            same(found.container, random.Random(100 * ranks + 10 * readers + part.rank))
        comm.barrier()


def failing(comm: Communicator, folder: Path) -> dict:
    """What goes wrong on one rank while a checkpoint is written."""
    found = {}
    checkpoints, solver = writer(folder, comm)
    checkpoints.start(solver, None, True)

    def write(arrays, path: Path = folder / "c") -> list[str]:
        return said(comm, lambda: container.write(path, {}, arrays, comm))

    box = ((0, 2), (0, 2), (0, 2))
    mine = [(f"{comm.rank}", np.zeros(9))]
    for rank in range(comm.size):
        solver.steps += 1
        limit = resource.getrlimit(resource.RLIMIT_FSIZE)
        if comm.rank == rank:
            resource.setrlimit(resource.RLIMIT_FSIZE, (4000, limit[1]))
        found[f"limited {rank}"] = said(comm, lambda: checkpoints.write(solver))
        resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    if (folder / "disk").exists():
        found["full"] = write([(str(comm.rank), np.zeros(50_000))], folder / "disk/c")
    found["one name"] = write([("a" if comm.rank in (0, 2) else f"{comm.rank}", np.zeros(3))])
    found["two files"] = write(mine, folder / ("c" if comm.rank else "d"))
    found["kind"] = write([("a", np.array([None]))] if comm.rank == 1 else mine)
    found["another shape"] = write(
        [(str(comm.rank), LazyArray((3,), float, lambda: np.zeros(2 if comm.rank == 1 else 3)))],
    )

    def bad():
        if comm.rank == 2:
            raise HiresxError("it cannot be had", "ask another")
        return np.zeros(3)

    found["not made"] = write([(str(comm.rank), LazyArray((3,), float, bad))])
    found["value"] = said(comm, lambda: container.write(folder / "c", {"a": {1}}, mine, comm))
    found["no directory"] = write(mine, folder / "nowhere/c")

    def overlap() -> checkpoint.Contents:
        return {}, distributed_arrays.label_pieces("", [Piece("q", box, np.zeros((2, 2, 2)))] if comm.rank < 2 else [])

    checkpoints._contents = overlap
    found["overlap"] = said(comm, lambda: checkpoints.write(solver))
    directories._ARRIVAL_S = 0.2  # seconds
    found["not shared"] = said(
        comm, lambda: directories.make_directory(folder / ("a" if comm.rank == 0 else "b"), comm)
    )
    with directories.lock_directory(folder, comm):
        found["locked"] = said(comm, lambda: directories.lock_directory(folder, comm).__enter__())
    with directories.lock_directory(folder, comm):
        pass
    # None of this has left anything, and what was there is whole.
    same(checkpoint.find(folder, comm).container, random.Random(comm.rank))
    found["left"] = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    return found


def damaged(comm: Communicator, folder: Path) -> dict:
    """Files with a bit changed anywhere, or cut off, are refused by all ranks alike, and passed over."""
    checkpoints, solver = writer(folder, comm)
    checkpoints.start(solver, None, True)
    solver.steps = 1
    checkpoints.write(solver)
    path = checkpoint.list_checkpoints(folder)[0]
    content, dice, told = path.read_bytes(), random.Random(5), []
    sizes = [0, 8, len(content) // 2, len(content) - 1]
    for n in range(24):
        changed = bytearray(content)
        changed[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
        if n < len(sizes):
            changed = content[: sizes[n]]
        comm.barrier()
        if comm.root:
            path.write_bytes(changed)
        comm.barrier()
        told.append(said(comm, lambda: checkpoint.find(path, comm)))
        found = checkpoint.find(folder, comm)
        assert found.container.values["solver"]["steps"] == 0 and found.passed[0][0] == path
        assert checkpoints.last_good([]).values["solver"]["steps"] == 0
    other = folder / "other.hxc"
    comm.barrier()
    if comm.root:
        path.write_bytes(content)
        container.write(other, container.Container(path).values | {"x": 1}, [])
    comm.barrier()
    apart = said(comm, lambda: checkpoint.open_checkpoint(path if comm.rank != 2 else other, comm))
    container.write(other, container.Container(path).values | {"format": 1}, [], comm)
    early = said(comm, lambda: checkpoint.find(other, comm))
    nowhere = said(comm, lambda: checkpoint.find(folder / "nowhere", comm))
    files.on_root(comm, lambda: checkpoint.set_aside([(path, "")]))
    assert [p.name[-6:] for p in checkpoint.list_checkpoints(folder)] == ["00.hxc"], "set aside"
    return {"told": told, "apart": apart, "early": early, "nowhere": nowhere}


def clocks(comm: Communicator, folder: Path) -> list[int]:
    """The clock of rank 0 decides when a checkpoint is due."""
    now = [0.0]
    checkpoints, solver = writer(
        folder, comm, spec={"every_wall": 10.0, "keep": 9}, clock=lambda: now[0] if comm.root else 1e6 * random.random()
    )
    checkpoints.start(solver, None, True)
    for _ in range(25):
        due = comm.bcast(checkpoints.is_due())
        now[0] += 1
        solver.steps += 1
        checkpoints.after_step(solver, due)
    return sorted(int(path.stem[-6:]) for path in checkpoint.list_checkpoints(folder))


def forever(comm: Communicator, folder: Path) -> None:
    """One checkpoint after the other. The rank named in the file `suicide` kills itself while it writes."""
    directories.make_directory(folder, comm)
    (folder / f"{comm.rank}.pid").write_text(str(os.getpid()))
    with directories.lock_directory(folder, comm):
        files.on_root(comm, lambda: directories.remove_stale(folder))
        assert not list(folder.rglob(".*.part"))
        checkpoints, solver = writer(folder, comm)
        victim = (folder / "suicide").read_text() if (folder / "suicide").exists() else ""
        contents = checkpoints._contents

        def dies(array: np.ndarray) -> np.ndarray:
            if victim == str(comm.rank) and solver.steps == 3:
                os.kill(os.getpid(), signal.SIGKILL)
            return array

        def fatal() -> checkpoint.Contents:
            values, arrays = contents()
            return values, [
                (name, LazyArray(a.shape, a.dtype, lambda a=a: dies(np.asarray(a))))
                for name, a in [*arrays, (f"{comm.rank}", np.zeros(1000))]
            ]

        checkpoints._contents = fatal
        found = files.on_root(comm, lambda: checkpoint.list_checkpoints(folder))
        if found:
            same(checkpoint.find(folder, comm).container, random.Random(1))
        checkpoints.start(solver, None, not found)
        for _ in range(10_000):
            solver.steps += 1
            checkpoints.write(solver)


# --- the ranks


@pytest.mark.slow
def test_any_number_of_ranks_reads_what_any_number_wrote(tmp_path):
    run_ranks(4, crossed, tmp_path)


@pytest.fixture
def disk(tmp_path):
    """A file system of 64 kB where one can be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder]
    mounted = os.geteuid() == 0 and shutil.which("mount") and not subprocess.run(mount, check=False).returncode
    if not mounted:
        folder.rmdir()
    yield tmp_path
    if mounted:
        subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.slow
def test_what_fails_on_one_rank_fails_on_all(disk):
    found = run_ranks(3, failing, disk)[0]
    left = found.pop("left")
    assert left == ["checkpoints/checkpoint_000001_step_000000.hxc"]
    for what, told in found.items():
        assert len(set(told)) == 1 and told[0], (what, told)
    for rank in range(3):
        assert "checkpoints/checkpoint_000002" in found[f"limited {rank}"][0]
        assert "the file exceeds the largest size allowed here" in found[f"limited {rank}"][0]
    assert "HiresxError rank 2: cannot write" in found["limited 2"][0]
    if "full" in found:
        assert "c: the disk is full" in found["full"][0]
    assert "two arrays have one name: ['a']" in found["one name"][0]
    assert "the ranks write to several files" in found["two files"][0]
    assert "an array of object cannot be kept" in found["kind"][0]
    assert all("1 is <f8 [2], not what was said" in told for told in found["another shape"])
    assert found["not made"][0].startswith("HiresxError rank 2: it cannot be had\n  ask another")
    assert "neither a number nor a text" in found["value"][0]
    assert "its directory is gone" in found["no directory"][0]
    assert "do not make up a whole" in found["overlap"][0]
    assert "does not see" in found["not shared"][0] and "all hosts share" in found["not shared"][0]
    assert found["locked"][0].startswith("HiresxError another process is running in")
    assert all(told.endswith("True") for told in itertools.chain(*found.values())), "all know that all know"


@pytest.mark.slow
def test_damaged_files_are_refused_by_all_ranks(tmp_path):
    found = run_ranks(3, damaged, tmp_path)[0]
    for told in found["told"]:
        assert len(set(told)) == 1 and told[0].startswith("DamagedCheckpoint "), told
        assert "is not a whole checkpoint" in told[0], told
    assert len(set(found["apart"])) == 1 and "is another file to rank 2 than to rank 0" in found["apart"][0]
    assert all("of format 1, written by hiresx 0; this one reads format 2" in told for told in found["early"])
    assert all("no such run and no such checkpoint" in told for told in found["nowhere"])


@pytest.mark.slow
def test_the_clock_of_rank_0_decides(tmp_path):
    assert run_ranks(2, clocks, tmp_path)[0] == [0, 10, 20]


@pytest.mark.slow
def test_a_rank_that_is_killed_while_it_writes(tmp_path):
    if not launcher():
        pytest.skip("no mpirun")
    out, dice, left, reached = tmp_path / "run", random.Random(KILLS), 0, []
    out.mkdir()
    for n in range(KILLS):
        pids = [out / f"{rank}.pid" for rank in range(3)]
        for path in pids:
            path.unlink(missing_ok=True)
        (out / "suicide").write_text(str(n % 3) if n < 3 else "")
        before = [path.name for path in checkpoint.list_checkpoints(out)][:1]
        process = subprocess.Popen(
            [*launcher(), "-n", "3", sys.executable, __file__, str(out)],
            env=os.environ | ENVIRONMENT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            if n >= 3:
                end = time.monotonic() + 60
                while [path.name for path in checkpoint.list_checkpoints(out)][:1] == before:
                    assert process.poll() is None and time.monotonic() < end, process.communicate()
                    time.sleep(0.005)
                time.sleep(dice.uniform(0, 0.3))
                os.kill(int(pids[n % 3].read_text()), signal.SIGKILL)
            stderr = process.communicate(timeout=60)[1]
        finally:
            process.kill()
        assert process.returncode != 0 and "Traceback" not in stderr, stderr
        left += bool(list(out.rglob(".*.part")))
        found = checkpoint.find(out)
        assert not found.passed, "a file in a checkpoint's place is whole"
        same(found.container, dice)
        reached.append(int(found.container.path.name[11:17]))
    assert reached == sorted(set(reached)), "no checkpoint was lost"
    assert left >= min(KILLS, 3), "some were half-written"


if __name__ == "__main__":
    forever(world(), Path(sys.argv[1]))
