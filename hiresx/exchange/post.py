"""Memory for messages, and the transports that carry them, agreed with the other ranks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hiresx.device.native import Array
from hiresx.exchange import cuda_aware, window
from hiresx.exchange.choice import STAGED, Facts, choose
from hiresx.exchange.cuda_aware import CudaAware
from hiresx.exchange.ipc import Ipc
from hiresx.exchange.layout import Layout, Peer
from hiresx.exchange.mpi import Mpi
from hiresx.exchange.nccl import Nccl
from hiresx.exchange.staged import Staged
from hiresx.exchange.transport import Transport
from hiresx.exchange.window import SharedMemory, Window

# Bytes: buffers begin on cache lines of their own.
ALIGNMENT = 64
# Written into GPU memory, with the rank, to see whether another process reads what is there.
MARK = 0x48616C6F


@dataclass
class Mail:
    """What carries one quantity: per turn the buffer to pack, and the transports."""

    outgoing: Sequence[Any]
    transports: Sequence[Transport]


class Post:
    """What all quantities share: memory, a communicator, and which transport leads to which peer (`names`).

    `gpu`: a `hiresx.exchange.gpu.Gpu`, or None on a CPU. `widths`: reals of `dtype` per point of each quantity.
    `mail`: one per quantity. Collective. Raises HiresxError as `choose`, on all ranks.
    """

    def __init__(
        self, backend, gpu, team, layout: Layout, dtype: np.dtype, widths: Sequence[int], asked: str
    ):  # fmt: skip
        self._backend, self._gpu, self._team, self._layout = backend, gpu, team, layout
        self._dtype, self._widths = np.dtype(dtype), tuple(widths)
        self._opened: dict[int, Any] = {}
        with team.together():
            facts = self._own_facts(asked)
            packed = None if gpu is None else gpu.memory(self._size(layout.sent))
        self._facts: list[Facts] = team.everyone(facts)
        names = self._agree()
        if "ipc" in names.values():
            self._open(names, packed)
            names = self._agree()
        self.names = {peer.rank: names[_pair(team.rank, peer.rank)] for peer in layout.peers}

        self._window = self._shared_memory(names)
        self._communicator = None
        if "nccl" in names.values():
            with team.together():
                identity = gpu.nccl_identity() if team.root else None
            self._communicator = gpu.nccl(team.size, team.share(identity), team.rank)
        self._comm = team.comm.Dup()
        with team.together():
            self.mail = self._mail(packed)

    # ---- agreement

    def _agree(self) -> dict[tuple[int, int], str]:
        with self._team.together():
            return choose(self._facts, self._spare_room())

    def _own_facts(self, asked: str) -> Facts:
        gpu, layout = self._gpu, self._layout
        return Facts(
            host=self._team.hosts[self._team.rank],
            asked=asked,
            gpu=None if gpu is None else gpu.name,
            cuda_fault=None if gpu is None else cuda_aware.fault(),
            reals=self._dtype.itemsize,
            sends={peer.rank: peer.out for peer in layout.peers},
            receives={peer.rank: peer.into for peer in layout.peers},
            points=layout.sent,
            room=window.room(),
        )

    def _spare_room(self) -> dict[int, bool]:
        """By host, whether all of its ranks can have their messages in shared memory."""
        room: dict[int, float] = {}
        for facts in self._facts:
            left = min(room.get(facts.host, np.inf), facts.room)
            room[facts.host] = left
        for facts in self._facts:
            room[facts.host] -= self._size(facts.points) + window.SPARE
        return {host: left >= 0 for host, left in room.items()}

    def _open(self, names: Mapping[tuple[int, int], str], packed: Any) -> None:
        """Open the GPU memory of the peers to be reached by "ipc"; what fails is told to all."""
        team, gpu = self._team, self._gpu
        peers = [p.rank for p in self._layout.peers if names[_pair(team.rank, p.rank)] == "ipc"]
        handle = None
        if peers:
            gpu.write(packed, MARK + team.rank)
            handle = gpu.handle(packed)
        handles = team.everyone(handle)
        closed = {}
        for rank in peers:
            try:
                self._opened[rank] = gpu.open(handles[rank], self._size(self._facts[rank].points))
                if gpu.read(self._opened[rank]) != MARK + rank:
                    closed[rank] = f"rank {team.rank} reads something else in the GPU memory of rank {rank}"
            except RuntimeError as error:
                closed[rank] = f"rank {team.rank} cannot open the GPU memory of rank {rank}: {error}"
        told = team.everyone(closed)
        self._facts = [replace(facts, closed=closed) for facts, closed in zip(self._facts, told, strict=True)]

    # ---- memory

    def _size(self, points: int) -> int:
        """Bytes of the messages of all quantities with two turns each."""
        return sum(2 * _aligned(points * width * self._dtype.itemsize) for width in self._widths)

    def _buffers(self, memory: Any, points: int) -> list[list[Any]]:
        """`memory` of `_size(points)` bytes as arrays of reals, by quantity and turn. All ranks divide theirs alike."""
        start, found = 0, []
        for width in self._widths:
            size = points * width * self._dtype.itemsize
            found.append([memory[s : s + size].view(self._dtype) for s in (start, start + _aligned(size))])
            start += 2 * _aligned(size)
        return found

    def _messages(self, memory: Mapping[int, Any]) -> list[list[dict[int, Any]]]:
        """By quantity, turn and peer, the arrays in the peers' `memory` that hold what they send to this rank."""
        found = [[{}, {}] for _ in self._widths]
        for rank, its in memory.items():
            first, last = self._facts[rank].sends[self._team.rank]
            for into, width, buffers in zip(
                found, self._widths, self._buffers(its, self._facts[rank].points), strict=True
            ):
                for turn in (0, 1):
                    into[turn][rank] = buffers[turn][width * first : width * last]
        return found

    def _shared_memory(self, names: Mapping[tuple[int, int], str]) -> SharedMemory | None:
        """Made by all ranks of a host if two of them need it."""
        team = self._team
        here = [rank for rank, host in enumerate(team.hosts) if host == team.hosts[team.rank]]
        if not any(name.endswith("window") and pair[0] in here for pair, name in names.items()):
            return None
        mine = any(name.endswith("window") for name in self.names.values())
        return SharedMemory(team, self._size(self._layout.sent) if mine else 0)

    def _host_bytes(self, size: int) -> np.ndarray:
        return self._backend.zeros((size,), "uint8") if self._gpu is None else self._gpu.host_memory(size)

    # ---- transports

    def _mail(self, packed: Any) -> list[Mail]:
        gpu, layout = self._gpu, self._layout
        by_name: dict[str, list[Peer]] = {}
        for peer in layout.peers:
            name = self.names[peer.rank]
            # A CPU rank does not stage, whatever its peer does.
            by_name.setdefault(name if gpu is not None else name.removeprefix(STAGED), []).append(peer)
        over_mpi, over_window = by_name.keys() & {"mpi", STAGED + "mpi"}, by_name.keys() & {"window", STAGED + "window"}
        received = self._size(layout.received)

        sent = into = None
        if over_window:
            sent = self._buffers(self._mapped(self._window.own), layout.sent)
        elif over_mpi or gpu is None:
            sent = self._buffers(self._host_bytes(self._size(layout.sent)), layout.sent)
        if over_mpi:
            into = self._buffers(self._host_bytes(received), layout.received)
        outgoing, incoming = sent, into
        if gpu is not None:
            outgoing = self._buffers(packed, layout.sent)
            incoming = self._buffers(gpu.memory(received), layout.received)
        shared = {}
        for name in over_window:
            shared = self._messages({p.rank: self._mapped(self._window.of(p.rank)) for p in by_name[name]})
        opened = self._messages(self._opened) if "ipc" in by_name else None

        found = []
        for tag, width in enumerate(self._widths):
            transports = []
            for name, peers in by_name.items():
                if name in over_window:
                    transport = Window(self._comm, tag, peers, shared[tag], self._window)
                elif name in over_mpi:
                    transport = Mpi(self._comm, tag, peers, sent[tag], into[tag], width)
                elif name == "cuda-aware":
                    transport = CudaAware(self._comm, tag, peers, outgoing[tag], incoming[tag], width, gpu)
                elif name == "ipc":
                    transport = Ipc(self._comm, tag, peers, opened[tag], gpu)
                else:
                    transport = Nccl(self._communicator, peers, outgoing[tag], incoming[tag], width, gpu)
                if name.startswith(STAGED):
                    transport = Staged(transport, outgoing[tag], sent[tag], incoming[tag], width, gpu)
                transports.append(transport)
            found.append(Mail(outgoing[tag], transports))
        return found

    def _mapped(self, memory: np.ndarray) -> np.ndarray:
        """Shared memory as this rank's kernels or copies take it best."""
        if self._gpu is not None:
            self._gpu.lock(memory)
            return memory
        return memory.view(Array)

    def close(self) -> None:
        """Give back what MPI and CUDA hold. Collective."""
        for mail in self.mail:
            for transport in mail.transports:
                transport.close()
        for memory in self._opened.values():
            self._gpu.shut(memory)
        if self._gpu is not None:
            self._gpu.unlock()
        # Nobody frees what others still have open.
        self._team.barrier()
        if self._window is not None:
            self._window.close()
        self._comm.Free()


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _pair(a: int, b: int) -> tuple[int, int]:
    return min(a, b), max(a, b)
