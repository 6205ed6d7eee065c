"""Which transport two ranks use, and what is told of it."""

import contextlib
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from exchange_arrangements import INVISCID, ORIENTATIONS, Place, arrangement, nodes, opposite, set_up, values
from ranks import run_ranks

from hiresx import Simulation, load
from hiresx.device.configuration import Configuration
from hiresx.errors import HiresxError
from hiresx.exchange import cuda_aware, negotiation
from hiresx.exchange.buffer_layout import BufferLayout
from hiresx.exchange.choice import RankFacts, choose
from hiresx.mpi import shared_memory
from hiresx.mpi.communicator import single_process


def facts(host=0, gpu=None, **others) -> RankFacts:
    rest = {
        "asked": "auto",
        "cuda_fault": "MPI takes none",
        "precision": "fp64",
        "widths": (5, 4),
        "sends": {},
        "receives": {},
        "points": 10,
        "room": np.inf,
    }
    return RankFacts(host=host, gpu=gpu, **{**rest, **others})


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
        ("auto", GPU, OTHER_GPU, "signals"),
        ("auto", ABLE, OTHER_GPU | {"cuda_fault": None}, "signals"),
        ("auto", GPU, OTHER_GPU | {"closed": {0: "no peer access"}}, "staged over window"),
        ("auto", GPU, FAR_GPU, "staged over mpi"),
        ("auto", GPU, GPU | {"closed": {0: "it is another MIG instance"}}, "staged over window"),
        ("staged", ABLE, ABLE, "staged over window"),
        ("signals", GPU, OTHER_GPU, "signals"),
        ("signals", CPU, CPU, "signals"),
    ],
)
def test_choice(asked, first, second, chosen):
    assert pair(asked, first, second) == chosen


def test_slices_of_one_card_are_two_gpus():
    """Each computes by itself, so signals are tried; what opening each other's memory then says is the other tests'."""
    slices = GPU | {"gpu": "0000:3b:00.0/MIG-a"}, GPU | {"gpu": "0000:3b:00.0/MIG-b"}
    assert pair("auto", *slices) == "signals"
    with pytest.raises(HiresxError, match="ranks 0 and 1 share a GPU"):
        pair("signals", slices[0], slices[0])


def test_ranks_of_which_one_only_gives_and_one_only_takes():
    giving, taking = {"sends": {1: (2, 6)}, "receives": {}}, {"sends": {}, "receives": {0: (0, 4)}}
    assert pair("auto", giving, taking) == "window" and pair("auto", giving, taking | FAR) == "mpi"


def test_choice_without_shared_memory():
    assert pair("auto", CPU, CPU, room=False) == "mpi"
    assert pair("staged", GPU, CPU, room=False) == "staged over mpi"
    with pytest.raises(HiresxError, match="too little shared memory"):
        pair("signals", CPU, CPU, room=False)


@pytest.mark.parametrize(
    "asked, first, second, message",
    [
        ("window", CPU, FAR, 'transport "window" cannot be used: ranks 0 and 1 are on two hosts\n.*auto.*"mpi"'),
        ("ipc", CPU, CPU, "no two neighbours compute on GPUs"),
        ("staged", CPU, CPU, "no rank computes on a GPU"),
        ("cuda-aware", GPU, ABLE, 'MPI takes none\n.*"ipc"'),
        ("signals", GPU, GPU, 'ranks 0 and 1 share a GPU\n.*"ipc"'),
        ("signals", GPU, CPU, "one computes on a GPU and one on a CPU"),
        ("signals", CPU, FAR, 'ranks 0 and 1 are on two hosts\n.*"mpi"'),
        ("signals", GPU, OTHER_GPU | {"closed": {0: "no peer access"}}, "no peer access"),
        ("ipc", GPU, FAR_GPU, 'on two hosts\n.*"staged over mpi"'),
        ("ipc", GPU | {"closed": {1: "no peer access"}}, GPU, "no peer access"),
        ("auto", CPU, CPU | {"precision": "mixed"}, 'precision = "fp64", rank 1 with "mixed"'),
        ("auto", CPU | {"precision": "fp32"}, CPU | {"precision": "differences"}, '"fp32", rank 1 with "differences"'),
        ("auto", CPU, CPU | {"widths": (5,)}, "rank 0 exchanges 5 and 4 numbers per node, rank 1 5"),
        ("auto", CPU, CPU | {"asked": "mpi"}, 'rank 0 is to use the transport "auto", rank 1 "mpi"'),
        ("auto", CPU, CPU | {"receives": {0: (0, 5)}}, "rank 0 has 4 halo nodes for rank 1, which expects 5"),
        ("auto", CPU, CPU | {"receives": {}}, "rank 0 has 4 halo nodes for rank 1, which expects 0"),
        ("auto", CPU | {"receives": {}}, CPU, "rank 1 has 6 halo nodes for rank 0, which expects 0"),
    ],
)
def test_no_choice(asked, first, second, message):
    with pytest.raises(HiresxError, match=message):
        pair(asked, first, second)


def test_a_name_that_is_gone_is_told_and_replaced(caplog):
    case = load("taylor-green", overrides=["grid.n=[8, 8, 8]", "time.steps=1"])
    with caplog.at_level("WARNING"):
        Simulation(case, backend="cpu", transport="nccl").run()
    assert 'the transport "nccl" was removed: "auto" is used' in caplog.text


def test_signals_are_for_all_ranks_or_none():
    def three(last: RankFacts) -> set[str]:
        one = facts(gpu="a", sends={1: (0, 1)}, receives={1: (0, 1)})
        two = facts(gpu="b", sends={0: (0, 1)}, receives={0: (0, 1)})
        return set(choose([one, two, last], {0: True, 1: True}).values())

    assert three(facts(gpu="c")) == {"signals"}
    for last in (facts(gpu="a"), facts(), facts(gpu="c", host=1), facts(gpu="c", closed={0: "no peer access"})):
        assert three(last) == {"ipc"}


def test_unknown_transport():
    with pytest.raises(HiresxError, match=r'no transport "windows"\n.*window'):
        set_up(Place("cpu"), arrangement(0, 1), single_process(), transport="windows")


def told(comm):
    """What is said of an exchange, and what goes wrong between two ranks."""
    place = Place("cpu")
    cut = opposite("imax", ORIENTATIONS[0])
    exchange, _, fluxes = set_up(place, cut, comm)
    (neighbour,) = exchange.neighbours
    if comm.root:
        time.sleep(0.2)
    exchange.start_field("jacobian")
    exchange.finish_field("jacobian")
    exchange.start_fluxes(fluxes)
    exchange.start_state()
    exchange.start_state()  # finishes the one before
    exchange.close()
    found = [neighbour, exchange.remote, exchange.counts, exchange.seconds_waited]
    inviscid, _, _ = set_up(place, cut, comm, INVISCID)
    found.append(inviscid.neighbours[0].flux_bytes)
    # Too little shared memory on this host
    shared_memory.room = lambda: 1e6
    small, _, _ = set_up(place, cut, comm)
    found.append(small.neighbours[0].transport)
    errors = []
    for asked in ("window", "ipc", "mpi" if comm.root else "auto"):
        try:
            set_up(place, cut, comm, transport=asked)
        except HiresxError as error:
            errors.append((error.message, error.everywhere))
    return found, errors


@pytest.mark.slow
def test_what_is_told():
    results = run_ranks(2, told)
    points = 3 * 8 * 9
    for rank, ((neighbour, remote, counts, waited, inviscid, small), errors) in enumerate(results):
        assert neighbour == (1 - rank, "window", points * 5 * 8, points * 4 * 8)
        assert counts == (2, 1) and inviscid == 0 and small == "mpi"
        assert remote == [frozenset({"imax" if rank == 0 else remote_face(results)})]
        assert rank == 0 or waited > 0.1
        assert errors == results[0][1]
    (window_error, _), (ipc_error, _), (asked_error, _) = errors
    assert "too little shared memory" in window_error and "no two neighbours" in ipc_error
    assert "rank 1" in asked_error and all(everywhere for _, everywhere in errors)


def remote_face(results) -> str:
    (face,) = results[1][0][1][0]
    return face


@pytest.mark.parametrize("precision", ["fp64", "mixed"])
def test_the_jacobian_has_an_exchange_of_its_own(precision):
    place = Place("cpu")
    cut = arrangement(3, 1)
    exchange, states, _ = set_up(place, cut, single_process(), Configuration(viscosity="constant", precision=precision))
    for state in states:
        state.interior(state.jacobian)[...] = values(state.index, nodes(state.size), 0, 1)[0]
    exchange.start_field("jacobian")
    exchange.finish_field("jacobian")
    assert exchange.counts == (0, 0)
    for c in cut.connections:
        ghosts = c.ghosts(3, cut.blocks[c.block].size)
        i, j, k = (m + h for m, h in zip(ghosts, states[c.block].halo, strict=True))
        found, given = states[c.block].jacobian[k, j, i], values(c.donor, c.donors(ghosts), 0, 1)[0]
        assert np.array_equal(found, given.astype(found.dtype))


@pytest.mark.parametrize(("asked", "chosen"), [("ipc", "ipc"), ("staged", "staged over window")])
def test_a_transport_of_gpus_leaves_other_pairs_to_theirs(asked, chosen):
    """A chain of two GPUs and two CPUs: that some pair has to do with it is enough."""
    kinds = [{"gpu": "a"}, {"gpu": "a"}, {}, {}]
    chain = [
        facts(
            asked=asked, **kind, sends={m: (0, 1) for m in (n - 1, n + 1) if 0 <= m < 4},
            receives={m: (0, 1) for m in (n - 1, n + 1) if 0 <= m < 4},
        )
        for n, kind in enumerate(kinds)
    ]  # fmt: skip
    assert choose(chain, {0: True}) == {(0, 1): chosen, (1, 2): "staged over window", (2, 3): "window"}


class SideBySide:
    """Two ranks that are threads; as much of a communicator as an agreement needs."""

    size, hosts = 2, (0, 0)

    def __init__(self, rank: int, table: list, meeting: threading.Barrier):
        self.rank, self._table, self._meeting = rank, table, meeting
        self.root = rank == 0

    def together(self):
        return contextlib.nullcontext()

    def allgather(self, value):
        self._table[self.rank] = value
        self._meeting.wait(30)
        found = list(self._table)
        self._meeting.wait(30)
        return found


class SharedGpu:
    """One GPU of both ranks; what a rank reads there is what its owner wrote, or something else."""

    name = "a"

    def __init__(self, memory: dict, same: bool):
        self._memory, self._same = memory, same

    def write(self, packed, mark):
        self._memory[packed] = mark

    def handle(self, packed):
        return packed

    def open(self, handle, size):
        return handle

    def read(self, opened):
        return self._memory[opened] + (not self._same)

    def close(self, *opened):
        """Nothing is kept."""


@pytest.mark.parametrize(("same", "chosen"), [(True, "ipc"), (False, "staged over window")])
def test_memory_that_holds_something_else_is_not_used(monkeypatch, same, chosen):
    monkeypatch.setattr(negotiation.cuda_aware, "obstacle", lambda: "MPI takes none")
    monkeypatch.setattr(negotiation.shared_memory, "room", lambda: 1e12)
    table, meeting, memory, found = [None, None], threading.Barrier(2), {}, {}

    def rank(me: int) -> None:
        layout = SimpleNamespace(peers=[SimpleNamespace(rank=1 - me, out=(0, 4), into=(0, 4))], sent=4)
        comm, buffer_layout = SideBySide(me, table, meeting), BufferLayout("float64", (5,))
        found[me] = negotiation.Negotiation(
            comm, SharedGpu(memory, same), layout, buffer_layout, "fp64", "auto", f"of {me}"
        )

    threads = [threading.Thread(target=rank, args=(me,)) for me in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[me].names for me in range(2)] == [{1: chosen}, {0: chosen}]


@pytest.mark.parametrize(
    ("library", "says", "fault"),
    [
        ("Open MPI v5.0.8", 1, None),
        ("Open MPI v5.0.8", 0, "Open MPI v5.0.8 says that it does not take GPU memory"),
        ("MPICH 4", None, "MPICH 4 does not say that it takes GPU memory"),
        ("CRAY MPICH 8", 1, "CRAY MPICH 8 takes GPU memory only with MPICH_GPU_SUPPORT_ENABLED=1"),
    ],
)
def test_what_a_library_says_of_gpu_memory(monkeypatch, library, says, fault):
    MPI = pytest.importorskip("mpi4py.MPI")
    monkeypatch.setattr(MPI, "Get_library_version", lambda: f"{library}\nbuilt here")
    functions = (
        {} if says is None else {"MPIX_Query_cuda_support": type("Query", (), {"__call__": lambda self: says})()}
    )
    monkeypatch.setattr(cuda_aware.ctypes, "CDLL", lambda file: SimpleNamespace(**functions))
    assert cuda_aware.obstacle({}) == fault
    if "CRAY" in library:
        assert cuda_aware.obstacle({"MPICH_GPU_SUPPORT_ENABLED": "1"}) is None
