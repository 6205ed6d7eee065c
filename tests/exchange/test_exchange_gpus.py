"""Exchange between GPUs: made of this host's memory, working as late as they may, and real ones."""

import random
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from exchange_arrangements import Place, exchanged, several, shared
from ranks import run_ranks

from hiresx.device import backend, cuda
from hiresx.device.dependency_graph import launch_one_by_one
from hiresx.device.native import Array
from hiresx.errors import HiresxError
from hiresx.exchange import cuda_aware, gpu, halo

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

    def close(self, array):
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

        def run(call):
            self.stream.add(lambda: program.run(call))
            if self._dice.random() < self._haste:
                self.synchronize()

        def launch(name, extent, /, **arguments):
            run(program.call(name, extent, **arguments))

        late = SimpleNamespace(signatures=program.signatures, call=program.call, run=run, launch=launch)
        late.prepare = lambda calls: launch_one_by_one(late, calls)
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
    ("staged", (0, 1, 2), False),
    ("mpi", (1,), True),
    ("window", (1, 2), False),
    ("auto", (0, 2), True),
    ("auto", (0, 1), False),
    ("ipc", (1, 2), False),
)


def late(comm, folder, seeds):
    mpi_comm, hosts, found = comm.mpi_comm.Dup(), comm.hosts, []
    for transport, gpus, apart in MODES:
        # The GPUs' MPI says nothing of their memory unless they are asked to let it have that.
        cuda_aware.obstacle = lambda transport=transport: None if transport == "cuda-aware" else "it does not say"
        comm.hosts = tuple(range(comm.size)) if apart else hosts
        place = Place("cpu")
        if comm.rank in gpus:
            # Some hurry with what they send, some are late with what they read.
            place = LatePlace(folder, comm.rank, (0.0, 0.5, 0.05)[comm.rank % 3])
            gpu = LateGpu(place.stream, folder)
            gpu.name, gpu.mpi_comm = f"late {comm.rank}", mpi_comm
            halo._gpu = lambda backend, gpu=gpu: gpu if backend.name == "cuda" else None
        for seed in seeds:
            delays = random.Random(comm.rank + seed)
            wrong = exchanged(place, shared(seed, comm), comm, transport, delays, moments=7)
            found += [f"{transport}, GPUs {gpus}: {what}" for what in wrong]
    return found


@pytest.mark.slow
def test_late_gpus(tmp_path):
    assert run_ranks(3, late, str(tmp_path), range(3)) == [[]] * 3


# --- on GPUs


def on_gpus(comm, transport, names):
    try:
        return several(comm, transport, names, range(6))
    except HiresxError as error:
        assert error.everywhere
        return error.message


@pytest.mark.skipif(cuda.obstacle() is not None, reason="no GPU")
@pytest.mark.parametrize("transport", ["auto", "signals", "cuda-aware", "ipc", "staged", "mpi"])
@pytest.mark.parametrize("names", [["cuda"] * 2, ["cuda"] * 4, ["cuda", "cpu", "cuda"]], ids=",".join)
def test_on_gpus(transport, names):
    found = run_ranks(len(names), on_gpus, transport, names, timeout=120)
    if isinstance(found[0], str):
        pytest.skip(found[0])
    assert found == [[]] * len(names)


@pytest.mark.parametrize(("asked", "taken"), [(0, 1), (7, 1), (gpu.PIECE, 1), (gpu.PIECE + 1, 2)])
def test_memory_of_a_gpu_is_taken_in_whole_pieces(asked, taken, monkeypatch):
    """And has room for the number by which others know it."""
    sizes, anything = [], SimpleNamespace(record=lambda *_: None, synchronize=lambda: None)
    memory = SimpleNamespace(Memory=sizes.append, OutOfMemoryError=MemoryError)
    made = SimpleNamespace(
        runtime=SimpleNamespace(CUDARuntimeError=RuntimeError), memory=memory, MemoryPointer=lambda *_: None,
        get_current_stream=lambda: anything, Stream=lambda **_: anything, Event=lambda **_: anything,
        Device=lambda: SimpleNamespace(id=0),
    )  # fmt: skip
    cupy = SimpleNamespace(
        cuda=made, ndarray=lambda shape, dtype, memptr: np.ones(shape, dtype),
        get_default_memory_pool=lambda: SimpleNamespace(free_all_blocks=lambda: None),
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setattr(gpu.cuda, "device", lambda number: SimpleNamespace(address="0000:01:00.0"))
    found = gpu.Gpu().memory(asked)
    assert sizes == [taken * gpu.PIECE] and found.nbytes == max(asked, 8) and not found.any()
