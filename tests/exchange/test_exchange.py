"""Halo exchange: between the blocks of one process and between ranks, by every transport that runs here, against the
definition of a connection. A GPU whose work runs as late as it may is made of this host's memory.

HIRESX_ARRANGEMENTS: how many random arrangements of blocks are tried on up to 16 ranks (100).
"""

import os
import random
import re
import time
from functools import cache
from itertools import permutations, product
from types import SimpleNamespace

import numpy as np
import pytest
from ranks import Failed, launcher, run_ranks

from hiresx.bench import exchange as exchange_bench
from hiresx.decomposition import Decomposition, Part
from hiresx.device import Configuration, backend, cuda
from hiresx.device.batch import one_by_one
from hiresx.device.native import Array
from hiresx.device.state import BlockState
from hiresx.errors import HiresxError
from hiresx.exchange import cuda_aware, halo, window
from hiresx.exchange.choice import Facts, choose
from hiresx.exchange.halo import HaloExchange
from hiresx.grid import Block, Connection
from hiresx.grid.blocks import FACES, direction, face_range, whole_box
from hiresx.team import Team, alone

ARRANGEMENTS = int(os.environ.get("HIRESX_ARRANGEMENTS", "100"))
VISCOUS = Configuration(viscosity="sutherland")
INVISCID = Configuration()
ORIENTATIONS = [
    tuple(tuple(s if e == p else 0 for e in range(3)) for p, s in zip(order, signs, strict=True))
    for order in permutations(range(3))
    for signs in product((1, -1), repeat=3)
]
TURN = ((0.6, -0.8, 0.0), (0.8, 0.6, 0.0), (0.0, 0.0, 1.0))


# --- arrangements of blocks


def block(name: str, size) -> Block:
    k, j, i = np.meshgrid(*(np.arange(float(n)) for n in reversed(size)), indexing="ij")
    return Block(name, i, j, k)


def arrangement(seed: int, ranks: int) -> Decomposition:
    """Blocks on `ranks` ranks, their faces joined to each other at random, in pieces and in any orientation: chains,
    rings, ranks that only send, ranks that have nothing to do with each other. Some vectors are rotated."""
    dice = random.Random(seed)
    owners = [*range(ranks), *(dice.randrange(ranks) for _ in range(dice.randrange(5)))]
    dice.shuffle(owners)
    plane = dice.random() < 0.2
    sizes = [(dice.randint(7, 10), dice.randint(7, 10), 1 if plane else dice.randint(7, 9)) for _ in owners]
    blocks = tuple(block(f"b{n}", size) for n, size in enumerate(sizes))
    connections = []
    for n, own in enumerate(blocks):
        for face in own.faces:
            for piece in pieces(face, own.size, dice):
                for _ in range(3 if dice.random() < 0.8 else 0):
                    # The next rank, so that there is a ring, or any block, this one too.
                    near = [m for m, rank in enumerate(owners) if rank == (owners[n] + 1) % ranks]
                    donor = dice.choice(near if dice.random() < 0.5 else range(len(blocks)))
                    found = joined(n, face, piece, donor, blocks, dice)
                    if found:
                        connections.append(found)
                        break
    parts = tuple(Part(n, whole_box(size), rank) for n, (size, rank) in enumerate(zip(sizes, owners, strict=True)))
    return Decomposition(blocks, tuple(connections), (), parts)


def pieces(face, size, dice):
    """A face whole, or in two with a cut."""
    whole = face_range(face, size)
    across = [d for d in range(3) if d != direction(face) and size[d] > 1]
    if dice.random() < 0.6 or not across:
        return [whole]
    d = dice.choice(across)
    at = dice.randint(1, size[d] - 1)
    return [
        tuple((lo, at) if e == d else r for e, r in enumerate(whole) for lo in [whole[d][0]]),
        tuple((at, hi) if e == d else r for e, r in enumerate(whole) for hi in [whole[d][1]]),
    ]


def joined(n, face, range_, donor, blocks, dice) -> Connection | None:
    """A connection to a place in `donor` that has room for it; None if there is none in the orientation tried."""
    matrix = dice.choice(ORIENTATIONS)
    if blocks[n].size[2] == 1 and (matrix[2][2] != 1):
        return None
    d, size = direction(face), blocks[n].size[direction(face)]
    layers = (-3, 0) if face.endswith("min") else (size, size + 3)
    ghosts = [range(*(layers if e == d else range_[e])) for e in range(3)]
    offset = []
    for row, room in zip(matrix, blocks[donor].size, strict=True):
        e = next(e for e in range(3) if row[e])
        low = min(row[e] * ghosts[e][0], row[e] * ghosts[e][-1])
        if len(ghosts[e]) > room:
            return None
        offset.append(dice.randint(0, room - len(ghosts[e])) - low)
    rotation = TURN if dice.random() < 0.3 else None
    return Connection(n, face, range_, donor, matrix, tuple(offset), rotation=rotation)


def opposite(face: str, turn) -> Decomposition:
    """Two blocks on two ranks, joined at `face` of the first, the second one turned; each is the other's donor."""
    size = (7, 8, 9)
    normal, upper = direction(face), FACES.index(face) % 2
    matrix = np.array(turn)
    shift = np.zeros(3, int)
    shift[normal] = size[normal] if upper else -size[normal]
    beyond = np.array(list(product(*((lo, hi - 1) for lo, hi in zip(shift, shift + size, strict=True))))).T
    image = matrix @ beyond
    offset = -image.min(axis=1)
    other = tuple(int(n) for n in image.max(axis=1) + offset + 1)
    there = Connection(0, face, face_range(face, size), 1, turn, tuple(int(n) for n in offset))
    back = matrix.T
    e = there.donor_direction
    # The donor's face that looks at this one.
    inwards = (matrix @ (np.eye(3, dtype=int)[normal] * (1 if upper else -1)))[e]
    donor_face = FACES[2 * e + (inwards < 0)]
    home = Connection(
        1, donor_face, face_range(donor_face, other), 0, tuple(map(tuple, back)), tuple(int(n) for n in -back @ offset)
    )
    blocks = (block("one", size), block("other", other))
    return Decomposition(blocks, (there, home), (), tuple(Part(n, whole_box(b.size), n) for n, b in enumerate(blocks)))


# --- what is exchanged, and what must come of it


def values(number: int, index: np.ndarray, moment: int, variables: int) -> np.ndarray:
    """What node `index` (3, ...) of block `number` holds at a moment: no two the same."""
    i, j, k = index
    place = i + 17.0 * j + 289.0 * k + 5003.0 * number + 1e6 * moment
    return np.stack([place + 1e8 * v for v in range(1, variables + 1)])


def nodes(size) -> np.ndarray:
    """Index triples (3, nk, nj, ni)."""
    return np.stack(np.meshgrid(*(np.arange(n) for n in size), indexing="ij")).transpose(0, 3, 2, 1)


def fill(place, states, fluxes, moment: int) -> None:
    for state, by_direction in zip(states, fluxes, strict=True):
        index = nodes(state.size)
        q = values(state.index, index, moment, 5)
        for d, array in enumerate([state.q, *by_direction]):
            host = place.to_host(array)
            host[...] = -1.0
            state.interior(host)[...] = q if d == 0 else values(state.index, index, moment + 10 * d, 4)
            place.copy(array, place.to_device(host))


def errors(place, cut, states, fluxes, moment: int, tolerance: float) -> list[str]:
    """What is wrong with the ghosts, and whether anything was written where no ghost of a connection is."""
    place.synchronize()
    found = []
    for state, by_direction in zip(states, fluxes, strict=True):
        for d, array in enumerate([state.q, *by_direction]):
            wanted = np.full(array.shape, -1.0)
            index = nodes(state.size)
            state.interior(wanted)[...] = values(state.index, index, moment + 10 * d, 4 if d else 5)
            for c in cut.connections:
                if c.block != state.index or (d and direction(c.face) != d - 1):
                    continue
                ghosts = c.ghosts(3, state.size)
                e = c.donor_direction
                what = values(c.donor, c.donors(ghosts), moment + 10 * (e + 1) if d else moment, 4 if d else 5)
                what *= c.sign if d else 1
                if c.rotation is not None:
                    vector = slice(0, 3) if d else slice(1, 4)
                    what[vector] = np.tensordot(np.array(c.rotation), what[vector], axes=1)
                i, j, k = (m + h for m, h in zip(ghosts, state.halo, strict=True))
                wanted[:, k, j, i] = what
            wrong = np.abs(place.to_host(array) - wanted) > tolerance * np.abs(wanted)
            if wrong.any():
                what = f"flux {d - 1}" if d else "state"
                found.append(f"block {state.index}, {what}: {wrong.sum()} values, first {np.argwhere(wrong)[0]}")
    return found


def set_up(place, cut, team, configuration=VISCOUS, transport="auto"):
    program = place.compile(configuration)
    mine = [n for n, part in enumerate(cut.parts) if part.rank == team.rank]
    states = [BlockState(place, cut, n, cut.blocks[n].name, configuration.real, 16, False) for n in mine]
    fluxes = [[state.work[4 + 4 * d : 8 + 4 * d] for d in range(3)] for state in states]
    return HaloExchange(place, program, team, cut, states, transport), states, fluxes


def exchanged(place, cut, team, transport="auto", delays=None, configuration=VISCOUS, moments=4) -> list[str]:
    """Several exchanges of states and fluxes, with other values each time; what went wrong."""
    exchange, states, fluxes = set_up(place, cut, team, configuration, transport)
    tolerance = 1e-14 if configuration.precision == "fp64" else 1e-6
    wait = (lambda: None) if delays is None else lambda: time.sleep(delays.choice((0, 0, 0, delays.random() * 2e-3)))
    found = []
    for moment in range(moments):
        fill(place, states, fluxes, moment)
        wait()
        exchange.start_state()
        wait()
        if moment % 2:
            exchange.flush()
            exchange.progress()
        exchange.start_fluxes(fluxes)  # both at once
        # What was started is what is sent.
        for state, by_direction in zip(states, fluxes, strict=True):
            for array in (state.q, *by_direction):
                scratch(place, state, array)
        wait()
        for finish in (exchange.finish_state, exchange.finish_fluxes, exchange.finish_state, exchange.finish_fluxes):
            finish()
        for state, by_direction in zip(states, fluxes, strict=True):
            for array in (state.q, *by_direction):
                scratch(place, state, array)
        found += errors(place, cut, states, fluxes, moment, tolerance)
    assert exchange.counts == (moments, moments)
    exchange.close()
    return found


def scratch(place, state, array) -> None:
    """Change the interior, or change it back."""
    place.negate(state.interior(array))


class Place:
    """A backend with the little that the tests do to arrays beside kernels."""

    def __init__(self, name, rank=0):
        # Ranks take the GPUs in turn.
        self._room = backend(name, rank % len(cuda.devices()) if name == "cuda" else None)
        self.compile = cache(self._room.compile)

    def __getattr__(self, name):
        return getattr(self._room, name)

    @staticmethod
    def negate(view):
        view *= -1


# --- in one process


@pytest.mark.parametrize("name", ["cpu", "emulated"])
@pytest.mark.parametrize("seed", range(6))
def test_one_process(name, seed):
    assert exchanged(Place(name), arrangement(seed, 1), alone()) == []


def test_single_precision_and_no_viscosity():
    cut = arrangement(7, 1)
    assert (
        exchanged(Place("cpu"), cut, alone(), configuration=Configuration(viscosity="sutherland", precision="fp32"))
        == []
    )
    exchange, _, _ = set_up(Place("cpu"), cut, alone(), INVISCID)
    exchange.start_state()
    assert exchange.counts == (1, 0)


# --- between ranks


def shared(seed: int, team) -> Decomposition:
    """An arrangement for all ranks of a team, made by one."""
    return team.share(arrangement(seed, team.size) if team.root else None)


def several(team, transport, names, seeds, configuration=VISCOUS):
    """Arrangements one after the other; `names`: the backend of each rank."""
    place = Place(names[team.rank], team.rank)
    found = []
    for seed in seeds:
        dice = random.Random(1000 * seed + team.rank)
        found += exchanged(place, shared(seed, team), team, transport, dice, configuration)
    return found


@pytest.mark.parametrize(
    "ranks, transport, names",
    [
        (2, "window", ["cpu", "cpu"]),
        (3, "mpi", ["cpu", "emulated", "cpu"]),
        (4, "auto", ["emulated", "cpu", "cpu", "emulated"]),
    ],
)
def test_ranks(ranks, transport, names):
    assert run_ranks(ranks, several, transport, names, range(4)) == [[]] * ranks


TRANSPORTS = ("auto", "window", "mpi")


def many(team, seeds):
    """Arrangements on teams of 4 to all ranks, side by side on what ranks there are."""
    place = Place("cpu")
    found, seeds = [], list(seeds)
    while seeds:
        dice = random.Random(seeds[0])
        # The ranks of teams at work at once; who is in none waits.
        ranks, teams = list(range(team.size)), []
        dice.shuffle(ranks)
        while len(ranks) >= 4 and len(teams) < len(seeds):
            n = dice.randint(4, len(ranks))
            teams.append(ranks[:n])
            del ranks[:n]
        number = next((m for m, ranks in enumerate(teams) if team.rank in ranks), None)
        comm = team.comm.Split(len(teams) if number is None else number, dice.randrange(1000) * team.rank)
        if number is not None:
            seed = seeds[number]
            delays, members = random.Random(100 * seed + team.rank), Team(comm)
            found += exchanged(place, shared(seed, members), members, TRANSPORTS[seed % 3], delays, moments=2)
        comm.Free()
        del seeds[: len(teams)]
    return found


def turned_blocks(team, transport):
    place, found = Place(("cpu", "emulated")[team.rank]), []
    for face in FACES:
        for turn in ORIENTATIONS:
            found += exchanged(place, opposite(face, turn), team, transport, moments=1)
    return found


def test_orientations_between_ranks():
    """All 48, on each face, each rank being the other's donor."""
    assert run_ranks(2, turned_blocks, "mpi") == [[], []]


def test_many_arrangements():
    """Random ones on 4 to 16 ranks, more than there are cores, ranks late at random."""
    assert run_ranks(16, many, range(ARRANGEMENTS), timeout=300) == [[]] * 16


# --- a GPU made of this host's memory, whose work is done as late as it may


class Stream:
    """Work that is done when somebody waits for it."""

    def __init__(self):
        self.work, self.done = [], 0

    def add(self, task) -> None:
        self.work.append(task)

    def run(self, until: int) -> None:
        while self.done < until:
            task, self.work[self.done] = self.work[self.done], None
            self.done += 1
            task()


class Event:
    def __init__(self, stream=None):
        self.stream, self.at = stream, 0

    def record(self, stream=None) -> None:
        self.stream = stream or self.stream
        self.at = len(self.stream.work)

    def synchronize(self) -> None:
        self.stream.run(self.at)

    def waited_by(self, stream) -> None:
        """As cudaStreamWaitEvent: for what is recorded now."""
        at, source = self.at, self.stream
        stream.add(lambda: source.run(at))


class LateGpu:
    """What `hiresx.exchange.gpu.Gpu` offers. Other processes reach its memory through files."""

    def __init__(self, kernels, folder):
        self.name, self._folder = "late", folder
        self._kernels, self._copies, self._copied, self._files = kernels, Stream(), Event(), 0

    def moment(self):
        return Event(self._kernels)

    def memory(self, size):
        self._files += 1
        memory = np.memmap(f"{self._folder}/{id(self)}-{self._files}", np.uint8, "w+", shape=max(size, 8))
        return memory.view(Array)

    def host_memory(self, size):
        return np.zeros(size, np.uint8)

    def lock(self, *memory):
        pass

    unlock = lock

    def handle(self, array):
        base = array
        while not isinstance(base, np.memmap):
            base = base.base
        return str(base.filename)

    def open(self, handle, size):
        return np.memmap(handle, np.uint8, "r+").view(Array)

    def shut(self, array):
        self._kernels.run(len(self._kernels.work))

    def write(self, array, number):
        array[:8].view(np.int64)[0] = number

    def read(self, array):
        return int(array[:8].view(np.int64)[0])

    def copy_out(self, pairs, packed, copied):
        packed.waited_by(self._copies)
        for there, here in pairs:
            self._copies.add(lambda there=there, here=here: np.copyto(there, here))
        copied.record(self._copies)

    def copy_in(self, array, host):
        self._kernels.add(lambda: np.copyto(array, host))

    # NCCL, by MPI
    def nccl_identity(self, root):
        return "identity" if root else None

    def nccl(self, size, identity, rank):
        assert identity == "identity"
        return self.comm

    def trade(self, communicator, out, into):
        packed = Event(self._kernels)
        packed.record()
        packed.waited_by(self._copies)
        out, into = list(out), list(into)

        def go():
            requests = [communicator.Isend(np.ascontiguousarray(array), rank) for rank, array in out]
            for request in requests + [communicator.Irecv(array, rank) for rank, array in into]:
                request.Wait()

        self._copies.add(go)
        self._copied.record(self._copies)

    def await_copies(self):
        self._copied.waited_by(self._kernels)


class LatePlace:
    """The emulated backend, its kernels launched on a stream. `haste`: how often one is run at once all the same."""

    name = "cuda"

    def __init__(self, folder, seed, haste):
        self._room, self._folder = backend("emulated"), folder
        self.stream = Stream()
        self._dice, self._haste = random.Random(seed), haste

    def __getattr__(self, name):
        return getattr(self._room, name)

    def compile(self, configuration):
        program = self._room.compile(configuration)

        def launch(*arguments):
            self.stream.add(lambda: program.launch(*arguments))
            if self._dice.random() < self._haste:
                self.synchronize()

        late = SimpleNamespace(signatures=program.signatures, launch=launch)
        late.prepare = lambda calls: one_by_one(late, calls)
        return late

    def synchronize(self):
        self.stream.run(len(self.stream.work))

    def to_host(self, array):
        self.synchronize()
        return self._room.to_host(array)

    def copy(self, to, source):
        self.synchronize()
        self._room.copy(to, source)

    def negate(self, view):
        self.stream.add(lambda: np.negative(view, out=view))


MODES = (  # transport, ranks with GPUs, whether every rank is to pass for a host of its own
    ("ipc", (0, 1, 2), False),
    ("cuda-aware", (0, 1, 2), False),
    ("nccl", (0, 1, 2), False),
    ("staged", (0, 1, 2), False),
    ("mpi", (1,), True),
    ("window", (1, 2), False),
    ("auto", (0, 2), True),
)


def late(team, folder, seeds):
    comm, hosts, found = team.comm.Dup(), team.hosts, []
    for transport, gpus, apart in MODES:
        # The GPUs' MPI says nothing of their memory unless they are asked to let it have that.
        cuda_aware.fault = lambda transport=transport: None if transport == "cuda-aware" else "it does not say"
        team.hosts = tuple(range(team.size)) if apart else hosts
        place = Place("cpu")
        if team.rank in gpus:
            # Some hurry with what they send, some are late with what they read.
            place = LatePlace(folder, team.rank, (0.0, 0.5, 0.05)[team.rank % 3])
            gpu = LateGpu(place.stream, folder)
            gpu.name, gpu.comm = f"late {team.rank}", comm
            halo._gpu = lambda backend, gpu=gpu: gpu if backend.name == "cuda" else None
        for seed in seeds:
            delays = random.Random(team.rank + seed)
            wrong = exchanged(place, shared(seed, team), team, transport, delays, moments=7)
            found += [f"{transport}, GPUs {gpus}: {what}" for what in wrong]
    return found


def test_late_gpus(tmp_path):
    assert run_ranks(3, late, str(tmp_path), range(3)) == [[]] * 3


# --- on GPUs


def on_gpus(team, transport, names):
    try:
        return several(team, transport, names, range(6))
    except HiresxError as error:
        assert error.everywhere
        return error.message


@pytest.mark.skipif(cuda.fault() is not None, reason="no GPU")
@pytest.mark.parametrize("transport", ["auto", "cuda-aware", "ipc", "nccl", "staged", "mpi"])
@pytest.mark.parametrize("names", [["cuda"] * 2, ["cuda"] * 4, ["cuda", "cpu", "cuda"]], ids=",".join)
def test_on_gpus(transport, names):
    found = run_ranks(len(names), on_gpus, transport, names, timeout=120)
    if isinstance(found[0], str):
        pytest.skip(found[0])
    assert found == [[]] * len(names)


# --- which transport


def facts(host=0, gpu=None, **others) -> Facts:
    rest = {
        "asked": "auto",
        "cuda_fault": "MPI takes none",
        "reals": 8,
        "sends": {},
        "receives": {},
        "points": 10,
        "room": np.inf,
    }
    return Facts(host=host, gpu=gpu, **{**rest, **others})


def pair(asked, first: dict, second: dict, room=True) -> str:
    """What two neighbours choose."""
    both = [
        facts(**{"asked": asked, "sends": {1: (0, 4)}, "receives": {1: (0, 6)}} | first),
        facts(**{"asked": asked, "sends": {0: (0, 6)}, "receives": {0: (0, 4)}} | second),
    ]
    return choose(both, {0: room, 1: True})[0, 1]


CPU, GPU, OTHER_GPU, ABLE = {}, {"gpu": "a"}, {"gpu": "b"}, {"gpu": "a", "cuda_fault": None}
FAR, FAR_GPU = {"host": 1}, {"host": 1, "gpu": "a"}


@pytest.mark.parametrize(
    "asked, first, second, chosen",
    [
        ("auto", CPU, CPU, "window"),
        ("auto", CPU, FAR, "mpi"),
        ("mpi", CPU, CPU, "mpi"),
        ("auto", GPU, CPU, "staged over window"),
        ("auto", GPU, FAR, "staged over mpi"),
        ("mpi", GPU, CPU, "staged over mpi"),
        ("auto", ABLE, ABLE, "cuda-aware"),
        ("auto", ABLE, GPU, "ipc"),
        ("auto", GPU, GPU, "ipc"),
        ("auto", GPU, FAR_GPU, "staged over mpi"),
        ("auto", GPU, GPU | {"closed": {0: "it is another MIG instance"}}, "staged over window"),
        ("staged", ABLE, ABLE, "staged over window"),
        ("nccl", GPU, OTHER_GPU, "nccl"),
        ("nccl", GPU, FAR_GPU, "nccl"),
    ],
)
def test_choice(asked, first, second, chosen):
    assert pair(asked, first, second) == chosen


def test_choice_without_shared_memory():
    assert pair("auto", CPU, CPU, room=False) == "mpi"
    assert pair("staged", GPU, CPU, room=False) == "staged over mpi"


@pytest.mark.parametrize(
    "asked, first, second, message",
    [
        ("window", CPU, FAR, 'transport "window" cannot be used: ranks 0 and 1 are on two hosts\n.*auto.*"mpi"'),
        ("ipc", CPU, CPU, "no two neighbours compute on GPUs"),
        ("staged", CPU, CPU, "no rank computes on a GPU"),
        ("nccl", GPU, CPU, "no two neighbours compute on GPUs"),
        ("nccl", GPU, GPU, "ranks 0 and 1 share a GPU"),
        ("cuda-aware", GPU, ABLE, 'MPI takes none\n.*"ipc"'),
        ("ipc", GPU, FAR_GPU, 'on two hosts\n.*"staged over mpi"'),
        ("ipc", GPU | {"closed": {1: "no peer access"}}, GPU, "no peer access"),
        ("auto", CPU, CPU | {"reals": 4}, "rank 0 computes with 8 bytes per number, rank 1 with 4"),
        ("auto", CPU | {"reals": 4}, CPU, "rank 0 computes with 4 bytes per number, rank 1 with 8"),
        ("auto", CPU, CPU | {"asked": "mpi"}, 'rank 0 is to use the transport "auto", rank 1 "mpi"'),
        ("auto", CPU, CPU | {"receives": {0: (0, 5)}}, "rank 0 has 4 halo nodes for rank 1, which expects 5"),
    ],
)
def test_no_choice(asked, first, second, message):
    with pytest.raises(HiresxError, match=message):
        pair(asked, first, second)


def test_a_cpu_rank_among_gpus_has_no_nccl():
    one = facts(gpu="a", asked="nccl", sends={1: (0, 1)}, receives={1: (0, 1)})
    two = facts(gpu="b", asked="nccl", sends={0: (0, 1)}, receives={0: (0, 1)})
    with pytest.raises(HiresxError, match="rank 2 computes on a CPU"):
        choose([one, two, facts(asked="nccl")], {0: True})


def test_unknown_transport():
    with pytest.raises(HiresxError, match=r'no transport "windows"\n.*window'):
        set_up(Place("cpu"), arrangement(0, 1), alone(), transport="windows")


def told(team):
    """What is said of an exchange, and what goes wrong between two ranks."""
    place = Place("cpu")
    cut = opposite("imax", ORIENTATIONS[0])
    exchange, _, fluxes = set_up(place, cut, team)
    (neighbour,) = exchange.neighbours
    if team.root:
        time.sleep(0.2)
    exchange.values([fluxes[0][0]])
    exchange.start_fluxes(fluxes)
    exchange.start_state()
    exchange.start_state()  # finishes the one before
    exchange.close()
    found = [neighbour, exchange.remote, exchange.counts, exchange.waited]
    inviscid, _, _ = set_up(place, cut, team, INVISCID)
    found.append(inviscid.neighbours[0].flux_bytes)
    # Too little shared memory on this host
    window.room = lambda: 1e6
    small, _, _ = set_up(place, cut, team)
    found.append(small.neighbours[0].transport)
    errors = []
    for asked in ("window", "ipc", "mpi" if team.root else "auto"):
        try:
            set_up(place, cut, team, transport=asked)
        except HiresxError as error:
            errors.append((error.message, error.everywhere))
    return found, errors


def test_what_is_told():
    results = run_ranks(2, told)
    points = 3 * 8 * 9
    for rank, ((neighbour, remote, counts, waited, inviscid, small), errors) in enumerate(results):
        assert neighbour == (1 - rank, "window", points * 5 * 8, points * 4 * 8)
        assert counts == (3, 1) and inviscid == 0 and small == "mpi"
        assert remote == [frozenset({"imax" if rank == 0 else remote_face(results)})]
        assert rank == 0 or waited > 0.1
        assert errors == results[0][1]
    (window_error, _), (ipc_error, _), (asked_error, _) = errors
    assert "too little shared memory" in window_error and "no two neighbours" in ipc_error
    assert "rank 1" in asked_error and all(everywhere for _, everywhere in errors)


def remote_face(results) -> str:
    (face,) = results[1][0][1][0]
    return face


def test_one_value_per_node():
    place = Place("cpu")
    cut = arrangement(3, 1)
    exchange, states, _ = set_up(place, cut, alone())
    for state in states:
        state.interior(state.jacobian)[...] = values(state.index, nodes(state.size), 0, 1)[0]
    exchange.values([state.jacobian for state in states])
    for c in cut.connections:
        ghosts = c.ghosts(3, cut.blocks[c.block].size)
        i, j, k = (m + h for m, h in zip(ghosts, states[c.block].halo, strict=True))
        assert np.array_equal(states[c.block].jacobian[k, j, i], values(c.donor, c.donors(ghosts), 0, 1)[0])


# --- the benchmark, and what runs all this


def measured(team):
    exchange_bench.COPIED = 2**16
    place = backend(("cpu", "emulated")[team.rank])
    return exchange_bench.run(team, place, ["auto", "mpi", "ipc"], [8, 12], 1, lambda row: None)


def test_benchmark():
    rows, others = run_ranks(2, measured)
    assert [row.get("copy") or row["transport"] for row in rows] == [
        "host to host",
        "auto",
        "auto",
        "mpi",
        "mpi",
        "ipc",
    ]
    assert all(row["right"] and row["us"] > 0 for row in rows + others if "us" in row)
    assert [row["ways"] for row in rows[1:5]] == [["window"]] * 2 + [["mpi"]] * 2
    assert rows[2]["bytes"] == 2 * 3 * 12 * 12 * 5 * 8
    assert "compute on GPUs" in rows[-1]["failed"]


def late_or_wrong(team, what):
    if what == "late" and team.rank:
        time.sleep(100)
    if what == "wrong" and team.rank:
        raise ValueError("a rank of its own mind")
    team.barrier()


@pytest.mark.parametrize("what, message", [("late", "did not end within 4 s"), ("wrong", "rank 1:.*of its own mind")])
def test_a_job_that_fails(what, message):
    if not launcher():
        pytest.skip("no mpi4py with an mpirun of its MPI")
    with pytest.raises(Failed, match=re.compile(message, re.DOTALL)):
        run_ranks(2, late_or_wrong, what, timeout=4 if what == "late" else 60)
