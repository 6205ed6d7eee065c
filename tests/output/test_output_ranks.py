"""Fields and subsets that several ranks write: the files are those of one rank, to the bit; faults end all alike."""

import itertools
import math
import os
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from ranks import ENVIRONMENT, launcher, run_ranks

from hiresx import HiresxError, Simulation, load
from hiresx.decomposition import Part
from hiresx.equations.gas import conservative
from hiresx.grid import Block
from hiresx.grid.blocks import whole_box
from hiresx.output.fields import field_file as fields
from hiresx.output.fields import vtk
from hiresx.output.fields.field_output import FieldOutput
from hiresx.output.saved import layout
from hiresx.output.saved.joint import JointFile
from hiresx.output.saved.layout import Layout
from hiresx.output.saved.places import Box, Points, put
from hiresx.output.saved.writer import JointWriter, Work
from hiresx.team import Team, alone, world

VARIABLES = ["rho", "u", "v", "w", "p", "mach", "entropy", "vorticity", "schlieren", "q_criterion", "dilatation"]
# name: overrides of a case, sizes of blocks (ni, nj, nk)
SOLID = [
    "output.every_steps=2",
    'output.formats=["netcdf", "vtk"]',
    f"output.variables={VARIABLES}",
    """output.subset=[
        {name="thin", range={i=[3, -2, 4], j=[5, 6], k=[0, "end", 2]}},
        {name="corner", range={i=[0, 2], j=[-9, "end"]}, variables=["p", "vorticity_x"], precision="fp32"},
        {name="second", range={k=[5, 8]}, blocks=["right"], every_steps=3},
        {name="plane_x", plane={x=0.71}},
        {name="plane_y", plane={y=0.5}, variables=["p"]},
        {name="plane_z", plane={z=0.42}, variables=["dilatation"], precision="fp32"},
        {name="through", line={x=0.71, z=0.42}},
        {name="along", line={y=0.4, z=0.5}, variables=["T", "q_criterion"]},
    ]""",
]
SHEET = [
    "output.every_steps=2",
    'output.formats=["netcdf", "vtk"]',
    f"output.variables={VARIABLES}",
    'output.precision="fp32"',
    """output.subset=[
        {name="up", line={x=0.71}},
        {name="along", line={y=0.4}, precision="fp64"},
        {name="some", range={j=[1, 20, 3]}},
    ]""",
]
KINDS = {"solid": (SOLID, ((24, 17, 22), (19, 21, 8))), "sheet": (SHEET, ((37, 25, 1), (30, 41, 1)))}


def grid(sizes) -> tuple[Block, ...]:
    """Blocks side by side that are bent, so that planes go through many layers of nodes."""
    found = []
    for n, size in enumerate(sizes):
        i, j, k = (np.arange(m) / max(m - 1, 1) for m in size)
        z, y, x = np.meshgrid(k, j, i, indexing="ij")
        solid = size[2] > 1
        found.append(
            Block(
                ("left", "right")[n],
                n + x + 0.15 * np.sin(3 * y + 2 * z),
                y + 0.1 * np.cos(2 * x + n) + 0.1 * z,
                (z + 0.12 * np.sin(2 * x + y)) if solid else z,
            )
        )
    return tuple(found)


def flow(block: Block, step: int) -> np.ndarray:
    """(5, nk, nj, ni)."""
    wave = np.sin(3 * block.x + 0.1 * step) * np.cos(2 * block.y + block.z)
    u, v, w = 0.4 * wave, 0.3 * np.cos(block.x * block.y), 0.2 * np.sin(block.z + step) * wave
    return np.stack(conservative(1.4, 1 + 0.2 * wave, u, v, w, 0.7 + 0.1 * np.cos(2 * block.x - block.y)))


def cut(blocks, count: int, ranks: int, dice: random.Random) -> list[Part]:
    """About `count` parts of seven nodes and more, cut at random places, for random ranks of which each gets one."""
    boxes = [(n, whole_box(block.size)) for n, block in enumerate(blocks)]
    for _ in range(count):
        n, box = boxes.pop(dice.randrange(len(boxes)))
        d = dice.choice([d for d in range(3) if blocks[n].size[d] > 1])
        first, last = box[d]
        if last - first < 14:
            boxes.append((n, box))
            continue
        at = dice.randrange(first + 7, last - 6)
        boxes += [(n, (*box[:d], ends, *box[d + 1 :])) for ends in ((first, at), (at, last))]
    owners = [*range(ranks), *(dice.randrange(ranks) for _ in boxes)][: len(boxes)]
    dice.shuffle(owners)
    return [Part(n, box, owner) for (n, box), owner in zip(boxes, owners, strict=True)]


class Fetching:
    """What of a backend outputs use."""

    name = "cpu"

    @staticmethod
    def fetch(array):
        copy = np.array(array)
        return lambda: copy


class Held:
    """What of a solver outputs use: the parts of one rank, with ghosts at cuts and nothing that is a number in other
    ghosts."""

    backend = Fetching()

    def __init__(self, team: Team, blocks, parts, precision="fp64"):
        self.team, self.decomposition = team, SimpleNamespace(blocks=blocks)
        self.cut = SimpleNamespace(parts=tuple(parts))
        self.time, self.steps, self.dt, self._kind = 0.0, 0, 0.1, {"fp64": "f8", "fp32": "f4"}[precision]
        self.states = [
            SimpleNamespace(part=part, first=part.first, size=part.size, halo=tuple(3 * (n > 1) for n in part.size))
            for part in parts
            if part.rank == team.rank
        ]
        self._fill()

    def step(self) -> None:
        self.steps += 1
        self.time += self.dt
        self._fill()

    def settle(self) -> None:
        for state, ghosts in zip(self.states, self._ghosts, strict=True):
            for index, values in ghosts:
                state.q[index] = values

    def _fill(self) -> None:
        self._ghosts = []
        for state in self.states:
            block = self.decomposition.blocks[state.part.whole]
            whole = flow(block, self.steps).astype(self._kind)
            state.q = np.full(
                (5, *(n + 2 * h for n, h in zip(state.size[::-1], state.halo[::-1], strict=True))), np.nan
            )
            state.q = state.q.astype(self._kind)
            inside = [slice(h, h + n) for n, h in zip(state.size[::-1], state.halo[::-1], strict=True)]
            there = list(state.part.slices)
            state.q[(slice(None), *inside)] = whole[(slice(None), *there)]
            found = []
            for d in range(3):
                low, high = there[d].start, there[d].stop
                for ghost, donor in (((0, 3), (low - 3, low)), ((-3, None), (high, high + 3))):
                    if state.halo[::-1][d] and donor[0] >= 0 and donor[1] <= whole.shape[1 + d]:
                        to, source = list(inside), list(there)
                        to[d], source[d] = slice(*ghost), slice(*donor)
                        found.append(((slice(None), *to), whole[(slice(None), *source)]))
            self._ghosts.append(found)


def written(team: Team, folder: Path, kind: str, parts=None, steps: int = 4) -> FieldOutput:
    """A run's worth of outputs in `folder`."""
    overrides, sizes = KINDS[kind]
    case = load("taylor-green", overrides=["time.end=10.0", *overrides])
    blocks = grid(sizes)
    solver = Held(team, blocks, parts or [Part(n, whole_box(block.size)) for n, block in enumerate(blocks)])
    output = FieldOutput(case, folder)
    output.begin(solver, False)
    for _ in range(steps):
        solver.step()
        output.after_step(solver)
    output.finish(solver)
    return output


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


# --- without a team


@pytest.mark.parametrize("seed", range(30))
def test_places_hold_what_numpy_would_put_there(tmp_path, seed, monkeypatch):
    dice = random.Random(seed)
    monkeypatch.setattr("hiresx.output.saved.places._SLAB", dice.choice([1, 300, 1 << 24]))
    shape = tuple(dice.randint(1, 9) for _ in range(3))
    ends = tuple((0, n) if dice.random() < 0.4 else tuple(sorted(dice.sample(range(n + 1), 2))) for n in shape)
    chosen = sorted(dice.sample(range(np.prod(shape)), dice.randint(0, int(np.prod(shape)))))
    chance = np.random.default_rng(seed)
    with (tmp_path / "a").open("wb+") as file:
        for place in (Box(shape, ends), Points(np.array(chosen, np.int64))):
            for count, dtype in ((1, "f8"), (3, "f4"), (1, "u1")):
                kind = np.dtype(dtype)
                parts = [chance.integers(0, 200, place.shape).astype(float) for _ in range(count)]
                expected = np.zeros((*shape, count), kind)
                values = np.stack(parts, axis=-1)
                if isinstance(place, Box):
                    expected[tuple(slice(*e) for e in ends)] = values
                else:
                    expected.reshape(-1, count)[chosen] = values
                file.truncate(0)
                file.truncate(11 + expected.nbytes)
                put(file.fileno(), 11, kind, place, parts)
                file.seek(11)
                assert file.read() == expected.tobytes()


def test_many_parts_of_one_process(tmp_path):
    """Cuts within a rank: the same files."""
    written(alone(), tmp_path / "a", "solid")
    parts = cut(grid(KINDS["solid"][1]), 9, 1, random.Random(3))
    assert len(parts) > 5
    written(alone(), tmp_path / "b", "solid", parts)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")


def test_where_arrays_lie_in_a_file_of_many_blocks(tmp_path):
    blocks = [SimpleNamespace(name=f"b{n}", shape=(3, 40, 30 + n % 7), gaps=()) for n in range(60)]
    series = fields.Series(blocks, {"title": "", "output": {"variables": VARIABLES}}, precision="fp32")
    found = series.learn(tmp_path / "f.nc")
    assert len(found.arrays) == 2 + 60 * (3 + len(VARIABLES))
    ends = sorted((offset, dtype.itemsize * int(np.prod(shape))) for offset, dtype, shape in found.arrays.values())
    assert all(a + size <= b for (a, size), (b, _) in itertools.pairwise(ends))


# --- programs of the ranks


def said(team: Team, work) -> list[str]:
    """What each rank is told when `work` fails."""
    try:
        work()
    except HiresxError as error:
        return team.everyone(f"{error.message}; {error.mend}")
    return team.everyone("nothing")


def sub(team: Team, ranks: int) -> Team | None:
    comm = team.comm.Split(0 if team.rank < ranks else 1, team.rank)
    return Team(comm) if team.rank < ranks else None


def divided(team: Team, folder: Path) -> dict:
    """The same outputs on 2, 3 and 4 ranks, every time cut in another way."""
    found = {}
    for ranks in (2, 3, 4):
        part = sub(team, ranks)
        for kind in KINDS if part is not None else ():
            dice = random.Random(6 + 10 * ranks + len(kind))
            parts = cut(grid(KINDS[kind][1]), 5 * ranks, ranks, dice)
            output = written(part, folder / f"{kind}-{ranks}", kind, parts)
            found[f"{kind}-{ranks}"] = [o.name for o in output._outputs if o.content.waits]
        team.barrier()
    return found


def failing(team: Team, folder: Path) -> dict:
    """A disk that is full for one rank alone."""
    return {formats: _full_for_one(team, folder / formats, formats) for formats in ("netcdf", "vtk")}


def _full_for_one(team: Team, folder: Path, formats: str) -> dict:
    case = load("taylor-green", overrides=["time.end=10.0", *SOLID, f"output.formats=['{formats}']"])
    blocks = grid(KINDS["solid"][1])
    output = FieldOutput(case, folder)
    solver = Held(team, blocks, cut(blocks, 6, team.size, random.Random(5)))
    output.begin(solver, False)
    output.capture()
    before = team.share(sorted(contents(folder)) if team.root else None)

    def steps(count):
        for _ in range(count):
            solver.step()
            output.after_step(solver)
        output.capture()

    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    if team.rank == 1:
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, old[1]))
    told = [said(team, lambda: steps(4))]
    resource.setrlimit(resource.RLIMIT_FSIZE, old)
    told.append(said(team, lambda: (steps(3), output.finish(solver))))
    team.barrier()
    after = sorted(contents(folder))
    return {"told": told, "before": before, "after": after}


def waiting(team: Team, folder: Path) -> dict:
    """A rank that is slow to write: the others go on, and no file has its name before it is done."""
    slow, put_whole = threading.Event(), fields.Frame.put

    def later(*arguments):
        slow.wait(20)
        put_whole(*arguments)

    if team.rank == team.size - 1:
        fields.Frame.put = later
    blocks = grid(KINDS["sheet"][1])
    case = load("taylor-green", overrides=["time.end=10.0", "output.every_steps=2"])
    output = FieldOutput(case, folder)
    solver = Held(team, blocks, cut(blocks, 4, team.size, random.Random(2)))
    began = time.perf_counter()
    output.begin(solver, False)
    for _ in range(3):
        solver.step()
        output.after_step(solver)
    seconds = time.perf_counter() - began
    early = team.share(sorted(path.name for path in folder.glob("*.nc")))
    slow.set()
    captured = output.capture()
    after = team.share(sorted(path.name for path in folder.glob("*.nc")))
    output.finish(solver)
    team.barrier()
    fields.Frame.put = put_whole
    return {"seconds": seconds, "early": early, "captured": after, "all": sorted(contents(folder)), "clock": captured}


class Rewritten(Work):
    """A file that is written again and again under one name: every rank its row, with the same number; some slowly."""

    def __init__(self, team: Team, path: Path, number: int):
        self._place = Box((1, team.size, 1000), ((0, 1), (team.rank, team.rank + 1), (0, 1000)))
        self._file = JointFile(
            path, Layout(8000 * team.size, [], {"a": (0, np.dtype("f8"), self._place.whole)}), 5, team.root
        )
        self._number, self._seconds = number, 0.02 * ((number + team.rank) % team.size)

    def write(self) -> None:
        with self._file as file:
            time.sleep(self._seconds)
            file.put("a", self._place, [np.full(self._place.shape, float(self._number))])

    def publish(self) -> None:
        self._file.publish()

    def discard(self) -> None:
        self._file.discard()


def rewriting(team: Team, folder: Path) -> dict:
    """The numbers that were seen in each file that had its name."""
    path, found = folder / "again", []
    for outstanding in (1, 1):
        writer = JointWriter(team, outstanding)
        for number in range(12):
            writer.submit(Rewritten(team, path, number))
            if path.exists():
                found.append(np.unique(np.fromfile(path)).tolist())
        writer.drain()
        found.append(np.unique(np.fromfile(path)).tolist())
        team.barrier()
    return {"numbers": found}


class Fragile(Work):
    """Takes a random time, and fails on one rank in writing (0), completing (1) or publishing (2)."""

    def __init__(self, team: Team, number: int, fails: tuple[int, int, int], dice: random.Random, notes: list):
        self._team, self._number, self._fails, self._notes = team, number, fails, notes
        self._seconds = 0.004 * dice.random() ** 3

    def _may_fail(self, where: int) -> None:
        if self._fails == (self._number, where, self._team.rank):
            raise HiresxError(f"cannot write number {self._number}", "never mind")

    def write(self) -> None:
        time.sleep(self._seconds)
        self._may_fail(0)

    def complete(self, team: Team) -> None:
        with team.together():
            self._may_fail(1)

    def publish(self) -> None:
        time.sleep(self._seconds)
        self._may_fail(2)
        self._notes.append(self._number)

    def discard(self) -> None:
        self._notes.append(-1 - self._number)


def stressed(team: Team, folder: Path) -> list[dict]:
    """Writers with random times and faults."""
    found = []
    for seed in range(40):
        dice = random.Random(seed)
        count, outstanding, notes, raised = 10, dice.randint(1, 3), [], []
        fails = dice.randrange(count), dice.choice([0, 0, 1, 2, 3]), dice.randrange(team.size)
        fails = fails if fails[1] < 2 else (*fails[:2], 0)  # rank 0 publishes
        plan = [dice.choice("aad") if dice.random() < 0.5 else "" for _ in range(count)]
        own, writer = random.Random(seed + 1000 * team.rank), JointWriter(team, outstanding)
        for number, then in enumerate(plan):
            try:
                writer.submit(Fragile(team, number, fails, own, notes))
                time.sleep(0.003 * own.random() ** 3)
                if then:
                    writer.drain() if then == "d" else writer.advance()
            except HiresxError as error:
                raised.append(str(error))
        try:
            writer.drain()
        except HiresxError as error:
            raised.append(str(error))
        raised = team.everyone(raised)
        found.append({"fails": fails, "notes": notes, "raised": raised, "failed": team.everyone(writer.failed)})
    return found


def by_library(team: Team, folder: Path) -> dict:
    """Where arrays are not found again in a file, rank 0 writes what all have."""
    find, layout._find = layout._find, lambda _, marks: {mark: [] for mark in marks}
    written(team, folder, "solid", cut(grid(KINDS["solid"][1]), 9, team.size, random.Random(8)), steps=2)
    layout._find = find
    return {}


REAL = [
    "grid.n=[24, 18, 16]",
    "time.end=10.0",
    "output.every_steps=2",
    'output.formats=["netcdf", "vtk"]',
    f"output.variables={VARIABLES}",
    'output.subset=[{name="plane", plane={z=0.3}}, {name="line", line={x=0.7, z=2.0}}]',
]


def real(team: Team, folder: Path) -> list:
    """A run, not only what is made of it."""
    simulation = Simulation(load("taylor-green", overrides=REAL), out=folder, team=team)
    simulation.run(steps=4, progress=False)
    return [state.part.box for state in simulation.solver.states]


def everything(team: Team, folder: str) -> dict[str, dict]:
    """All of these programs, in folders of their names."""
    found = {}
    for program in (divided, failing, waiting, rewriting, stressed, by_library, real):
        where = Path(folder, program.__name__)
        where.mkdir(exist_ok=True)
        team.barrier()
        found[program.__name__] = program(team, where)
    return found


@pytest.fixture(scope="module")
def ranks(tmp_path_factory) -> tuple[Path, dict[str, dict]]:
    """The folder of `everything` on four ranks, and what rank 0 found."""
    folder = tmp_path_factory.mktemp("ranks")
    return folder, run_ranks(4, everything, str(folder), timeout=300)[0]


def test_the_files_of_many_ranks_are_those_of_one(ranks, tmp_path):
    folder, found = ranks
    for kind in KINDS:
        written(alone(), tmp_path / kind, kind)
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
    block = fields.read(fields.frame(folder / "divided" / "solid-4", 4)).blocks[1]
    q = flow(grid(KINDS["solid"][1])[1], 4)
    np.testing.assert_array_equal(block.state["u"], q[1] / q[0])


@pytest.mark.parametrize("formats", ["netcdf", "vtk"])
def test_a_disk_that_is_full_for_one_rank(ranks, formats):
    found = ranks[1]["failing"][formats]
    first, second = found["told"]
    assert all("cannot write" in text and "largest size" in text for text in first)
    assert len(set(text.removeprefix("rank 1: ") for text in first)) == 1
    assert second == ["nothing"] * 4, "raised once"
    assert found["after"] == found["before"], "nothing is left of what was begun"


def test_a_file_has_its_name_when_all_have_written(ranks):
    found = ranks[1]["waiting"]
    assert found["seconds"] < 10 and not found["early"]
    assert found["captured"] == ["fields_000000.nc", "fields_000002.nc"]
    assert found["all"] == [f"fields_{n:06d}.nc" for n in (0, 2, 3)]
    assert found["clock"] == {"fields.written": 2}


def test_files_of_one_name_are_never_mixed(ranks):
    numbers = ranks[1]["rewriting"]["numbers"]
    assert len(numbers) > 20 and all(len(seen) == 1 for seen in numbers) and numbers[-1] == [11]


def test_what_fails_on_one_rank_fails_on_all_once(ranks):
    for found in ranks[1]["stressed"]:
        (number, where, _), notes = found["fails"], found["notes"]
        done, gone = [n for n in notes if n >= 0], [-1 - n for n in notes if n < 0]
        if where > 2:
            assert done == list(range(10)) and not gone and found["raised"] == [[]] * 4
            continue
        assert all(len(raised) == 1 and f"cannot write number {number}" in raised[0] for raised in found["raised"])
        assert all(found["failed"]) and done == list(range(number)), "what came before is there, nothing after it"
        assert number in gone and gone == sorted(gone)


def test_many_ranks_without_a_layout(ranks, tmp_path):
    written(alone(), tmp_path, "solid", steps=2)
    assert contents(tmp_path) == contents(ranks[0] / "by_library")


def test_a_run_on_many_ranks_writes_what_one_writes(ranks, tmp_path):
    assert math.prod(last - first for first, last in ranks[1]["real"][0]) <= 24 * 18 * 16 / 3, "it was cut"
    real(alone(), tmp_path)
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


def test_a_killed_rank_leaves_whole_files(tmp_path):
    if not launcher():
        pytest.skip("no mpi4py with an mpirun of its MPI")
    command = [*launcher(), "-n", "3", sys.executable, __file__, str(tmp_path)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, env=os.environ | ENVIRONMENT, **quiet)
    seed = int(os.environ.get("HIRESX_SEED", time.time_ns() % 10**6))
    print(f"HIRESX_SEED={seed}")  # shown when the test fails
    dice = random.Random(seed)
    try:
        end = time.monotonic() + 60
        while not list((tmp_path / "run").glob("thin_*4.nc")) and time.monotonic() < end:
            time.sleep(0.01)
        time.sleep(dice.random())
        os.kill(int((tmp_path / f"pid-{dice.randrange(3)}").read_text()), signal.SIGKILL)
        assert process.wait(30) != 0
    finally:
        process.kill()
        process.wait()
    found = fields.frames(tmp_path / "run")
    assert len(found) > 2
    for path in (*found.values(), *fields.frames(tmp_path / "run", "through").values()):
        assert all(np.isfinite(values).all() for b in fields.read(path).blocks for values in (b.x, *b.state.values()))
    block = fields.read(found[max(found)]).blocks[0]
    q = flow(grid(KINDS["solid"][1])[0], max(found))
    np.testing.assert_array_equal(block.state["rho"], q[0])
    assert vtk.frames(tmp_path / "run")


def write_until_killed(folder: Path) -> None:
    team = world()
    (folder / f"pid-{team.rank}").write_text(str(os.getpid()))
    team.barrier()
    parts = cut(grid(KINDS["solid"][1]), 5, team.size, random.Random(4))
    written(team, folder / "run", "solid", parts, steps=100_000)


if __name__ == "__main__":
    write_until_killed(Path(sys.argv[1]))
