"""Fields and subsets that several ranks write: the files are those of one rank, to the bit; faults end all alike."""

import math
import random
import threading
import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from file_limits import largest_file
from rank_fields import KINDS, SOLID, VARIABLES, Held, contents, cut, flow, grid, written
from ranks import run_ranks
from vortices import taylor_green

from hiresx import HiresxError, Simulation, load
from hiresx.mpi.background import JointWriter, Work
from hiresx.mpi.communicator import Communicator, single_process
from hiresx.output.fields import field_file as fields
from hiresx.output.fields.field_output import FieldOutput
from hiresx.output.fields.formats import netcdf
from hiresx.output.saved.files import FileLayout, JointFile
from hiresx.output.saved.places import IndexBox


def said(comm: Communicator, work) -> list[str]:
    """What each rank is told when `work` fails."""
    try:
        work()
    except HiresxError as error:
        return comm.allgather(f"{error.message}; {error.hint}")
    return comm.allgather("nothing")


def sub(comm: Communicator, ranks: int) -> Communicator | None:
    mpi_comm = comm.mpi_comm.Split(0 if comm.rank < ranks else 1, comm.rank)
    return Communicator(mpi_comm) if comm.rank < ranks else None


def divided(comm: Communicator, folder: Path) -> dict:
    """The same outputs on 2, 3 and 4 ranks, every time cut in another way."""
    found = {}
    for ranks in (2, 3, 4):
        part = sub(comm, ranks)
        for kind in KINDS if part is not None else ():
            dice = random.Random(6 + 10 * ranks + len(kind))
            parts = cut(grid(KINDS[kind][1]), 5 * ranks, ranks, dice)
            output = written(part, folder / f"{kind}-{ranks}", kind, parts)
            found[f"{kind}-{ranks}"] = [o.name for o in output._outputs if o.content.waits]
        comm.barrier()
    return found


def failing(comm: Communicator, folder: Path) -> dict:
    """A disk that is full for one rank alone."""
    return {formats: _full_for_one(comm, folder / formats, formats) for formats in ("netcdf", "vtk")}


def _full_for_one(comm: Communicator, folder: Path, formats: str) -> dict:
    case = load("taylor-green", overrides=["time.end=10.0", *SOLID, f"output.formats=['{formats}']"])
    blocks = grid(KINDS["solid"][1])
    output = FieldOutput(case, folder)
    solver = Held(comm, blocks, cut(blocks, 6, comm.size, random.Random(5)))
    output.begin(solver, False)
    output.capture()
    before = comm.bcast(sorted(contents(folder)) if comm.root else None)

    def steps(count):
        for _ in range(count):
            solver.step()
            output.after_step(solver)
        output.capture()

    with largest_file(2000) if comm.rank == 1 else nullcontext():
        told = [said(comm, lambda: steps(4))]
    told.append(said(comm, lambda: (steps(3), output.finish(solver))))
    comm.barrier()
    after = sorted(contents(folder))
    return {"told": told, "before": before, "after": after}


def waiting(comm: Communicator, folder: Path) -> dict:
    """A rank that is slow to write: the others go on, and no file has its name before it is done."""
    slow, put_whole = threading.Event(), netcdf.FieldFrame.put

    def later(*arguments):
        slow.wait(60)
        put_whole(*arguments)

    if comm.rank == comm.size - 1:
        netcdf.FieldFrame.put = later
    blocks = grid(KINDS["sheet"][1])
    case = load("taylor-green", overrides=["time.end=10.0", "output.every_steps=2"])
    output = FieldOutput(case, folder)
    solver = Held(comm, blocks, cut(blocks, 4, comm.size, random.Random(2)))
    output.begin(solver, False)
    for _ in range(3):
        solver.step()
        output.after_step(solver)
    early = comm.bcast(sorted(path.name for path in folder.glob("*.nc")))
    slow.set()
    captured = output.capture()
    after = comm.bcast(sorted(path.name for path in folder.glob("*.nc")))
    output.finish(solver)
    comm.barrier()
    netcdf.FieldFrame.put = put_whole
    return {"early": early, "captured": after, "all": sorted(contents(folder)), "clock": captured}


class Rewritten(Work):
    """A file that is written again and again under one name: every rank its row, with the same number; some slowly."""

    def __init__(self, comm: Communicator, path: Path, number: int):
        self._place = IndexBox((1, comm.size, 1000), ((0, 1), (comm.rank, comm.rank + 1), (0, 1000)))
        self._file = JointFile(
            path, FileLayout(8000 * comm.size, [], {"a": (0, np.dtype("f8"), self._place.whole)}), 5, comm.root
        )
        self._number, self._seconds = number, 0.02 * ((number + comm.rank) % comm.size)

    def write(self) -> None:
        with self._file as file:
            time.sleep(self._seconds)
            file.put("a", self._place, [np.full(self._place.shape, float(self._number))])

    def publish(self) -> None:
        self._file.publish()

    def discard(self) -> None:
        self._file.discard()


def rewriting(comm: Communicator, folder: Path) -> dict:
    """The numbers that were seen in each file that had its name."""
    path, found = folder / "again", []
    for outstanding in (1, 1):
        writer = JointWriter(comm, outstanding)
        for number in range(12):
            writer.submit(Rewritten(comm, path, number))
            if path.exists():
                found.append(np.unique(np.fromfile(path)).tolist())
        writer.drain()
        found.append(np.unique(np.fromfile(path)).tolist())
        comm.barrier()
    return {"numbers": found}


class Fragile(Work):
    """Takes a random time, and fails on one rank in writing (0), completing (1) or publishing (2)."""

    def __init__(self, comm: Communicator, number: int, fails: tuple[int, int, int], dice: random.Random, notes: list):
        self._comm, self._number, self._fails, self._notes = comm, number, fails, notes
        self._seconds = 0.004 * dice.random() ** 3

    def _may_fail(self, where: int) -> None:
        if self._fails == (self._number, where, self._comm.rank):
            raise HiresxError(f"cannot write number {self._number}", "never mind")

    def write(self) -> None:
        time.sleep(self._seconds)
        self._may_fail(0)

    def complete(self, comm: Communicator) -> None:
        with comm.together():
            self._may_fail(1)

    def publish(self) -> None:
        time.sleep(self._seconds)
        self._may_fail(2)
        self._notes.append(self._number)

    def discard(self) -> None:
        self._notes.append(-1 - self._number)


def stressed(comm: Communicator, folder: Path) -> list[dict]:
    """Writers with random times and faults."""
    found = []
    for seed in range(40):
        dice = random.Random(seed)
        count, outstanding, notes, raised = 10, dice.randint(1, 3), [], []
        fails = dice.randrange(count), dice.choice([0, 0, 1, 2, 3]), dice.randrange(comm.size)
        fails = fails if fails[1] < 2 else (*fails[:2], 0)  # rank 0 publishes
        plan = [dice.choice("aad") if dice.random() < 0.5 else "" for _ in range(count)]
        own, writer = random.Random(seed + 1000 * comm.rank), JointWriter(comm, outstanding)
        for number, then in enumerate(plan):
            try:
                writer.submit(Fragile(comm, number, fails, own, notes))
                time.sleep(0.003 * own.random() ** 3)
                if then:
                    writer.drain() if then == "d" else writer.advance()
            except HiresxError as error:
                raised.append(str(error))
        try:
            writer.drain()
        except HiresxError as error:
            raised.append(str(error))
        raised = comm.allgather(raised)
        found.append({"fails": fails, "notes": notes, "raised": raised, "failed": comm.allgather(writer.has_failed)})
    return found


REAL = [
    "grid.n=[24, 18, 16]",
    "time.end=10.0",
    "output.every_steps=2",
    'output.formats=["netcdf", "vtk"]',
    f"output.variables={VARIABLES}",
    'output.subset=[{name="plane", plane={z=0.3}}, {name="line", line={x=0.7, z=2.0}}]',
]


def real(comm: Communicator, folder: Path) -> list:
    """A run, not only what is made of it."""
    simulation = Simulation(taylor_green(*REAL), out=folder, comm=comm)
    simulation.run(steps=4, progress=False)
    return [state.part.box for state in simulation.solver.states]


def programs(comm: Communicator, names: list[str], folder: str) -> dict[str, dict]:
    """The programs of these names, in folders of their names."""
    found = {}
    for name in names:
        where = Path(folder, name)
        where.mkdir(exist_ok=True)
        comm.barrier()
        found[name] = globals()[name](comm, where)
    return found


def on_four_ranks(folder: Path, *names: str) -> tuple[Path, dict[str, dict]]:
    """The folder of these programs on four ranks, and what rank 0 found."""
    return folder, run_ranks(4, programs, names, str(folder), timeout=300)[0]


@pytest.fixture(scope="module")
def ranks(tmp_path_factory) -> tuple[Path, dict[str, dict]]:
    return on_four_ranks(tmp_path_factory.mktemp("ranks"), "real")


@pytest.fixture(scope="module")
def more_ranks(tmp_path_factory) -> tuple[Path, dict[str, dict]]:
    """The programs that take longer."""
    names = ("divided", "failing", "waiting", "rewriting", "stressed")
    return on_four_ranks(tmp_path_factory.mktemp("ranks"), *names)


@pytest.mark.slow
def test_the_files_of_many_ranks_are_those_of_one(more_ranks, tmp_path):
    folder, found = more_ranks
    for kind in KINDS:
        written(single_process(), tmp_path / kind, kind)
    waits = {name for names in found["divided"].values() for name in names}
    assert waits >= {"plane_x", "plane_y", "plane_z", "through", "along", "up"}, "points between nodes of two ranks"
    for kind in KINDS:
        expected = contents(tmp_path / kind)
        assert len(expected) > 20 and any(name.endswith(".vtm") for name in expected)
        for count in (2, 3, 4):
            theirs = contents(folder / "divided" / f"{kind}-{count}")
            assert theirs.keys() == expected.keys()
            different = [name for name, whole in expected.items() if theirs[name] != whole]
            assert not different, f"{kind} on {count} ranks"
    block = fields.read(netcdf.frame(folder / "divided" / "solid-4", 4)).blocks[1]
    q = flow(grid(KINDS["solid"][1])[1], 4)
    np.testing.assert_array_equal(block.state["u"], q[1] / q[0])


@pytest.mark.slow
@pytest.mark.parametrize("formats", ["netcdf", "vtk"])
def test_a_disk_that_is_full_for_one_rank(more_ranks, formats):
    found = more_ranks[1]["failing"][formats]
    first, second = found["told"]
    assert all("cannot write" in text and "largest size" in text for text in first)
    assert len(set(text.removeprefix("rank 1: ") for text in first)) == 1
    assert second == ["nothing"] * 4, "raised once"
    assert found["after"] == found["before"], "nothing is left of what was begun"


@pytest.mark.slow
def test_a_file_has_its_name_when_all_have_written(more_ranks):
    found = more_ranks[1]["waiting"]
    assert not found["early"]
    assert found["captured"] == ["fields_000000.nc", "fields_000002.nc", "fields_grid.nc"]
    assert found["all"] == [*(f"fields_{n:06d}.nc" for n in (0, 2, 3)), "fields_grid.nc"]
    assert found["clock"] == {"fields.written": 2}


@pytest.mark.slow
def test_files_of_one_name_are_never_mixed(more_ranks):
    numbers = more_ranks[1]["rewriting"]["numbers"]
    assert len(numbers) > 20 and all(len(seen) == 1 for seen in numbers) and numbers[-1] == [11]


@pytest.mark.slow
def test_what_fails_on_one_rank_fails_on_all_once(more_ranks):
    for found in more_ranks[1]["stressed"]:
        (number, where, _), notes = found["fails"], found["notes"]
        done, gone = [n for n in notes if n >= 0], [-1 - n for n in notes if n < 0]
        if where > 2:
            assert done == list(range(10)) and not gone and found["raised"] == [[]] * 4
            continue
        assert all(len(raised) == 1 and f"cannot write number {number}" in raised[0] for raised in found["raised"])
        assert all(found["failed"]) and done == list(range(number)), "what came before is there, nothing after it"
        assert number in gone and gone == sorted(gone)


@pytest.mark.slow
def test_a_run_on_many_ranks_writes_what_one_writes(ranks, tmp_path):
    assert math.prod(last - first for first, last in ranks[1]["real"][0]) <= 24 * 18 * 16 / 3, "it was cut"
    real(single_process(), tmp_path)
    for name in ("fields", "plane", "line"):
        ours, theirs = fields.frames(tmp_path, name), fields.frames(ranks[0] / "real", name)
        assert ours.keys() == theirs.keys() == {0, 2, 4}
        for step, path in ours.items():
            a, b = fields.read(path), fields.read(theirs[step])
            assert (a.step, a.part, a.case) == (b.step, b.part, b.case) and a.time == pytest.approx(b.time, rel=1e-14)
            for mine, other in zip(a.blocks, b.blocks, strict=True):
                np.testing.assert_array_equal([mine.x, mine.y, mine.z], [other.x, other.y, other.z])
                for variable, values in mine.state.items():
                    scale = np.nanmax(np.abs(values))
                    np.testing.assert_allclose(other.state[variable], values, rtol=0, atol=1e-12 * max(scale, 1))
    names = {path.name for path in (ranks[0] / "real" / "vtk").iterdir()}
    assert names == {path.name for path in (tmp_path / "vtk").iterdir()} and len(names) == 18
