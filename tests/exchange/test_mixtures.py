"""Every mixture of ranks on a GPU of their own, on a shared GPU and on a CPU, on one host and on two, by every
transport: they agree and messages arrive, or they refuse in the same words. GPUs are stand-ins, ranks are threads."""

import threading
from collections import Counter
from itertools import combinations, product
from types import SimpleNamespace

import exchange_times as measured
import numpy as np
import pytest
from thread_ranks import Deserted, StandInGpu, ThreadMemory, run_threads

from hiresx.errors import HiresxError
from hiresx.exchange import cuda_aware, endpoint, mpi
from hiresx.exchange.choice import NAMES
from hiresx.exchange.endpoint import Endpoint
from hiresx.exchange.halo_layout import Peer
from hiresx.mpi import shared_memory
from hiresx.mpi.communicator import Communicator

OWN, SHARED, CPU = "own", "shared", "cpu"
WIDTHS = (5, 4)
BACKEND = SimpleNamespace(
    zeros=lambda shape, dtype="float64": np.zeros(shape, dtype), to_device=lambda array: np.array(array)
)


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch):
    monkeypatch.setattr(endpoint, "SharedMemory", ThreadMemory)
    monkeypatch.setattr(mpi, "_memory", lambda array: array)
    monkeypatch.setattr(shared_memory, "room", lambda: np.inf)
    monkeypatch.setattr(cuda_aware, "obstacle", lambda: "MPI takes none")


def points(sender: int, receiver: int) -> int:
    """No two messages are as long, and one of them is empty."""
    return 3 * sender + receiver - 1


def layout(rank: int, joined) -> SimpleNamespace:
    """All that rank sends and receives, from neighbour to neighbour as `joined`, pairs of ranks, says."""
    peers, sent, received = [], 0, 0
    for other in sorted({b if a == rank else a for a, b in joined if rank in (a, b)}):
        out, into = points(rank, other), points(other, rank)
        peers.append(Peer(other, (sent, sent + out), (received, received + into), ()))
        sent, received = sent + out, received + into
    return SimpleNamespace(peers=peers, sent=sent, received=received)


def gpu_of(comm: Communicator, kind: str, closed=()) -> StandInGpu | None:
    return None if kind == CPU else StandInGpu(kind if kind == SHARED else f"{kind} {comm.rank}", comm, closed)


def endpoint_of(comm: Communicator, gpu, joined, asked: str) -> Endpoint:
    return Endpoint(BACKEND, None, gpu, comm, layout(comm.rank, joined), "float64", WIDTHS, "fp64", asked)


def numbers(sender: int, receiver: int, tag: int, moment: int) -> np.ndarray:
    """What a message holds."""
    return np.arange(WIDTHS[tag] * points(sender, receiver)) + 1000.0 * (sender + 10 * tag + 100 * moment)


def arrived(comm: Communicator, rank_endpoint: Endpoint, joined) -> None:
    """Messages of all quantities, in both buffers, from everybody to everybody."""
    peers = layout(comm.rank, joined).peers
    for moment in range(3):
        turn = moment % 2
        for tag, messages in enumerate(rank_endpoint.messages):
            requests = [request for t in messages.transports for request in t.receive(turn)]
            for peer in peers:
                first, last = (WIDTHS[tag] * end for end in peer.out)
                messages.outgoing[turn][first:last] = numbers(comm.rank, peer.rank, tag, moment)
            sent = []
            for transport in messages.transports:
                transport.stage(turn)
                sent += transport.send(turn)
            for request in [*sent, *(request for request, _ in requests)]:
                request.Wait()
            found = {peer.rank: t.message(peer, turn) for t in messages.transports for peer in t.peers}
            assert sorted(found) == [peer.rank for peer in peers]
            for rank, message in found.items():
                np.testing.assert_array_equal(message, numbers(rank, comm.rank, tag, moment))
        for tag, messages in enumerate(rank_endpoint.signalled):
            for peer in peers:
                first, _ = peer.out
                mine = messages.outgoing[turn * messages.turn_reals :][WIDTHS[tag] * first :]
                mine[: WIDTHS[tag] * points(comm.rank, peer.rank)] = numbers(comm.rank, peer.rank, tag, moment)
            comm.barrier()
            for peer in peers:
                # `incoming` begins with the first number of the first variable of what is for this rank.
                buffer, apart = messages.incoming[peer.rank]
                first = next(p.out[0] for p in layout(peer.rank, joined).peers if p.rank == comm.rank)
                start = turn * apart + (WIDTHS[tag] - 1) * first
                message = buffer[start:][: WIDTHS[tag] * points(peer.rank, comm.rank)]
                np.testing.assert_array_equal(message, numbers(peer.rank, comm.rank, tag, moment))
            comm.barrier()


def tried(comm: Communicator, kinds, joined, asked: str):
    """By which transports the rank reaches its peers, or what it was told; nothing stays open."""
    gpu = gpu_of(comm, kinds[comm.rank])
    try:
        rank_endpoint = endpoint_of(comm, gpu, joined, asked)
    except HiresxError as error:
        assert error.everywhere and error.hint
        found = str(error)
    else:
        found = rank_endpoint.names
        arrived(comm, rank_endpoint, joined)
        rank_endpoint.close()
    assert gpu is None or not (gpu.opened or gpu.locked)
    return found


def refused(asked: str, takes: bool, kinds, hosts, joined) -> bool:
    """What the page on many ranks says of each transport."""
    gpus = {pair: sum(kinds[rank] != CPU for rank in pair) for pair in joined}
    near = {pair: hosts[pair[0]] == hosts[pair[1]] for pair in joined}
    both = [pair for pair in joined if gpus[pair] == 2]
    shared = max(Counter(host for kind, host in zip(kinds, hosts, strict=True) if kind == SHARED).values(), default=0)
    unlike = (CPU in kinds) and set(kinds) != {CPU}
    return {
        "auto": False,
        "mpi": False,
        "window": not all(near.values()),
        "staged": not any(gpus.values()),
        "ipc": not both or not all(near[pair] for pair in both),
        "cuda-aware": not both or not takes,
        "signals": len(set(hosts)) > 1 or unlike or shared > 1,
    }[asked]


def arrangements(ranks: int):
    """Kinds of the ranks and their hosts."""
    hosts = [(0, *rest) for rest in product((0, 1), repeat=ranks - 1)]
    return product(product((OWN, SHARED, CPU), repeat=ranks), hosts)


@pytest.mark.parametrize(("asked", "takes"), [*((name, False) for name in NAMES), ("auto", True), ("cuda-aware", True)])
@pytest.mark.parametrize("ranks", [2, 3, pytest.param(4, marks=pytest.mark.slow)])
def test_every_mixture_agrees_or_refuses(monkeypatch, ranks, asked, takes):
    """`takes`: MPI can be given GPU memory."""
    monkeypatch.setattr(cuda_aware, "obstacle", lambda: None if takes else "MPI takes none")
    everybody = list(combinations(range(ranks), 2))
    chain = [(a, b) for a, b in everybody if b == a + 1]
    for kinds, hosts in arrangements(ranks):
        for joined in (everybody, chain):
            told = run_threads(hosts, lambda comm, k=kinds, j=joined: tried(comm, k, j, asked))
            place = f"{asked}, {kinds}, hosts {hosts}, joined {joined}: {told}"
            if refused(asked, takes, kinds, hosts, joined):
                assert isinstance(told[0], str) and f'"{asked}"' in told[0] and len(set(told)) == 1, place
                continue
            assert all(isinstance(found, dict) for found in told), place
            for a, b in joined:
                gpus, near = sum(kinds[rank] != CPU for rank in (a, b)), hosts[a] == hosts[b]
                assert told[a][b] == told[b][a] and told[a][b] in ways(asked, takes, gpus, near), place


def ways(asked: str, takes: bool, gpus: int, near: bool) -> tuple[str, ...]:
    """What a pair with so many GPUs, on one host or not, may take."""
    over = "staged over " if gpus else ""
    best = f"{over}window" if near else f"{over}mpi"
    if asked == "mpi":
        return (f"{over}mpi",)
    if asked == "signals":
        return (asked,)
    if gpus < 2 or asked in ("window", "staged"):
        return (best,)
    if asked == "auto":  # signals where all ranks of the job can take them
        return (*(["signals"] if near else []), "cuda-aware" if takes else "ipc" if near else best)
    return (asked,)


def test_gpus_alone_take_signals_by_themselves_and_not_beside_a_cpu():
    for kinds, way in (((OWN, OWN, OWN), "signals"), ((OWN, OWN, CPU), "ipc"), ((CPU, OWN, OWN), "ipc")):
        told = run_threads((0, 0, 0), lambda comm, k=kinds: tried(comm, k, [(0, 1), (0, 2), (1, 2)], "auto"))
        both = [rank for rank in range(3) if kinds[rank] != CPU][:2]
        assert told[both[0]][both[1]] == way


@pytest.mark.parametrize("kinds", [(OWN, OWN, CPU), (CPU, OWN, OWN), (OWN, OWN, OWN)], ids=",".join)
@pytest.mark.parametrize("asked", ["auto", "ipc"])
def test_memory_that_cannot_be_opened(kinds, asked):
    """One rank alone cannot reach another's: both stage, or all refuse, and what was opened is closed."""
    everybody = list(combinations(range(3), 2))
    low, high = [rank for rank in range(3) if kinds[rank] != CPU][:2]

    def work(comm):
        gpu = gpu_of(comm, kinds[comm.rank], [f"{OWN} {high}"] if comm.rank == low else [])
        try:
            rank_endpoint = endpoint_of(comm, gpu, everybody, asked)
        except HiresxError as error:
            assert error.everywhere and not (gpu and gpu.opened)
            return str(error)
        arrived(comm, rank_endpoint, everybody)
        rank_endpoint.close()
        assert not (gpu and gpu.opened)
        return rank_endpoint.names

    told = run_threads((0, 0, 0), work)
    if asked == "auto":
        assert told[low][high] == told[high][low] == "staged over window"
    else:
        assert len(set(told)) == 1
        assert f"rank {low} cannot open the GPU memory of rank {high}: peer access is not supported" in told[0]


def test_memory_of_somebody_else():
    """What is opened by a handle may be another allocation: it does not hold its owner's mark."""

    def work(comm):
        gpu = gpu_of(comm, OWN)
        opened = gpu.open
        gpu.open = lambda handle, size: opened(handle, size) if comm.rank == 0 else other(gpu, size)
        with pytest.raises(HiresxError, match="rank 1 reads something else in the GPU memory of rank 0"):
            endpoint_of(comm, gpu, [(0, 1)], "ipc")
        return gpu.opened

    def other(gpu, size):
        gpu.opened.append(gpu.memory(size) + np.uint8(1))
        return gpu.opened[-1]

    assert run_threads((0, 0), work) == [[], []]


# --- what fails on one rank


def fails(*_, **__):
    raise MemoryError("nothing is left")


FAULTS = {  # what is made to fail on rank 1 of GPU, GPU and CPU or of three GPUs, by which transport
    "mark": ("gpu", "write", "auto", CPU),
    "handle": ("gpu", "handle", "ipc", CPU),
    "open": ("gpu", "open", "auto", CPU),
    "read": ("gpu", "read", "auto", OWN),
    "page lock": ("gpu", "lock", "auto", CPU),
    "moment": ("gpu", "moment", "ipc", CPU),
    "buffers": ("backend", "zeros", "signals", OWN),
    "shared memory": ("memory", "of", "auto", CPU),
    "pages": ("memory", "", "auto", CPU),
    "requests": ("requests", "Send_init", "auto", CPU),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_fails_on_one_rank_is_told_to_all_and_nothing_stays_open(monkeypatch, fault):
    what, name, asked, last = FAULTS[fault]
    everybody = list(combinations(range(3), 2))
    kinds = (OWN, OWN, last)
    made: list[ThreadMemory] = []

    class Memory(ThreadMemory):
        def __init__(self, comm, size):
            super().__init__(comm, size)
            if what == "memory" and comm.rank == 1:
                self.of = fails
                if not name:
                    fails()
            made.append(self)

    monkeypatch.setattr(endpoint, "SharedMemory", Memory)

    def work(comm):
        gpu, backend = gpu_of(comm, kinds[comm.rank]), BACKEND
        if comm.rank == 1:
            if what == "gpu":
                setattr(gpu, name, fails)
            if what == "backend":
                backend = SimpleNamespace(zeros=fails, to_device=BACKEND.to_device)
            if what == "requests":
                dup = comm.mpi_comm.Dup
                comm.mpi_comm.Dup = lambda: without_requests(dup())
        with pytest.raises(MemoryError, match="nothing is left") as caught:
            Endpoint(backend, None, gpu, comm, layout(comm.rank, everybody), "float64", WIDTHS, "fp64", asked)
        assert caught.value.everywhere
        return gpu is None or not (gpu.opened or gpu.locked)

    assert run_threads((0, 0, 0), work) == [True] * 3
    # What not all have made, not all can close together: it is left to the end of the processes.
    assert all(memory.closed for memory in made) or fault == "pages"


def without_requests(mpi_comm):
    mpi_comm.Send_init = fails
    return mpi_comm


@pytest.mark.parametrize("what", ["window", "communicator"])
def test_what_all_ranks_make_together_fails_on_one(monkeypatch, what):
    """The others wait for it within MPI: it does not wait for them for good, and its GPU is left in order."""
    monkeypatch.setattr(endpoint, "GRACE", 0.05)
    kinds, everybody = (OWN, OWN, CPU), list(combinations(range(3), 2))
    gpus = {}

    class Memory(ThreadMemory):
        def __init__(self, comm, size):
            if what == "window" and comm.rank == 1:
                fails()
            super().__init__(comm, size)

    monkeypatch.setattr(endpoint, "SharedMemory", Memory)

    def work(comm):
        gpus[comm.rank] = gpu = gpu_of(comm, kinds[comm.rank])
        if what == "communicator":
            comm.aside()
            if comm.rank == 1:
                comm.mpi_comm.Dup = fails
        endpoint_of(comm, gpu, everybody, "ipc")

    told = run_threads((0, 0, 0), work)
    assert [type(error) for error in told] == [Deserted, MemoryError, Deserted]
    assert all(gpu is None or not gpu.opened for gpu in gpus.values())


@pytest.mark.parametrize(("hosts", "failed"), [((0, 0), None), ((0, 1), "the ranks are on several hosts")])
def test_copies_between_gpus_are_measured_where_they_can_be(hosts, failed, monkeypatch):
    device = SimpleNamespace(name="cuda", copy=np.copyto, synchronize=lambda: None)
    own = threading.local()
    monkeypatch.setattr("hiresx.exchange.gpu.Gpu", lambda: own.gpu)
    monkeypatch.setattr(measured, "COPIED", 1000)

    def work(comm):
        own.gpu = StandInGpu(f"GPU {comm.rank}", comm)
        return measured.copies(comm, device, 1), own.gpu.opened

    for rows, opened in run_threads(hosts, work):
        assert [row["copy"] for row in rows] == ["GPU to host", "host to GPU", "GPU to GPU"] and opened == []
        assert rows[2].get("failed") == failed and (failed or rows[2]["gb_per_s"] > 0)
