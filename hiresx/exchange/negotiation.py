"""Properties of all ranks, gathered before the first exchange, and the transports that are chosen from them."""

from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from hiresx.exchange import cuda_aware
from hiresx.exchange.buffer_layout import BufferLayout
from hiresx.exchange.choice import RankFacts, choose
from hiresx.exchange.gpu import Gpu
from hiresx.exchange.halo_layout import HaloLayout
from hiresx.exchange.signalled_memory import extra_bytes
from hiresx.mpi import shared_memory
from hiresx.mpi.communicator import Communicator, is_on_all_ranks

# Transports that open the GPU memory of other ranks.
OPENING = frozenset({"ipc", "signals"})

# Written into GPU memory, together with the rank, to test whether another process can read it.
MARK = 0x48616C6F


class Negotiation:
    """The facts that all ranks have gathered before the first exchange, and the transports that follow from them.
    `facts`: the facts of all ranks. `pairs`: the transport of each pair (lower rank, higher rank). `names`: the
    transport between this rank and each peer. `opened`: GPU memory of peers that this rank can read.

    `gpu`: the GPU of this rank, or None. `layout`, `buffer_layout`: its ghosts with their ranks, and its message
    buffers. `packed`: the GPU memory into which this rank packs its messages; None on a CPU. `precision`: the name of
    the precision. `asked`: the transport that the user requests, or "auto". Collective. Raises the errors of `choose`,
    after memory of peers that was opened is closed.
    """

    def __init__(
        self, comm: Communicator, gpu: Gpu | None, layout: HaloLayout, buffer_layout: BufferLayout, precision: str,
        asked: str, packed: Any,
    ):  # fmt: skip
        self._comm, self._gpu, self._layout, self._buffer_layout = comm, gpu, layout, buffer_layout
        self.opened: dict[int, Any] = {}
        with comm.together():
            own = RankFacts(
                host=comm.hosts[comm.rank],
                asked=asked,
                gpu=None if gpu is None else gpu.name,
                cuda_fault=None if gpu is None else cuda_aware.obstacle(),
                precision=precision,
                widths=tuple(buffer_layout.widths),
                sends={peer.rank: peer.out for peer in layout.peers},
                receives={peer.rank: peer.into for peer in layout.peers},
                points=layout.sent,
                room=shared_memory.room(),
            )
        self.facts: list[RankFacts] = comm.allgather(own)
        self.pairs = self._choose()
        # All ranks answer, also those without a GPU, so that all agree whether memory is opened.
        if OPENING.intersection(self.pairs.values()) and any(facts.gpu is not None for facts in self.facts):
            try:
                faults = comm.allgather(self._open(packed))
                self.facts = [replace(facts, closed=closed) for facts, closed in zip(self.facts, faults, strict=True)]
                self.pairs = self._choose()
            except BaseException as error:
                self.close(error)
                raise

    @property
    def names(self) -> dict[int, str]:
        """Name of the transport between this rank and each rank with which it exchanges ghosts, as a dictionary from
        the rank."""
        own = self._comm.rank
        return {p.rank: self.pairs[min(own, p.rank), max(own, p.rank)] for p in self._layout.peers}

    def _choose(self) -> dict[tuple[int, int], str]:
        with self._comm.together():
            return choose(self.facts, self._spare_room())

    def _spare_room(self) -> dict[int, bool]:
        """Return for each host whether it has enough shared memory for the messages of all of its ranks."""
        room: dict[int, float] = {}
        for facts in self.facts:
            room[facts.host] = min(room.get(facts.host, np.inf), facts.room)
        for facts in self.facts:
            signals = extra_bytes(len(self.facts), len(self._buffer_layout.widths)) if facts.asked == "signals" else 0
            room[facts.host] -= self._buffer_layout.size(facts.points) + signals + shared_memory.SPARE
        return {host: left >= 0 for host, left in room.items()}

    def _open(self, packed: Any) -> dict[int, str]:
        """Open the GPU memory of the peers that are reached by "ipc", or of all ranks for "signals"; nothing on a CPU.
        Returns the reasons of failures, by rank. Collective."""
        comm = self._comm
        signalled = "signals" in self.pairs.values()
        peers = [rank for rank, name in self.names.items() if name == "ipc"]
        if signalled:
            peers = [rank for rank in range(comm.size) if rank != comm.rank]
        handle, closed = None, {}
        with comm.together():
            if peers:
                try:
                    handle = self._memory_handle(packed)
                except RuntimeError as error:
                    closed = dict.fromkeys(peers, f"rank {comm.rank} cannot give others its GPU memory: {error}")
        handles = comm.allgather(handle)
        with comm.together():
            for rank in peers:
                if handles[rank] is None:
                    continue  # its owner reports the reason
                size = self._buffer_layout.size(self.facts[rank].points)
                size += extra_bytes(comm.size, len(self._buffer_layout.widths)) if signalled else 0
                try:
                    if not self._reaches(rank, handles[rank], size):
                        closed[rank] = f"rank {comm.rank} reads something else in the GPU memory of rank {rank}"
                except RuntimeError as error:
                    closed[rank] = f"rank {comm.rank} cannot open the GPU memory of rank {rank}: {error}"
        return closed

    def _memory_handle(self, packed: Any) -> bytes:
        """Return the handle of this rank's memory, which contains its mark."""
        assert self._gpu is not None
        self._gpu.write(packed, MARK + self._comm.rank)
        return self._gpu.handle(packed)

    def _reaches(self, rank: int, handle: bytes, size: int) -> bool:
        """Open the memory of a rank. Returns whether it contains the mark of that rank."""
        assert self._gpu is not None
        self.opened[rank] = self._gpu.open(handle, size)
        return self._gpu.read(self.opened[rank]) == MARK + rank

    def close(self, error: BaseException | None = None) -> None:
        """Close the GPU memory of other ranks that this rank has opened, and wait until all ranks have done so; only
        then may a rank free its own memory. `error`: the exception that ends the exchange, or None. Collective, unless
        only this rank has raised `error`; then this call does not wait."""
        for memory in self.opened.values():
            assert self._gpu is not None
            with suppress(*([] if error is None else [RuntimeError])):  # it would hide the first error
                self._gpu.close(memory)
        self.opened = {}
        if error is None or is_on_all_ranks(error):
            self._comm.barrier()
