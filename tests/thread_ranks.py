"""Ranks that are threads of the test: `run_threads(3, function)`, with as much of MPI as the exchange needs, and GPUs
that are memory of the host. They start in a millisecond, so that hundreds of arrangements can be tried."""

import pickle
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from hiresx.mpi.communicator import Communicator

# Seconds after which a rank that waits for another one waits for good.
LONG = 20.0


class Deserted(Exception):
    """A rank waited for one that has ended, or that never came."""


class Shared:
    """What the ranks of a communicator have in common. `ended`: ranks of the job that are gone."""

    def __init__(self, size: int, ended: list[int]):
        self.size, self.ended = size, ended
        self.changed = threading.Condition()
        self.told: defaultdict[int, dict[int, Any]] = defaultdict(dict)
        self.messages: defaultdict[tuple[int, int, int], deque[bytes]] = defaultdict(deque)
        self.duplicates: dict[int, Shared] = {}
        self.memories: dict[bytes, np.ndarray] = {}

    def until(self, come: Callable[[], bool], seconds: float = LONG) -> None:
        end = time.monotonic() + seconds
        with self.changed:
            while not come():
                if self.ended or time.monotonic() > end:
                    raise Deserted("somebody is waited for who does not come")
                self.changed.wait(0.01)


class Request:
    """Completed when `take` says so, which is asked again and again until then."""

    def __init__(self, shared: Shared, take: Callable[[], bool]):
        self._shared, self._take = shared, take
        self.under_way = True

    def Start(self) -> None:
        self.under_way = True

    def Test(self) -> bool:
        if self.under_way and self._take():
            self.under_way = False
        return not self.under_way

    def Wait(self) -> None:
        self._shared.until(self.Test)

    def Free(self) -> None:
        assert not self.under_way


class Sent(Request):
    """One whose message leaves when it is started."""

    def Start(self) -> None:
        super().Start()
        self.Test()


class ThreadComm:
    """What mpi4py's communicators offer, of rank `rank`."""

    def __init__(self, rank: int, shared: Shared):
        self.rank, self.shared = rank, shared
        self._calls = 0
        self.freed = False

    def Get_rank(self) -> int:
        return self.rank

    def Get_size(self) -> int:
        return self.shared.size

    def _tell(self, thing: Any) -> dict[int, Any]:
        """Begins a collective call; what all have told in it so far."""
        self._calls += 1
        with self.shared.changed:
            told = self.shared.told[self._calls]
            told[self.rank] = thing
            self.shared.changed.notify_all()
        return told

    def share(self, thing: Any) -> list[Any]:
        """The very things of all ranks."""
        told = self._tell(thing)
        self.shared.until(lambda: len(told) == self.shared.size)
        return [told[rank] for rank in range(self.shared.size)]

    def allgather(self, thing: Any) -> list[Any]:
        return [pickle.loads(found) for found in self.share(pickle.dumps(thing))]

    def bcast(self, thing: Any, root: int) -> Any:
        return self.allgather(thing)[root]

    def Barrier(self) -> None:
        self.share(None)

    def Allgather(self, values: np.ndarray, rows: np.ndarray) -> None:
        rows[...] = self.allgather(values)

    def Iallgather(self, values: np.ndarray, rows: np.ndarray) -> Request:
        told = self._tell(values.copy())

        def take() -> bool:
            if len(told) < self.shared.size:
                return False
            rows[...] = np.concatenate([told[rank] for rank in range(self.shared.size)])
            return True

        return Request(self.shared, take)

    def Dup(self) -> "ThreadComm":
        self.share(None)
        with self.shared.changed:
            again = self.shared.duplicates.setdefault(self._calls, Shared(self.shared.size, self.shared.ended))
        return ThreadComm(self.rank, again)

    def Free(self) -> None:
        assert not self.freed
        self.share(None)
        self.freed = True

    def Send_init(self, memory: Any, rank: int, tag: int) -> Request:
        def take() -> bool:
            with self.shared.changed:
                self.shared.messages[self.rank, rank, tag].append(bytes(memory))
                self.shared.changed.notify_all()
            return True

        found = Sent(self.shared, take)
        found.under_way = False
        return found

    def Recv_init(self, memory: Any, rank: int, tag: int) -> Request:
        def take() -> bool:
            waiting = self.shared.messages[rank, self.rank, tag]
            if not waiting:
                return False
            message = waiting.popleft()
            assert len(message) == memoryview(memory).nbytes
            if message:
                np.frombuffer(memory, np.uint8)[...] = np.frombuffer(message, np.uint8)
            return True

        found = Request(self.shared, take)
        found.under_way = False
        return found


class ThreadMemory:
    """`hiresx.exchange.window.SharedMemory` of ranks that are threads."""

    def __init__(self, comm: Communicator, size: int):
        here = [rank for rank, host in enumerate(comm.hosts) if host == comm.hosts[comm.rank]]
        self._comm, self.own, self.closed = comm.local.mpi_comm, np.zeros(size, np.uint8), False
        self._all = dict(zip(here, self._comm.share(self.own), strict=True))

    def of(self, rank: int) -> np.ndarray:
        return self._all[rank]

    def sync(self) -> None:
        pass

    def close(self) -> None:
        self._comm.Barrier()
        self.closed = True


class StandInGpu:
    """What `hiresx.exchange.gpu.Gpu` offers, made of the host's memory and done at once. `opened`: what it has open of
    others; `closed`: the names of GPUs whose memory it is refused."""

    def __init__(self, name: str, comm: Communicator, closed: Sequence[str] = ()):
        self.name, self._closed, self._comm = name, closed, comm.mpi_comm
        self.opened: list[np.ndarray] = []
        self.locked = 0

    def moment(self) -> Any:
        return SimpleNamespace(record=lambda: None, synchronize=lambda: None)

    def memory(self, size: int) -> np.ndarray:
        return np.zeros(max(size, 8), np.uint8)

    def host_memory(self, size: int) -> np.ndarray:
        return np.zeros(size, np.uint8)

    def lock(self, memory: np.ndarray) -> None:
        self.locked += 1

    def unlock(self) -> None:
        self.locked = 0

    def handle(self, array: np.ndarray) -> bytes:
        key = f"{self._comm.rank}|{self.name}|{id(array)}".encode()
        self._comm.shared.memories[key] = array
        return key

    def open(self, handle: bytes, size: int) -> np.ndarray:
        owner, name, _ = handle.decode().split("|")
        assert int(owner) != self._comm.rank
        if name in self._closed:
            raise RuntimeError("peer access is not supported")
        memory = self._comm.shared.memories[handle]
        assert memory.nbytes >= size
        self.opened.append(memory.view())
        return self.opened[-1]

    def close(self, array: np.ndarray) -> None:
        places = [n for n, opened in enumerate(self.opened) if opened is array]
        del self.opened[places[0]]

    def write(self, array: np.ndarray, number: int) -> None:
        array[:8].view(np.int64)[0] = number

    def read(self, array: np.ndarray) -> int:
        return int(array[:8].view(np.int64)[0])

    def copy_out(self, pairs: Any, packed: Any, copied: Any) -> None:
        for there, here in pairs:
            there[...] = here

    def copy_in(self, array: np.ndarray, host: np.ndarray) -> None:
        array[...] = host


def run_threads(hosts: Sequence[int], function: Callable[[Communicator], Any]) -> list[Any]:
    """What `function(comm)` returns or raises on every rank, one for each of `hosts`, which says where it is."""
    size, ended = len(hosts), []
    every = Shared(size, ended)
    local = {host: Shared(list(hosts).count(host), ended) for host in set(hosts)}
    results: list[Any] = [None] * size

    def work(rank: int) -> None:
        comm = Communicator(ThreadComm(rank, every))
        number = list(hosts[:rank]).count(hosts[rank])
        comm.__dict__ |= {
            "hosts": tuple(hosts),
            "local": Communicator(ThreadComm(number, local[hosts[rank]])),
        }
        try:
            results[rank] = function(comm)
        except BaseException as error:
            results[rank] = error
            if not getattr(error, "everywhere", False):
                ended.append(rank)

    threads = [threading.Thread(target=work, args=(rank,), daemon=True) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * LONG)
        assert not thread.is_alive()
    return results
